//! Generation settings in APIs of chat completions: the fields that an API has for them, and what it lacks.
//!
//! `temperature`, `top_p`, `max_tokens` and `stop` have the same names everywhere. The other settings are mapped by one
//! table per API. A setting without a field is refused when a run is ordered, so that no setting is silently ignored.

use bench_domain::{Generation, MaxTokensField, ReasoningEffort};
use serde_json::{Map, Value};

/// Fields of an API for generation settings.
#[derive(Debug, PartialEq)]
pub struct SettingFields {
    /// Name of the API in messages; `None` uses the provider's.
    name: Option<&'static str>,
    /// True if the API has `top_k`.
    top_k: bool,
    /// True if the API uses `seed`.
    seed: bool,
    /// Field for the effort of reasoning, with the efforts that the API knows.
    pub(crate) effort: Option<(EffortField, &'static [ReasoningEffort])>,
    /// Field for the tokens of reasoning, with their bounds.
    pub(crate) thinking: Option<(ThinkingField, ThinkingBounds)>,
    /// Field for the maximum length of an answer.
    pub(crate) max_tokens: MaxTokensField,
    /// Maximum temperature. A higher one is lowered by the API without an error.
    temperature_max: f64,
    /// Maximum number of texts that end an answer.
    stop_max: usize,
    /// True if the API ignores texts of whitespace alone in `stop`.
    ignores_blank_stops: bool,
    /// True if the API caches the beginning of a prompt only up to parts with `cache_control`, for models of Anthropic.
    pub(crate) has_cache_marks: bool,
}

/// Field for the effort of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffortField {
    /// `reasoning_effort`.
    ReasoningEffort,
    /// `reasoning.effort`.
    Reasoning,
}

/// Field for the tokens of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingField {
    /// `reasoning.max_tokens`.
    Reasoning,
    /// `thinking.budget_tokens`, with `thinking.type` `enabled`.
    Thinking,
    /// `extra_body.google.thinking_config.thinking_budget`.
    ThinkingConfig,
}

/// Bounds of the tokens of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThinkingBounds {
    min: u32,
    max: u32,
    /// Minimum for models of Anthropic, whose names begin with this text.
    anthropic_prefix: Option<&'static str>,
    /// True if an order must limit the length of the answer, too, and may not change the temperature.
    is_anthropic: bool,
}

/// Minimum number of tokens of reasoning of Anthropic's models.
const ANTHROPIC_THINKING_MIN: u32 = 1_024;
/// Default number of texts in `stop`, which is above what APIs without a documented maximum are asked for.
const STOP_MAX: usize = 16;

impl SettingFields {
    /// vLLM, SGLang, llama.cpp and gateways to them, such as Chutes.
    pub(crate) const COMMON: Self = Self {
        name: None,
        top_k: true,
        seed: true,
        effort: Some((EffortField::ReasoningEffort, ReasoningEffort::ALL)),
        thinking: None,
        max_tokens: MaxTokensField::MaxTokens,
        temperature_max: 2.0,
        stop_max: STOP_MAX,
        ignores_blank_stops: false,
        has_cache_marks: false,
    };
}

/// vLLM, SGLang, llama.cpp and gateways to them, such as Chutes.
pub(crate) static COMMON: SettingFields = SettingFields::COMMON;

/// LM Studio. Its chat completions have no setting for reasoning.
pub(crate) static LMSTUDIO_FIELDS: SettingFields = SettingFields { effort: None, ..SettingFields::COMMON };

/// OpenRouter, which converts settings of reasoning to those of the model's provider.
pub(crate) static OPENROUTER_FIELDS: SettingFields = SettingFields {
    name: Some("OpenRouter"),
    effort: Some((EffortField::Reasoning, ReasoningEffort::ALL)),
    thinking: Some((
        ThinkingField::Reasoning,
        ThinkingBounds { min: 1, max: 128_000, anthropic_prefix: Some("anthropic/"), is_anthropic: false },
    )),
    has_cache_marks: true,
    ..SettingFields::COMMON
};

/// OpenAI and Azure OpenAI. All their models take `max_completion_tokens`; reasoning models take nothing else.
static OPENAI_FIELDS: SettingFields = SettingFields {
    name: Some("OpenAI"),
    top_k: false,
    max_tokens: MaxTokensField::MaxCompletionTokens,
    stop_max: 4,
    ..SettingFields::COMMON
};

/// Anthropic's endpoint for clients of OpenAI, which ignores `seed` and `reasoning_effort`.
static ANTHROPIC_FIELDS: SettingFields = SettingFields {
    name: Some("Anthropic"),
    top_k: false,
    seed: false,
    effort: None,
    thinking: Some((
        ThinkingField::Thinking,
        ThinkingBounds {
            min: ANTHROPIC_THINKING_MIN,
            max: 128_000,
            anthropic_prefix: None,
            is_anthropic: true,
        },
    )),
    temperature_max: 1.0,
    ignores_blank_stops: true,
    ..SettingFields::COMMON
};

/// Google's endpoint for clients of OpenAI.
static GOOGLE_FIELDS: SettingFields = SettingFields {
    name: Some("Google"),
    top_k: false,
    effort: Some((
        EffortField::ReasoningEffort,
        &[
            ReasoningEffort::None,
            ReasoningEffort::Minimal,
            ReasoningEffort::Low,
            ReasoningEffort::Medium,
            ReasoningEffort::High,
        ],
    )),
    thinking: Some((
        ThinkingField::ThinkingConfig,
        ThinkingBounds { min: 1, max: 32_768, anthropic_prefix: None, is_anthropic: false },
    )),
    stop_max: 5,
    ..SettingFields::COMMON
};

/// Returns the fields of an API that is known by its host, wherever it is configured.
pub(crate) fn fields_of_host(host: &str) -> Option<&'static SettingFields> {
    let host = host.split(':').next().unwrap_or(host);
    match host {
        "api.openai.com" => Some(&OPENAI_FIELDS),
        "api.anthropic.com" => Some(&ANTHROPIC_FIELDS),
        "generativelanguage.googleapis.com" => Some(&GOOGLE_FIELDS),
        "openrouter.ai" => Some(&OPENROUTER_FIELDS),
        _ if host.ends_with(".api.openai.com") || host.ends_with(".openai.azure.com") => Some(&OPENAI_FIELDS),
        _ => None,
    }
}

/// Setting of an order that can't be sent as ordered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SettingProblem {
    /// Name of the setting in orders.
    pub setting: &'static str,
    /// The problem and what to do, in one sentence.
    pub problem: String,
}

impl SettingProblem {
    fn new(setting: &'static str, problem: impl Into<String>) -> Self {
        Self { setting, problem: problem.into() }
    }
}

/// Fields of a request that an extra body must not contain, with the reason.
const RESERVED_FIELDS: [(&str, &str); 13] = [
    ("model", "the order names the model"),
    ("messages", "the benchmark makes the prompt; `system_prompt` puts a text in front of it"),
    ("stream", "every answer is streamed"),
    ("stream_options", "every answer is streamed with its usage"),
    ("n", "`samples` asks for several answers"),
    ("temperature", "`temperature` sets it"),
    ("top_p", "`top_p` sets it"),
    ("top_k", "`top_k` sets it"),
    ("max_tokens", "`max_tokens` sets it"),
    ("max_completion_tokens", "`max_tokens` and `max_tokens_field` set it"),
    ("stop", "`stop` sets it"),
    ("seed", "`sampler_seed` sets it"),
    ("reasoning_effort", "`reasoning_effort` sets it"),
];
/// Objects that hold settings of reasoning in the requests to some API.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "thinking", "extra_body"];

/// Checks settings on their own, without a provider.
///
/// # Errors
/// Returns the first problem.
pub fn check_settings(own: &Generation) -> Result<(), SettingProblem> {
    if let Some(setting) = own.contradiction() {
        return Err(SettingProblem::new(
            "omit",
            format!("`{setting}` can't be both given and left out; leave one of them out of the order"),
        ));
    }
    let reasoning = match (own.reasoning_effort, own.thinking_budget) {
        (Some(_), Some(_)) => {
            return Err(SettingProblem::new(
                "thinking_budget",
                "it can't be given together with `reasoning_effort`: each replaces the other",
            ));
        }
        (Some(_), None) => Some("reasoning_effort"),
        (None, Some(_)) => Some("thinking_budget"),
        (None, None) => None,
    };
    let Some(text) = &own.extra_body else { return Ok(()) };
    let extra: Map<String, Value> = serde_json::from_str(text).map_err(|_| {
        SettingProblem::new("extra_body", "it must be a JSON object, such as {\"min_p\": 0.05}")
    })?;
    for (field, why) in RESERVED_FIELDS {
        if extra.contains_key(field) {
            return Err(SettingProblem::new("extra_body", format!("it must not contain `{field}`: {why}")));
        }
    }
    let field = REASONING_FIELDS.iter().find(|field| extra.contains_key(**field));
    if let (Some(field), Some(setting)) = (field, reasoning) {
        return Err(SettingProblem::new(
            "extra_body",
            format!("it must not contain `{field}` together with `{setting}`, which may set the same field"),
        ));
    }
    Ok(())
}

impl SettingFields {
    /// Checks that the API has a field for each setting of an order. `provider` names the provider in messages.
    ///
    /// # Errors
    /// Returns the first setting that the API would ignore or refuse.
    pub fn check(&self, provider: &str, own: &Generation) -> Result<(), SettingProblem> {
        let name = self.name.unwrap_or(provider);
        let missing = |setting: &'static str| {
            let text = format!(
                "{name} has no field for it; leave `{setting}` out, or give fields that the model takes in `extra_body`"
            );
            Err(SettingProblem::new(setting, text))
        };
        if own.top_k.is_some() && !self.top_k {
            return missing("top_k");
        }
        if own.seed.is_some() && !self.seed {
            return missing("sampler_seed");
        }
        match (own.reasoning_effort, &self.effort) {
            (Some(_), None) => return missing("reasoning_effort"),
            (Some(effort), Some((_, known))) if !known.contains(&effort) => {
                let known: Vec<_> = known.iter().map(|effort| format!("`{effort}`")).collect();
                let text = format!("{name} has no `{effort}`; it takes {}", known.join(", "));
                return Err(SettingProblem::new("reasoning_effort", text));
            }
            _ => {}
        }
        if own.thinking_budget.is_some() && self.thinking.is_none() {
            return missing("thinking_budget");
        }
        if let Some(temperature) = own.temperature.filter(|temperature| *temperature > self.temperature_max) {
            let text = format!("{name} takes at most {}, not {temperature}", self.temperature_max);
            return Err(SettingProblem::new("temperature", text));
        }
        if own.stop.len() > self.stop_max {
            let text = format!("{name} takes at most {} texts", self.stop_max);
            return Err(SettingProblem::new("stop", text));
        }
        if self.ignores_blank_stops && own.stop.iter().any(|text| text.trim().is_empty()) {
            return Err(SettingProblem::new("stop", format!("{name} ignores texts of whitespace alone")));
        }
        Ok(())
    }

    /// Checks the settings of one benchmark, after applying the order's: the tokens of reasoning must leave room for
    /// the answer. `model` is the provider's own id of the model.
    ///
    /// # Errors
    /// Returns the problem.
    pub fn check_merged(
        &self,
        provider: &str,
        model: &str,
        merged: &Generation,
    ) -> Result<(), SettingProblem> {
        let (Some(budget), Some((_, bounds))) = (merged.thinking_budget, &self.thinking) else {
            return Ok(());
        };
        let name = self.name.unwrap_or(provider);
        let problem = |text: String| Err(SettingProblem::new("thinking_budget", text));
        let is_anthropic = bounds.anthropic_prefix.is_some_and(|prefix| model.starts_with(prefix));
        let min = if is_anthropic { ANTHROPIC_THINKING_MIN } else { bounds.min };
        if !(min..=bounds.max).contains(&budget) {
            return problem(format!(
                "{name} takes {min} to {} tokens for this model, not {budget}",
                bounds.max
            ));
        }
        match merged.max_tokens {
            Some(max_tokens) if max_tokens <= budget => {
                return problem(format!(
                    "{budget} tokens leave no room for the answer, since `max_tokens` is {max_tokens}; give a higher \
                     `max_tokens`"
                ));
            }
            None if bounds.is_anthropic => {
                return problem(format!("{name} takes it only with `max_tokens`; give one above {budget}"));
            }
            _ => {}
        }
        if let Some(temperature) = merged.temperature
            && bounds.is_anthropic
            && (temperature - 1.0).abs() > f64::EPSILON
        {
            return problem(format!(
                "{name} takes it only at temperature 1, not {temperature}; leave the temperature out \
                 (`--omit temperature`), or set it to 1"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
