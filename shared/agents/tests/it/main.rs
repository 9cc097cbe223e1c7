//! Tests of the agents against official results, and of whole episodes.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that can't continue has failed

mod bash;
mod context;
mod driver;
mod functions;
mod replies;
mod settings;
mod support;
mod terminus2;
mod trajectories;
