//! Protocols of benchmarks in orders, checked against those that exist.

use std::collections::BTreeMap;

use bench_benchmarks::Benchmark;
use bench_domain::BenchmarkName;

use crate::choice::{UnknownBenchmark, UnknownChoice};
use crate::{Choice, RunError};

/// Returns the benchmark with a name or alias given by a caller, and its name.
pub(crate) fn find_benchmark(
    name: &str,
) -> Result<(&'static dyn Benchmark, BenchmarkName), UnknownBenchmark> {
    let parsed = name.trim().parse::<BenchmarkName>().ok();
    let found = parsed.and_then(|name| bench_benchmarks::find_named(&name));
    let found = found.and_then(|benchmark| Some((benchmark, benchmark.name().parse().ok()?)));
    found.ok_or_else(|| UnknownBenchmark { name: name.chars().take(80).collect() })
}

/// Returns the benchmark with this name, and the protocol unless it is the default one.
///
/// # Errors
/// If the benchmark or its protocol doesn't exist.
pub fn parse_choice(name: &str, protocol: &str) -> Result<(BenchmarkName, Option<String>), UnknownChoice> {
    let (benchmark, name) = find_benchmark(name)?;
    let protocol = protocol.trim();
    let shown: String = protocol.chars().take(80).collect();
    bench_benchmarks::with_protocol(benchmark, Some(&shown))?;
    let is_default = benchmark.metadata().protocol_name == protocol;
    Ok((name, (!is_default).then(|| protocol.to_owned())))
}

/// Replaces aliases of benchmarks by their names. Unknown names stay and are reported later.
pub(crate) fn by_own_names<T>(given: BTreeMap<String, T>) -> BTreeMap<String, T> {
    let own = |name: String| find_benchmark(&name).map_or(name, |(_, own)| own.to_string());
    given.into_iter().map(|(name, value)| (own(name), value)).collect()
}

/// Returns the protocols of a run of these benchmarks that aren't the defaults.
pub(crate) fn resolve_protocols(
    given: &BTreeMap<String, String>,
    benchmarks: &[BenchmarkName],
) -> Result<BTreeMap<BenchmarkName, String>, RunError> {
    let mut chosen = BTreeMap::new();
    for (name, protocol) in given {
        let (benchmark, protocol) = parse_choice(name, protocol).map_err(RunError::Protocol)?;
        if !benchmarks.contains(&benchmark) {
            let ordered = benchmarks.to_vec();
            return Err(RunError::NotOrdered { what: Choice::Protocol, benchmark, ordered });
        }
        chosen.extend(protocol.map(|protocol| (benchmark, protocol)));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use bench_domain::Code;

    use super::*;

    fn one(name: &str, protocol: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), protocol.to_owned())])
    }

    fn names(list: &[&str]) -> Vec<BenchmarkName> {
        list.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_default_protocol_is_not_stored() {
        for benchmark in bench_benchmarks::all() {
            let default = one(benchmark.name(), benchmark.metadata().protocol_name);
            assert_eq!(resolve_protocols(&default, &names(&[benchmark.name()])).unwrap(), BTreeMap::new());
            for other in benchmark.other_protocols() {
                let other = other.metadata().protocol_name;
                let chosen =
                    resolve_protocols(&one(benchmark.name(), other), &names(&[benchmark.name()])).unwrap();
                assert_eq!(chosen.values().collect::<Vec<_>>(), [other]);
            }
        }
    }

    #[test]
    fn an_alias_stands_for_the_benchmark() {
        let protocol = bench_benchmarks::find("ifbench").unwrap().metadata().protocol_name;
        let chosen = resolve_protocols(&one(" IFEval ", protocol), &names(&["ifbench"])).unwrap();
        assert!(chosen.is_empty(), "it is the default of `ifbench`: {chosen:?}");
        assert_eq!(by_own_names(one("ifeval", protocol)), one("ifbench", protocol));
        assert_eq!(by_own_names(one("nope", "x")), one("nope", "x"));
    }

    #[test]
    fn errors_list_the_known_names() {
        let mmlu = bench_benchmarks::find("mmlu_pro").unwrap();
        let default = mmlu.metadata().protocol_name;
        let (unknown, not_ordered) = (Code::InvalidRequest, Code::BenchmarkNotOrdered);
        for (given, run, code, parts) in [
            (one("nope", "x"), "mmlu_pro", unknown, ["unknown benchmark `nope`", "mmlu_pro"]),
            (one("mmlu_pro", "nope"), "mmlu_pro", unknown, ["no protocol `nope`", default]),
            (one("mmlu_pro", default), "aime_2025", not_ordered, ["isn't ordered", "aime_2025"]),
        ] {
            let error = resolve_protocols(&given, &names(&[run])).unwrap_err();
            assert_eq!((error.code(), error.code().status()), (code, Some(422)));
            for part in parts {
                assert!(error.to_string().contains(part), "{part}: {}", error);
            }
        }
    }
}
