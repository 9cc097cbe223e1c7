//! Whole-system tests, and the servers that they run against.

pub mod endpoint;
pub mod events;
pub mod files;
pub mod functions;
pub mod items;
pub mod measure;
pub mod model_server;
pub mod runtime_api;

pub use bench_sandy::testing as sandy_server;
