//! Protocols and benchmark options, read from orders and checked against the existing ones.

use std::collections::BTreeMap;

use bench_benchmarks::Benchmark;
use bench_runs::options::GivenOptions;
use bench_runs::{options, protocols};
use bench_web::FieldReader;
use serde_json::{Map, Value};

/// Name of the field with benchmark options.
pub(crate) const OPTIONS_FIELD: &str = "benchmark_options";
const PROTOCOL_CHARS_MAX: usize = 128;
/// A list of all tasks of a benchmark fits.
const VALUE_CHARS_MAX: usize = 4096;
/// Maximum number of options per benchmark, known or not.
const OPTIONS_MAX: usize = 50;
/// Maximum number of benchmarks in `protocols` or `benchmark_options`, known or not.
const ENTRIES_MAX: usize = 200;

/// Returns the benchmark that an order means by a name, whatever its case and the spaces around it.
pub(crate) fn find_ordered(name: &str) -> Option<&'static dyn Benchmark> {
    let name = name.trim().to_ascii_lowercase().parse().ok()?;
    bench_benchmarks::find_named(&name)
}

/// Returns options by the names that benchmarks and options are known by: an order may write benchmarks in upper case or by
/// another name, and put spaces around both.
///
/// # Errors
/// A sentence about a name that is there twice then.
pub(crate) fn with_known_names(sent: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut known = Map::new();
    for (name, options) in sent {
        let benchmark = find_ordered(name).map_or_else(|| name.clone(), |found| found.name().to_owned());
        let options = match options {
            Value::Object(options) => {
                let mut trimmed = Map::new();
                for (option, value) in options {
                    if trimmed.insert(option.trim().to_owned(), value.clone()).is_some() {
                        return Err(format!("`{benchmark}.{}` is given twice", option.trim()));
                    }
                }
                Value::Object(trimmed)
            }
            // Reading the field reports the error.
            other => other.clone(),
        };
        if known.insert(benchmark.clone(), options).is_some() {
            return Err(format!("`{benchmark}` is given twice"));
        }
    }
    Ok(known)
}

/// Reads `protocols`. Notes an unknown protocol as a problem of its entry that lists the known ones.
pub(crate) fn read_protocols(fields: &mut FieldReader) -> BTreeMap<String, String> {
    let given = fields.maybe_text_map("protocols", ENTRIES_MAX, PROTOCOL_CHARS_MAX).unwrap_or_default();
    for (name, protocol) in &given {
        if let Err(problem) = protocols::parse_choice(name, protocol) {
            fields.note_entry("value_error", "protocols", name, problem.to_string());
        }
    }
    given
}

/// Reads `benchmark_options`. Notes an unknown option as a problem of its benchmark that lists the known ones.
/// `protocols` are the ones that the same request chooses, since the options of a benchmark may depend on its protocol.
pub(crate) fn read_options(fields: &mut FieldReader, protocols: &BTreeMap<String, String>) -> GivenOptions {
    let Some(sent) = fields.maybe_object(OPTIONS_FIELD) else { return GivenOptions::new() };
    if sent.len() > ENTRIES_MAX {
        fields.note("too_long", OPTIONS_FIELD, format!("Dictionary should have at most {ENTRIES_MAX} items"));
        return GivenOptions::new();
    }
    let read = fields.within(OPTIONS_FIELD, |inner| {
        let mut given = GivenOptions::new();
        for name in sent.keys() {
            let Some(options) = inner.maybe_settings(name, OPTIONS_MAX, VALUE_CHARS_MAX) else { continue };
            if let Err(problem) = options::parse_choice(name, &options, protocols) {
                inner.note("value_error", name, problem.to_string());
            }
            given.insert(name.clone(), options);
        }
        given
    });
    read.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_benchmarks::Options;
    use bench_web::ApiError;
    use serde_json::json;

    fn read(options: Value) -> Result<GivenOptions, ApiError> {
        let body = json!({ OPTIONS_FIELD: options });
        let mut fields = FieldReader::from_body(body.as_object().unwrap().clone());
        let given = read_options(&mut fields, &BTreeMap::new());
        fields.finish().map(|()| given)
    }

    #[test]
    fn problems_name_their_field() {
        let long: BTreeMap<String, u32> = (0..60).map(|n| (format!("o{n}"), n)).collect();
        for (sent, parts) in [
            (json!([]), ["benchmark_options", "dictionary"]),
            (json!(1), ["benchmark_options", "dictionary"]),
            (json!({ "mmlu_pro": 1 }), ["benchmark_options.mmlu_pro", "dictionary"]),
            (json!({ "mmlu_pro": { "x": [] } }), ["benchmark_options.mmlu_pro.x", "string, a number"]),
            (
                json!({ "mmlu_pro": { "x": "y".repeat(4_097) } }),
                ["benchmark_options.mmlu_pro.x", "4096 characters"],
            ),
            (json!({ "mmlu_pro": long }), ["benchmark_options.mmlu_pro", "at most 50"]),
            (
                json!({ "mmlu_pro": { "release": "v1" } }),
                ["benchmark_options.mmlu_pro", "unknown option `release`"],
            ),
            (json!({ "nope": { "a": "b" } }), ["benchmark_options.nope", "unknown benchmark `nope`"]),
        ] {
            let error = read(sent).unwrap_err();
            assert_eq!(error.status(), 422);
            assert_eq!(error.message().matches("benchmark_options").count(), 1, "{error}");
            for part in parts {
                assert!(error.message().contains(part), "{part}: {}", error.message());
            }
        }
        assert_eq!(read(json!({ "mmlu_pro": {} })).unwrap()["mmlu_pro"], Options::new());
        assert_eq!(read(json!({ "mmlu_pro": null })).unwrap(), GivenOptions::new());
        assert_eq!(read(json!(null)).unwrap(), GivenOptions::new());
    }
}
