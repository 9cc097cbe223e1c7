//! Tests of the embedded services through the AWS SDK.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod conformance;
mod direct;
mod guarantees;
mod host;
mod kill;
mod listener;
mod small;
