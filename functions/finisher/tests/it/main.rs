//! The finisher, on the embedded AWS services.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod closed;
mod deleted;
mod ended_early;
mod index;
mod world;
