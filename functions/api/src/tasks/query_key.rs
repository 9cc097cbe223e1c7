//! Keys in the query string of requests for tasks, as old clients send them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use bench_web::{ApiError, FieldError, KEY_PARAMETER, QueryKey, take_query_key};
use http::{HeaderValue, header};
use serde_json::Value;

use crate::Api;

/// Moves a key from the address into `Authorization`, if the request has none, before anything else sees the address.
/// Refuses it where the operator doesn't allow it.
pub(crate) async fn take_key(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/api/tasks") {
        return next.run(request).await;
    }
    let taken = take_query_key(request.uri_mut());
    if taken == QueryKey::Missing {
        return next.run(request).await;
    }
    if !api.config.query_keys {
        return ApiError::new(
            Code::KeyInQuery,
            format!(
                "this server takes no key in the address, which logs and browsers keep; leave `{KEY_PARAMETER}` out and \
                 send the header `Authorization: Bearer KEY`"
            ),
        )
        .into_response();
    }
    let header = match &taken {
        QueryKey::Missing | QueryKey::Empty => None,
        QueryKey::Key(key) => HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok(),
        QueryKey::Invalid => return invalid_key().into_response(),
    };
    if let Some(mut value) = header
        && !request.headers().contains_key(header::AUTHORIZATION)
    {
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    next.run(request).await
}

/// Returns the error for a value that isn't a key. It doesn't quote the value, which may be a mistyped key.
fn invalid_key() -> ApiError {
    let loc = vec!["query".into(), KEY_PARAMETER.into()];
    let problem = "a key has at most 4096 characters, all of them visible ASCII";
    ApiError::validation(vec![FieldError::value_error(loc, problem, Value::Null)])
}
