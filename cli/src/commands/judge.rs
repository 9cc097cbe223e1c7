//! Judges and protocols on the command line.

use std::collections::BTreeMap;
use std::env;

use bench_domain::Generation;
use bench_inference::ModelSource;
use bench_runs::JudgeOrder;
use clap::Args;
use serde_json::{Map, Value, json};

use super::find_benchmark;
use super::order_settings::parse_temperature;
use crate::exit::Problem;
use crate::judge_name::{MODEL_VARIABLE, NamedJudge, named_judge};
use crate::output;

/// Judge of benchmarks whose answers a model grades.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JudgeArgs {
    /// Model that grades the answers of benchmarks with a judge; `bench benchmarks NAME` shows the one that the authors
    /// use [default: $BENCH_JUDGE_MODEL, else `oracle` if the model is `oracle`]
    #[arg(long, help_heading = "Judge", value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
    /// Temperature of the judge, 0 to 2 [default: the benchmark's own]
    #[arg(long, help_heading = "Judge", value_name = "T", value_parser = parse_temperature)]
    pub(crate) judge_temperature: Option<f64>,
    /// Sampling seed of the judge, if its provider supports one [default: the benchmark's own]
    #[arg(long, help_heading = "Judge", value_name = "N", allow_negative_numbers = true, value_parser = parse_seed)]
    pub(crate) judge_seed: Option<i64>,
    /// Maximum length of the judge's reply in tokens [default: the benchmark's own]
    #[arg(long, help_heading = "Judge", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) judge_max_tokens: Option<u32>,
}

fn parse_seed(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| "it must be a whole number of at most 64 bits, such as 42".to_owned())
}

/// Checked judge settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judge {
    /// Judge that was named, or `None` for the default.
    pub(crate) named: Option<NamedJudge>,
    /// True if the command line named the judge.
    pub(crate) is_given: bool,
    /// Problem with the variable that names the judge. It only fails runs that need a judge.
    pub(crate) unusable: Option<String>,
    pub(crate) generation: Generation,
}

impl JudgeArgs {
    /// Returns the judge that the command line or the variable names. A server may also accept its own names of models.
    pub(crate) fn judge_or_variable(&self, remote: bool) -> anyhow::Result<Judge> {
        let given = |text: &String| !text.trim().is_empty();
        let is_given = self.judge_model.as_ref().is_some_and(given);
        if is_given {
            return self.judge(remote);
        }
        let named = env::var(MODEL_VARIABLE).ok().filter(given);
        let named = named.map(|name| named_judge(MODEL_VARIABLE, &name, remote)).transpose();
        let (named, unusable) = match named {
            Ok(named) => (named, None),
            Err(error) if remote => {
                // Only the server knows if its benchmarks need a judge, so its own default judge is used.
                output::warn(&format!("{error}; the judge of the server is used"));
                (None, None)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        Ok(Judge { named, is_given, unusable, generation: self.generation() })
    }

    /// Returns the judge that the command line names.
    pub(crate) fn judge(&self, remote: bool) -> anyhow::Result<Judge> {
        let named = self.judge_model.as_deref().filter(|text| !text.trim().is_empty());
        let named = named.map(|name| named_judge("--judge-model", name, remote)).transpose()?;
        Ok(Judge { is_given: named.is_some(), named, unusable: None, generation: self.generation() })
    }

    fn generation(&self) -> Generation {
        Generation {
            temperature: self.judge_temperature,
            seed: self.judge_seed,
            max_tokens: self.judge_max_tokens,
            ..Generation::default()
        }
    }
}

impl Judge {
    /// Converts the settings for an order in this process, or returns `None` if none were given.
    pub(crate) fn order(&self) -> Option<JudgeOrder> {
        let order = JudgeOrder {
            model: self.named.as_ref().map(|judge| judge.name.clone()),
            provider: None,
            generation: self.generation.clone(),
        };
        (order != JudgeOrder::default()).then_some(order)
    }

    /// Converts the settings for a request, or returns `None` if none were given.
    pub(crate) fn body(&self) -> Option<Value> {
        let mut body = Map::new();
        let mut given = |name: &str, value: Value| {
            if !value.is_null() {
                body.insert(name.to_owned(), value);
            }
        };
        given("model_id", json!(self.named.as_ref().map(|judge| &judge.slug)));
        let source = self.named.as_ref().and_then(|judge| judge.source);
        given("provider", json!(source.map(ModelSource::as_str)));
        given("temperature", json!(self.generation.temperature));
        given("seed", json!(self.generation.seed));
        given("max_tokens", json!(self.generation.max_tokens));
        (!body.is_empty()).then_some(Value::Object(body))
    }
}

/// Parses `NAME=PROTOCOL`, or `PROTOCOL` alone if the order has one benchmark. A server may have further protocols.
pub(crate) fn parse_protocols(
    given: &[String],
    benchmarks: &[String],
    remote: bool,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut protocols = BTreeMap::new();
    for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let (name, protocol) = match (text.split_once('='), benchmarks) {
            (Some((name, protocol)), _) => (name.trim(), protocol.trim()),
            (None, [only]) => (only.as_str(), text),
            (None, _) => {
                return Err(Problem::usage(format!(
                    "--protocol: `{text}` names no benchmark, and several are run"
                ))
                .hint(format!("give BENCHMARK={text}"))
                .into());
            }
        };
        let name = match find_benchmark(name) {
            Ok(benchmark) => {
                let checked = bench_benchmarks::with_protocol(benchmark, Some(protocol));
                if let Err(unknown) = checked
                    && !remote
                {
                    return Err(Problem::usage(format!("--protocol: {unknown}")).into());
                }
                benchmark.name().to_owned()
            }
            Err(_) if remote => name.to_owned(),
            Err(error) => return Err(error),
        };
        if !benchmarks.is_empty() && !benchmarks.contains(&name) {
            return Err(
                Problem::usage(format!("--protocol: `{name}` is not among the benchmarks to run")).into()
            );
        }
        if protocols.insert(name.clone(), protocol.to_owned()).is_some() {
            return Err(Problem::usage(format!("--protocol: `{name}` is given twice")).into());
        }
    }
    Ok(protocols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_protocol_needs_no_name_where_one_benchmark_is_chosen() {
        let default = bench_benchmarks::find("mmlu_pro").unwrap().metadata().protocol_name;
        let chosen = BTreeMap::from([("mmlu_pro".to_owned(), default.to_owned())]);
        for given in [default.to_owned(), format!(" MMLU_Pro = {default}")] {
            assert_eq!(
                parse_protocols(&list(&[&given]), &list(&["mmlu_pro"]), false).unwrap(),
                chosen,
                "{given}"
            );
        }
        assert_eq!(parse_protocols(&list(&["", " "]), &[], false).unwrap(), BTreeMap::new());
        for (given, benchmarks, part) in [
            (vec!["x"], vec!["mmlu_pro", "aime_2025"], "names no benchmark"),
            (vec!["x"], vec!["mmlu_pro"], "no protocol `x`"),
            (vec!["nope=x"], vec!["mmlu_pro"], "unknown benchmark `nope`"),
            (vec![default, default], vec!["mmlu_pro"], "given twice"),
        ] {
            let error = parse_protocols(&list(&given), &list(&benchmarks), false).unwrap_err().to_string();
            assert!(error.contains(part), "{given:?}: {error}");
        }
        // A server may have benchmarks and protocols that this program lacks.
        assert_eq!(parse_protocols(&list(&["x"]), &list(&["other"]), true).unwrap()["other"], "x");
    }

    #[test]
    fn judges_are_named_as_models_are() {
        let args = JudgeArgs {
            judge_model: Some("openrouter/a/b".into()),
            judge_seed: Some(-1),
            ..JudgeArgs::default()
        };
        let judge = args.judge(false).unwrap();
        assert_eq!(judge.body().unwrap(), json!({ "provider": "openrouter", "model_id": "a/b", "seed": -1 }));
        assert_eq!(judge.order().unwrap().model.as_deref(), Some("openrouter/a/b"));
        assert!(JudgeArgs::default().judge(false).unwrap().body().is_none());
        assert!(JudgeArgs::default().judge(false).unwrap().order().is_none());
        let named = |name: &str, remote| {
            let args = JudgeArgs { judge_model: Some(name.into()), ..JudgeArgs::default() };
            args.judge(remote).map(|judge| judge.named.unwrap().name).map_err(|error| error.to_string())
        };
        assert_eq!(named(" some-slug ", true).unwrap(), "some-slug");
        assert!(named("some-slug", false).unwrap_err().starts_with("--judge-model"));
        let unknown = named("nope/j", false).unwrap_err();
        assert!(unknown.contains("openrouter/MODEL") && !unknown.contains("replay:FILE"), "{unknown}");
        assert!(named("replay:x.jsonl", true).unwrap_err().contains("cannot judge"));
    }
}
