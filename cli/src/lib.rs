//! The `bench` command: runs benchmarks on this machine, serves the API, and talks to servers.
//!
//! | module | contents |
//! | --- | --- |
//! | `args` | command-line parsing, `.env`, log setup |
//! | `config` | options of a run from a TOML file |
//! | `logs`, `causes` | merging of equal causes of many samples, in logs and in the reasons why a run failed |
//! | `commands` | commands, one file each |
//! | `judge_name` | name of a judge model |
//! | `client` | client of the HTTP API, either of a server or of the stack in this process |
//! | `views` | API responses, limited to the fields that are shown |
//! | `run_ref` | runs as named on the command line |
//! | `layout`, `characters` | width and character set of the output |
//! | `table`, `page` | tables and pages that fit the width of the output |
//! | `show`, `progress`, `output` | what is shown of runs, progress, and everything else that is printed |
//! | `question` | questions to the person at the terminal |
//! | `browser` | the user's web browser |
//!
//! Invariant: every command reads and changes runs through the HTTP API, over the network with `--server` and inside
//! the process without it, so both show the same. The only exception is ordering a run on this machine: files and
//! addresses are accepted from the command line, never from a request.

mod again;
mod agent_archive;
mod args;
mod bars;
mod browser;
mod causes;
mod characters;
mod client;
mod code_archive;
mod commands;
mod config;
mod data_dir;
mod encoding;
mod episodes;
mod exit;
mod format;
mod helper_keys;
mod judge_name;
mod layout;
mod logs;
mod output;
mod page;
mod progress;
mod question;
mod refusal;
mod run_ref;
#[cfg(test)]
mod screen_tests;
mod show;
mod table;
mod task_archive;
mod views;

use std::process::ExitCode;

use crate::exit::ExitStatus;

/// Version of the command and the commit that it was built from, as printed by `bench --version`.
pub(crate) const VERSION: &str = env!("BENCH_VERSION");

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    // Must run before any thread exists, since it changes the environment, and before arguments are parsed, since
    // variables replace missing ones.
    if let Err(error) = args::load_env_file() {
        return exit::report(&error).into();
    }
    let cli = match args::Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Success };
            output::print_usage(&error);
            return status.into();
        }
    };
    args::start_logs(cli.verbose, cli.command.serves());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("could not start")).into(),
    };
    let status = runtime
        .block_on(commands::run(cli.command, args::command_line))
        .unwrap_or_else(|error| exit::report(&error));
    // Threads that wait for input or the network must not keep the process alive.
    runtime.shutdown_background();
    status.into()
}
