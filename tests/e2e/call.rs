//! Calls of the API, as clients make them.

use std::future::Future;
use std::time::{Duration, Instant};

use bench_domain::Code;
use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::target::Target;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of times that a deployment may interrupt a request.
const DEPLOYS_LAST: u32 = 20;

/// Caller of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller<'a> {
    Nobody,
    Admin,
    Key(&'a str),
}

/// Response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: no JSON ({error}): {text}", self.status))
    }

    /// Asserts this status and returns the body.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Asserts this status and returns the error's `detail` as text.
    pub(crate) fn detail(&self, status: u16) -> String {
        let body = self.expect(status);
        let detail = body["detail"].as_str().map_or_else(|| body["detail"].to_string(), str::to_owned);
        assert!(detail.len() > 3 && body["detail"] != Value::Null, "an error without a detail: {body}");
        assert!(body["code"].as_str().and_then(Code::from_name).is_some(), "an error without a code: {body}");
        detail
    }
}

impl Target {
    /// Builds a request without sending it.
    pub(crate) fn request(&self, method: Method, path: &str, caller: Caller<'_>) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base_url));
        match caller {
            Caller::Nobody => request,
            Caller::Admin => request.header("x-admin-secret", &self.admin_secret),
            Caller::Key(key) => request.bearer_auth(key),
        }
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.expect("the server answers");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.expect("the server's answer is whole");
        Answer { status, headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        for _ in 0..DEPLOYS_LAST {
            let answer = self.send(self.request(Method::GET, path, Caller::Nobody)).await;
            // The emulator ends a busy function when it is deployed again; AWS lets it finish.
            let is_ended = answer.status == 502
                && String::from_utf8_lossy(&answer.body)
                    .contains("Runtime exited before returning a response");
            if !(self.is_redeployed && is_ended) {
                return answer;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.send(self.request(Method::GET, path, Caller::Nobody)).await
    }

    pub(crate) async fn get_by(&self, path: &str, caller: Caller<'_>) -> Answer {
        self.send(self.request(Method::GET, path, caller)).await
    }

    pub(crate) async fn post(&self, path: &str, caller: Caller<'_>, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path, caller).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str, caller: Caller<'_>) -> Answer {
        self.send(self.request(Method::DELETE, path, caller)).await
    }

    /// Returns a file from the response, or from the address that the response redirects to.
    pub(crate) async fn download(&self, caller: Caller<'_>, path: &str) -> Bytes {
        let answer = match caller {
            Caller::Nobody => self.get(path).await,
            caller => self.get_by(path, caller).await,
        };
        if answer.status != 307 {
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
            assert!(answer.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
            return answer.body;
        }
        let location = answer.headers["location"].to_str().unwrap();
        // Sent without our headers, since the address alone must be sufficient.
        let answer = self.send(self.http.get(location)).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        answer.body
    }

    /// Stores a file at a presigned address, with the headers of its response.
    pub(crate) async fn put_upload(&self, url: &Value, headers: &Value, content: impl Into<reqwest::Body>) {
        let mut put = self.http.put(url.as_str().unwrap());
        for (name, value) in headers.as_object().unwrap() {
            put = put.header(name, value.as_str().unwrap());
        }
        let stored = self.send(put.body(content)).await;
        assert_eq!(stored.status, 200, "{}", String::from_utf8_lossy(&stored.body));
    }

    /// Orders a run of demo data. Returns the address of the run.
    pub(crate) async fn order(&self, caller: Caller<'_>, body: Value) -> String {
        let run = self.post("/api/runs", caller, &body).await.expect(201);
        format!("/api/runs/{}", run["id"].as_str().expect("a run has an id"))
    }

    /// Returns the run at this address.
    pub(crate) async fn run(&self, run: &str) -> Value {
        self.get(run).await.expect(200)
    }

    /// Waits until a run is over, and asserts its status.
    pub(crate) async fn wait_for_end(&self, run: &str, status: &str) -> Value {
        let is_over = || async {
            let found = self.run(run).await;
            let open = ["queued", "running"].contains(&found["status"].as_str().unwrap_or_default());
            (!open).then_some(found)
        };
        let found = self.wait_until(&format!("the end of {run}"), is_over).await;
        assert_eq!(found["status"], status, "{found:#}");
        found
    }

    /// Waits until `look` returns a value.
    pub(crate) async fn wait_until<T, F, Fut>(&self, what: &str, look: F) -> T
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Option<T>>,
    {
        let start = Instant::now();
        let mut wait = POLL_INTERVAL;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(start.elapsed() < self.patience, "waited too long for {what}");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(1));
        }
    }
}

/// Returns an order of bundled items of one benchmark.
pub(crate) fn demo_order(model: &str, benchmark: &str) -> Value {
    json!({ "model_id": model, "selected_benchmarks": [benchmark], "demo": true, "samples": 1 })
}

/// Returns the SHA-256 of a file, in hexadecimal digits.
pub(crate) fn sha256_hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the number in a field.
pub(crate) fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} is no number in {value:#}"))
}

/// Returns the entries of a field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} is no list in {value:#}"))
}
