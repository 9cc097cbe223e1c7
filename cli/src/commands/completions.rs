//! `bench completions`.

use std::any::TypeId;

use bench_benchmarks::Benchmark;
use bench_domain::{MaxTokensField, OmittedSetting, Outcome, ReasoningEffort};
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::commands::runs;
use crate::exit::ExitStatus;
use crate::output;
use crate::run_ref::{LATEST, RunRef};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench completions bash > ~/.local/share/bash-completion/completions/bench
  bench completions zsh > ~/.zfunc/_bench
      with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  bench completions fish > ~/.config/fish/completions/bench.fish

New shells use it. Repeat the command after an update of bench.";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that will read the script
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, command_line: Command) -> anyhow::Result<ExitStatus> {
    output::write_bytes(&script(args.shell, command_line))?;
    Ok(ExitStatus::Success)
}

fn script(shell: Shell, command_line: Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_values(command_line), "bench", &mut script);
    script
}

fn names(names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(names)
}

/// Adds names of values to complete, such as those of benchmarks and outcomes. The command line itself accepts others: a
/// server may have further benchmarks, and runs have ids.
fn with_values(command: Command) -> Command {
    let is_about_benchmark = matches!(command.get_name(), "benchmarks" | "pull" | "rm");
    let names_of = |benchmark: &&'static dyn Benchmark| {
        std::iter::once(benchmark.name()).chain(benchmark.metadata().aliases.iter().copied())
    };
    let benchmarks = || names(bench_benchmarks::all().iter().flat_map(names_of));
    command.mut_subcommands(with_values).mut_args(|arg| match arg.get_id().as_str() {
        "outcome" => arg.value_parser(names(Outcome::ALL.iter().copied().map(Outcome::as_str))),
        "status" => arg.value_parser(names(runs::statuses())),
        "omit" => arg.value_parser(names(OmittedSetting::ALL.iter().map(|setting| setting.as_str()))),
        "reasoning_effort" => {
            arg.value_parser(names(ReasoningEffort::ALL.iter().map(|effort| effort.as_str())))
        }
        "max_tokens_field" => arg.value_parser(names(MaxTokensField::ALL.iter().map(|field| field.as_str()))),
        "benchmark" => arg.value_parser(benchmarks()),
        "name" if is_about_benchmark => arg.value_parser(benchmarks()),
        _ if arg.get_value_parser().type_id() == TypeId::of::<RunRef>() => arg.value_parser([LATEST]),
        _ => arg,
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::args::command_line;

    #[test]
    fn every_shell_gets_a_script_with_all_commands() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell, command_line())).unwrap();
            for command in command_line().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(script.contains("subset-count"), "{shell}");
        }
    }

    #[test]
    fn values_with_names_are_completed() {
        let zsh = String::from_utf8(script(Shell::Zsh, command_line())).unwrap();
        for (option, values) in [
            ("--outcome=", "incorrect"),
            ("--status=", "interrupted"),
            ("--omit=", "temperature"),
            ("--reasoning-effort=", "xhigh"),
            ("--max-tokens-field=", "max_completion_tokens"),
            ("--benchmark=", "ifeval"),
        ] {
            let mut lines = zsh.lines().filter(|line| line.contains(option)).peekable();
            assert!(lines.peek().is_some(), "{option}");
            for line in lines {
                assert!(line.contains(values) && !line.contains("_default"), "{line}");
            }
        }
        let bash = String::from_utf8(script(Shell::Bash, command_line())).unwrap();
        let mut lines = bash.lines().skip_while(|line| !line.contains("--outcome)"));
        assert!(lines.nth(1).unwrap().contains("compgen -W"), "no file names");
        assert!(bash.contains("ifeval"));
    }

    #[test]
    fn names_of_benchmarks_are_completed() {
        let script = |shell| String::from_utf8(super::script(shell, command_line())).unwrap();
        let zsh = script(Shell::Zsh);
        let offered = zsh.lines().filter(|line| line.contains("gpqa_diamond") && line.contains("mmlu_pro"));
        let places: Vec<&str> = offered.collect();
        for part in ["--benchmark=", ":benchmark -- ", ":name -- "] {
            assert!(places.iter().any(|line| line.contains(part)), "{part}\n{places:#?}");
        }
        assert!(zsh.lines().any(|line| line.contains(":run -- ") && line.contains("latest")));
        assert!(script(Shell::Bash).contains("mmlu_pro") && script(Shell::Fish).contains("mmlu_pro"));
    }
}
