//! The client and its jobs against a server over real processes.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot go on ends

mod endpoints;
mod faults;
mod hostile;
mod jobs;
mod stored;
mod support;
mod twice;
