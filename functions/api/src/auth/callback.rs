//! Takes browsers back from the provider, and starts their sessions.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use bench_domain::SessionId;
use bench_sign_in::attempt::session_cookie;
use bench_sign_in::{Attempt, SignInError, SignedIn};
use bench_state::credentials::Grant;
use bench_state::{SessionRecord, StateError};
use bench_web::ApiError;
use bench_web::error::ErrorBody;
use bench_web::identity::{cookies as cookies_named, session_in};
use http::HeaderMap;

use super::cookies;
use super::login::{failed, path_on_this_site, redirect};
use super::logout::pays_for_open_runs;
use super::visit::Visit;
use crate::Api;

/// Finishes a sign-in: browsers come here from the provider.
#[utoipa::path(
    get, path = "/api/auth/callback", tag = "sign-in",
    params(
        ("code" = Option<String>, Query, description = "Code of the provider"),
        ("state" = Option<String>, Query, description = "State of the attempt, good for one use within ten minutes by the same browser"),
        ("error" = Option<String>, Query, description = "Reason why the provider refused"),
        ("iss" = Option<String>, Query, description = "Issuer"),
    ),
    responses(
        (status = 307, description = "To the path that the sign-in began at, with the session's cookie; to \
            `/auth/error?error=CODE&description=TEXT` if it failed"),
        (status = 501, body = ErrorBody, description = "This server has no sign-in"),
    ),
)]
pub(crate) async fn callback(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let visit = Visit::new(&api, &parts)?;
    let (headers, is_secure) = (&parts.headers, visit.is_secure());
    let state = visit.parameter("state").unwrap_or_default();
    let name = Attempt::cookie_name(&state);
    let used_up = name.as_deref().and_then(|name| cookies::no_attempt(name, is_secure));
    let attempt = name.as_deref().and_then(|name| cookies_named(headers, name).next());
    let attempt = attempt.and_then(|secret| Attempt::from_parts(&state, secret));
    Ok(match finish(&api, &visit, attempt).await {
        Ok((value, session, return_to)) => {
            replace_session(&api, headers, &session).await;
            redirect(path_on_this_site(&return_to), [cookies::session(&value, is_secure), used_up])
        }
        Err(error) => {
            tracing::info!(error.code = error.code(), "A sign-in failed: {error}");
            failed(&error, [used_up])
        }
    })
}

/// Returns the cookie's value of the new session, the session, and the path to show.
async fn finish(
    api: &Api,
    visit: &Visit<'_>,
    attempt: Option<Attempt>,
) -> Result<(String, SessionRecord, String), SignInError> {
    if let Some(error) = visit.parameter("error") {
        return Err(SignInError::refused(&error));
    }
    let (Some(code), Some(_)) = (visit.parameter("code"), visit.parameter("state")) else {
        return Err(SignInError::MissingParameters);
    };
    let attempt = attempt.ok_or(SignInError::InvalidState)?;
    let server = |error: StateError| {
        tracing::error!(%error, "A sign-in isn't finished: {error}");
        SignInError::Server
    };
    let now = bench_clock::now();
    let taken = api.state.take_sign_in(&attempt.state_digest(), &attempt.secret_digest(), now).await;
    let record = taken.map_err(server)?.ok_or(SignInError::InvalidState)?;
    let provider = visit.sign_in.provider();
    provider.check_issuer(visit.parameter("iss").as_deref())?;
    let signed_in = provider.finish(&attempt, &code, &visit.callback_url()).await?;
    let value = session_cookie()?;
    let SignedIn { subject, name, has_invoke_scope, tokens } = signed_in;
    let ends_at = now.plus(Duration::from_secs(cookies::SESSION_SECONDS.unsigned_abs()));
    let id = SessionId::from_cookie(&value).ok_or(SignInError::Server)?;
    let grant = Grant {
        access: tokens.access,
        refresh: tokens.refresh,
        issued_at: now,
        expires_at: tokens.expires_at,
        version: 0,
        ends_at,
    };
    let sealed = api.credentials.seal_grant(&id, &grant).await.map_err(server)?;
    let session = SessionRecord { id, subject, name, has_invoke_scope, created_at: now, ends_at };
    api.state.create_session(&session, Some(&sealed)).await.map_err(server)?;
    tracing::info!(has_invoke_scope, "A user signed in");
    Ok((value, session, record.return_to))
}

/// Ends the session that the browser had before. Its tokens stay for as long as open runs need them.
async fn replace_session(api: &Api, headers: &HeaderMap, new: &SessionRecord) {
    let Some(old) = session_in(headers).filter(|old| *old != new.id) else { return };
    let ended = async {
        let Some(session) = api.state.session(&old, bench_clock::now()).await? else { return Ok(()) };
        if pays_for_open_runs(api, &session).await? {
            api.state.end_session(&old).await.map(drop)
        } else if session.subject == new.subject {
            api.tokens.replace(&old).await
        } else {
            api.tokens.end(&old).await
        }
    };
    if let Err(error) = ended.await {
        tracing::warn!(%error, "The browser's earlier session isn't ended: {error}");
    }
}
