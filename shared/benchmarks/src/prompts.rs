//! Building blocks for prompts.

mod fill;

pub(crate) use fill::{fill, has_slots};
