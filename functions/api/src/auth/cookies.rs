//! Cookies of the sign-in.

use bench_web::identity::{SESSION_COOKIE, cookies};
use http::{HeaderMap, HeaderValue};

use super::CALLBACK;
use bench_sign_in::ATTEMPT_SECONDS;

/// Seconds that a session lasts.
pub(super) const SESSION_SECONDS: i64 = 30 * 86_400;

/// Returns the `Set-Cookie` of a new session.
pub(super) fn session(value: &str, is_secure: bool) -> Option<HeaderValue> {
    cookie(SESSION_COOKIE, value, "/", SESSION_SECONDS, is_secure)
}

/// Returns the `Set-Cookie` that removes a session's cookie.
pub(super) fn no_session(is_secure: bool) -> Option<HeaderValue> {
    cookie(SESSION_COOKIE, "", "/", 0, is_secure)
}

/// Returns the `Set-Cookie` with the browser's secret of an attempt to sign in.
pub(super) fn attempt(name: &str, secret: &str, is_secure: bool) -> Option<HeaderValue> {
    cookie(name, secret, CALLBACK, ATTEMPT_SECONDS, is_secure)
}

/// Returns the `Set-Cookie` that removes the cookie of an attempt.
pub(super) fn no_attempt(name: &str, is_secure: bool) -> Option<HeaderValue> {
    cookie(name, "", CALLBACK, 0, is_secure)
}

fn cookie(name: &str, value: &str, path: &str, seconds: i64, is_secure: bool) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; HttpOnly; SameSite=Lax; Path={path}; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).ok()
}

/// Returns true if a request has a cookie of a session, valid or not.
pub(super) fn has_session(headers: &HeaderMap) -> bool {
    cookies(headers, SESSION_COOKIE).next().is_some()
}

/// Returns true if cookies for this address must only be sent encrypted.
pub(super) fn is_secure(page_url: &str) -> bool {
    page_url.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_the_attributes_of_the_compatible_system() {
        let text = |value: Option<HeaderValue>| value.unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            text(session("abc", true)),
            "bench_session=abc; HttpOnly; SameSite=Lax; Path=/; Max-Age=2592000; Secure"
        );
        assert_eq!(text(no_session(false)), "bench_session=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0");
        assert_eq!(
            text(attempt("bench_sign_in_x", "s", false)),
            "bench_sign_in_x=s; HttpOnly; SameSite=Lax; Path=/api/auth/callback; Max-Age=600"
        );
    }
}
