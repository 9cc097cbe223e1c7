//! Sends browsers to the provider.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, Timestamp};
use bench_sign_in::{ATTEMPT_SECONDS, Attempt, SignInError};
use bench_state::SignInRecord;
use bench_web::ApiError;
use bench_web::attempts::caller_address;
use bench_web::error::ErrorBody;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};

use super::cookies;
use super::visit::Visit;
use crate::Api;

/// Maximum length of a path to return to, in bytes.
const RETURN_TO_BYTES_MAX: usize = 2_048;
/// Maximum number of sign-ins that an address begins per minute, since each one is stored.
const SIGN_INS_PER_MINUTE: u32 = 30;
/// Parameter of a login that was sent here from another name of this machine.
const MOVED: &str = "moved";

/// Sends the browser to the sign-in provider, which sends it back to `/api/auth/callback`.
#[utoipa::path(
    get, path = "/api/auth/login", tag = "sign-in",
    params(("return_to" = Option<String>, Query, description = "Path on this site to show after the sign-in; `/` by default")),
    responses(
        (status = 307, description = "To the provider; to `/auth/error` if it can't be reached, or if a browser began too many sign-ins"),
        (status = 429, body = ErrorBody, description = "Too many sign-ins from this address, of a caller that doesn't accept HTML; `Retry-After` has the seconds to wait"),
        (status = 501, body = ErrorBody, description = "This server has no sign-in"),
    ),
)]
pub(crate) async fn login(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let visit = Visit::new(&api, &parts)?;
    let return_to = visit.parameter("return_to").unwrap_or_default();
    let return_to = path_on_this_site(&return_to);
    // A browser has other cookies for each name of this machine, and comes back to one of them.
    if let Some(moved) = other_name(&api, &parts, &visit) {
        return Ok(redirect(&format!("{moved}&return_to={}", encode(return_to)), []));
    }
    if !api.access.local {
        let counted = api.sign_ins.count(&caller_address(&parts), SIGN_INS_PER_MINUTE);
        if let Err(wait) = counted {
            let error = SignInError::TooMany;
            return if shows_pages(&parts) {
                Ok(failed(&error, []))
            } else {
                Err(ApiError::new(Code::TooManyAttempts, error.to_string()).after(wait))
            };
        }
    }
    Ok(match begin(&api, &visit, return_to).await {
        Ok((address, cookie)) => redirect(&address, [cookie]),
        Err(error) => failed(&error, []),
    })
}

/// Returns true if a browser goes to the address, and shows what comes.
fn shows_pages(parts: &Parts) -> bool {
    let accepted = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|types| types.to_ascii_lowercase().contains("text/html"))
}

async fn begin(
    api: &Api,
    visit: &Visit<'_>,
    return_to: &str,
) -> Result<(String, Option<HeaderValue>), SignInError> {
    let attempt = Attempt::new()?;
    let address = visit.sign_in.provider().authorization_url(&attempt, &visit.callback_url()).await?;
    let record = SignInRecord {
        state_digest: attempt.state_digest(),
        browser_digest: attempt.secret_digest(),
        return_to: return_to.to_owned(),
        ends_at: end_of_attempt(bench_clock::now()),
    };
    api.state.begin_sign_in(&record).await.map_err(|error| {
        tracing::error!(%error, "An attempt to sign in isn't stored: {error}");
        SignInError::Server
    })?;
    let name = Attempt::cookie_name(attempt.state()).ok_or(SignInError::Server)?;
    let cookie = cookies::attempt(&name, attempt.secret().expose(), visit.is_secure());
    Ok((address, cookie))
}

fn end_of_attempt(now: Timestamp) -> Timestamp {
    now.plus(Duration::from_secs(ATTEMPT_SECONDS.unsigned_abs()))
}

/// Returns the login's address at this server's own name, if the request came by another name of this machine.
fn other_name(api: &Api, parts: &Parts, visit: &Visit<'_>) -> Option<String> {
    let page_url = &visit.page_url;
    let host = parts.headers.get(header::HOST)?.to_str().ok()?;
    let is_own = page_url.split_once("://").is_some_and(|(_, own)| own.eq_ignore_ascii_case(host));
    // Once only: a proxy may change the host.
    let was_moved = visit.parameter(MOVED).is_some();
    (api.config.server.local && !is_own && !was_moved).then(|| format!("{page_url}/api/auth/login?{MOVED}=1"))
}

/// Returns a path on this site; `/` for everything else.
pub(super) fn path_on_this_site(text: &str) -> &str {
    let is_path = text.starts_with('/')
        && !text.starts_with("//")
        && !text.starts_with("/api/")
        && text.len() <= RETURN_TO_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_path { text } else { "/" }
}

fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Sends the browser to the page that explains a failed sign-in.
pub(super) fn failed<const N: usize>(error: &SignInError, cookies: [Option<HeaderValue>; N]) -> Response {
    let description = error.to_string();
    redirect(&format!("/auth/error?error={}&description={}", error.code(), encode(&description)), cookies)
}

/// Sends the browser to an address, with these cookies.
pub(super) fn redirect<const N: usize>(address: &str, cookies: [Option<HeaderValue>; N]) -> Response {
    let Ok(address) = HeaderValue::from_str(address) else {
        return ApiError::internal("the address of a redirect isn't a header").into_response();
    };
    let mut response =
        (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, address), (header::CACHE_CONTROL, no_store())])
            .into_response();
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

pub(super) const fn no_store() -> HeaderValue {
    HeaderValue::from_static("no-store")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_on_this_site_are_returned_to() {
        for path in ["/", "/runs", "/runs/1?x=%20y#z", "/a//b"] {
            assert_eq!(path_on_this_site(path), path);
        }
        for bad in [
            "",
            "runs",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/a\\b",
            "/a\tb",
            "/\n/evil.example",
            "/a b",
            "/é",
            "javascript:alert(1)",
            "/api/auth/login",
            &format!("/{}", "a".repeat(RETURN_TO_BYTES_MAX)),
        ] {
            assert_eq!(path_on_this_site(bad), "/", "{bad:?}");
        }
    }
}
