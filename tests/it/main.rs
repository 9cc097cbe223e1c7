//! Faults, really done to the whole system in this process, and what must hold after each.
//!
//! Every test opens a stack on a directory of its own, runs against a scripted model server, does its harm,
//! and then looks at everything that is stored: [`support::check`] has the invariants.

mod callers_key;
mod cancel;
mod fairness;
mod injected;
mod kill_everywhere;
mod lease;
mod planner;
mod finisher;
mod poison;
mod provider;
mod requeue;
mod restart;
#[path = "../../cli/src/stack.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod stack;
mod support;
