//! The `bench` command: runs benchmarks on this machine, serves the API, and talks to servers.
//!
//! | module | what for |
//! | --- | --- |
//! | `args` | the command line as a whole, `.env`, logs |
//! | `logs`, `causes` | what many samples end with is told once: in logs, and why a run failed |
//! | `commands` | one file per command |
//! | `judge_name` | the name of a model that judges |
//! | `client` | the HTTP API: of a server, or of the stack in this process |
//! | `views` | what the API answers, as far as it is shown |
//! | `show`, `progress`, `output` | tables, progress and everything else that is printed |
//!
//! What holds here: every command reads and changes runs through the HTTP API, with `--server` over the network
//! and without it inside the process, so both show the same. Only ordering a run on this machine goes past it:
//! files and addresses are accepted from the command line, never from a request.

mod args;
mod bars;
mod causes;
mod client;
mod commands;
mod data_dir;
mod exit;
mod format;
mod judge_name;
mod logs;
mod output;
mod progress;
mod refused;
mod show;
mod views;

use std::process::ExitCode;

use crate::exit::ExitStatus;

/// Version of the command and the commit it was built from, as `bench --version` prints them.
pub(crate) const VERSION: &str = env!("BENCH_VERSION");

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    // Before any thread exists, since it changes the environment; and before the arguments are read, since
    // variables stand in for them.
    if let Err(error) = args::load_env_file() {
        return exit::report(&error).into();
    }
    let cli = match args::Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Success };
            // A closed pipe is the only way to fail, and then nobody reads.
            let _ = error.print();
            return status.into();
        }
    };
    args::start_logs(cli.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("could not start")).into(),
    };
    let status = runtime.block_on(commands::run(cli.command)).unwrap_or_else(|error| exit::report(&error));
    // Threads that wait for input or for the network must not keep the process.
    runtime.shutdown_background();
    status.into()
}
