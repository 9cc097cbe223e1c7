//! Client of the Hugging Face hub.
//!
//! Protocol (huggingface.co/docs/hub/api and the behavior of the official client library): `GET
//! /api/datasets/ID/revision/REF` returns the commit and the files. `GET /api/datasets/ID/parquet`
//! returns the files of the automatic conversion. `GET /datasets/ID/resolve/COMMIT/PATH` returns a
//! file or redirects to its storage; in that case `x-linked-etag` is the SHA-256 and
//! `x-linked-size` the length of the stored file. `x-error-code` gives the reason of a refusal.

mod download;
mod glob;
mod listing;
mod retry;
pub(crate) mod select;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, IF_RANGE, LOCATION, RANGE};
use reqwest::{Client, Response, StatusCode, Url};

pub(crate) use download::{DownloadProgress, DownloadedFile, hash, remove, remove_leftovers};
pub(crate) use listing::{RemoteFile, Repository};
use retry::RetryState;

use crate::config::{LibraryConfig, Token};
use crate::error::DatasetError;
use crate::progress::Progress;

/// Maximum number of redirects of one request.
const REDIRECTS_MAX: usize = 8;
/// Timeout for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an error response that is read.
const ERROR_BYTES_MAX: usize = 16 * 1024;
/// Maximum size of the description of a revision, in bytes.
const REVISION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Client of a hub.
#[derive(Debug)]
pub(crate) struct Hub {
    config: LibraryConfig,
    client: OnceLock<Result<(Client, Url), String>>,
}

/// Reason for which a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A retry may succeed, after `wait` if the hub asked for one.
    Transient { problem: String, wait: Option<Duration>, never_connected: bool },
    /// A retry would fail too.
    Permanent(DatasetError),
}

impl Failure {
    fn transient(problem: impl Into<String>) -> Self {
        Self::Transient { problem: problem.into(), wait: None, never_connected: false }
    }
}

/// Metadata of a file in the hub's own response headers, before the redirect to its storage.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct FileHeaders {
    etag: Option<String>,
    size: Option<u64>,
}

impl Hub {
    pub(crate) fn new(config: LibraryConfig) -> Self {
        Self { config, client: OnceLock::new() }
    }

    pub(crate) fn config(&self) -> &LibraryConfig {
        &self.config
    }

    pub(crate) fn unreachable(&self, problem: impl Into<String>) -> DatasetError {
        DatasetError::Unreachable { hub: self.config.hub_url.clone(), problem: problem.into() }
    }

    /// Returns the client, which is created on first use: without the network, no certificates are
    /// needed.
    fn client(&self) -> Result<&(Client, Url), DatasetError> {
        if self.config.offline {
            return Err(self.unreachable("HF_HUB_OFFLINE is set"));
        }
        let made = self.client.get_or_init(|| build_client(&self.config));
        made.as_ref().map_err(|problem| self.unreachable(problem.clone()))
    }

    /// Returns an address at the hub, from the segments of its path.
    fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Result<Url, DatasetError> {
        let mut url = self.client()?.1.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        Ok(url)
    }

    /// Sends a GET request and follows redirects. The token is sent to the hub's own origin only.
    async fn get(
        &self,
        dataset: &str,
        mut url: Url,
        range: Option<(u64, &str)>,
    ) -> Result<(Response, FileHeaders), Failure> {
        let (client, base) = self.client().map_err(Failure::Permanent)?;
        let mut file_headers = FileHeaders::default();
        for _ in 0..=REDIRECTS_MAX {
            let at_hub = url.origin() == base.origin();
            let mut request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
            if let (Some(token), true) = (&self.config.token, at_hub) {
                request = request.header(AUTHORIZATION, self.authorization(token.reveal())?);
            }
            if let Some((offset, validator)) = range {
                request = request.header(RANGE, format!("bytes={offset}-")).header(IF_RANGE, validator);
            }
            let response = request.send().await.map_err(network)?;
            if at_hub {
                file_headers.update(response.headers());
            }
            let status = response.status();
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                url = redirect_target(&url, response.headers())?;
                continue;
            }
            if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
                return Ok((response, file_headers));
            }
            return Err(self.classify(dataset, response, at_hub).await);
        }
        Err(Failure::transient(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// Asks for a dataset's newest revision once, without a retry.
    pub(crate) async fn try_once(&self, dataset: &str) -> Result<(), DatasetError> {
        let url =
            self.url(["api", "datasets"].into_iter().chain(dataset.split('/')).chain(["revision", "main"]))?;
        let answered = async {
            let (response, _) = self.get(dataset, url, None).await?;
            let body = read_limited(response, REVISION_BYTES_MAX).await?;
            serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(&body).map_err(|_| {
                Failure::Permanent(DatasetError::Refused {
                    dataset: dataset.to_owned(),
                    status: None,
                    problem: "its answer is not a JSON object".to_owned(),
                })
            })
        };
        match answered.await {
            Ok(_) => Ok(()),
            Err(Failure::Permanent(error)) => Err(error),
            Err(Failure::Transient { problem, .. }) => Err(self.unreachable(problem)),
        }
    }

    /// Downloads a whole file of at most `limit_bytes`, by the segments of its path.
    pub(crate) async fn download_small_file(
        &self,
        dataset: &str,
        place: &[&str],
        limit_bytes: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, DatasetError> {
        let url = self.url(place.iter().copied())?;
        let mut retries = RetryState::default();
        loop {
            let failure = match self.get(dataset, url.clone(), None).await {
                Ok((mut response, _)) => {
                    let too_large = || DatasetError::TooLarge {
                        what: format!("`{}`", place.join("/")),
                        limit_bytes: limit_bytes as u64,
                    };
                    let mut file = Vec::new();
                    loop {
                        match response.chunk().await {
                            Ok(Some(chunk)) if file.len() + chunk.len() > limit_bytes => {
                                return Err(too_large());
                            }
                            Ok(Some(chunk)) => file.extend_from_slice(&chunk),
                            Ok(None) => return Ok(file),
                            Err(error) => break network(error),
                        }
                    }
                }
                Err(failure) => failure,
            };
            retries.wait_or_fail(self, failure, progress).await?;
        }
    }

    fn authorization(&self, token: &str) -> Result<HeaderValue, Failure> {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        value.map_err(|_| {
            let problem = "a token consists of visible ASCII characters only".to_owned();
            Failure::Permanent(DatasetError::TokenRefused { hub: self.config.hub_url.clone(), problem })
        })
    }

    /// Turns an unsuccessful response into a [`Failure`].
    async fn classify(&self, dataset: &str, response: Response, at_hub: bool) -> Failure {
        let status = response.status();
        let code = text_header(response.headers(), "x-error-code");
        let wait = retry_after(response.headers());
        let token = self.config.token.as_ref();
        let message =
            text_header(response.headers(), "x-error-message").map(|message| redact(token, &message));
        let explained = code.is_some() || message.is_some();
        let message = match message {
            Some(message) => message,
            None => error_body(response, token).await.unwrap_or_else(|| format!("status {status}")),
        };
        let token_given = token.is_some();
        let lasting = match (status.as_u16(), code.as_deref()) {
            // File storage answers with these statuses when a signed address has expired.
            (401 | 403 | 404 | 410, _) if !at_hub => {
                return Failure::transient(format!("the file's store answered {status}"));
            }
            (401 | 403, Some("GatedRepo")) => DatasetError::Gated {
                dataset: dataset.to_owned(),
                terms_url: format!("{}/datasets/{dataset}", self.config.hub_url.trim_end_matches('/')),
                token_given,
            },
            (_, Some("RepoNotFound" | "RevisionNotFound" | "EntryNotFound")) | (404 | 410, _) => {
                DatasetError::not_found(dataset, message)
            }
            // Without a token, the hub doesn't distinguish missing datasets from private ones.
            (401, _) if !token_given => DatasetError::not_found(dataset, message),
            (401, _) => DatasetError::TokenRefused { hub: self.config.hub_url.clone(), problem: message },
            // The hub explains its refusals. A response without an explanation comes from a proxy
            // or a firewall.
            (403 | 407 | 451, _) if !explained => self.unreachable(format!("something answered {status}")),
            (408 | 425 | 429 | 500..=599, _) => {
                return Failure::Transient {
                    problem: with_status(status, &message),
                    wait,
                    never_connected: false,
                };
            }
            _ => DatasetError::Refused {
                dataset: dataset.to_owned(),
                status: Some(status.as_u16()),
                problem: with_status(status, &message),
            },
        };
        Failure::Permanent(lasting)
    }
}

impl FileHeaders {
    fn update(&mut self, headers: &HeaderMap) {
        if let Some(etag) = text_header(headers, "x-linked-etag") {
            self.etag = Some(etag);
        }
        if let Some(size) = text_header(headers, "x-linked-size").and_then(|size| size.parse().ok()) {
            self.size = Some(size);
        }
    }

    /// Returns the SHA-256 of the file if the ETag is one. Small files have git's hash instead.
    fn sha256(&self) -> Option<String> {
        let etag = self.etag.as_deref()?;
        let bare = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"').to_lowercase();
        (bare.len() == 64 && bare.bytes().all(|b| b.is_ascii_hexdigit())).then_some(bare)
    }
}

/// Asks the hub for a dataset's newest revision, once and with the configured token. Nothing is downloaded.
///
/// # Errors
/// [`DatasetError`] as a download would end with it, without its retries.
pub async fn ask_hub(config: LibraryConfig, dataset: &str) -> Result<(), DatasetError> {
    Hub::new(config).try_once(dataset).await
}

fn build_client(config: &LibraryConfig) -> Result<(Client, Url), String> {
    let url = Url::parse(&config.hub_url).map_err(|error| format!("`{}`: {error}", config.hub_url))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(format!("`{}` is not an http or https address", config.hub_url));
    }
    // If another component has installed a provider first, it is the same one: no other is built
    // in.
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = Client::builder()
        .user_agent(concat!("bench-runner/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(config.read_timeout)
        .build()
        .map_err(|error| describe(&error))?;
    Ok((client, url))
}

fn redirect_target(from: &Url, headers: &HeaderMap) -> Result<Url, Failure> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let to = to.ok_or_else(|| Failure::transient("a redirect has no valid address"))?;
    let downgrade = from.scheme() == "https" && to.scheme() != "https";
    if downgrade || !["http", "https"].contains(&to.scheme()) {
        return Err(Failure::transient("a redirect leads to an address that is not https"));
    }
    Ok(to)
}

/// Adds the status to a message that doesn't contain it.
fn with_status(status: StatusCode, message: &str) -> String {
    if message.contains(status.as_str()) { message.to_owned() } else { format!("{status}: {message}") }
}

fn network(error: reqwest::Error) -> Failure {
    let never_connected = error.is_connect();
    Failure::Transient { problem: describe(&error), wait: None, never_connected }
}

/// Describes an error and its root cause without the address, which may be signed.
fn describe(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "no response in time".to_owned()
    } else if error.is_connect() {
        "no connection".to_owned()
    } else {
        "the connection broke".to_owned()
    };
    let mut source = std::error::Error::source(error);
    let mut last = String::new();
    while let Some(cause) = source {
        last = cause.to_string();
        source = cause.source();
    }
    if !last.is_empty() {
        text = format!("{text} ({last})");
    }
    text
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses `Retry-After` in seconds. The hub doesn't use the form with a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = text_header(headers, "retry-after")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads the message of an error response, `{"error": "…"}`.
async fn error_body(response: Response, token: Option<&Token>) -> Option<String> {
    let body = read_limited(response, ERROR_BYTES_MAX).await.ok()?;
    let value: serde_json::Value = serde_json::from_slice(&body).ok()?;
    let text = value.get("error")?.as_str()?;
    // Redact before truncating, since the cut may be within the token.
    Some(redact(token, text).chars().take(300).collect())
}

/// Removes the token from a message of the hub.
fn redact(token: Option<&Token>, text: &str) -> String {
    token.map_or_else(|| text.to_owned(), |token| text.replace(token.reveal(), "[redacted]"))
}

/// Reads a response of at most `limit_bytes`.
async fn read_limited(mut response: Response, limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network)? {
        if body.len() + chunk.len() > limit_bytes {
            return Err(Failure::transient(format!("the answer has more than {limit_bytes} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_the_hub_repeats_is_redacted() {
        let token = Token::new("hf_0123456789");
        assert_eq!(redact(token.as_ref(), "no: hf_0123456789, hf_0"), "no: [redacted], hf_0");
        assert_eq!(redact(None, "no"), "no");
    }

    #[test]
    fn only_a_sha256_etag_is_accepted() {
        let file_headers = |etag: &str| FileHeaders { etag: Some(etag.to_owned()), size: None }.sha256();
        let sha = "AB".repeat(32);
        assert_eq!(file_headers(&format!("\"{sha}\"")), Some(sha.to_lowercase()));
        assert_eq!(file_headers(&format!("W/\"{sha}\"")), Some(sha.to_lowercase()));
        assert_eq!(file_headers(&format!("\"{}\"", "ab".repeat(20))), None);
        assert_eq!(file_headers(&format!("\"{}\"", "zz".repeat(32))), None);
    }

    #[test]
    fn redirects_stay_safe() {
        let from = Url::parse("https://hub.test/a/b").unwrap();
        let to = |location: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            redirect_target(&from, &headers).ok().map(|url| url.to_string())
        };
        assert_eq!(to("/c?d=e").as_deref(), Some("https://hub.test/c?d=e"));
        assert_eq!(to("https://cdn.test/x").as_deref(), Some("https://cdn.test/x"));
        assert_eq!(to("http://hub.test/c"), None);
        assert_eq!(to("file:///etc/passwd"), None);
        assert!(redirect_target(&from, &HeaderMap::new()).is_err());
    }

    #[test]
    fn parts_of_an_address_are_escaped() {
        let hub =
            Hub::new(LibraryConfig { hub_url: "http://h.test/base/".into(), ..LibraryConfig::new("c") });
        let url = hub.url(["datasets", "a", "b c", "resolve", "refs/x", "ü?.jsonl", ".."]).unwrap();
        assert_eq!(url.as_str(), "http://h.test/base/datasets/a/b%20c/resolve/refs%2Fx/%C3%BC%3F.jsonl");
    }

    #[test]
    fn an_invalid_address_is_unreachable() {
        for bad in ["", "hub", "ftp://h.test", "http://"] {
            let hub = Hub::new(LibraryConfig { hub_url: bad.into(), ..LibraryConfig::new("c") });
            assert!(matches!(hub.url([]), Err(DatasetError::Unreachable { .. })), "{bad}");
        }
    }
}
