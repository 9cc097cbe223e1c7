//! Calls, each with a time limit and a bound of its answer.

use std::error::Error;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde_json::Value;

use crate::read::NotThat;
use crate::views::{metrics_of, stats_of};
use crate::{HostMetric, Resources, SandboxStats, SandyConfig};

/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESOURCES_TIMEOUT: Duration = Duration::from_secs(10);
const METRICS_TIMEOUT: Duration = Duration::from_secs(15);
const STATS_TIMEOUT: Duration = Duration::from_secs(20);

/// Why the service gave nothing that can be used. No text of the service is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandyError {
    /// `SANDY_API_KEY` is not set.
    #[error("Sandy API key is not configured")]
    NoKey,
    /// `SANDY_BASE_URL` is not set.
    #[error("Sandy base URL is not configured")]
    NoAddress,
    /// No connection, or it broke off.
    #[error("Sandy cannot be reached: {0}")]
    Unreachable(String),
    /// The call took too long.
    #[error("Sandy did not answer within {seconds} s")]
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// A status other than success.
    #[error("Sandy answered with status {0}")]
    Status(u16),
    /// More bytes than are read.
    #[error("Sandy's answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// JSON of another shape, or none.
    #[error("Sandy's answer has another shape than expected: {0}")]
    Shape(String),
}

impl From<NotThat> for SandyError {
    fn from(wrong: NotThat) -> Self {
        Self::Shape(wrong.to_string())
    }
}

/// The service.
#[derive(Debug)]
pub struct Sandy {
    config: SandyConfig,
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl Sandy {
    /// A client; nothing is called yet.
    pub fn new(config: SandyConfig) -> Self {
        Self { config, http: OnceLock::new() }
    }

    /// What the host has and whether another sandbox fits. Time limit 10 s, one try.
    pub async fn resources(&self) -> Result<Resources, SandyError> {
        let answer = self.get("/api/resources", &[], RESOURCES_TIMEOUT).await?;
        Ok(Resources::read(&answer)?)
    }

    /// How busy the host was in the last hours. Time limit 15 s, one try.
    pub async fn metrics(&self, hours: u64) -> Result<Vec<HostMetric>, SandyError> {
        let query = [("hours", hours.to_string())];
        let answer = self.get("/api/metrics/timeseries", &query, METRICS_TIMEOUT).await?;
        Ok(metrics_of(&answer)?)
    }

    /// What sandboxes use: those with these ids, or all. Time limit 20 s, one try.
    pub async fn sandboxes(&self, ids: &[String]) -> Result<Vec<SandboxStats>, SandyError> {
        let query = [("ids", ids.join(","))];
        let query: &[_] = if ids.is_empty() { &[] } else { &query };
        let answer = self.get("/api/sandboxes/stats", query, STATS_TIMEOUT).await?;
        Ok(stats_of(&answer)?)
    }

    async fn get(
        &self,
        path: &str,
        query: &[(&str, String)],
        timeout: Duration,
    ) -> Result<Value, SandyError> {
        let (base, key) = self.config.ready()?;
        let mut url = Url::parse(&format!("{}{path}", base.as_str().trim_end_matches('/')))
            .map_err(|error| SandyError::Unreachable(error.to_string()))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let http = self.http.get_or_init(|| client(base)).as_ref();
        let http = http.map_err(|problem| SandyError::Unreachable(problem.clone()))?;
        let failed = |error: reqwest::Error| match error.is_timeout() && !error.is_connect() {
            true => SandyError::Timeout { seconds: timeout.as_secs() },
            false => SandyError::Unreachable(chain(&error.without_url())),
        };
        // The limit holds for the whole call, the body included.
        let request = http.get(url).bearer_auth(key.expose()).timeout(timeout);
        let request = request.header(reqwest::header::CONTENT_TYPE, "application/json");
        let mut response = request.send().await.map_err(failed)?;
        if response.status() != StatusCode::OK {
            return Err(SandyError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(SandyError::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        serde_json::from_slice(&body).map_err(|_| SandyError::Shape("it is not JSON".to_owned()))
    }
}

fn client(base: &Url) -> Result<reqwest::Client, String> {
    // Somebody else may have installed one already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("bench-runner/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the key to another host.
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT);
        // No proxy can reach this machine's own servers.
        if is_loopback(base) { builder.no_proxy() } else { builder }
    };
    builder().build().or_else(|error| {
        tracing::warn!(error = %chain(&error), "No root certificates were found: HTTPS addresses cannot be reached");
        builder().tls_certs_only([]).build().map_err(|error| chain(&error))
    })
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host == "localhost"
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// An error with its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
