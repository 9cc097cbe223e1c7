//! Tests against a real container engine, run by `make test-containers`. They fail if there is none.
//!
//! Variables: `DOCKER_HOST` chooses the engine, `CONTAINERS_CONF` and `CONTAINERS_STORAGE_CONF` podman's settings, and `DOCKER_CONFIG` the
//! folder of docker's plugins.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't continue has failed")]

mod attacks;
mod builders;
mod builds;
mod cleanup;
mod cli;
mod health;
mod network;
mod outside;
mod pipes;
mod probe;
mod sizes;
mod support;
