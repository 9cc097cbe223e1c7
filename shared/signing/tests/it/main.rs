//! Tests of archives: the writer's against independent readers, hostile and damaged ones against the verifier.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod archive;
mod hostile;
mod mutation;
mod support;
mod vectors;
