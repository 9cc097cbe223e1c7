//! Tests of the sandbox host with a real container engine: `make test-containers`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't continue has failed")]

mod attacks;
mod builds;
mod environment;
mod killed;
mod lifecycle;
mod support;
