//! By which protocol a benchmark is run: read from orders and checked against those that there are.

use std::collections::BTreeMap;

use bench_benchmarks::Benchmark;
use bench_domain::{BenchmarkName, Code};
use bench_web::{ApiError, FieldReader};

const NAME_CHARS_MAX: usize = 128;
/// Benchmarks that a request may choose a protocol for, known or not.
const ENTRIES_MAX: usize = 200;

/// Reads `protocols`. What is not known is a problem of its entry, told with what is.
pub(crate) fn read_protocols(fields: &mut FieldReader) -> BTreeMap<String, String> {
    let given = fields.maybe_text_map("protocols", ENTRIES_MAX, NAME_CHARS_MAX).unwrap_or_default();
    for (name, protocol) in &given {
        if let Err(problem) = known(name, protocol) {
            fields.note_entry("value_error", "protocols", name, problem);
        }
    }
    given
}

/// The benchmark of a name that a caller has given, or a sentence with those that there are.
pub(crate) fn named(name: &str) -> Result<(&'static dyn Benchmark, BenchmarkName), String> {
    let parsed = name.trim().parse::<BenchmarkName>().ok();
    let found = parsed.and_then(|name| Some((bench_benchmarks::find(name.as_str())?, name)));
    found.ok_or_else(|| {
        let names: Vec<&str> = bench_benchmarks::all().iter().map(|benchmark| benchmark.name()).collect();
        let shown: String = name.chars().take(80).collect();
        format!("there is no benchmark `{shown}`; known are {}", names.join(", "))
    })
}

/// The benchmark of that name, and the protocol unless it is the default one.
fn known(name: &str, protocol: &str) -> Result<(BenchmarkName, Option<String>), String> {
    let (benchmark, name) = named(name)?;
    let protocol = protocol.trim();
    let shown: String = protocol.chars().take(80).collect();
    bench_benchmarks::under_protocol(benchmark, Some(&shown)).map_err(|unknown| unknown.to_string())?;
    let is_default = benchmark.facts().protocol_name == protocol;
    Ok((name, (!is_default).then(|| protocol.to_owned())))
}

/// The protocols of a run of these benchmarks that are not the default ones.
///
/// # Errors
/// 422 for a benchmark that is not to be run or not known, and for a protocol that it does not have.
pub(crate) fn chosen(
    given: &BTreeMap<String, String>,
    benchmarks: &[BenchmarkName],
) -> Result<BTreeMap<BenchmarkName, String>, ApiError> {
    let mut chosen = BTreeMap::new();
    for (name, protocol) in given {
        let (name, protocol) = known(name, protocol)
            .map_err(|problem| ApiError::new(Code::InvalidRequest, format!("protocols: {problem}")))?;
        if !benchmarks.contains(&name) {
            let names: Vec<&str> = benchmarks.iter().map(BenchmarkName::as_str).collect();
            return Err(ApiError::new(
                Code::BenchmarkNotOrdered,
                format!(
                    "A protocol was given for {name}, which is not to be run; to be run are {}",
                    names.join(", ")
                ),
            ));
        }
        chosen.extend(protocol.map(|protocol| (name, protocol)));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, protocol: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), protocol.to_owned())])
    }

    fn names(list: &[&str]) -> Vec<BenchmarkName> {
        list.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_default_protocol_is_no_choice() {
        for benchmark in bench_benchmarks::all() {
            let default = one(benchmark.name(), benchmark.facts().protocol_name);
            assert_eq!(chosen(&default, &names(&[benchmark.name()])).unwrap(), BTreeMap::new());
            for other in benchmark.other_protocols() {
                let other = other.facts().protocol_name;
                let chosen = chosen(&one(benchmark.name(), other), &names(&[benchmark.name()])).unwrap();
                assert_eq!(chosen.values().collect::<Vec<_>>(), [other]);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        let mmlu = bench_benchmarks::find("mmlu_pro").unwrap();
        for (given, run, parts) in [
            (one("nope", "x"), "mmlu_pro", ["no benchmark `nope`", "mmlu_pro"]),
            (one("mmlu_pro", "nope"), "mmlu_pro", ["no protocol `nope`", mmlu.facts().protocol_name]),
            (one("mmlu_pro", mmlu.facts().protocol_name), "aime_2025", ["not to be run", "aime_2025"]),
        ] {
            let error = chosen(&given, &names(&[run])).unwrap_err();
            assert_eq!(error.status(), 422);
            for part in parts {
                assert!(error.message().contains(part), "{part}: {}", error.message());
            }
        }
    }
}
