//! Headers of the page's files. `PageHeaders` of `template.yaml` has the same ones, which a test checks.

use axum::response::Response;
use http::{HeaderName, HeaderValue};

/// Content-Security-Policy of the page: nothing inline, and nothing from other origins.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every file, by name in lower case.
pub const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // With `no-referrer`, browsers would send `Origin: null` with forms.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    // Browsers ask each time, usually for 304: files have the same names in every version.
    ("cache-control", "no-cache"),
];

/// Adds the headers to a response.
pub(crate) fn add(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
