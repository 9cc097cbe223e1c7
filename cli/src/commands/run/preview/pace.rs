//! Limits on how fast a run asks, here or at a server.

use bench_domain::RunLimits;
use bench_estimate::Pace;
use serde::Deserialize;

use crate::client::Client;

/// Settings of a server, as far as they matter here.
#[derive(Debug, Deserialize)]
struct Overview {
    worker_config: WorkerConfig,
}

#[derive(Debug, Deserialize)]
struct WorkerConfig {
    worker_item_concurrency: u64,
}

/// Returns the pace of a run with this concurrency, or of a server.
pub(super) async fn pace(client: &Client, concurrency: Option<u64>, limits: RunLimits) -> Pace {
    let RunLimits { requests_per_minute, timeout_seconds, max_failures: _ } = limits;
    let concurrency = match concurrency {
        Some(own) => Some(own),
        None => at_server(client).await,
    };
    Pace { concurrency, requests_per_minute, timeout_seconds }
}

/// Returns the number of samples that a worker of a server processes at once. Deployed, there may be several workers, so
/// a run may be faster.
async fn at_server(client: &Client) -> Option<u64> {
    match client.get::<Overview>("/api/ops/overview").await {
        Ok(overview) => Some(overview.worker_config.worker_item_concurrency).filter(|number| *number > 0),
        Err(error) => {
            tracing::debug!(%error, "The server's concurrency can't be read");
            None
        }
    }
}
