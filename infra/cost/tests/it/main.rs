//! Tests of the cost page.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod page;
mod template;
