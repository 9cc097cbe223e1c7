//! Tests of the exports function against runs in the embedded services.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod archive;
mod http;
mod lines;
mod protocol;
mod report;
mod rotation;
mod support;
mod table;
mod together;
mod uploads;
