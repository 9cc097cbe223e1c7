//! Tests of the functions' startup against the embedded services.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step fails the test")]

mod denied;
mod secrets;
