//! State that the API keeps between requests: confirmed keys, places in the queue, and views of operators.

pub(crate) mod confirmations;
pub(crate) mod ops;
pub(crate) mod places;
