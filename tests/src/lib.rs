//! Whole-system tests and their servers.

pub mod endpoint;
pub mod events;
pub mod files;
pub mod functions;
pub mod items;
pub mod measure;
pub mod model_server;
pub mod runtime_api;

pub use bench_sandy::testing as sandy_server;

use std::sync::Arc;

use bench_embedded::KMS_KEY_ID;
use bench_lambda::KmsKey;
use bench_stack::KeyWrapperFor;

/// Protects callers' keys with the embedded KMS, as deployed functions do.
pub fn kms_wrapper() -> KeyWrapperFor {
    Arc::new(|sdk| Arc::new(KmsKey::new(sdk, KMS_KEY_ID)))
}
