//! The sandbox host: serves Sandy's API on one machine, with isolated processes as sandboxes.
//!
//! [`isolation`] creates sandboxes; [`host`] serves them over HTTP.

pub mod host;
pub mod isolation;
