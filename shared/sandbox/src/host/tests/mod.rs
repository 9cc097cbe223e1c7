//! The host without real sandboxes.

mod bare;
mod disconnects;
mod fake;
mod http;
mod lending;
mod life;
mod preemption;
mod room;
mod wire;
