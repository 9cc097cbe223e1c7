//! Tests of sandboxes on this machine, in every form that it allows: their life cycle, and their resistance to attacks.
//!
//! They need bash and python3 in the system's folders. If root runs them, the whole suite runs a second time as an
//! unprivileged user.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't continue has failed")]

mod api;
mod attacks;
mod jobs;
mod killed;
mod lifecycle;
mod options;
mod support;
mod unprivileged;
mod writing;
