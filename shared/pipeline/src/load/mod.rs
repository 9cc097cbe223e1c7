//! What an attempt needs before it can ask: the run, the benchmark, the item and what its prompt needs besides it.

pub(crate) mod benchmark;
mod keys;
pub(crate) mod material;
pub(crate) mod run;
pub(crate) mod runs;
