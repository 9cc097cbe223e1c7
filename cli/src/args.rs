//! Command-line parsing, `.env`, and log setup.

use std::ffi::OsString;

use anyhow::Context;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Effects};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::commands::Command;
use crate::config::{with_config, with_file_name};
use crate::exit::Problem;
use crate::logs::{Notices, RepeatedWarningFilter};
use crate::output;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::Green.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::Cyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

/// Measures language models on benchmarks, and signs the results so that others can check them.
#[derive(Debug, Parser)]
#[command(name = "bench", version = crate::VERSION, styles = STYLES, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print more log messages; -vv prints all of them (RUST_LOG overrides it)
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = None, display_order = 900)]
    pub(crate) verbose: u8,
}

/// Describes the whole command line.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}

impl Cli {
    /// Parses the command line.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let command = Self::command().mut_subcommands(without_empty_variables);
        let parse = |args: &[OsString]| {
            let matches = command.clone().try_get_matches_from(args);
            matches.map_err(|error| with_variable_name(error, &command, args))
        };
        let mut matches = parse(&args)?;
        if let Some(all) = with_config(&args, &command, &matches)? {
            matches = parse(&all).map_err(|error| with_file_name(error, &matches))?;
        }
        let mut cli = Self::from_arg_matches(&matches)?;
        if let (Command::Requeue(requeue), Some(matches)) =
            (&mut cli.command, matches.subcommand_matches("requeue"))
        {
            requeue.work.is_concurrency_given =
                matches.value_source("concurrency") == Some(ValueSource::CommandLine);
        }
        if let (Command::Run(run), Some(matches)) = (&mut cli.command, matches.subcommand_matches("run")) {
            let ids = matches.ids().map(clap::Id::as_str);
            let given = ids.filter(|id| {
                // Skips argument groups: they have no value source of their own.
                matches.try_contains_id(id).is_ok()
                    && matches.value_source(id) == Some(ValueSource::CommandLine)
            });
            run.given = given.map(str::to_owned).collect();
            run.work.is_concurrency_given = run.given.iter().any(|id| id == "concurrency");
            if let Some(id) = run.given.iter().find(|id| is_empty(matches, id)) {
                // An unset shell variable must not order a run of everything.
                let text = format!(
                    "the value of --{} is empty; give a value, or leave the option out\n",
                    id.replace('_', "-")
                );
                return Err(clap::Error::raw(ErrorKind::InvalidValue, text));
            }
        }
        Ok(cli)
    }
}

/// Returns true if the command line gives an option an empty value.
fn is_empty(matches: &ArgMatches, id: &str) -> bool {
    let mut values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    // A line break is a text that ends an answer.
    let is_blank = |text: &str| if id == "stop" { text.is_empty() } else { text.trim().is_empty() };
    values.any(|value| is_blank(&value.to_string_lossy()))
}

/// Adds the variable's name to an error about a value that came from a variable.
fn with_variable_name(mut error: clap::Error, command: &clap::Command, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return error };
    let Some(long) = option.strip_prefix("--").and_then(|rest| rest.split([' ', '=']).next()) else {
        return error;
    };
    let given: Vec<_> = args.iter().skip(1).map(|arg| arg.to_string_lossy()).collect();
    let (mut command, mut found) = (command, None);
    for word in &given {
        command = command.find_subcommand(word.as_ref()).unwrap_or(command);
        found = command.get_arguments().find(|arg| arg.get_long() == Some(long)).or(found);
    }
    let Some((arg, variable)) = found.and_then(|arg| Some((arg, arg.get_env()?))) else { return error };
    let is_given = given.iter().any(|word| match word.strip_prefix("--") {
        Some(word) => word.split('=').next() == Some(long),
        None => arg.get_short().is_some_and(|short| word.starts_with(&format!("-{short}"))),
    });
    if !is_given && std::env::var_os(variable).is_some() {
        let tip = format!("the value comes from the variable `{}`", variable.to_string_lossy());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Treats empty variables as unset, and hides variable values in help, so that help is the same on every machine.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_subcommands(without_empty_variables).mut_args(|arg| {
        let is_empty = |name: &std::ffi::OsStr| {
            std::env::var_os(name).is_some_and(|value| value.to_string_lossy().trim().is_empty())
        };
        match arg.get_env().map(is_empty) {
            Some(true) => arg.env(None),
            _ => arg.hide_env_values(true),
        }
    })
}

const EXAMPLES: &str = "\
Examples:
  bench run --model oracle --demo
      a first run on bundled demo items: no account and no network needed
  bench run --model chutes/MODEL --benchmark mmlu_pro --subset-count 100
  bench runs                               list runs and their scores
  bench verify bench-results/*.zip         check signed archives
  bench view latest                        the newest run in the browser
  bench serve                              page and API at http://127.0.0.1:3000
  bench doctor                             check this machine

An option marked [env: NAME] can also be set by that variable, or in a file
`.env` in the current folder. `bench COMMAND --help` explains a command.";

/// Loads `.env` from the current folder. Variables that are already set keep their values.
pub(crate) fn load_env_file() -> anyhow::Result<()> {
    match dotenvy::from_path(".env") {
        Ok(()) => Ok(()),
        Err(error) if error.not_found() => Ok(()),
        // The error's own text shows the line, which may contain a key.
        Err(dotenvy::Error::LineParse(line, _)) => {
            let name: String = line
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == ' ')
                .take(64)
                .collect();
            let message =
                format!("could not read `.env`: the line that starts with `{name}` is not NAME=VALUE");
            Err(Problem::usage(message)
                .hint("put a value with spaces or special characters in quotes")
                .into())
        }
        Err(error) => Err(error).context("could not read `.env`"),
    }
}

/// Sends logs to standard error: as lines of a log if the user asks for it or the command serves others, otherwise as
/// warnings of the command.
pub(crate) fn start_logs(verbose: u8, serves: bool) {
    let default = match verbose {
        // `bench_datasets`: the commands print notes about datasets themselves. `aws_smithy_runtime`: the SDK warns
        // about connections, which the services in this process don't use.
        0 => "warn,bench_datasets=error,aws_smithy_runtime=off,s3s=off",
        1 => "info,dynoxide=warn,s3s=warn,hyper=warn",
        _ => "debug,hyper=info,h2=info,rustls=info",
    };
    let directives = std::env::var("RUST_LOG").ok().filter(|directives| !directives.trim().is_empty());
    // Users who ask for logs get all of them.
    let quiet = verbose == 0 && directives.is_none();
    let filter = EnvFilter::builder().parse(directives.as_deref().unwrap_or(default));
    let filter = filter.unwrap_or_else(|error| {
        output::warn(&format!("RUST_LOG is ignored: {error}"));
        EnvFilter::new(default)
    });
    if quiet && !serves {
        tracing_subscriber::registry().with(filter).with(Notices::default()).init();
        return;
    }
    let filter_repeated = quiet.then(RepeatedWarningFilter::default);
    let colors = output::has_colors() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(crate::bars::log_writer)
        .with_ansi(colors)
        .with_target(verbose > 1)
        .finish()
        .with(filter_repeated)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_by_example() {
        let mut commands: Vec<clap::Command> = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("bench "), "{}", command.get_name());
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: this line is broken: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
