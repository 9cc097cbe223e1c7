//! Caller's own keys for the models that runs ask beside the measured one.

use std::env;

use bench_domain::Secret;

/// Variable with the caller's key for the judge.
pub(crate) const JUDGE_VARIABLE: &str = "BENCH_JUDGE_API_KEY";
/// Variable with the caller's key for the user model.
pub(crate) const USER_VARIABLE: &str = "BENCH_USER_API_KEY";

/// Caller's own keys for judge and user model.
#[derive(Debug, Clone, Default)]
pub(crate) struct HelperKeys {
    /// Key for the judge.
    pub(crate) judge: Option<Secret>,
    /// Key for the user model.
    pub(crate) user: Option<Secret>,
}

impl HelperKeys {
    /// Reads the variables.
    pub(crate) fn from_variables() -> Self {
        let key = |variable| env::var(variable).ok().and_then(Secret::new);
        Self { judge: key(JUDGE_VARIABLE), user: key(USER_VARIABLE) }
    }
}
