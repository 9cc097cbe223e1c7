//! The API as a Lambda function.

use std::sync::Arc;

use bench_api::{Api, ApiConfig};
use bench_datasets::{Library, LibraryConfig};
use bench_lambda::{init_tracing, resources, run_http, sdk_config, var};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let aws = sdk_config().await;
    let config = ApiConfig {
        // Waiting inside Lambda is paid for: who watches asks again.
        streaming: false,
        ..ApiConfig::from_vars(var, false, env!("CARGO_PKG_VERSION")).map_err(anyhow::Error::msg)?
    };
    let blobs = resources::blobs(&aws)?;
    let key = resources::master_key()?;
    let library =
        Library::new(blobs.clone(), LibraryConfig::from_vars("/tmp/bench-downloads", std::env::vars()));
    let api = Api::new(
        resources::state(&aws)?,
        resources::queues(&aws),
        blobs,
        resources::credentials(&aws, Arc::clone(&key))?,
        library,
        key,
        config,
    );
    run_http(bench_api::router(Arc::new(api))).await
}
