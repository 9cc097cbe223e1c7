//! Transitions of the state machines of runs, benchmarks and samples.

/// Error for a transition that the state doesn't allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {from} {what} cannot {verb}")]
pub struct IllegalTransition {
    /// `run`, `benchmark` or `sample`.
    pub what: &'static str,
    /// Current state.
    pub from: &'static str,
    /// Transition that was tried.
    pub verb: &'static str,
}
