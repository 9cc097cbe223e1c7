//! Benchmark-specific settings on the command line.

use std::collections::BTreeMap;

use bench_benchmarks::{Benchmark, CUSTOM_CONTENT, OptionMetadata, Options};

use super::find_benchmark;
use crate::exit::Problem;

/// Options by benchmark.
pub(crate) type OptionsByBenchmark = BTreeMap<String, Options>;

/// Parses `BENCHMARK.NAME=VALUE`, or `NAME=VALUE` if the order has one benchmark. A server may have further options.
pub(crate) fn parse_options(
    given: &[String],
    benchmarks: &[String],
    protocols: &BTreeMap<String, String>,
    remote: bool,
) -> anyhow::Result<OptionsByBenchmark> {
    let mut options = OptionsByBenchmark::new();
    for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let (place, value) = text
            .split_once('=')
            .ok_or_else(|| Problem::usage(format!("--option: `{text}` is not BENCHMARK.NAME=VALUE")))?;
        let (benchmark, name) = match (place.split_once('.'), benchmarks) {
            (Some((group, _)), [only]) if has_group(only, group.trim()) => (only.as_str(), place.trim()),
            (Some((benchmark, name)), _) => (benchmark.trim(), name.trim()),
            (None, [only]) => (only.as_str(), place.trim()),
            (None, _) => {
                return Err(Problem::usage(format!(
                    "--option: `{text}` names no benchmark, and several are run"
                ))
                .hint(format!("give BENCHMARK.{text}"))
                .into());
            }
        };
        let benchmark = match find_benchmark(benchmark) {
            Ok(benchmark) => benchmark.name().to_owned(),
            Err(_) if remote => benchmark.to_owned(),
            Err(error) => return Err(error),
        };
        if !benchmarks.is_empty() && !benchmarks.contains(&benchmark) {
            let problem = format!("--option: `{benchmark}` is not among the benchmarks to run");
            return Err(Problem::usage(problem).into());
        }
        if value.trim().is_empty() {
            let problem = format!("--option: `{benchmark}.{name}` has no value");
            return Err(Problem::usage(problem).hint("leave it out to use the default").into());
        }
        let of_benchmark = options.entry(benchmark.clone()).or_default();
        if of_benchmark.insert(name.to_owned(), value.trim().to_owned()).is_some() {
            return Err(Problem::usage(format!("--option: `{benchmark}.{name}` is given twice")).into());
        }
    }
    if !remote {
        for name in options.keys() {
            configured(name, protocols, &options)?;
        }
    }
    Ok(options)
}

/// Returns true if a benchmark has options `GROUP.NAME`, such as `env.NAME`.
fn has_group(benchmark: &str, group: &str) -> bool {
    let is_of_group =
        |option: &OptionMetadata| option.name.split_once('.').is_some_and(|(own, _)| own == group);
    find_benchmark(benchmark).is_ok_and(|benchmark| benchmark.options().iter().any(is_of_group))
}

/// Looks up a benchmark under its ordered protocol and options.
pub(crate) fn configured(
    name: &str,
    protocols: &BTreeMap<String, String>,
    options: &OptionsByBenchmark,
) -> anyhow::Result<&'static dyn Benchmark> {
    configured_with_options(name, protocols, options).map(|(benchmark, _)| benchmark)
}

/// Checks the options of the agent that works on a benchmark's items.
pub(crate) fn check_agent_options(benchmark: &str, options: &Options) -> anyhow::Result<()> {
    let checked = find_benchmark(benchmark)?.with_options(options);
    checked.map(drop).map_err(|error| {
        let problem = Problem::usage(format!("--agent-option: {error}"));
        match options.keys().any(|name| name.ends_with(CUSTOM_CONTENT)) {
            true => problem.hint("`bench agents show AGENT` prints the whole hash").into(),
            false => problem.into(),
        }
    })
}

/// Looks up a benchmark like [`configured`], and returns its non-default options, too.
pub(crate) fn configured_with_options(
    name: &str,
    protocols: &BTreeMap<String, String>,
    options: &OptionsByBenchmark,
) -> anyhow::Result<(&'static dyn Benchmark, Options)> {
    let protocol = protocols.get(name).map(String::as_str);
    let benchmark = bench_benchmarks::with_protocol(find_benchmark(name)?, protocol)
        .map_err(|unknown| Problem::usage(unknown.to_string()))?;
    let Some(options) = options.get(name) else { return Ok((benchmark, Options::new())) };
    let problem = |problem| Problem::usage(format!("--option: {name}: {problem}"));
    let chosen = bench_benchmarks::chosen_options(benchmark, options).map_err(problem)?;
    let under = benchmark.with_options(&chosen).map_err(problem)?;
    Ok((under.unwrap_or(benchmark), chosen))
}

/// Formats options for people.
pub(crate) fn format_options(options: &Options) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn options_are_read_and_refused() {
        let none = BTreeMap::new();
        for (given, benchmarks, part) in [
            (vec!["x"], vec!["mmlu_pro"], "is not BENCHMARK.NAME=VALUE"),
            (vec!["x=1"], vec!["mmlu_pro", "aime_2025"], "names no benchmark"),
            (vec!["nope.x=1"], vec!["mmlu_pro"], "unknown benchmark `nope`"),
            (vec!["aime_2025.x=1"], vec!["mmlu_pro"], "not among the benchmarks"),
            (vec!["x=1"], vec!["mmlu_pro"], "mmlu_pro: unknown option `x`"),
            (vec!["livecodebench.release="], vec!["livecodebench"], "`livecodebench.release` has no value"),
            (vec!["release= "], vec!["livecodebench"], "`livecodebench.release` has no value"),
            (vec!["x=1", "mmlu_pro.x=2"], vec!["mmlu_pro"], "`mmlu_pro.x` is given twice"),
        ] {
            let error =
                parse_options(&list(&given), &list(&benchmarks), &none, false).unwrap_err().to_string();
            assert!(error.contains(part), "{given:?}: {error}");
        }
        assert_eq!(parse_options(&list(&["", " "]), &[], &none, false).unwrap(), OptionsByBenchmark::new());
        // A server may have options that this program lacks, and a value may contain anything.
        let known = parse_options(&list(&[" other.a = b=c,d "]), &list(&["other"]), &none, true).unwrap();
        assert_eq!(known["other"]["a"], "b=c,d");
        assert_eq!(format_options(&known["other"]), "a=b=c,d");
        for given in ["env.A=1", "terminal_tasks.env.A=1"] {
            let known = parse_options(&list(&[given]), &list(&["terminal_tasks"]), &none, false).unwrap();
            assert_eq!(known["terminal_tasks"]["env.A"], "1");
        }
    }

    #[test]
    fn every_default_may_be_given() {
        let none = BTreeMap::new();
        for benchmark in bench_benchmarks::all() {
            let name = benchmark.name();
            let set = benchmark.options().iter().filter(|option| !option.default.is_empty());
            let given: Vec<String> =
                set.map(|option| format!("{name}.{}={}", option.name, option.default)).collect();
            let read = parse_options(&given, &list(&[name]), &none, false).unwrap();
            assert_eq!(read.values().map(BTreeMap::len).sum::<usize>(), given.len());
        }
    }
}
