//! Routers behind API Gateway and function URLs.

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceBuilder;
use lambda_http::{Adapter, LambdaEvent, StreamAdapter};

use crate::Deadline;
use crate::metrics;
use crate::runtime::deadline_of;

/// Header with the viewer's `Authorization`, which CloudFront replaces by its own signature. A CloudFront Function of
/// `template.yaml` sets it.
const VIEWER_AUTHORIZATION: &str = "x-bench-authorization";
/// Account that Lambda reports for requests to a function URL without authentication.
const ANONYMOUS_ACCOUNT: &str = "anonymous";
/// Start of an `Authorization` header with an AWS signature.
const SIGNATURE: &[u8] = b"AWS4-HMAC-SHA256";

/// Form of a function's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// Complete responses of up to 6 MiB, as API Gateway accepts them.
    Whole,
    /// Response streams, as a function URL with `RESPONSE_STREAM` forwards them.
    Streamed,
}

/// Serves a router until the environment is shut down.
///
/// Handlers find the invocation's [`Deadline`] in the request's extensions. If a handler panics, `bench_web::finish`
/// catches the panic and responds with 500. Any other panic ends the invocation with an error but not the process, as
/// long as panics unwind.
pub async fn run_http(router: Router, answers: ResponseMode) -> anyhow::Result<()> {
    let router = router.layer(from_fn(add_deadline));
    let repair_event = ServiceBuilder::new().map_request(repair_event as fn(_) -> _);
    let ended = match answers {
        ResponseMode::Whole => {
            lambda_http::lambda_runtime::run(repair_event.service(Adapter::from(router))).await
        }
        ResponseMode::Streamed => {
            lambda_http::lambda_runtime::run(repair_event.service(StreamAdapter::from(router))).await
        }
    };
    ended.map_err(|error| anyhow::anyhow!(error))
}

/// Adds the deadline for handlers, and counts responses with server errors.
async fn add_deadline(mut request: Request, next: Next) -> Response {
    let _print = metrics::PrintAtEnd;
    let deadline = request.extensions().get().map(deadline_of);
    if let Some(deadline) = deadline {
        request.extensions_mut().insert::<Deadline>(deadline);
    }
    let response = next.run(request).await;
    match response.status() {
        status if is_failure(status) => metrics::count_failure(metrics::HANDLER_ERRORS),
        status if status.is_server_error() => metrics::count(metrics::HANDLER_ERRORS, 1.0),
        _ => {}
    }
    response
}

/// Returns true for server errors except 501 and 503, which refuse a request as intended. Otherwise, any caller could
/// raise the alarm of a deployment without a sign-in.
fn is_failure(status: StatusCode) -> bool {
    let is_refusal = matches!(status, StatusCode::NOT_IMPLEMENTED | StatusCode::SERVICE_UNAVAILABLE);
    status.is_server_error() && !is_refusal
}

/// Repairs a request so that `lambda_http` can build its URL. `lambda_http` builds it from headers that any caller can
/// set, and panics on an invalid `Host`, an invalid scheme, or an unencoded query.
fn repair_event(mut event: LambdaEvent<LambdaRequest>) -> LambdaEvent<LambdaRequest> {
    if let LambdaRequest::ApiGatewayV2(request) = &mut event.payload {
        restore_authorization(request);
        repair(request);
    }
    event
}

/// Restores the viewer's `Authorization` header of a signed request, or removes the header if the viewer sent none.
/// Other requests keep their own header. Any caller can send the copy in those, so it is removed.
fn restore_authorization(request: &mut ApiGatewayV2httpRequest) {
    let sent = request.headers.remove(VIEWER_AUTHORIZATION);
    if !is_signed(request) {
        return;
    }
    match sent {
        Some(value) => request.headers.insert(header::AUTHORIZATION, value),
        None => request.headers.remove(header::AUTHORIZATION),
    };
}

/// Checks whether a request came to a function URL that accepts signed requests only. Callers can't influence the
/// request context, where Lambda names the signer. Lambda removes the signature from the headers; emulators may leave
/// it in place.
fn is_signed(request: &ApiGatewayV2httpRequest) -> bool {
    let context = &request.request_context;
    let at_function_url = context.domain_name.as_deref().is_some_and(|name| name.contains(".lambda-url."));
    if !at_function_url || context.account_id.as_deref() == Some(ANONYMOUS_ACCOUNT) {
        return false;
    }
    let names_signer = context.authorizer.as_ref().is_some_and(|authorizer| authorizer.iam.is_some());
    let signature = request.headers.get(header::AUTHORIZATION);
    names_signer || signature.is_some_and(|value| value.as_bytes().starts_with(SIGNATURE))
}

fn repair(request: &mut ApiGatewayV2httpRequest) {
    request.headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
    let sent = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if !sent.is_some_and(is_host) {
        let own = request.request_context.domain_name.as_deref().filter(|name| is_host(name));
        let host = own.and_then(|name| HeaderValue::from_str(name).ok());
        request.headers.insert(header::HOST, host.unwrap_or(HeaderValue::from_static("localhost")));
    }
    if let Some(path) = &mut request.raw_path {
        *path = percent_encode(path);
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
    }
    if let Some(query) = &mut request.raw_query_string {
        *query = percent_encode(query);
    }
}

/// Returns true for a host that every URL parser accepts: letters, digits, dots and hyphens, with or without a port,
/// and not ending like an IPv4 address. Our hosts have no other names.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "443"));
    let name_is_plain = (1..=253).contains(&name.len())
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
                // Some parsers decode and check these labels.
                && !label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
        });
    // Parsers take `1.2.3`, `x.127.0.0.1` and `0x7f` for IP addresses, and reject some of them.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = last.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    name_is_plain && is_name && port.parse::<u16>().is_ok()
}

/// Percent-encodes the bytes that a URL can't contain. Keeps existing encodings.
fn percent_encode(text: &str) -> String {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    if text.bytes().all(is_fine) {
        return text.to_owned();
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if is_fine(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use lambda_http::Context;
    use lambda_http::tower::ServiceExt;
    use serde_json::{Value, json};

    use super::*;

    fn event(host: &str, proto: &str, path: &str, query: &str) -> LambdaEvent<LambdaRequest> {
        let mut context = Context::default();
        context.deadline =
            u64::try_from(Deadline::after(std::time::Duration::from_secs(60)).0.as_micros()).unwrap() / 1_000;
        LambdaEvent::new(serde_json::from_value(event_json(host, proto, path, query)).unwrap(), context)
    }

    fn event_json(host: &str, proto: &str, path: &str, query: &str) -> Value {
        json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": query,
            "headers": { "host": host, "x-forwarded-proto": proto },
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "abc",
                "domainName": "abc.execute-api.us-east-1.amazonaws.com",
                "domainPrefix": "abc",
                "http": {
                    "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "x",
                },
                "requestId": "id", "routeKey": "$default", "stage": "$default",
                "time": "12/Mar/2026:19:03:58 +0000", "timeEpoch": 1_773_342_238_000_u64,
            },
            "isBase64Encoded": false,
        })
    }

    fn router() -> Router {
        let echo = |request: Request| async move {
            let deadline = request.extensions().get::<Deadline>().copied();
            let left = deadline.map_or(0, |deadline| deadline.remaining(std::time::Duration::ZERO).as_secs());
            format!("{} {}", request.uri(), if (50..=60).contains(&left) { "in time" } else { "when?" })
        };
        Router::new().route("/x", get(echo)).fallback(get(echo)).layer(from_fn(add_deadline))
    }

    async fn answer(event: LambdaEvent<LambdaRequest>) -> Value {
        let service = ServiceBuilder::new().map_request(repair_event as fn(_) -> _);
        let answer = service.service(Adapter::from(router())).oneshot(event).await.unwrap();
        serde_json::to_value(answer).unwrap()
    }

    #[test]
    fn refusals_are_no_failures() {
        let failures = (100..1_000).filter(|code| is_failure(StatusCode::from_u16(*code).unwrap()));
        let refusals = [501, 503];
        let expected = (500..600).filter(|code| !refusals.contains(code));
        assert_eq!(failures.collect::<Vec<u16>>(), expected.collect::<Vec<u16>>());
    }

    #[tokio::test]
    async fn a_handler_knows_its_deadline() {
        let answer = answer(event("api.example.org", "https", "/x", "a=b%20c&d=%C3%A4")).await;
        assert_eq!(answer["statusCode"], 200);
        assert_eq!(answer["body"], "https://api.example.org/x?a=b%20c&d=%C3%A4 in time");
    }

    /// Without the repair, these end the whole invocation.
    #[tokio::test]
    async fn headers_that_make_no_address_are_answered() {
        let own = "https://abc.execute-api.us-east-1.amazonaws.com/x in time";
        for host in [
            "x.execute-api.127.0.0.1:4588",
            "",
            " ",
            "a b",
            "[",
            "[::1",
            "%",
            "a:b",
            "a:99999",
            "ä.example",
            "-",
            "xn--a",
            "1.2.3.4.5",
            "0x100.1",
            "a@b",
            "a/b",
            "a?b",
            "a#b",
            "::::",
            "..",
            &"a".repeat(300),
        ] {
            assert_eq!(answer(event(host, "https", "/x", "")).await["body"], own, "{host}");
        }
        for proto in ["", "1", "ht tp", "://", "ä"] {
            assert_eq!(answer(event("bad host", proto, "/x", "")).await["body"], own, "{proto}");
        }
        for (path, query) in [("/x", "a=<b>"), ("/x", "a b\u{7f}\"`"), ("/x", "ä=ö#"), ("/<>^`{|}", "%")] {
            let answer = answer(event("bad host", "https", path, query)).await;
            assert_eq!(answer["statusCode"], 200, "{path} {query}");
        }
    }

    #[test]
    fn hosts_that_every_parser_takes() {
        for host in ["localhost", "api.example.org", "API.example.org:8443", "a-b.c1", "d111.cloudfront.net"]
        {
            assert!(is_host(host), "{host}");
        }
    }

    /// Returns `Authorization` and its copy as a handler sees them.
    async fn seen_authorization(event: Value) -> (Option<String>, Option<String>) {
        let echo = |request: Request| async move {
            let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            axum::Json((text("authorization"), text(VIEWER_AUTHORIZATION)))
        };
        let service = ServiceBuilder::new().map_request(repair_event as fn(_) -> _);
        let service = service.service(Adapter::from(Router::new().fallback(echo)));
        let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
        let answer = serde_json::to_value(service.oneshot(event).await.unwrap()).unwrap();
        assert_eq!(answer["statusCode"], 200);
        serde_json::from_str(answer["body"].as_str().unwrap()).unwrap()
    }

    /// Builds a request to a function URL, as passed on by Lambda after CloudFront has signed it.
    fn signed_event(headers: Value) -> Value {
        let host = "0123456789abcdef.lambda-url.us-east-1.on.aws";
        let mut event = event_json(host, "https", "/x", "");
        event["headers"].as_object_mut().unwrap().extend(headers.as_object().unwrap().clone());
        let context = &mut event["requestContext"];
        context["domainName"] = json!(host);
        context["authorizer"] = json!({ "iam": {
            "accessKey": "ASIAEXAMPLE", "accountId": "111122223333", "callerId": "AROAEXAMPLE:OriginAccessSession",
            "cognitoIdentity": null, "principalOrgId": null,
            "userArn": "arn:aws:sts::111122223333:assumed-role/OriginAccessControlRole/OriginAccessSession",
            "userId": "AROAEXAMPLE:OriginAccessSession",
        }});
        event
    }

    fn bearer(key: &str) -> Option<String> {
        Some(format!("Bearer {key}"))
    }

    const SIGV4: &str =
        "AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE/20261122/us-east-1/lambda/aws4_request, Signature=0";

    #[tokio::test]
    async fn signed_requests_carry_the_viewers_authorization() {
        let sent = json!({ VIEWER_AUTHORIZATION: "Bearer sk-viewer" });
        assert_eq!(seen_authorization(signed_event(sent)).await, (bearer("sk-viewer"), None));
        // Emulators check the signature, leave it in place and don't name the signer.
        let mut unnamed =
            signed_event(json!({ "authorization": SIGV4, VIEWER_AUTHORIZATION: "Bearer sk-viewer" }));
        unnamed["requestContext"].as_object_mut().unwrap().remove("authorizer");
        assert_eq!(seen_authorization(unnamed).await, (bearer("sk-viewer"), None));
    }

    #[tokio::test]
    async fn a_signature_is_not_taken_for_a_key() {
        for sent in [json!({}), json!({ "authorization": SIGV4 })] {
            assert_eq!(seen_authorization(signed_event(sent)).await, (None, None));
        }
    }

    #[tokio::test]
    async fn the_copy_is_ignored_on_requests_without_a_signature() {
        let sent = json!({ "authorization": "Bearer sk-own", VIEWER_AUTHORIZATION: "Bearer sk-copy" });
        let without = |name: &str| {
            let mut sent = sent.clone();
            sent.as_object_mut().unwrap().remove(name);
            sent
        };
        let api_gateway = |headers: &Value| {
            let mut event = event_json("api.example.org", "https", "/x", "");
            event["headers"].as_object_mut().unwrap().extend(headers.as_object().unwrap().clone());
            event
        };
        // An API Gateway authorizer doesn't count as CloudFront's signature either.
        let authorized = |headers: &Value| {
            let mut event = api_gateway(headers);
            event["requestContext"]["authorizer"] =
                signed_event(json!({}))["requestContext"]["authorizer"].clone();
            event
        };
        let open_url = |headers: &Value| {
            let mut event = signed_event(headers.clone());
            event["requestContext"]["accountId"] = json!(ANONYMOUS_ACCOUNT);
            event["requestContext"].as_object_mut().unwrap().remove("authorizer");
            event
        };
        let makers: [&dyn Fn(&Value) -> Value; 3] = [&api_gateway, &authorized, &open_url];
        for make in makers {
            assert_eq!(seen_authorization(make(&sent)).await, (bearer("sk-own"), None));
            assert_eq!(seen_authorization(make(&without("authorization"))).await, (None, None));
        }
        // If signatures aren't checked, a caller's own signature doesn't make the copy count either.
        let forged = json!({ "authorization": SIGV4, VIEWER_AUTHORIZATION: "Bearer sk-copy" });
        for make in makers {
            assert_eq!(seen_authorization(make(&forged)).await, (Some(SIGV4.to_owned()), None));
        }
    }

    #[tokio::test]
    async fn a_stream_is_answered_chunk_by_chunk() {
        let service = ServiceBuilder::new().map_request(repair_event as fn(_) -> _);
        let answer = service.service(StreamAdapter::from(router())).oneshot(event("[", "", "/x", "")).await;
        let answer = answer.unwrap();
        assert_eq!(answer.metadata_prelude.status_code, 200);
    }
}
