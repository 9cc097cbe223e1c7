//! Generation settings of orders, checked against the provider and the benchmarks.

use bench_domain::{BenchmarkName, Generation, RunLimits};
use bench_inference::settings::check_settings;
use bench_inference::{Keys, ModelSource};

use crate::order::no_effect_warning;
use crate::{FoundModel, OrderWarning, Orderer, Orders, RunError};

/// Maximum number of texts that end an answer.
pub const STOP_MAX: usize = 16;
/// Maximum length of a text that ends an answer, in characters.
pub const STOP_CHARS_MAX: usize = 200;
/// Maximum value of `top_k`.
pub const TOP_K_MAX: u32 = 1_000_000;
/// Maximum number of tokens of reasoning.
pub const THINKING_BUDGET_MAX: u32 = 10_000_000;
/// Maximum size of a system prompt, in bytes: it is stored with the run and with each benchmark.
pub const SYSTEM_PROMPT_BYTES_MAX: usize = 32 * 1024;
/// Maximum size of an extra body, in bytes: it is stored with the run and with each benchmark.
pub const EXTRA_BODY_BYTES_MAX: usize = 16 * 1024;

impl Orders {
    /// Checks generation settings without the benchmarks: each must have a field in requests to the provider, and none may
    /// contain a key, since settings are part of the public results.
    pub(crate) fn check_settings(
        &self,
        own: &Generation,
        found: &FoundModel,
        orderer: &Orderer,
    ) -> Result<(), RunError> {
        check_settings(own)?;
        let ModelSource::Provider(provider) = found.source else { return Ok(()) };
        let fields = provider.setting_fields(found.model.endpoint_host.as_deref());
        fields.check(provider.display_name, own)?;
        let (callers, operators) = (Keys::new(&orderer.api_key), self.runs.config.inference.keys());
        for (setting, text) in [("system_prompt", &own.system_prompt), ("extra_body", &own.extra_body)] {
            let Some(text) = text else { continue };
            if [&callers, &operators].iter().any(|keys| keys.redact(text).as_ref() != text.as_str()) {
                return Err(RunError::SettingHasKey(setting));
            }
        }
        Ok(())
    }

    /// Checks the settings of each benchmark after applying the order's.
    pub(crate) fn check_merged_settings(
        &self,
        own: &Generation,
        found: &FoundModel,
        benchmarks: impl Iterator<Item = (BenchmarkName, Option<String>)>,
    ) -> Result<(), RunError> {
        let ModelSource::Provider(provider) = found.source else { return Ok(()) };
        let fields = provider.setting_fields(found.model.endpoint_host.as_deref());
        for (name, protocol) in benchmarks {
            let benchmark = bench_benchmarks::find(name.as_str());
            let benchmark = benchmark
                .and_then(|benchmark| bench_benchmarks::with_protocol(benchmark, protocol.as_deref()).ok());
            let Some(benchmark) = benchmark else { continue };
            let merged = own.over(&(benchmark.metadata().generation)());
            fields
                .check_merged(provider.display_name, &found.model.slug, &merged)
                .map_err(|problem| RunError::SettingOfBenchmark { benchmark: name, problem })?;
        }
        Ok(())
    }
}

/// Returns a warning for each setting that changes nothing because no model is asked.
pub(crate) fn unused_settings(own: &Generation, limits: RunLimits) -> Vec<OrderWarning> {
    // All fields are named, so that a new one isn't forgotten.
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
    } = own;
    let RunLimits { requests_per_minute, timeout_seconds, max_failures: _ } = limits;
    let set = [
        ("temperature", temperature.is_some()),
        ("max_tokens", max_tokens.is_some()),
        ("top_p", top_p.is_some()),
        ("stop", !stop.is_empty()),
        ("sampler_seed", seed.is_some()),
        ("top_k", top_k.is_some()),
        ("system_prompt", system_prompt.is_some()),
        ("reasoning_effort", reasoning_effort.is_some()),
        ("thinking_budget", thinking_budget.is_some()),
        ("extra_body", extra_body.is_some()),
        ("omit", !omit.is_empty()),
        ("max_tokens_field", max_tokens_field.is_some()),
        ("requests_per_minute", requests_per_minute.is_some()),
        ("timeout_seconds", timeout_seconds.is_some()),
    ];
    let set = set.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(field, _)| no_effect_warning(field, "no model is asked")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_a_model_are_reported() {
        let own = Generation { top_k: Some(1), stop: vec!["x".into()], ..Generation::default() };
        let limits = RunLimits { timeout_seconds: Some(1), max_failures: Some(1), ..RunLimits::default() };
        let fields: Vec<_> = unused_settings(&own, limits).into_iter().map(|warning| warning.field).collect();
        assert_eq!(fields, ["stop", "top_k", "timeout_seconds"]);
        assert_eq!(unused_settings(&Generation::default(), RunLimits::default()), []);
    }
}
