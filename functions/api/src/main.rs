//! The API as a Lambda function: behind API Gateway, and with `BENCH_STREAMING` behind a function URL.

use std::sync::Arc;
use std::time::Duration;

use bench_api::{Api, ApiConfig};
use bench_datasets::{Library, LibraryConfig};
use bench_lambda::{Init, ResponseMode, WarmService, run_http};

/// Maximum duration of an event stream. Each stream occupies one of a limited number of execution environments,
/// so streams of clients that left or read slowly must end. `Timeout` in `template.yaml` is longer.
const STREAM_TIME: Duration = Duration::from_secs(120);

// The function handles one event at a time and mostly waits: one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[WarmService::Table]).await?;
    let streaming = init.vars.flag("BENCH_STREAMING")?;
    let config = ApiConfig::from_vars(init.vars.lookup(), false, env!("CARGO_PKG_VERSION"));
    // Without streaming, waiting has no benefit and costs money on Lambda: clients poll instead.
    let stream_time = Some(STREAM_TIME);
    // Behind the function URL, the function's role allows only reads.
    let config = ApiConfig {
        streaming,
        stream_time,
        reads_only: streaming,
        direct_uploads: true,
        ..config.map_err(anyhow::Error::msg)?
    };
    let blobs = init.blobs()?;
    let is_benchmark = |name: &str| bench_benchmarks::find(name).is_some();
    let library = LibraryConfig::from_vars("/tmp/bench-downloads", init.vars.all(), is_benchmark);
    let library = Library::new(blobs.clone(), library.map_err(anyhow::Error::msg)?);
    let (state, credentials) = (init.state()?, init.credentials()?);
    let api = Api::new(state, init.queues(), blobs, credentials, library, init.owner_key()?, config);
    let answers = if streaming { ResponseMode::Streamed } else { ResponseMode::Whole };
    run_http(bench_api::router(Arc::new(api)), answers).await
}
