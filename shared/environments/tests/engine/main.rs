//! Tests with a real container engine: `make test-containers`.
//!
//! They need a `docker` command with its compose plugin, an engine at `DOCKER_HOST` or the default socket, and Debian's
//! `busybox-static`, and fail without them. They remove everything that they make except built images.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that can't continue has failed

mod builds;
mod commands;
mod files;
mod lifecycle;
mod relay;
mod support;
mod trouble;
