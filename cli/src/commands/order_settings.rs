//! Generation settings and limits of an order: parsing, sending and display in `bench run` and `bench schedules`.

mod values;

use bench_domain::{Generation, MaxTokensField, OmittedSetting, ReasoningEffort, RunLimits};
use bench_runs::Order;
use bench_runs::settings::{THINKING_BUDGET_MAX, TOP_K_MAX};
use clap::{Arg, Args};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::exit::Problem;
use crate::format;

pub(crate) use self::values::parse_temperature;
use self::values::{
    parse_effort, parse_extra_body, parse_field, parse_omitted, parse_system_prompt, parse_timeout,
    parse_top_p,
};

/// Options of `bench run` and the variables that replace them. `bench schedules` reads no variables: an edit changes
/// only what the command line gives.
const VARIABLES: [(&str, &str); 3] =
    [("samples", "BENCH_SAMPLES"), ("temperature", "BENCH_TEMPERATURE"), ("max_tokens", "BENCH_MAX_TOKENS")];

/// Fields of an order whose option, field in requests and field in views are the same value under the same name.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OrderSettings {
    /// Samples per item: how many times the model answers each item [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) samples: Option<u32>,
    /// Temperature of the model, 0 to 2 [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "T", value_parser = parse_temperature)]
    pub(crate) temperature: Option<f64>,
    /// Maximum length of an answer in tokens, including reasoning [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) max_tokens: Option<u32>,
    /// Nucleus sampling, above 0 to 1 [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "P", value_parser = parse_top_p)]
    pub(crate) top_p: Option<f64>,
    /// Number of the most probable tokens to sample from
    #[arg(long, help_heading = "Generation", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(TOP_K_MAX)))]
    pub(crate) top_k: Option<u32>,
    /// Text that ends an answer; repeat for several [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "TEXT")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stop: Vec<String>,
    /// Seed of the provider's sampler; --seed is another one, which selects the items
    #[arg(long, help_heading = "Generation", value_name = "N", allow_negative_numbers = true)]
    pub(crate) sampler_seed: Option<i64>,
    /// System message in front of every prompt: a text, or @FILE to read it from a file
    #[arg(long, help_heading = "Generation", value_name = "TEXT|@FILE", value_parser = parse_system_prompt)]
    pub(crate) system_prompt: Option<String>,
    /// Effort of the model's reasoning: none, minimal, low, medium, high or xhigh
    #[arg(long, help_heading = "Generation", value_name = "EFFORT", value_parser = parse_effort)]
    pub(crate) reasoning_effort: Option<ReasoningEffort>,
    /// Maximum number of tokens of the model's reasoning, at OpenRouter, Anthropic and Google
    #[arg(long, help_heading = "Generation", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(THINKING_BUDGET_MAX)))]
    pub(crate) thinking_budget: Option<u32>,
    /// JSON object whose fields are added to the body of every request, for settings without an option; part of the
    /// public results
    #[arg(long, help_heading = "Generation", value_name = "JSON", value_parser = parse_extra_body)]
    pub(crate) extra_body: Option<Map<String, Value>>,
    /// Setting of the benchmark that requests leave out, for models that refuse it: temperature, top_p, max_tokens or
    /// stop; repeat for several
    #[arg(long, help_heading = "Generation", value_name = "SETTING", value_parser = parse_omitted)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) omit: Vec<OmittedSetting>,
    /// Name of the request's field for the maximum length: max_tokens or max_completion_tokens [default: the one that the
    /// provider wants]
    #[arg(long, help_heading = "Generation", value_name = "NAME", value_parser = parse_field)]
    pub(crate) max_tokens_field: Option<MaxTokensField>,
    /// Maximum number of requests per minute to the model
    #[arg(long, help_heading = "Limits", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RunLimits::REQUESTS_PER_MINUTE_MAX)))]
    pub(crate) requests_per_minute: Option<u32>,
    /// Time limit for one answer, at most one hour [default: the benchmark's own]
    #[arg(long = "timeout", help_heading = "Limits", value_name = "SECONDS", value_parser = parse_timeout)]
    pub(crate) timeout_seconds: Option<u32>,
    /// Stop the run when this many samples have ended as infrastructure-error or too-long [default: only when the first five
    /// requests are refused alike]
    #[arg(long, help_heading = "Limits", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RunLimits::FAILURES_MAX)))]
    pub(crate) max_failures: Option<u32>,
}

impl OrderSettings {
    /// Sets the fields of an order in this process.
    pub(crate) fn set_in(&self, order: &mut Order) {
        order.samples = self.samples;
        order.generation = self.generation();
        order.limits = self.limits();
    }

    /// Returns the generation settings.
    pub(crate) fn generation(&self) -> Generation {
        let is_omitted = |setting: &&OmittedSetting| self.omit.contains(setting);
        Generation {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
            seed: self.sampler_seed,
            top_k: self.top_k,
            system_prompt: self.system_prompt.clone(),
            reasoning_effort: self.reasoning_effort,
            thinking_budget: self.thinking_budget,
            extra_body: self.extra_body.clone().map(|object| Value::Object(object).to_string()),
            omit: OmittedSetting::ALL.iter().filter(is_omitted).copied().collect(),
            max_tokens_field: self.max_tokens_field,
        }
    }

    /// Returns the limits besides the budget.
    pub(crate) const fn limits(&self) -> RunLimits {
        RunLimits {
            requests_per_minute: self.requests_per_minute,
            timeout_seconds: self.timeout_seconds,
            max_failures: self.max_failures,
        }
    }

    /// Rejects settings that contradict each other.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        values::check_stop(&self.stop)?;
        let checked = bench_inference::settings::check_settings(&self.generation());
        checked.map_err(|found| {
            let flag = found.setting.replace('_', "-");
            Problem::usage(format!("--{flag}: {}", found.problem)).into()
        })
    }

    /// Returns the given fields for a request.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { return Map::new() };
        fields.retain(|_, value| !value.is_null());
        fields
    }

    /// Returns names and values for people.
    pub(crate) fn shown(&self) -> Vec<(&'static str, Option<String>)> {
        let Self {
            samples,
            temperature,
            max_tokens,
            top_p,
            top_k,
            stop,
            sampler_seed,
            system_prompt,
            reasoning_effort,
            thinking_budget,
            extra_body,
            omit,
            max_tokens_field,
            requests_per_minute,
            timeout_seconds,
            max_failures,
        } = self;
        let count = |number: u32| format::count(number.into());
        let omit: Vec<_> = omit.iter().map(|setting| setting.as_str()).collect();
        vec![
            ("samples", samples.map(|samples| samples.to_string())),
            ("temperature", temperature.map(|temperature| temperature.to_string())),
            ("max tokens", max_tokens.map(count)),
            ("top-p", top_p.map(|share| share.to_string())),
            ("top-k", top_k.map(count)),
            ("stop", (!stop.is_empty()).then(|| Value::from(stop.clone()).to_string())),
            ("sampler", sampler_seed.map(|seed| seed.to_string())),
            (
                "system",
                system_prompt.as_ref().map(|text| format::plural(text.chars().count() as u64, "character")),
            ),
            ("reasoning", reasoning_effort.map(|effort| effort.to_string())),
            ("thinking", thinking_budget.map(|tokens| format!("{} tokens", count(tokens)))),
            ("extra body", extra_body.clone().map(|object| Value::Object(object).to_string())),
            ("omits", (!omit.is_empty()).then(|| omit.join(", "))),
            ("limit field", max_tokens_field.map(|field| field.to_string())),
            ("rate", requests_per_minute.map(|number| format!("{} requests per minute", count(number)))),
            ("timeout", timeout_seconds.map(|seconds| format!("{} s", count(seconds)))),
            ("failures", max_failures.map(|number| format!("stops at {}", count(number)))),
        ]
    }
}

/// Adds the variable that replaces an option of `bench run`.
pub(crate) fn with_variable(arg: Arg) -> Arg {
    match VARIABLES.iter().find(|(id, _)| arg.get_id() == id) {
        Some((_, variable)) => arg.env(variable),
        None => arg,
    }
}

#[cfg(test)]
pub(crate) use self::tests::everything;

#[cfg(test)]
mod tests;
