//! Tests that run programs in Python, and a benchmark that is made of public parts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what fails here fails the test")]

mod job;
mod python;
mod scicode;
mod small_benchmark;
