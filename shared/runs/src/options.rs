//! Options of benchmarks, each checked by the benchmark that has them.

use std::collections::BTreeMap;

use bench_benchmarks::{Benchmark, Options, chosen_options, default_agent, is_agent_option};
use bench_domain::{Agent, BenchmarkName};
use bench_inference::ModelSource;

use crate::choice::{UnknownBenchmark, UnknownChoice};
use crate::protocols::find_benchmark;
use crate::{Choice, RunError};

/// Options of an order, by benchmark.
pub type GivenOptions = BTreeMap<String, Options>;

/// Returns the name of a benchmark, and its options that differ from the defaults. `protocols` are the choices of the
/// same order, since the options of a benchmark may depend on them.
///
/// # Errors
/// If the benchmark, the option or its value doesn't exist.
pub fn parse_choice(
    name: &str,
    options: &Options,
    protocols: &BTreeMap<String, String>,
) -> Result<(BenchmarkName, Options), UnknownChoice> {
    let same = |other: &str| other.trim().eq_ignore_ascii_case(name.trim());
    let protocol = protocols.iter().find(|(other, _)| same(other)).map(|(_, protocol)| protocol.trim());
    let (benchmark, name) = find_with_protocol(name, protocol)?;
    let options = chosen_options(benchmark, options)?;
    Ok((name, options))
}

fn find_with_protocol(
    name: &str,
    protocol: Option<&str>,
) -> Result<(&'static dyn Benchmark, BenchmarkName), UnknownBenchmark> {
    let (benchmark, name) = find_benchmark(name)?;
    // An unknown protocol is reported where it was chosen.
    let benchmark = bench_benchmarks::with_protocol(benchmark, protocol).unwrap_or(benchmark);
    Ok((benchmark, name))
}

/// Returns the options of a run of these benchmarks that differ from the defaults.
pub(crate) fn resolve_options(
    given: &GivenOptions,
    protocols: &BTreeMap<String, String>,
    benchmarks: &[BenchmarkName],
) -> Result<BTreeMap<BenchmarkName, Options>, RunError> {
    let mut chosen = BTreeMap::new();
    for (name, options) in given {
        let (benchmark, options) = parse_choice(name, options, protocols)
            .map_err(|problem| RunError::Options { name: name.clone(), problem })?;
        if !benchmarks.contains(&benchmark) {
            let ordered = benchmarks.to_vec();
            return Err(RunError::NotOrdered { what: Choice::Options, benchmark, ordered });
        }
        if !options.is_empty() {
            chosen.insert(benchmark, options);
        }
    }
    Ok(chosen)
}

/// Adds the default agent to the options of benchmarks with agents that name none: runs and comparisons name it then.
pub(crate) fn name_agents(
    options: &mut BTreeMap<BenchmarkName, Options>,
    benchmarks: &[BenchmarkName],
    protocols: &BTreeMap<BenchmarkName, String>,
    source: ModelSource,
) {
    if source.provider().is_none() {
        return;
    }
    for name in benchmarks {
        let Some(default) = default_agent(name, protocols.get(name).map(String::as_str)) else { continue };
        let agent = options.entry(name.clone()).or_default().entry("agent".to_owned());
        agent.or_insert_with(|| default.to_string());
    }
}

/// Refuses options of an agent beside a source of answers that is an agent itself: they would be shown and have no effect.
pub(crate) fn refuse_second_agent(
    options: &BTreeMap<BenchmarkName, Options>,
    source: ModelSource,
) -> Result<(), RunError> {
    let Some(agent) = Agent::in_place_of_model(source.as_str()).filter(|agent| *agent != Agent::Custom)
    else {
        return Ok(());
    };
    let of_agent = |options: &'_ Options| options.keys().find(|option| is_agent_option(option)).cloned();
    let mut of_agent = options.iter().filter_map(|(name, options)| Some((name, of_agent(options)?)));
    match of_agent.next() {
        Some((benchmark, option)) => {
            Err(RunError::AgentOption { agent, benchmark: benchmark.clone(), option })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_not_stored() {
        for benchmark in bench_benchmarks::all() {
            let defaults: Options = benchmark
                .options()
                .iter()
                .map(|option| (option.name.to_owned(), option.default.to_owned()))
                .filter(|(_, default)| !default.is_empty())
                .collect();
            let name: BenchmarkName = benchmark.name().parse().unwrap();
            let given = GivenOptions::from([(name.to_string(), defaults)]);
            assert_eq!(resolve_options(&given, &BTreeMap::new(), &[name]).unwrap(), BTreeMap::new());
        }
    }

    #[test]
    fn options_are_for_benchmarks_that_are_run() {
        let other = GivenOptions::from([("mmlu_pro".to_owned(), Options::new())]);
        let error = resolve_options(&other, &BTreeMap::new(), &["aime_2025".parse().unwrap()]).unwrap_err();
        assert!(error.to_string().contains("isn't ordered"), "{error}");
    }
}
