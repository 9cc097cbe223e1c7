//! What prompts of several benchmarks are made of.

mod fill;

pub(crate) use fill::{fill, has_slots};
