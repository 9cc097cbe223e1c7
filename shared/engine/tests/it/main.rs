//! Tests of the proxy in front of a scripted engine.
#![allow(clippy::unwrap_used, reason = "a test that can't continue has failed")]
#![recursion_limit = "256"]

mod bodies;
mod builder;
mod builds;
mod fake;
mod ownership;
mod streams;
