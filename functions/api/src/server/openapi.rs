//! The OpenAPI document. It combines the routes of each resource with those of the exports function, which is
//! served at the same address and describes its own routes.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_web::identity::SESSION_COOKIE;
use http::header;
use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{health, root};
use crate::{Api, auth, catalog, leaderboard, ops, runs, schedules, tasks};

/// Document of the exports function, written by a test of that function.
const EXPORTS: &str = include_str!("../../../exports/openapi.json");

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Bench Runner",
        description = "Measures language models on benchmarks and exports results that others can verify.\n\n\
            Anyone may read what isn't private. A run belongs to the caller that ordered it: a signed-in user or the \
            holder of a key. Every field of an object is always present, null if it has no value. Times are UTC. An error has the form {\"detail\": …, \"code\": …}: act on the \
            code, since the detail may be reworded.",
        license(name = "MIT OR Apache-2.0"),
    ),
    modifiers(&Schemes),
)]
struct Head;

/// OpenAPI description of the routes of the server itself.
#[derive(OpenApi)]
#[openapi(paths(root::root, health::health, health::status, json, docs))]
struct Document;

struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("key", SecurityScheme::Http(key));
        let admin = ApiKey::Header(ApiKeyValue::new("X-Admin-Secret"));
        components.add_security_scheme("admin", SecurityScheme::ApiKey(admin));
        let session = ApiKey::Cookie(ApiKeyValue::new(SESSION_COOKIE));
        components.add_security_scheme("session", SecurityScheme::ApiKey(session));
    }
}

/// Returns the document as JSON.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
        let mut document = Head::openapi();
        for part in [
            Document::openapi(),
            auth::Document::openapi(),
            catalog::Document::openapi(),
            runs::Document::openapi(),
            leaderboard::Document::openapi(),
            schedules::Document::openapi(),
            tasks::Document::openapi(),
            ops::Document::openapi(),
        ] {
            document.merge(part);
        }
        let mut document = serde_json::to_value(document).unwrap_or_default();
        add(&mut document, serde_json::from_str(EXPORTS).unwrap_or_default());
        document
    });
    &DOCUMENT
}

/// Adds the paths and schemas of another document.
fn add(document: &mut Value, other: Value) {
    for part in ["/paths", "/components/schemas"] {
        if let (Some(Value::Object(all)), Some(Value::Object(more))) =
            (document.pointer_mut(part), other.pointer(part))
        {
            all.extend(more.clone());
        }
    }
}

/// Returns this document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn json(State(_): State<Arc<Api>>) -> Json<&'static Value> {
    Json(document())
}

/// Returns this document. Browsers get the page's view of it instead, where the server has the page.
#[utoipa::path(get, path = "/docs", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn docs(State(api): State<Arc<Api>>) -> Response {
    ([(header::VARY, "Accept")], json(State(api)).await).into_response()
}
