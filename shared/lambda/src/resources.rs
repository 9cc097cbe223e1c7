//! Where a function's table, bucket and keys are.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `BENCH_TABLE` | table of runs and samples |
//! | `BENCH_BUCKET` | bucket of bodies, datasets and exports |
//! | `BENCH_CREDENTIALS_TABLE` | table of callers' keys |
//! | `BENCH_MASTER_KEY` | base64 of 32 bytes that protect callers' keys |
//! | `BENCH_QUEUE_PLANS_URL`, `BENCH_QUEUE_ITEMS_URL`, `BENCH_QUEUE_FINISHES_URL` | addresses of the queues |

use std::sync::Arc;

use anyhow::Context;
use aws_types::SdkConfig;
use base64::Engine;
use bench_blobs::Blobs;
use bench_queue::Queues;
use bench_state::State;
use bench_state::credentials::{Credentials, KEY_BYTES, LocalKey};

use crate::{required, var};

/// Leases are void only when their time is over: Lambda hosts come and go independently.
const EPOCH: u64 = 0;

/// The state of all runs.
pub fn state(config: &SdkConfig) -> anyhow::Result<State> {
    Ok(State::new(config, required("BENCH_TABLE")?, EPOCH))
}

/// The bucket.
pub fn blobs(config: &SdkConfig) -> anyhow::Result<Blobs> {
    Ok(Blobs::new(config, required("BENCH_BUCKET")?))
}

/// The queues that this function knows.
pub fn queues(config: &SdkConfig) -> Queues {
    Queues::from_vars(config, var)
}

/// The key that protects callers' keys.
pub fn master_key() -> anyhow::Result<Arc<LocalKey>> {
    let text = required("BENCH_MASTER_KEY")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok();
    let key: Option<[u8; KEY_BYTES]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let key = key.with_context(|| format!("BENCH_MASTER_KEY is not base64 of {KEY_BYTES} bytes"))?;
    Ok(Arc::new(LocalKey::new(&key)?))
}

/// The table of callers' keys.
pub fn credentials(config: &SdkConfig, key: Arc<LocalKey>) -> anyhow::Result<Credentials> {
    Ok(Credentials::new(config, required("BENCH_CREDENTIALS_TABLE")?, key))
}
