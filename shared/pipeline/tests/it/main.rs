//! Takes samples from message to score, on the embedded AWS services and a provider on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod answered;
mod budget;
mod claims;
mod failures;
mod interruptions;
mod judged;
mod log;
mod misdirected;
mod provider;
mod run;
mod sources;
mod waits;
mod world;
