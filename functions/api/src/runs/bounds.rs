//! Bounds of what orders say of a model, be it the one that is measured or the judge.

/// Characters of a model's name.
pub(crate) const MODEL_CHARS_MAX: usize = 512;
/// Upper bound of the randomness of answers.
pub(crate) const TEMPERATURE_MAX: f64 = 2.0;
/// Upper bound of an answer's bound in tokens.
pub(crate) const MAX_TOKENS_MAX: u64 = 10_000_000;
