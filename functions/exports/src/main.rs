//! Exports as a Lambda function. It alone is given the signing key.

use std::sync::Arc;

use bench_exports::{Exports, ExportsConfig};
use bench_lambda::{init_tracing, resources, run_http, sdk_config, var};
use bench_signing::{KeyRing, RingConfig};
use bench_web::{Access, ServerConfig};

/// The largest archive that API Gateway and Lambda let through.
const UPLOAD_BYTES_MAX: u64 = 6 * 1024 * 1024;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    init_tracing();
    let aws = sdk_config().await;
    let server = ServerConfig::from_vars(var, false).map_err(anyhow::Error::msg)?;
    let access =
        Access { local: false, admin_secret: var("ADMIN_SECRET"), owner_key: resources::master_key()? };
    let (private, public) = (var("BENCH_SIGNING_PRIVATE_KEY"), var("BENCH_SIGNING_PUBLIC_KEY"));
    let old = var("BENCH_SIGNING_OLD_PUBLIC_KEYS");
    let keys = KeyRing::from_config(&RingConfig {
        private_key: private.as_deref(),
        public_key: public.as_deref(),
        old_public_keys: old.as_deref(),
        valid_from: None,
    });
    let gated = bench_benchmarks::all().iter().filter(|benchmark| benchmark.spec().gate.is_some());
    let config = ExportsConfig {
        gated: gated.filter_map(|benchmark| benchmark.name().parse().ok()).collect(),
        streaming: false,
        upload_bytes_max: UPLOAD_BYTES_MAX,
        ..ExportsConfig::new(env!("CARGO_PKG_VERSION"), access)
    };
    let exports = Exports::new(resources::state(&aws)?, resources::blobs(&aws)?, keys, config);
    let routes = bench_exports::router(Arc::new(exports));
    run_http(bench_web::finish(routes, server)).await
}
