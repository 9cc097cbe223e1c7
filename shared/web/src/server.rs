//! Common layers of all routers: panics, unknown paths, Host and Origin, CORS, security headers.
//!
//! `tower-http` adds `Vary`. Its layers for panics and CORS aren't used: its panic
//! handler doesn't see the request, which must be in the log, and `CorsLayer` answers every `OPTIONS` request, even one
//! that isn't a preflight, and disallowed origins with 200, where clients of the compatible system expect 405 and 400.

use std::any::Any;
use std::net::Ipv4Addr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::auth::origin_of;
use crate::query_key::without_query_key;
use crate::{ApiError, compression};

/// Time for which a browser may cache the response to a preflight request, in seconds.
const PREFLIGHT_AGE_S: &str = "600";
const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";
/// Content security policy of responses that have none of their own.
const NO_CONTENT_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Marks a response, in its extensions, as a script or a style of a page. It gets no headers that only matter for documents.
#[derive(Debug, Clone, Copy)]
pub struct Subresource;

/// Host and origin checks of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// True if the server is bound to loopback: then Host and Origin must be, too. This prevents pages of
    /// other sites from using the server through the visitor's browser (DNS rebinding, cross-site requests).
    pub local: bool,
    /// Origins whose pages may use the API from a browser, such as `https://bench.example`.
    pub allowed_origins: Vec<String>,
}

impl ServerConfig {
    /// Reads `BENCH_ALLOWED_ORIGINS`, a comma-separated list, empty by default. The origin of `FRONTEND_URL` is allowed, too.
    ///
    /// # Errors
    /// One sentence that names the entry that isn't an origin.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>, local: bool) -> Result<Self, String> {
        let mut allowed_origins = Vec::new();
        let list = var("BENCH_ALLOWED_ORIGINS").unwrap_or_default();
        for origin in list.split(',').map(str::trim).filter(|origin| !origin.is_empty()) {
            let origin = origin.trim_end_matches('/').to_lowercase();
            if authority_of_origin(&origin).is_none() {
                return Err(format!(
                    "BENCH_ALLOWED_ORIGINS: `{origin}` is not an origin such as `https://bench.example`"
                ));
            }
            allowed_origins.push(origin);
        }
        allowed_origins.extend(var("FRONTEND_URL").as_deref().and_then(origin_of));
        Ok(Self { local, allowed_origins })
    }

    fn allows(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Maximum size of an extractor's refusal, in bytes.
const REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// Completes a router. Call it once, on the router that has all routes.
///
/// A panic in a handler becomes a 500. An unknown path becomes a 404 and a wrong method a 405, both as JSON.
/// A path with an extra trailing slash is redirected (307) to the one without. An extractor's refusal gets
/// the form of other errors. A response with its own `Content-Security-Policy` keeps it.
pub fn finish(routes: Router, config: ServerConfig) -> Router {
    finish_around(routes, config, |router| router)
}

/// Completes a router like [`finish`]. `add` may add layers that see all requests that pass the checks of Host and Origin,
/// also those for unknown paths.
pub fn finish_around(routes: Router, config: ServerConfig, add: impl FnOnce(Router) -> Router) -> Router {
    let varies = (!config.allowed_origins.is_empty()).then_some(HeaderValue::from_static("Origin"));
    add(routes.fallback(unknown_path).method_not_allowed_fallback(wrong_method)).layer((
        compression::layer(),
        map_response(add_default_headers),
        SetResponseHeaderLayer::appending(header::VARY, varies),
        from_fn_with_state(Arc::new(config), apply_layers),
    ))
}

/// Adds the headers that a response doesn't have already.
async fn add_default_headers(mut response: Response) -> Response {
    let is_subresource = response.extensions().get::<Subresource>().is_some();
    let headers = response.headers_mut();
    let mut add = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    add(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    add(header::CACHE_CONTROL, "no-store");
    if !is_subresource {
        add(header::CONTENT_SECURITY_POLICY, NO_CONTENT_POLICY);
        add(header::X_FRAME_OPTIONS, "DENY");
        add(header::REFERRER_POLICY, "no-referrer");
        add(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    }
    response
}

async fn unknown_path(uri: Uri) -> Response {
    match without_last_slash(&uri) {
        Some(location) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response(),
        None => ApiError::new(Code::RouteNotFound, "Not Found").into_response(),
    }
}

async fn wrong_method() -> ApiError {
    ApiError::new(Code::MethodNotAllowed, "Method Not Allowed")
}

/// Returns the path without its last slash, if all browsers resolve the result on this server: `//host/` is not such a path.
fn without_last_slash(uri: &Uri) -> Option<String> {
    let path = uri.path().strip_suffix('/')?;
    let on_this_server = path.len() > 1
        && path.starts_with('/')
        && !path.ends_with('/')
        && !path.starts_with("//")
        && !path.contains('\\');
    // The response must not repeat a key.
    let query = uri.query().map(without_query_key).filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    on_this_server.then(|| format!("{path}{query}"))
}

async fn apply_layers(State(config): State<Arc<ServerConfig>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let is_allowed = |origin: &HeaderValue| {
        let text = origin.to_str().unwrap_or_default();
        config.allows(text) || (config.local && is_local(&config, &request))
    };
    let allowed = origin.filter(is_allowed);
    let mut response = if config.local && !is_local(&config, &request) {
        let detail = "`Host` and `Origin` must name this machine, such as `localhost`: this server is not open to others";
        ApiError::new(Code::HostNotAllowed, detail).into_response()
    } else if !is_utf8(request.uri().path()) {
        let detail = "the path is not valid UTF-8 after percent-decoding";
        ApiError::new(Code::InvalidPath, detail).into_response()
    } else if is_preflight(&request) {
        preflight(request.headers(), allowed.as_ref())
    } else {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|panic| {
            ApiError::internal(panic_text(&method, &path, panic.as_ref())).into_response()
        });
        as_api_error(answer).await
    };
    // Never with credentials: the session's cookie is for pages of this server only. Files of the page are for no others.
    let is_of_page = response.extensions().get::<Subresource>().is_some();
    if let Some(origin) = allowed.filter(|_| !is_of_page) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

/// Returns true if a path is valid UTF-8 after percent-decoding.
fn is_utf8(path: &str) -> bool {
    let mut parts = path.split('%');
    let mut decoded = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let rest = match digits {
            Some(byte) => {
                decoded.push(byte);
                part.get(2..)
            }
            None => Some(part),
        };
        decoded.extend_from_slice(rest.unwrap_or_default().as_bytes());
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// Converts an extractor's plain-text refusal to the form of other errors.
async fn as_api_error(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !(status.is_client_error() || status.is_server_error()) || !kind.starts_with(b"text/plain") {
        return response;
    }
    let text = to_bytes(response.into_body(), REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let detail = String::from_utf8_lossy(&text);
    ApiError::from_extractor(status, &detail).into_response()
}

fn panic_text(method: &Method, path: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text");
    format!("{method} {path} panicked: {text}")
}

/// Returns true if a request is addressed to this machine and doesn't come from another site's page.
fn is_local(config: &ServerConfig, request: &Request) -> bool {
    let sent = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let Some(host) = sent.or_else(|| request.uri().authority().map(|authority| authority.as_str())) else {
        return false;
    };
    if !is_loopback_name(host) {
        return false;
    }
    match request.headers().get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
        None => true,
        Some(origin) => config.allows(origin) || origin_names(origin, host),
    }
}

/// Returns true for `localhost` and literal loopback addresses (`127.0.0.0/8`, `[::1]`), with any port or
/// none. Pages of other sites can't have such an address: only a name can be rebound to it.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) if host != "[::1]" => return false,
        _ => host,
    };
    let is_loopback_v4 = name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    name.eq_ignore_ascii_case("localhost") || is_loopback_v4 || name == "[::1]"
}

fn authority_of_origin(origin: &str) -> Option<&str> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme_is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let plain = !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']);
    (scheme_is_web && plain).then_some(authority)
}

/// Returns true if an origin is that of the pages of a host.
pub(crate) fn origin_names(origin: &str, host: &str) -> bool {
    authority_of_origin(origin).is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ORIGIN)
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(headers: &HeaderMap, allowed: Option<&HeaderValue>) -> Response {
    if allowed.is_none() {
        return ApiError::new(Code::OriginNotAllowed, "Disallowed CORS origin").into_response();
    }
    let mut response = (StatusCode::OK, "OK").into_response();
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE_S));
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;
    use axum::body::{Body, Bytes};
    use axum::extract::{DefaultBodyLimit, Query};
    use axum::routing::{get, post};
    use std::collections::BTreeMap;
    use tower::ServiceExt;

    fn app(config: ServerConfig) -> Router {
        async fn panics() -> &'static str {
            panic!("at the disco")
        }
        async fn named(Path(id): Path<String>) -> String {
            id
        }
        finish(
            Router::new()
                .route("/x", get(|| async { "x" }))
                .route("/panic", get(panics))
                .route("/of/{id}", get(named))
                .route("/query", get(|_: Query<BTreeMap<String, u8>>| async {}))
                .route("/body", post(|_: Bytes| async {}).layer(DefaultBodyLimit::max(0)))
                .route("/text", get(|| async { (StatusCode::GONE, "gone") })),
            config,
        )
    }

    async fn ask(config: &ServerConfig, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        app(config.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn unknown_paths_methods_and_slashes() {
        let open = ServerConfig::default();
        let unknown = ask(&open, "GET", "/nope", &[]).await;
        assert_eq!(unknown.status(), 404);
        assert_eq!(text(unknown).await, r#"{"detail":"Not Found","code":"route_not_found"}"#);
        let wrong = ask(&open, "POST", "/x", &[]).await;
        assert_eq!(wrong.status(), 405);
        assert_eq!(text(wrong).await, r#"{"detail":"Method Not Allowed","code":"method_not_allowed"}"#);
        let moved = ask(&open, "GET", "/x/?a=1", &[]).await;
        assert_eq!(moved.status(), 307);
        assert_eq!(moved.headers()["location"], "/x?a=1");
        let moved = ask(&open, "GET", "/x/?openrouter_api_key=sk-planted", &[]).await;
        assert_eq!(moved.headers()["location"], "/x");
        for elsewhere in ["//evil.example/", "///evil.example/", "/\\evil.example/", "/x//"] {
            let Ok(uri) = elsewhere.parse::<Uri>() else { continue };
            assert_eq!(without_last_slash(&uri), None, "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn a_path_that_is_not_utf8_gets_the_usual_error() {
        let open = ServerConfig::default();
        assert_eq!(text(ask(&open, "GET", "/of/%C3%A9", &[]).await).await, "é");
        // The same for paths with a route, without one, and with a slash too many.
        for path in ["/of/%FF", "/%FF", "/x/%ff/", "/of/a%C3", "/of/%C3%28"] {
            let refused = ask(&open, "GET", path, &[]).await;
            assert_eq!(refused.status(), 400, "{path}");
            let body: serde_json::Value = serde_json::from_str(&text(refused).await).unwrap();
            assert_eq!(body["code"], Code::InvalidPath.as_str());
            assert!(body["detail"].as_str().unwrap().contains("UTF-8"), "{body}");
        }
        for (path, status) in [("/of/100%", 200), ("/of/%zz", 200), ("/%C3%A9", 404)] {
            assert_eq!(ask(&open, "GET", path, &[]).await.status(), status, "{path}");
        }
    }

    #[tokio::test]
    async fn what_an_extractor_refuses_has_a_code_and_its_status() {
        for (method, path, status, code) in [
            ("GET", "/query?n=x", 400, Code::InvalidRequest),
            ("POST", "/body", 413, Code::BodyTooLarge),
            ("GET", "/text", 410, Code::InvalidRequest),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::from("text")).unwrap();
            let refused = app(ServerConfig::default()).oneshot(request).await.unwrap();
            assert_eq!(refused.status(), status, "{path}");
            let body: serde_json::Value = serde_json::from_str(&text(refused).await).unwrap();
            assert_eq!(body["code"], code.as_str(), "{path}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_a_500_without_its_text() {
        let response = ask(&ServerConfig::default(), "GET", "/panic", &[]).await;
        assert_eq!(response.status(), 500);
        assert!(!text(response).await.contains("disco"));
    }

    #[tokio::test]
    async fn a_local_server_is_used_by_its_machine_only() {
        let local = ServerConfig { local: true, allowed_origins: vec!["http://ui.example".into()] };
        for (host, origin, status) in [
            ("localhost:8000", None, 200),
            ("LOCALHOST", None, 200),
            ("127.0.0.1:8000", None, 200),
            ("127.0.0.2:8000", None, 200),
            ("127.8.9.10", None, 200),
            ("[::1]:8000", None, 200),
            ("[::1]", None, 200),
            ("localhost:8000", Some("http://localhost:8000"), 200),
            ("localhost:8000", Some("http://ui.example"), 200),
            ("localhost:8000", Some("http://localhost:9000"), 403),
            ("localhost:8000", Some("http://evil.example"), 403),
            ("localhost:8000", Some("null"), 403),
            ("evil.example", None, 403),
            ("localhost.evil.example", None, 403),
            ("127.0.0.1.evil.example:8000", None, 403),
            ("127.0.0.1:8000:evil", None, 403),
            ("evil.example:127", None, 403),
            ("128.0.0.1:8000", None, 403),
            ("127.1:8000", None, 403),
            ("", None, 403),
        ] {
            let mut headers = vec![("host", host)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(ask(&local, "GET", "/x", &headers).await.status(), status, "{host} {origin:?}");
        }
        assert_eq!(ask(&local, "GET", "/x", &[]).await.status(), 403);
        assert_eq!(
            ask(&ServerConfig::default(), "GET", "/x", &[("host", "evil.example")]).await.status(),
            200
        );
    }

    #[tokio::test]
    async fn only_listed_origins_may_use_it_from_a_browser() {
        let listed = ServerConfig { local: false, allowed_origins: vec!["https://ui.example".into()] };
        let asked = [
            ("origin", "https://ui.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type, x-y"),
        ];
        let answer = ask(&listed, "OPTIONS", "/x", &asked).await;
        assert_eq!(answer.status(), 200);
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], "https://ui.example");
        assert!(!headers.contains_key("access-control-allow-credentials"));
        assert_eq!(headers["access-control-allow-headers"], "content-type, x-y");
        assert_eq!(headers["access-control-max-age"], "600");
        assert_eq!(headers["vary"], "Origin");
        assert_eq!(text(answer).await, "OK");
        let other = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
        let answer = ask(&listed, "OPTIONS", "/x", &other).await;
        assert_eq!(answer.status(), 400);
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
        assert_eq!(text(answer).await, r#"{"detail":"Disallowed CORS origin","code":"origin_not_allowed"}"#);
        let plain = ask(&listed, "GET", "/x", &asked[..1]).await;
        assert_eq!(plain.headers()["access-control-allow-origin"], "https://ui.example");
        assert_eq!(ask(&ServerConfig::default(), "OPTIONS", "/x", &asked).await.status(), 400);
    }

    #[tokio::test]
    async fn own_pages_may_use_it_from_a_browser() {
        let preflight = [("access-control-request-method", "GET")];
        let page = |name: &str| (name == "FRONTEND_URL").then(|| "https://Bench.example/page".to_owned());
        let site = ServerConfig::from_vars(page, false).unwrap();
        let asked = [&preflight[..], &[("origin", "https://bench.example")]].concat();
        let answer = ask(&site, "OPTIONS", "/x", &asked).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["access-control-allow-origin"], "https://bench.example");
        let home = ServerConfig { local: true, ..ServerConfig::default() };
        for (origin, status) in [("http://localhost:8000", 200), ("http://localhost:9000", 403)] {
            let asked = [&preflight[..], &[("host", "localhost:8000"), ("origin", origin)]].concat();
            assert_eq!(ask(&home, "OPTIONS", "/x", &asked).await.status(), status, "{origin}");
        }
    }

    #[tokio::test]
    async fn every_answer_has_security_headers() {
        for path in ["/x", "/nope", "/panic"] {
            let answer = ask(&ServerConfig::default(), "GET", path, &[]).await;
            assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
            assert_eq!(answer.headers()["x-frame-options"], "DENY");
            assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("'none'"));
        }
    }

    #[tokio::test]
    async fn scripts_and_styles_get_no_headers_of_documents() {
        let routes = Router::new().route("/x.js", get(|| async { (axum::Extension(Subresource), "1") }));
        let request = Request::builder().uri("/x.js").body(Body::empty()).unwrap();
        let answer = finish(routes, ServerConfig::default()).oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        for name in
            ["content-security-policy", "x-frame-options", "referrer-policy", "cross-origin-opener-policy"]
        {
            assert!(!answer.headers().contains_key(name), "{name}");
        }
    }

    #[test]
    fn origins_are_checked_when_they_are_read() {
        let read = |list: &str| {
            let var = |name: &str| (name == "BENCH_ALLOWED_ORIGINS").then(|| list.to_owned());
            ServerConfig::from_vars(var, false)
        };
        let origins = read(" https://A.example/ , http://localhost:3000,").unwrap().allowed_origins;
        assert_eq!(origins, ["https://a.example", "http://localhost:3000"]);
        for bad in ["*", "ui.example", "https://", "https://a/b", "file:///x"] {
            assert!(read(bad).unwrap_err().contains("BENCH_ALLOWED_ORIGINS"), "{bad}");
        }
    }
}
