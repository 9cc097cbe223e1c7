//! The name of the server.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header;
use serde::Serialize;
use utoipa::ToSchema;

/// Name and version of the server, as clients of the compatible system expect them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RootView {
    name: &'static str,
    version: &'static str,
    docs: &'static str,
}

/// Returns the name of the server. Browsers get the page instead, where the server has it.
#[utoipa::path(get, path = "/", tag = "server", responses((status = 200, body = RootView)))]
pub(crate) async fn root() -> Response {
    let root = RootView { name: "Chutes Bench Runner", version: "0.1.0", docs: "/docs" };
    ([(header::VARY, "Accept")], Json(root)).into_response()
}
