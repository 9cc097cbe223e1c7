//! Transitions of the state machines of runs, benchmarks and samples.

/// A transition that the state does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {from} {what} cannot {verb}")]
pub struct IllegalTransition {
    /// `run`, `benchmark` or `sample`.
    pub what: &'static str,
    /// The state it is in.
    pub from: &'static str,
    /// What was tried.
    pub verb: &'static str,
}
