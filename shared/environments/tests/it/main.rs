//! Tests of the operations with a test sandbox and a scripted `docker` command, which logs what it is asked to do.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that can't continue has failed

mod api;
mod builder;
mod durable;
mod failures;
mod removal;
mod support;
mod variables;
