//! Calls to the service, each with a time limit and a limit on the size of its answer.

use std::sync::OnceLock;
use std::time::Duration;

use bench_inference::{error_chain, http_client_for, retry_after};
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{excerpt, over_limit, says_gone};
use crate::views::{read_metrics, read_stats};
use crate::{HostMetric, Resources, SandboxStats, SandyConfig, SandyError, Timing};

/// Default limit on the size of an answer, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes read of an error answer.
const ERROR_BYTES_MAX: usize = 8 << 10;
const RESOURCES_TIMEOUT: Duration = Duration::from_secs(10);
const METRICS_TIMEOUT: Duration = Duration::from_secs(15);
const STATS_TIMEOUT: Duration = Duration::from_secs(20);

/// A client of the service.
#[derive(Debug)]
pub struct Sandy {
    config: SandyConfig,
    http: OnceLock<Result<reqwest::Client, String>>,
    pub(crate) timing: Timing,
}

/// A request. The parts of the path are joined with slashes; no part contains one.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a [(&'a str, String)],
    /// Shared by all attempts.
    pub(crate) body: Option<Bytes>,
    /// Time limit of the whole call, including the answer's body.
    pub(crate) timeout: Duration,
}

/// A failed call.
#[derive(Debug)]
pub(crate) struct FailedCall {
    pub(crate) error: SandyError,
    /// True if the service may have received the request. Without a connection, it can't have.
    pub(crate) was_sent: bool,
}

impl FailedCall {
    pub(crate) fn sent(error: impl Into<SandyError>) -> Self {
        Self { error: error.into(), was_sent: true }
    }

    pub(crate) fn unsent(error: SandyError) -> Self {
        Self { error, was_sent: false }
    }
}

impl Sandy {
    /// Creates a client. Makes no call yet.
    pub fn new(config: SandyConfig) -> Self {
        Self::with_timing(config, Timing::default())
    }

    /// Creates a client with other time limits.
    pub fn with_timing(config: SandyConfig, timing: Timing) -> Self {
        Self { config, http: OnceLock::new(), timing }
    }

    /// Returns an error unless address and key are set.
    ///
    /// # Errors
    /// [`SandyError::NoKey`], [`SandyError::NoAddress`].
    pub fn ready(&self) -> Result<(), SandyError> {
        self.config.ready().map(|_| ())
    }

    /// Returns the resources of the host, and whether another sandbox fits. Time limit 10 s, one attempt.
    pub async fn resources(&self) -> Result<Resources, SandyError> {
        let answer = self.get(&["resources"], &[], RESOURCES_TIMEOUT).await?;
        Ok(Resources::read(&answer)?)
    }

    /// Returns the usage of the host over the last hours. Time limit 15 s, one attempt.
    pub async fn metrics(&self, hours: u64) -> Result<Vec<HostMetric>, SandyError> {
        let query = [("hours", hours.to_string())];
        let answer = self.get(&["metrics", "timeseries"], &query, METRICS_TIMEOUT).await?;
        Ok(read_metrics(&answer)?)
    }

    /// Returns the usage of the sandboxes with these ids, or of all. Time limit 20 s, one attempt.
    pub async fn sandboxes(&self, ids: &[String]) -> Result<Vec<SandboxStats>, SandyError> {
        let query = [("ids", ids.join(","))];
        let query: &[_] = if ids.is_empty() { &[] } else { &query };
        let answer = self.get(&["sandboxes", "stats"], query, STATS_TIMEOUT).await?;
        Ok(read_stats(&answer)?)
    }

    async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        timeout: Duration,
    ) -> Result<Value, SandyError> {
        let call = Call { method: Method::GET, path, query, body: None, timeout };
        let response = self.send(&call).await.map_err(|failed| failed.error)?;
        if response.status() != StatusCode::OK {
            return Err(SandyError::Status(response.status().as_u16()));
        }
        json(response, ANSWER_BYTES_MAX, timeout).await.map_err(|failed| failed.error)
    }

    /// Sends a request. Returns answers of any status.
    pub(crate) async fn send(&self, call: &Call<'_>) -> Result<Response, FailedCall> {
        let (base, key) = self.config.ready().map_err(FailedCall::unsent)?;
        let unreachable = |problem: String| FailedCall::unsent(SandyError::Unreachable(problem));
        let mut url = base.clone();
        match url.path_segments_mut() {
            Ok(mut parts) => {
                parts.pop_if_empty().push("api").extend(call.path);
            }
            Err(()) => return Err(unreachable("its address cannot have a path".to_owned())),
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(call.query);
        }
        let http = self
            .http
            .get_or_init(|| http_client_for(base, |builder| builder.connect_timeout(self.timing.connect)));
        let http = http.as_ref();
        let http = http.map_err(|problem| unreachable(problem.clone()))?;
        let request = http.request(call.method.clone(), url).bearer_auth(key.expose()).timeout(call.timeout);
        let mut request = request.header(CONTENT_TYPE, "application/json");
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| transport_error(error, call.timeout))
    }

    /// Sends a request about one sandbox. Returns only answers with a success status.
    pub(crate) async fn send_to_sandbox(&self, call: &Call<'_>) -> Result<Response, FailedCall> {
        let response = self.send(call).await?;
        if response.status() == StatusCode::NOT_FOUND {
            let (text, _) = read_up_to(response, ERROR_BYTES_MAX, call.timeout).await;
            return Err(FailedCall::sent(over_limit(&text).map_or(SandyError::Gone, SandyError::OverLimit)));
        }
        self.check_status(response, call.timeout, true).await
    }

    /// Returns the answer if its status is a success, otherwise the error that it means.
    pub(crate) async fn check_status(
        &self,
        response: Response,
        timeout: Duration,
        is_about_sandbox: bool,
    ) -> Result<Response, FailedCall> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let status = status.as_u16();
        if matches!(status, 300..=399 | 401 | 403) {
            return Err(FailedCall::sent(SandyError::Status(status)));
        }
        let retry_after = retry_after(response.headers(), jiff::Timestamp::now());
        // An incomplete error text is still useful.
        let (text, _) = read_up_to(response, ERROR_BYTES_MAX, timeout).await;
        let key = self.config.ready().map(|(_, key)| key.expose()).unwrap_or_default();
        let excerpt = excerpt(&text, key);
        if is_about_sandbox && says_gone(&String::from_utf8_lossy(&text)) {
            return Err(FailedCall::sent(SandyError::Gone));
        }
        Err(FailedCall::sent(match status {
            408 | 429 | 503 => SandyError::Full { status, retry_after },
            status => SandyError::Rejected { status, excerpt },
        }))
    }

    /// Makes a call up to `tries` times, with doubled waits, as long as `may_repeat` allows it. If the service asks for
    /// a longer wait, leaves that to the caller.
    pub(crate) async fn with_retries<T, Fut: Future<Output = Result<T, FailedCall>>>(
        &self,
        tries: u32,
        may_repeat: impl Fn(&FailedCall) -> bool,
        call: impl Fn() -> Fut,
    ) -> Result<T, SandyError> {
        let mut wait = self.timing.repeat_wait;
        for _ in 1..tries {
            match call().await {
                Ok(done) => return Ok(done),
                Err(failed) => {
                    let requested_wait = failed.error.retry_after().unwrap_or_default();
                    if !may_repeat(&failed) || requested_wait > wait {
                        return Err(failed.error);
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        call().await.map_err(|failed| failed.error)
    }
}

/// Reads an answer of at most `bytes_max` bytes as JSON.
pub(crate) async fn json<T: DeserializeOwned>(
    response: Response,
    bytes_max: usize,
    timeout: Duration,
) -> Result<T, FailedCall> {
    let (body, end) = read_up_to(response, bytes_max, timeout).await;
    end?;
    serde_json::from_slice(&body)
        .map_err(|_| FailedCall::sent(SandyError::Shape("it is not JSON".to_owned())))
}

/// Reads an answer as far as possible; the result says whether it is complete.
async fn read_up_to(
    mut response: Response,
    bytes_max: usize,
    timeout: Duration,
) -> (Vec<u8>, Result<(), FailedCall>) {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return (body, Ok(())),
            Ok(Some(piece)) => {
                let room = bytes_max - body.len();
                body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
                if piece.len() > room {
                    return (body, Err(FailedCall::sent(SandyError::TooLong)));
                }
            }
            Err(error) => return (body, Err(transport_error(error, timeout))),
        }
    }
}

pub(crate) fn transport_error(error: reqwest::Error, timeout: Duration) -> FailedCall {
    let was_sent = !error.is_connect();
    let error = match error.is_timeout() && was_sent {
        true => SandyError::Timeout { seconds: timeout.as_secs() },
        false => SandyError::Unreachable(error_chain(&error.without_url())),
    };
    FailedCall { error, was_sent }
}
