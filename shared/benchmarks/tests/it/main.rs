//! Tests that run Python programs, and a benchmark made of public parts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic fails the test")]

mod code_lab;
mod code_lab_agent;
mod job;
mod python;
mod scicode;
mod small_benchmark;
mod swe_bench_pro;
