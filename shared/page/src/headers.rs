//! Headers of the page's files. `PageHeaders` of `template.yaml` has the same ones, which a test checks.
//!
//! Most of them only matter for documents: scripts and styles obey the policy of the document that loads them. Scripts and
//! styles don't get those from `bench serve`, because HTTP/1.1 repeats them with each of many small files. CloudFront sends
//! all headers with all files, because HTTP/2 and HTTP/3 compress repeated headers to a few bytes.
//!
//! A worker obeys the policy of its own script, so the script of a worker would need these headers, too. The page has no
//! workers.

use axum::response::Response;
use bench_web::Subresource;
use http::{HeaderName, HeaderValue};

/// Content-Security-Policy of the page: nothing inline, and nothing from other origins.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every file, by name in lower case.
pub const HEADERS: [(&str, &str); 2] = [
    ("x-content-type-options", "nosniff"),
    // Browsers ask each time, usually for 304: files have the same names in every version.
    ("cache-control", "no-cache"),
];

/// Further headers of all files but scripts and styles, by name in lower case.
pub const DOCUMENT_HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-frame-options", "DENY"),
    // With `no-referrer`, browsers would send `Origin: null` with forms.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// Adds the headers of every file to a response, and those of documents unless it is a script or a style.
pub(crate) fn add(mut response: Response, is_subresource: bool) -> Response {
    let further: &[(&'static str, &'static str)] = if is_subresource { &[] } else { &DOCUMENT_HEADERS };
    for &(name, value) in HEADERS.iter().chain(further) {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_subresource {
        response.extensions_mut().insert(Subresource);
    }
    response
}
