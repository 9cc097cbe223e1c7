//! The sandbox host of the stack, on a loopback port of its own and behind a random key, so that callers use it like
//! any other Sandy server. It is created by the first request, since most commands never run code.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use bench_http_server::Limits;
use bench_sandbox::host::{ApiKey, SandboxHost, router};
use bench_sandy::SandyConfig;
use bench_web::{ApiError, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::sandboxes::SandboxSettings;

/// Connections of the host in addition to those of the jobs.
const SPARE_CONNECTIONS: usize = 64;

/// Host that is created by the first request.
struct LazyHost {
    settings: SandboxSettings,
    key: ApiKey,
    created: OnceCell<(Arc<SandboxHost>, Router)>,
}

impl LazyHost {
    async fn answer(self: Arc<Self>, request: Request) -> Response {
        if !self.key.is_sent_in(request.headers()) {
            // Other users of this machine must not start the host.
            let detail = "This sandbox host requires a key: send it as `Authorization: Bearer KEY`.";
            return ApiError::new(Code::MissingCredentials, detail).into_response();
        }
        let created = self.created.get_or_try_init(|| async {
            let (settings, key) = (self.settings.clone(), self.key.clone());
            tokio::task::spawn_blocking(move || settings.host(key)).await.map(|host| {
                let routes = router(Arc::clone(&host));
                (host, bench_web::finish(routes, ServerConfig { local: true, allowed_origins: Vec::new() }))
            })
        });
        match created.await {
            Ok((_, routes)) => routes.clone().oneshot(request).await.into_response(),
            Err(error) => {
                ApiError::internal(format!("the sandbox host could not be started: {error}")).into_response()
            }
        }
    }
}

/// Sandbox host of this process, for the stack and for commands that use sandboxes without one.
pub struct BuiltInSandboxes {
    config: SandyConfig,
    lazy: Arc<LazyHost>,
    _server: AbortOnDropHandle<()>,
}

impl BuiltInSandboxes {
    /// Binds a port without creating the host. `concurrency` is the number of jobs at once.
    ///
    /// # Errors
    /// Fails without a free port.
    pub async fn open(settings: SandboxSettings, concurrency: usize) -> anyhow::Result<Self> {
        let secret: [u8; 32] = rand::random();
        let secret = hex::encode(secret);
        let key = ApiKey::new(&secret).context("no key could be made")?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port for sandboxes")?;
        let address = listener.local_addr().context("could not read the address of the sandboxes")?;
        let config = SandyConfig::from_vars(|name| match name {
            "SANDY_BASE_URL" => Some(format!("http://{address}")),
            "SANDY_API_KEY" => Some(secret.clone()),
            _ => None,
        });
        let config = config.map_err(anyhow::Error::msg)?;
        let lazy = Arc::new(LazyHost { settings, key, created: OnceCell::new() });
        let answering = Arc::clone(&lazy);
        let routes = Router::new().fallback(move |request| Arc::clone(&answering).answer(request));
        // Each job has a connection of its own.
        let limits = Limits::within_this_machine(concurrency.saturating_add(SPARE_CONNECTIONS));
        let server = tokio::spawn(async move {
            bench_http_server::serve(listener, routes, limits, std::future::pending()).await;
        });
        Ok(Self { config, lazy, _server: AbortOnDropHandle::new(server) })
    }

    /// Returns the configuration for calls to the host.
    #[must_use]
    pub const fn config(&self) -> &SandyConfig {
        &self.config
    }

    /// Ends all sandboxes.
    pub async fn stop(self) {
        if let Some((host, _)) = self.lazy.created.get() {
            host.shut_down().await;
        }
    }
}
