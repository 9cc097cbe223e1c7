//! Tests of the run state against a real table: DynamoDB in one process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod commits;
mod labels;
mod machine;
mod many_sessions;
mod meter;
mod owned;
mod sessions;
mod table;
mod tasks;
