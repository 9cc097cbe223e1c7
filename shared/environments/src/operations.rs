//! The operations of an environment, one file each.

mod build;
mod exec;
mod fetch;
mod health;
mod put;
mod resolve;
mod start;
mod type_keys;
mod unpack;

pub use build::{Build, Built};
pub use exec::{Exec, ExecResult, Kept};
pub use fetch::{FetchFiles, FetchedFile, FetchedFiles, SHORTENED_LOG_BYTES, SkipReason, SkippedFile};
pub use health::CheckHealth;
pub use put::PutFiles;
pub use resolve::Resolve;
pub use start::{Start, Started};
pub use type_keys::{Captured, Stroke, TypeKeys};
pub use unpack::Unpack;

/// Time limit of operations that only move files of the sandbox or ask the engine.
const SHORT: std::time::Duration = std::time::Duration::from_secs(60);
