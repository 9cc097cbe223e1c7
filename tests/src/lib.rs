//! Whole-system tests and their servers.

pub mod conversation;
pub mod endpoint;
pub mod events;
pub mod files;
pub mod functions;
pub mod items;
pub mod measure;
pub mod model_server;
pub mod process;
pub mod runtime_api;
pub mod scripted_host;

pub use bench_sandy::testing as sandy_server;

use std::sync::Arc;

use bench_lambda::KmsKey;
use bench_stack::KeyWrapperFactory;

/// Protects callers' keys with a key of the embedded KMS, as deployed functions do.
pub fn kms_wrapper(key_id: &'static str) -> KeyWrapperFactory {
    Arc::new(move |sdk| Arc::new(KmsKey::new(sdk, key_id)))
}
