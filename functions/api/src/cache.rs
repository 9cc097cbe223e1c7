//! State that the API keeps between requests: confirmed keys, queue positions, and data for the operators' pages.

pub(crate) mod confirmations;
pub(crate) mod ops;
pub(crate) mod queue_positions;
pub(crate) mod run_facts;
pub(crate) mod tasks;
