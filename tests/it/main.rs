//! Real faults in the whole system within this process, and the invariants that must hold after each.
//!
//! Every test opens a stack in its own directory, runs against a scripted model server, causes its faults, and then
//! checks everything stored: [`support::check`] has the invariants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod access;
mod answers;
mod architecture;
mod budget;
mod callers_key;
mod cancel;
mod code_agent;
mod compatible;
mod conversations;
mod cost;
mod deployed;
mod episodes;
mod fairness;
mod finisher;
mod gated;
mod injected;
mod judging;
mod kill_everywhere;
mod labels;
mod lease;
mod limits;
mod module_cycles;
mod ops;
mod paying_session;
mod planner;
mod poison;
mod provider;
mod refused;
mod requeue;
mod restart;
mod route_access;
mod runtime_api;
mod sandbox;
mod schedules;
mod shared_dir;
mod support;
