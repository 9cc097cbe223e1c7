//! Faults, really done to the whole system in this process, and what must hold after each.
//!
//! Every test opens a stack on a directory of its own, runs against a scripted model server, does its harm,
//! and then looks at everything that is stored: [`support::check`] has the invariants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod access;
mod answers;
mod architecture;
mod budget;
mod callers_key;
mod cancel;
mod cost;
mod deployed;
mod fairness;
mod finisher;
mod gated;
mod injected;
mod judging;
mod kill_everywhere;
mod lease;
mod module_cycles;
mod ops;
mod planner;
mod poison;
mod provider;
mod refused;
mod requeue;
mod restart;
mod runtime_api;
mod sandbox;
mod schedules;
mod support;
