//! Shared parts of the tests: worlds, orders, datasets, and the invariants.

pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod log;
pub(crate) mod manual_driver;
pub(crate) mod order;
pub(crate) mod terminal_bench;
pub(crate) mod webhook_server;
pub(crate) mod world;

pub(crate) use check::{Expected, check};
pub(crate) use manual_driver::ManualDriver;
pub(crate) use order::{Order, USER};
pub(crate) use world::{Settings, World};

/// Creates a runtime with several threads, which a stack needs: its functions run on the runtime, its services don't.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
