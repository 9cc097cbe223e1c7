//! Tests of the host without isolated sandboxes.

mod client;
mod disconnects;
mod engine;
mod fake_isolation;
mod http;
mod lending;
mod lifecycle;
mod not_isolated;
mod preemption;
mod slot_pool;
