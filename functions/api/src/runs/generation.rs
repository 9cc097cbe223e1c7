//! Generation settings and limits of runs, read from orders.
//!
//! Only types and bounds are checked here. Whether settings contradict each other, and whether the provider has fields for
//! them, is checked when the order is resolved, as for orders from the command line.

use bench_domain::{Generation, MaxTokensField, OmittedSetting, ReasoningEffort, RunLimits};
use bench_runs::settings::{
    EXTRA_BODY_BYTES_MAX, STOP_CHARS_MAX, STOP_MAX, SYSTEM_PROMPT_BYTES_MAX, THINKING_BUDGET_MAX, TOP_K_MAX,
};
use bench_web::FieldReader;
use serde_json::{Map, Value, json};

use crate::runs::bounds::{MAX_TOKENS_MAX, TEMPERATURE_MAX};

/// Reads the generation settings of the model's answers.
pub(crate) fn read_generation(fields: &mut FieldReader) -> Generation {
    let narrow = |number: u64| u32::try_from(number).ok();
    let top_p = fields.maybe_number("top_p", 0.0, 1.0);
    if top_p == Some(0.0) {
        fields.note("greater_than", "top_p", "Input should be greater than 0");
    }
    let stop = fields.maybe_texts("stop", STOP_MAX, STOP_CHARS_MAX).unwrap_or_default();
    if stop.iter().any(String::is_empty) {
        fields.note("string_too_short", "stop", "Each text should have at least 1 character");
    }
    let system_prompt = fields.maybe_text("system_prompt", SYSTEM_PROMPT_BYTES_MAX);
    let system_prompt = system_prompt.filter(|text| !text.trim().is_empty());
    if system_prompt.as_ref().is_some_and(|text| text.len() > SYSTEM_PROMPT_BYTES_MAX) {
        fields.note(
            "too_long",
            "system_prompt",
            format!("String should have at most {SYSTEM_PROMPT_BYTES_MAX} bytes"),
        );
    }
    let extra_body = fields.maybe_object("extra_body").filter(|object| !object.is_empty());
    let extra_body = extra_body.map(|object| Value::Object(object).to_string());
    if extra_body.as_ref().is_some_and(|text| text.len() > EXTRA_BODY_BYTES_MAX) {
        fields.note(
            "too_long",
            "extra_body",
            format!("Object should have at most {EXTRA_BODY_BYTES_MAX} bytes"),
        );
    }
    Generation {
        temperature: fields.maybe_number("temperature", 0.0, TEMPERATURE_MAX),
        top_p,
        max_tokens: fields.maybe_integer("max_tokens", 1, MAX_TOKENS_MAX).and_then(narrow),
        stop,
        seed: fields.maybe_signed("sampler_seed"),
        top_k: fields.maybe_integer("top_k", 1, TOP_K_MAX.into()).and_then(narrow),
        system_prompt,
        reasoning_effort: fields.maybe_choice(
            "reasoning_effort",
            &ReasoningEffort::names(),
            ReasoningEffort::from_name,
        ),
        thinking_budget: fields
            .maybe_integer("thinking_budget", 1, THINKING_BUDGET_MAX.into())
            .and_then(narrow),
        extra_body,
        omit: read_omitted(fields),
        max_tokens_field: fields.maybe_choice(
            "max_tokens_field",
            &MaxTokensField::names(),
            MaxTokensField::from_name,
        ),
    }
}

fn read_omitted(fields: &mut FieldReader) -> Vec<OmittedSetting> {
    let names = fields.maybe_texts("omit", 2 * OmittedSetting::ALL.len(), 80).unwrap_or_default();
    if names.iter().any(|name| OmittedSetting::from_name(name).is_none()) {
        let msg = format!("Each entry should be one of {}", OmittedSetting::names());
        fields.note("enum", "omit", msg);
    }
    let is_named = |setting: &&OmittedSetting| {
        names.iter().any(|name| OmittedSetting::from_name(name).as_ref() == Some(*setting))
    };
    OmittedSetting::ALL.iter().filter(is_named).copied().collect()
}

/// Reads the limits of a run besides its budget.
pub(crate) fn read_limits(fields: &mut FieldReader) -> RunLimits {
    let mut limit = |name, max: u32| {
        fields.maybe_integer(name, 1, max.into()).and_then(|number| u32::try_from(number).ok())
    };
    RunLimits {
        requests_per_minute: limit("requests_per_minute", RunLimits::REQUESTS_PER_MINUTE_MAX),
        timeout_seconds: limit("timeout_seconds", RunLimits::TIMEOUT_SECONDS_MAX),
        max_failures: limit("max_failures", RunLimits::FAILURES_MAX),
    }
}

/// Returns the order's fields for these settings and limits, as [`read_generation`] and [`read_limits`] read them.
pub(crate) fn setting_fields(generation: &Generation, limits: RunLimits) -> Map<String, Value> {
    // All fields are named: a new one must be added to the order's fields or left out on purpose.
    let Generation {
        temperature,
        top_p,
        max_tokens,
        stop,
        seed,
        top_k,
        system_prompt,
        reasoning_effort,
        thinking_budget,
        extra_body,
        omit,
        max_tokens_field,
    } = generation;
    let RunLimits { requests_per_minute, timeout_seconds, max_failures } = limits;
    let extra_body: Option<Value> = extra_body.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let fields = json!({
        "temperature": temperature,
        "top_p": top_p,
        "max_tokens": max_tokens,
        "stop": stop,
        "sampler_seed": seed,
        "top_k": top_k,
        "system_prompt": system_prompt,
        "reasoning_effort": reasoning_effort,
        "thinking_budget": thinking_budget,
        "extra_body": extra_body,
        "omit": omit,
        "max_tokens_field": max_tokens_field,
        "requests_per_minute": requests_per_minute,
        "timeout_seconds": timeout_seconds,
        "max_failures": max_failures,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(body: Value) -> FieldReader {
        FieldReader::from_body(body.as_object().unwrap().clone())
    }

    fn read(body: Value) -> Result<(Generation, RunLimits), String> {
        let mut fields = reader(body);
        let read = (read_generation(&mut fields), read_limits(&mut fields));
        assert_eq!(fields.unread(), Vec::<String>::new());
        fields.finish().map_err(|error| error.message().to_owned())?;
        Ok(read)
    }

    #[test]
    fn every_setting_survives_being_stored_and_read_again() {
        let body = json!({
            "temperature": 0.6, "top_p": 0.95, "max_tokens": 8192, "stop": ["END", "\n"], "sampler_seed": -7,
            "top_k": 20, "system_prompt": "Be brief.\n", "reasoning_effort": "high", "thinking_budget": 4096,
            "extra_body": { "min_p": 1.0, "a": [1, { "b": null }] }, "omit": ["stop", "top-p", "stop"],
            "max_tokens_field": "max_completion_tokens", "requests_per_minute": 60, "timeout_seconds": 30,
            "max_failures": 1,
        });
        let (generation, limits) = read(body).unwrap();
        assert_eq!(generation.omit, [OmittedSetting::TopP, OmittedSetting::Stop]);
        assert_eq!(generation.extra_body.as_deref(), Some(r#"{"a":[1,{"b":null}],"min_p":1.0}"#));
        assert_eq!(generation.system_prompt.as_deref(), Some("Be brief.\n"), "texts are sent as given");
        let again = read(Value::Object(setting_fields(&generation, limits))).unwrap();
        assert_eq!(again, (generation, limits));
    }

    #[test]
    fn absent_settings_are_the_default() {
        let nothing = (Generation::default(), RunLimits::default());
        assert_eq!(read(json!({})).unwrap(), nothing);
        let empty = json!({ "stop": [], "omit": [], "system_prompt": " ", "extra_body": {}, "top_k": null });
        assert_eq!(read(empty).unwrap(), nothing);
        let nulls = setting_fields(&nothing.0, nothing.1);
        assert_eq!(read(Value::Object(nulls)).unwrap(), nothing);
    }

    #[test]
    fn bounds_are_checked() {
        for (field, value) in [
            ("top_p", json!(0)),
            ("top_p", json!(1.01)),
            ("top_k", json!(0)),
            ("top_k", json!(1.5)),
            ("stop", json!("END")),
            ("stop", json!([""])),
            ("stop", json!(vec!["x"; STOP_MAX + 1])),
            ("stop", json!(["x".repeat(STOP_CHARS_MAX + 1)])),
            ("sampler_seed", json!("x")),
            ("system_prompt", json!(7)),
            ("system_prompt", json!("é".repeat(SYSTEM_PROMPT_BYTES_MAX / 2 + 1))),
            ("reasoning_effort", json!("much")),
            ("thinking_budget", json!(0)),
            ("extra_body", json!([1])),
            ("extra_body", json!("{}")),
            ("extra_body", json!({ "x": "y".repeat(EXTRA_BODY_BYTES_MAX) })),
            ("omit", json!(["seed"])),
            ("omit", json!("temperature")),
            ("max_tokens_field", json!("tokens")),
            ("requests_per_minute", json!(0)),
            ("requests_per_minute", json!(60_001)),
            ("timeout_seconds", json!(0)),
            ("timeout_seconds", json!(3_601)),
            ("max_failures", json!(0)),
        ] {
            let error = read(json!({ field: value })).unwrap_err();
            assert!(error.starts_with(field), "{field}: {error}");
        }
    }
}
