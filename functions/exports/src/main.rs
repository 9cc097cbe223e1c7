//! Exports as a Lambda function: behind API Gateway, and with `BENCH_STREAMING` behind a function URL. Only
//! this function receives the signing key.

use std::sync::Arc;
use std::time::Duration;

use bench_exports::{Exports, ExportsConfig, FontSource};
use bench_lambda::{Init, ResponseMode, WarmService, run_http};
use bench_signing::{KeyRing, Limits, RingConfig};
use bench_web::{Access, ServerConfig};

/// Maximum size of an archive in a request, in bytes: Lambda accepts 6 MB, and base64 makes four bytes of three.
const UPLOAD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum total size of an uploaded archive's members, in bytes: they must be read within API Gateway's 29 seconds.
const VERIFY_TOTAL_BYTES_MAX: u64 = 1 << 30;
/// Time that a request waits for a build: less than the 29 seconds for which API Gateway waits.
const BUILD_WAIT: Duration = Duration::from_secs(20);
/// The same behind a function URL: less than the 60 seconds for which CloudFront waits for the start of a response.
const STREAMED_BUILD_WAIT: Duration = Duration::from_secs(45);
/// Maximum size of an export that is streamed through a function URL. It takes less than two minutes at
/// Lambda's 2 MB/s; `Timeout` in `template.yaml` gives slower clients four minutes.
const STREAMED_BYTES_MAX: u64 = 190_000_000;

// The function handles one event at a time and mostly waits: one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let init = Init::start(&[WarmService::Table, WarmService::Bucket]).await?;
    let vars = &init.vars;
    let streaming = vars.flag("BENCH_STREAMING")?;
    let server = ServerConfig::from_vars(vars.lookup(), false).map_err(anyhow::Error::msg)?;
    let access = Access::new(false, vars.get("ADMIN_SECRET"), init.owner_key()?).with_users(vars.lookup());
    let (private, public) = (vars.get("BENCH_SIGNING_PRIVATE_KEY"), vars.get("BENCH_SIGNING_PUBLIC_KEY"));
    let old = vars.get("BENCH_SIGNING_OLD_PUBLIC_KEYS");
    // Without a usable key, tables still work, and archives report the problem.
    let keys = KeyRing::from_config(&RingConfig {
        private_key: private.as_deref(),
        public_key: public.as_deref(),
        old_public_keys: old.as_deref(),
        valid_from: None,
    });
    let config = ExportsConfig {
        streaming,
        streamed_bytes_max: STREAMED_BYTES_MAX,
        upload_bytes_max: UPLOAD_BYTES_MAX,
        direct_uploads: true,
        verify_limits: Limits { total_bytes_max: VERIFY_TOTAL_BYTES_MAX, ..Limits::default() },
        build_wait: Some(if streaming { STREAMED_BUILD_WAIT } else { BUILD_WAIT }),
        fonts: vars
            .get("BENCH_FONTS")
            .map_or_else(FontSource::default, |folder| FontSource::Folder(folder.into())),
        ..ExportsConfig::new(env!("CARGO_PKG_VERSION"), access)
    }
    .with_public_address(vars.get("FRONTEND_URL").as_deref());
    let exports = Exports::new(init.state()?, init.blobs()?, keys, config);
    let routes = bench_exports::router(Arc::new(exports));
    let answers = if streaming { ResponseMode::Streamed } else { ResponseMode::Whole };
    run_http(bench_web::finish(routes, server), answers).await
}
