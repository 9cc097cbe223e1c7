//! A scripted provider on loopback that counts requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Tokens that the provider reports for each answer.
pub(crate) const PROMPT_TOKENS: u64 = 11;
pub(crate) const ANSWER_TOKENS: u64 = 7;

/// One response.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// An answer with this text.
    Text(&'static str),
    /// An error with this status, and the seconds to wait if the provider reports them.
    Status(u16, Option<u64>),
}

struct Shared {
    /// Remaining responses. The last one is repeated.
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Value>>,
}

/// A running provider. Stops when it is dropped.
pub(crate) struct Provider {
    base_url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Provider {
    /// Starts a provider that gives these replies in order and then repeats the last one.
    pub(crate) async fn start(replies: &[Reply]) -> Self {
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.iter().cloned().collect()),
            requests: Mutex::default(),
        });
        let router =
            Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&shared));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base_url, shared, task }
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns the number of requests so far.
    pub(crate) fn request_count(&self) -> usize {
        self.shared.requests.lock().unwrap().len()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn complete(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Response {
    shared.requests.lock().unwrap().push(request);
    let reply = {
        let mut replies = shared.replies.lock().unwrap();
        match replies.len() {
            1 => replies.front().cloned().unwrap(),
            _ => replies.pop_front().unwrap(),
        }
    };
    match reply {
        Reply::Text(text) => {
            let delta = json!({"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]});
            let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
            let usage = json!({"prompt_tokens": PROMPT_TOKENS, "completion_tokens": ANSWER_TOKENS});
            let usage = json!({"choices": [], "usage": usage});
            let stream = format!("data: {delta}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
            ([("content-type", "text/event-stream")], stream).into_response()
        }
        Reply::Status(status, retry_after) => {
            let status = StatusCode::from_u16(status).unwrap();
            let body = json!({"error": {"message": "not now"}}).to_string();
            match retry_after {
                Some(seconds) => (status, [("retry-after", seconds.to_string())], body).into_response(),
                None => (status, body).into_response(),
            }
        }
    }
}
