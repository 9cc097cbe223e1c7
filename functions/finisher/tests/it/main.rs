//! The finisher, on the AWS services in one process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod closed;
mod ended_early;
mod world;
