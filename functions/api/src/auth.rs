//! Sign-in: to the provider and back, sessions of browsers, sign-out.
//!
//! Sessions are of browsers: programs send keys. The routes of this module look at the cookie alone, even if the request has
//! other credentials, since it's the cookie that they are about.

mod callback;
mod cookies;
mod login;
mod logout;
mod status;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use bench_domain::Code;
use bench_state::SessionRecord;
use bench_web::ApiError;
use bench_web::identity::session_in;
use http::HeaderMap;
use utoipa::OpenApi;

use crate::Api;
use crate::sign_in::SignIn;

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

impl Api {
    /// Sets the address that a server on this machine listens on, such as `http://127.0.0.1:3000`. Browsers come back from a
    /// sign-in to it. Has no effect if `FRONTEND_URL` is set, or after the first call.
    pub fn set_own_address(&self, address: &str) {
        if let Some(sign_in) = &self.sign_in {
            sign_in.set_own_address(address);
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
