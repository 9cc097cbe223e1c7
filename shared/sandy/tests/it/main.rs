//! Tests of the client and its jobs with a server over real processes.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that can't continue has failed

mod endpoints;
mod faults;
mod hostile;
mod jobs;
mod repeated;
mod run;
mod scripted;
mod stored;
mod support;
