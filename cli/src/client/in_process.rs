//! API of the stack in this process: calls its router directly, without a socket.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use futures_util::TryStreamExt;
use http::{HeaderMap, Method, Request, header};
use tower::ServiceExt;

use super::{Payload, Response, transport_error};

#[derive(Debug, Clone)]
pub(super) struct InProcess {
    router: Router,
    data_dir: PathBuf,
}

impl InProcess {
    pub(super) fn new(router: Router, data_dir: PathBuf) -> Self {
        Self { router, data_dir }
    }

    /// Returns the data directory of the stack.
    pub(super) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Payload<'_>,
    ) -> anyhow::Result<Response> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        if let Some(all) = request.headers_mut() {
            all.extend(headers);
        }
        let request = match body {
            Payload::Json(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
            }
            Payload::Bytes { content_type, bytes } => {
                request.header(header::CONTENT_TYPE, content_type).body(Body::from(bytes))
            }
            Payload::None => request.body(Body::empty()),
        };
        let request = request.map_err(|error| transport_error("could not build the request", error))?;
        // The router is infallible: it reports every failure as a response.
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (parts, body) = response.into_parts();
        let body = body.into_data_stream().map_err(|error| transport_error("the answer ended early", error));
        Ok(Response { status: parts.status, headers: parts.headers, body: Box::pin(body) })
    }
}
