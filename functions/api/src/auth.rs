//! Sign-in: to the provider and back, sessions of browsers, sign-out.
//!
//! Sessions are of browsers: programs send keys. The routes of this module look at the cookie alone, even if the request has
//! other credentials, since it's the cookie that they are about.

mod callback;
mod cookies;
mod login;
mod logout;
mod settings;
mod status;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::routing::{get, post};
use bench_domain::Code;
use bench_sign_in::Provider;
use bench_state::SessionRecord;
use bench_web::identity::session_in;
use bench_web::{ApiError, ServerConfig};
use http::{HeaderMap, header};
use utoipa::OpenApi;

use crate::Api;

pub use settings::SignInSettings;

/// Path to which the provider sends browsers back.
const CALLBACK: &str = "/api/auth/callback";

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(login::login, callback::callback, status::status, status::me, logout::logout))]
pub(crate) struct Document;

/// Returns the routes of the sign-in.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/auth/login", get(login::login))
        .route(CALLBACK, get(callback::callback))
        .route("/api/auth/status", get(status::status))
        .route("/api/auth/me", get(status::me))
        .route("/api/auth/logout", post(logout::logout))
}

/// The server's sign-in.
#[derive(Debug)]
pub(crate) struct SignIn {
    provider: Arc<Provider>,
    page_url: Option<String>,
    /// Address that a server on this machine listens on.
    own_address: OnceLock<String>,
}

impl SignIn {
    pub(crate) fn new(settings: SignInSettings) -> Self {
        let SignInSettings { provider, page_url } = settings;
        Self { provider: Arc::new(Provider::new(provider)), page_url, own_address: OnceLock::new() }
    }

    /// Returns the client of the provider.
    pub(crate) fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    /// Returns the address of this server's pages, such as `https://bench.example`.
    fn page_url(&self, headers: &HeaderMap, config: &ServerConfig) -> Result<String, ApiError> {
        if let Some(known) = self.page_url.as_ref().or_else(|| self.own_address.get()) {
            return Ok(known.clone());
        }
        // On this machine, other layers have checked that the host is a loopback address.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(|_| config.local);
        let host = host.ok_or_else(|| ApiError::internal("the address of the page isn't known"))?;
        Ok(format!("http://{host}"))
    }
}

impl Api {
    /// Sets the address that a server on this machine listens on, such as `http://127.0.0.1:3000`. Browsers come back from a
    /// sign-in to it. Has no effect if `FRONTEND_URL` is set, or after the first call.
    pub fn set_own_address(&self, address: &str) {
        if let Some(sign_in) = &self.sign_in {
            let _ = sign_in.own_address.set(address.trim_end_matches('/').to_owned());
        }
    }

    fn sign_in(&self) -> Result<&SignIn, ApiError> {
        self.sign_in.as_ref().ok_or_else(|| {
            ApiError::new(
                Code::SignInNotConfigured,
                "Chutes IDP not configured. Set CHUTES_CLIENT_ID and CHUTES_CLIENT_SECRET.",
            )
            .hint("send a key instead, as `Authorization: Bearer KEY`")
        })
    }

    /// Returns the valid session that the request's cookie names.
    async fn session_of(&self, headers: &HeaderMap) -> Result<Option<SessionRecord>, ApiError> {
        let Some(id) = session_in(headers) else { return Ok(None) };
        Ok(self.state.session(&id, bench_clock::now()).await?)
    }
}
