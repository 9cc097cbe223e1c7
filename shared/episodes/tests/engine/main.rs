//! Whole episodes on the machine's container engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // these are tests

mod agents;
mod custom;
mod graded;
mod instances;
mod support;
mod thinking;
mod trouble;
