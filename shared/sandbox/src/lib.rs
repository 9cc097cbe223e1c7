//! The sandbox host: Sandy's API on one machine, over isolated processes.
//!
//! [`isolation`] makes sandboxes; [`host`] serves them over HTTP.

pub mod host;
pub mod isolation;
