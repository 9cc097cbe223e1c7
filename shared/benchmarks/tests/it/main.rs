//! Tests that run programs in Python.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what fails here fails the test")]

mod job;
mod python;
mod scicode;
