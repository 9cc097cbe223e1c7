//! Settings of benchmarks of their own: read from orders and checked by the benchmark that has them.

use std::collections::BTreeMap;

use bench_benchmarks::{Benchmark, Options, chosen_options};
use bench_domain::{BenchmarkName, Code};
use bench_web::{ApiError, FieldReader};

use crate::protocols::named;

pub(crate) const FIELD: &str = "benchmark_options";
const VALUE_CHARS_MAX: usize = 256;
/// Options that a request may give a benchmark, known or not.
const OPTIONS_MAX: usize = 50;
/// Benchmarks that a request may give options, known or not.
const ENTRIES_MAX: usize = 200;

/// As they were sent, by benchmark.
pub(crate) type Given = BTreeMap<String, Options>;

/// Reads `benchmark_options`. What is not known is a problem of its benchmark, told with what is. `protocols` are those
/// that the same request chooses: what a benchmark can be set to may depend on them.
pub(crate) fn read_options(fields: &mut FieldReader, protocols: &BTreeMap<String, String>) -> Given {
    let sent = fields.maybe_object(FIELD).unwrap_or_default();
    if sent.len() > ENTRIES_MAX {
        fields.note("too_long", FIELD, format!("Dictionary should have at most {ENTRIES_MAX} items"));
        return Given::new();
    }
    let read = fields.within(FIELD, |inner| {
        let mut given = Given::new();
        for name in sent.keys() {
            let Some(options) = inner.maybe_settings(name, OPTIONS_MAX, VALUE_CHARS_MAX) else { continue };
            if let Err(problem) = known(name, &options, protocols) {
                inner.note("value_error", name, problem);
            }
            given.insert(name.clone(), options);
        }
        given
    });
    read.unwrap_or_default()
}

/// The benchmark of that name, and its options that are not the default ones.
fn known(
    name: &str,
    options: &Options,
    protocols: &BTreeMap<String, String>,
) -> Result<(BenchmarkName, Options), String> {
    let same = |other: &str| other.trim().eq_ignore_ascii_case(name.trim());
    let protocol = protocols.iter().find(|(other, _)| same(other)).map(|(_, protocol)| protocol.trim());
    let (benchmark, name) = benchmark(name, protocol)?;
    let options = chosen_options(benchmark, options).map_err(|error| error.to_string())?;
    Ok((name, options))
}

fn benchmark(name: &str, protocol: Option<&str>) -> Result<(&'static dyn Benchmark, BenchmarkName), String> {
    let (benchmark, name) = named(name)?;
    // A protocol that is not known is told where it was chosen.
    let benchmark = bench_benchmarks::under_protocol(benchmark, protocol).unwrap_or(benchmark);
    Ok((benchmark, name))
}

/// The options of a run of these benchmarks that are not the default ones.
///
/// # Errors
/// 422 for a benchmark that is not to be run or not known, and for an option that it does not have.
pub(crate) fn chosen(
    given: &Given,
    protocols: &BTreeMap<String, String>,
    benchmarks: &[BenchmarkName],
) -> Result<BTreeMap<BenchmarkName, Options>, ApiError> {
    let mut chosen = BTreeMap::new();
    for (name, options) in given {
        let (name, options) = known(name, options, protocols)
            .map_err(|problem| ApiError::new(Code::InvalidRequest, format!("{FIELD}.{name}: {problem}")))?;
        if !benchmarks.contains(&name) {
            let names: Vec<&str> = benchmarks.iter().map(BenchmarkName::as_str).collect();
            return Err(ApiError::new(
                Code::BenchmarkNotOrdered,
                format!(
                    "Options were given for {name}, which is not to be run; to be run are {}",
                    names.join(", ")
                ),
            ));
        }
        if !options.is_empty() {
            chosen.insert(name, options);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(options: Value) -> Result<Given, ApiError> {
        let body = json!({ FIELD: options });
        let mut fields = FieldReader::of_body(body.as_object().unwrap().clone());
        let given = read_options(&mut fields, &BTreeMap::new());
        fields.finish().map(|()| given)
    }

    #[test]
    fn the_default_is_no_choice() {
        for benchmark in bench_benchmarks::all() {
            let defaults: Options = benchmark
                .options()
                .iter()
                .map(|option| (option.name.to_owned(), option.default.to_owned()))
                .filter(|(_, default)| !default.is_empty())
                .collect();
            let name: BenchmarkName = benchmark.name().parse().unwrap();
            let given = Given::from([(name.to_string(), defaults)]);
            assert_eq!(chosen(&given, &BTreeMap::new(), &[name]).unwrap(), BTreeMap::new());
        }
    }

    #[test]
    fn what_is_not_known_is_told_with_its_place() {
        let long: BTreeMap<String, u32> = (0..60).map(|n| (format!("o{n}"), n)).collect();
        for (sent, parts) in [
            (json!([]), ["benchmark_options", "dictionary"]),
            (json!({ "mmlu_pro": 1 }), ["benchmark_options.mmlu_pro", "dictionary"]),
            (json!({ "mmlu_pro": { "x": [] } }), ["benchmark_options.mmlu_pro.x", "text, a number"]),
            (
                json!({ "mmlu_pro": { "x": "y".repeat(300) } }),
                ["benchmark_options.mmlu_pro.x", "256 characters"],
            ),
            (json!({ "mmlu_pro": long }), ["benchmark_options.mmlu_pro", "at most 50"]),
            (
                json!({ "mmlu_pro": { "release": "v1" } }),
                ["benchmark_options.mmlu_pro", "no option `release`"],
            ),
            (json!({ "nope": { "a": "b" } }), ["benchmark_options.nope", "no benchmark `nope`"]),
        ] {
            let error = read(sent).unwrap_err();
            assert_eq!(error.status(), 422);
            for part in parts {
                assert!(error.message().contains(part), "{part}: {}", error.message());
            }
        }
        assert_eq!(read(json!({ "mmlu_pro": {} })).unwrap()["mmlu_pro"], Options::new());
        assert_eq!(read(json!({ "mmlu_pro": null })).unwrap(), Given::new());
        assert_eq!(read(json!(null)).unwrap(), Given::new());
        let other = Given::from([("mmlu_pro".to_owned(), Options::new())]);
        let error = chosen(&other, &BTreeMap::new(), &["aime_2025".parse().unwrap()]).unwrap_err();
        assert!(error.message().contains("not to be run"), "{}", error.message());
    }
}
