//! Tells browsers who is signed in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use bench_inference::ModelSource;
use bench_state::SessionRecord;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity};
use http::request::Parts;
use http::{HeaderMap, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::cookies;
use super::login::no_store;
use crate::Api;
use crate::runs::admission;

/// Signed-in user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignedInUser)]
pub(crate) struct UserView {
    /// The provider's name for the user, which never changes.
    id: String,
    /// Name to show to the user.
    username: String,
}

impl UserView {
    fn new(session: &SessionRecord) -> Self {
        Self { id: session.subject.clone(), username: session.name.clone() }
    }
}

/// Payer of a signed-in user's runs of Chutes models.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Payer {
    /// The user's account.
    User,
    /// The operator's keys.
    Operator,
}

/// Sign-in of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuthView {
    /// True if people can sign in.
    idp_configured: bool,
    /// True if the request's cookie is of a valid session.
    authenticated: bool,
    /// The user; null for callers who aren't signed in.
    user: Option<UserView>,
    /// True if the session may call models on the user's account.
    has_invoke_scope: bool,
    /// Payer of the user's runs of Chutes models: `user` or `operator`; null if the user can't order them.
    pays: Option<Payer>,
    /// True if the caller may order runs of `oracle`, such as the demo of the page.
    may_order_oracle: bool,
}

/// Signed-in user, and what the session may do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MeView {
    /// Always true: callers who aren't signed in get 401.
    authenticated: bool,
    /// The user.
    user: UserView,
    /// True if the session may call models on the user's account.
    has_invoke_scope: bool,
    /// True if the session has an access token that the provider accepts.
    has_valid_token: bool,
}

/// Returns the caller's sign-in. Never an error: a session that can't be found counts as none.
#[utoipa::path(get, path = "/api/auth/status", tag = "sign-in", security((), ("session" = [])), responses((status = 200, body = AuthView)))]
pub(crate) async fn status(State(api): State<Arc<Api>>, parts: Parts) -> Response {
    let headers = &parts.headers;
    let session = api.session_of(headers).await;
    let is_known = session.is_ok();
    let session = session.ok().flatten().filter(|_| api.sign_in.is_some());
    let has_invoke_scope = session.as_ref().is_some_and(|session| session.has_invoke_scope);
    let operator_pays = api.config.runs.policy.operator_pays_for_users;
    let pays = match (session.is_some(), has_invoke_scope, operator_pays) {
        (true, true, _) => Some(Payer::User),
        (true, false, true) => Some(Payer::Operator),
        _ => None,
    };
    let view = AuthView {
        idp_configured: api.sign_in.is_some(),
        authenticated: session.is_some(),
        user: session.as_ref().map(UserView::new),
        has_invoke_scope,
        pays,
        may_order_oracle: may_order_oracle(&api, &parts).await,
    };
    let mut response = ([(header::CACHE_CONTROL, no_store())], Json(view)).into_response();
    // A cookie of an old version, or of a session that is over, is removed. If the table can't be read, it may be valid.
    if session.is_none() && is_known && cookies::has_session(headers) {
        clear(&api, headers, &mut response);
    }
    response
}

/// Returns true if the access policy lets the caller order runs of the oracle. If the operator's list of callers can't be read,
/// the caller counts as not listed.
async fn may_order_oracle(api: &Api, parts: &Parts) -> bool {
    match admission::standing_of_caller(api, parts, Identity::of(parts).reader()).await {
        Ok(Some(standing)) => {
            standing.check_access(&api.config.runs.policy, ModelSource::Oracle, &[]).is_ok()
        }
        Ok(None) | Err(_) => false,
    }
}

/// Returns the signed-in user.
#[utoipa::path(
    get, path = "/api/auth/me", tag = "sign-in", security(("session" = [])),
    responses(
        (status = 200, body = MeView),
        (status = 401, body = ErrorBody, description = "The request has no cookie of a session, or the session is over"),
    ),
)]
pub(crate) async fn me(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, ApiError> {
    if !cookies::has_session(&headers) {
        return Err(ApiError::new(Code::MissingCredentials, "Not authenticated"));
    }
    let Some(session) = api.session_of(&headers).await?.filter(|_| api.sign_in.is_some()) else {
        let mut response = ApiError::new(Code::SessionInvalid, "Session expired or invalid").into_response();
        clear(&api, &headers, &mut response);
        return Ok(response);
    };
    let view = MeView {
        authenticated: true,
        user: UserView::new(&session),
        has_invoke_scope: session.has_invoke_scope,
        has_valid_token: api.tokens.has_valid_token(&session.id).await,
    };
    Ok(([(header::CACHE_CONTROL, no_store())], Json(view)).into_response())
}

/// Removes the session's cookie from the browser.
pub(super) fn clear(api: &Api, headers: &HeaderMap, response: &mut Response) {
    let page_url = api.sign_in.as_ref().and_then(|known| known.page_url(headers, &api.config.server).ok());
    // Without a known address: browsers ignore `Secure` on this machine, and require it nowhere else.
    let is_secure = page_url.map_or(!api.config.server.local, |url| cookies::is_secure(&url));
    if let Some(cookie) = cookies::no_session(is_secure) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
