//! Limits for the settings of a model, whether the measured model or the judge.

/// Maximum length of a model's name, in characters.
pub(crate) const MODEL_CHARS_MAX: usize = 512;
/// Maximum temperature.
pub(crate) const TEMPERATURE_MAX: f64 = 2.0;
/// Maximum value of `max_tokens`.
pub(crate) const MAX_TOKENS_MAX: u64 = 10_000_000;
