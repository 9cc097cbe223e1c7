//! A server on a port, and a client that sends no credentials.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bench_embedded::Durability;
use bench_http_server::Limits;
use bench_stack::{Stack, StackOptions};
use reqwest::{Client, Method, RequestBuilder, redirect};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Origin of the page.
pub(super) const UI: &str = "http://localhost:3000";

/// Callers that can reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Programs on the same machine, who are its user.
    Machine,
    /// Callers on other machines, too.
    Others,
}

pub(super) struct Server {
    pub(super) stack: Stack,
    client: Client,
    address: String,
    /// Address of the provider of models and of the sign-in.
    pub(super) provider: String,
    stopping: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    dir: tempfile::TempDir,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: http::HeaderMap,
    body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns a field of the body that is a list.
    pub(super) fn list(&self, field: &str) -> Vec<Value> {
        self.json()[field].as_array().unwrap_or_else(|| panic!("no list `{field}`: {self:?}")).clone()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Server {
    pub(super) async fn start(reach: Reach) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = provider().await;
        let mut options = StackOptions::new(dir.path().join("data"));
        options.durability = Durability::Normal;
        options.local = reach == Reach::Machine;
        options.retry_delay = Duration::ZERO;
        let vars = [
            ("HF_HUB_OFFLINE", "1"),
            ("ADMIN_SECRET", "hush-hush"),
            ("FRONTEND_URL", UI),
            ("CHUTES_CLIENT_ID", "cid"),
            ("CHUTES_IDP_URL", &provider),
            ("CHUTES_MODELS_API_URL", &provider),
            ("CHUTES_API_BASE_URL", &format!("{provider}/v1")),
        ];
        options.vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut stack = Stack::open(options).await.unwrap();
        stack.start().await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stopping, stopped) = oneshot::channel();
        let router = stack.router();
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            bench_http_server::serve(listener, router, Limits::within_this_machine(64), stopped).await;
        });
        // Installed by the first server of this process; the others find it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(redirect::Policy::none()).no_proxy().build().unwrap();
        Self { stack, client, address, provider, stopping, serving, dir }
    }

    /// Returns the folder for a test's own files.
    pub(super) fn files(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends a body of JSON, or none for null.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        let request = self.request(Method::POST, path);
        self.send(if body.is_null() { request } else { request.json(body) }).await
    }

    /// Sends a request to the page's address, where this server answers too.
    pub(super) async fn get_at_ui(&self, path: &str) -> Answer {
        let host = UI.strip_prefix("http://").unwrap();
        self.send(self.request(Method::GET, path).header("host", host)).await
    }

    /// Asks as a browser does before the page's own request.
    pub(super) async fn preflight(&self, path: &str) -> Answer {
        let request = self.request(Method::OPTIONS, path);
        self.send(request.header("origin", UI).header("access-control-request-method", "GET")).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.address))
    }

    async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.text().await.unwrap() }
    }

    pub(super) async fn stop(self) {
        self.stopping.send(()).unwrap();
        self.serving.await.unwrap();
        self.stack.stop(Duration::from_secs(10)).await;
    }
}

/// Starts a provider without models and without a description of its sign-in, and returns its address.
async fn provider() -> String {
    let router = Router::new()
        .route("/chutes/", get(async || axum::Json(json!({ "items": [], "total": 0 }))))
        .route("/v1/models", get(async || axum::Json(json!({ "data": [] }))));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}
