//! Sandboxes of this machine, in every form that it allows: how they live, and how they hold when they are attacked.
//!
//! Needs bash and python3 in the system's folders. Run by root, the whole suite runs a second time as a user without
//! privileges.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod api;
mod attacks;
mod host;
mod jobs;
mod killed;
mod life;
mod options;
mod unprivileged;
mod writing;
