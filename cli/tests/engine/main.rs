//! Tests of the command on a container engine: `make test-containers`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what fails here fails the test")]

/// Tests that count what the engine has. `tests/containers/run.sh` finds them by this module's name.
mod command {
    mod custom_agents;
    mod episodes;
    mod kills;
    mod repositories;
    mod secrets;
}
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod support;
