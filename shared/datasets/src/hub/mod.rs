//! Client of the Hugging Face hub.
//!
//! Protocol (huggingface.co/docs/hub/api and the behaviour of its own client library):
//! `GET /api/datasets/ID/revision/REF` tells the commit and the files, `GET /api/datasets/ID/parquet`
//! the files of the automatic conversion, `GET /datasets/ID/resolve/COMMIT/PATH` answers with a file
//! or redirects to where it is stored, and then `x-linked-etag` is the SHA-256 and `x-linked-size` the
//! length of what is there. `x-error-code` says what a refusal means.

mod download;
mod glob;
mod listing;
mod patience;
pub(crate) mod select;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue, IF_RANGE, LOCATION, RANGE};
use reqwest::{Client, Response, StatusCode, Url};

pub(crate) use download::{Fetched, Total, hash, remove, remove_download};
pub(crate) use listing::{RemoteFile, Repository};
use patience::Patience;

use crate::config::{LibraryConfig, Token};
use crate::error::DatasetError;
use crate::progress::Progress;

/// Redirects that are followed for one request.
const REDIRECTS_MAX: usize = 8;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that is an error.
const ERROR_BYTES_MAX: usize = 16 * 1024;

/// A connection to the hub.
#[derive(Debug)]
pub(crate) struct Hub {
    config: LibraryConfig,
    client: OnceLock<Result<(Client, Url), String>>,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may succeed when repeated, after the time that the hub asked for.
    Passing { problem: String, wait: Option<Duration>, never_connected: bool },
    /// It will not.
    Lasting(DatasetError),
}

impl Failure {
    fn passing(problem: impl Into<String>) -> Self {
        Self::Passing { problem: problem.into(), wait: None, never_connected: false }
    }
}

/// What the hub itself said of a file, on the way to where it is stored.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Linked {
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

    /// The client, made when it is first needed: without the network nobody needs certificates.
    fn client(&self) -> Result<&(Client, Url), DatasetError> {
        if self.config.offline {
            return Err(self.unreachable("HF_HUB_OFFLINE is set"));
        }
        let made = self.client.get_or_init(|| make_client(&self.config));
        made.as_ref().map_err(|problem| self.unreachable(problem.clone()))
    }

    /// An address at the hub, from the parts of its path.
    fn url<'a>(&self, parts: impl IntoIterator<Item = &'a str>) -> Result<Url, DatasetError> {
        let mut url = self.client()?.1.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        Ok(url)
    }

    /// Sends a GET and follows redirects; the token goes to the hub's own origin only.
    async fn get(
        &self,
        dataset: &str,
        mut url: Url,
        range: Option<(u64, &str)>,
    ) -> Result<(Response, Linked), Failure> {
        let (client, base) = self.client().map_err(Failure::Lasting)?;
        let mut linked = Linked::default();
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
                linked.note(response.headers());
            }
            let status = response.status();
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                url = next_stop(&url, response.headers())?;
                continue;
            }
            if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
                return Ok((response, linked));
            }
            return Err(self.classify(dataset, response, at_hub).await);
        }
        Err(Failure::passing(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// A whole file of at most so many bytes, by the parts of its address.
    pub(crate) async fn small_file(
        &self,
        dataset: &str,
        place: &[&str],
        limit_bytes: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, DatasetError> {
        let url = self.url(place.iter().copied())?;
        let mut patience = Patience::default();
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
            patience.after(self, failure, progress).await?;
        }
    }

    fn authorization(&self, token: &str) -> Result<HeaderValue, Failure> {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        value.map_err(|_| {
            let problem = "it has characters that no token has".to_owned();
            Failure::Lasting(DatasetError::TokenRefused { hub: self.config.hub_url.clone(), problem })
        })
    }

    /// What a status other than success means.
    async fn classify(&self, dataset: &str, response: Response, at_hub: bool) -> Failure {
        let status = response.status();
        let code = text_header(response.headers(), "x-error-code");
        let wait = retry_after(response.headers());
        let token = self.config.token.as_ref();
        let said = text_header(response.headers(), "x-error-message").map(|said| without(token, &said));
        let explained = code.is_some() || said.is_some();
        let said = match said {
            Some(said) => said,
            None => error_body(response, token).await.unwrap_or_else(|| format!("status {status}")),
        };
        let token_given = token.is_some();
        let lasting = match (status.as_u16(), code.as_deref()) {
            // Where files are stored, a signed address that has expired is answered so.
            (401 | 403 | 404 | 410, _) if !at_hub => {
                return Failure::passing(format!("the file's store answered {status}"));
            }
            (401 | 403, Some("GatedRepo")) => DatasetError::Gated {
                dataset: dataset.to_owned(),
                terms_url: format!("{}/datasets/{dataset}", self.config.hub_url.trim_end_matches('/')),
                token_given,
            },
            (_, Some("RepoNotFound" | "RevisionNotFound" | "EntryNotFound")) | (404 | 410, _) => {
                DatasetError::not_found(dataset, said)
            }
            // Without a token the hub does not tell what is missing from what is private.
            (401, _) if !token_given => DatasetError::not_found(dataset, said),
            (401, _) => DatasetError::TokenRefused { hub: self.config.hub_url.clone(), problem: said },
            // The hub explains itself; whoever does not is a proxy or a firewall on the way.
            (403 | 407 | 451, _) if !explained => self.unreachable(format!("something answered {status}")),
            (408 | 425 | 429 | 500..=599, _) => {
                return Failure::Passing {
                    problem: format!("{status}: {said}"),
                    wait,
                    never_connected: false,
                };
            }
            _ => DatasetError::Refused {
                dataset: dataset.to_owned(),
                status: Some(status.as_u16()),
                problem: format!("{status}: {said}"),
            },
        };
        Failure::Lasting(lasting)
    }
}

impl Linked {
    fn note(&mut self, headers: &HeaderMap) {
        if let Some(etag) = text_header(headers, "x-linked-etag") {
            self.etag = Some(etag);
        }
        if let Some(size) = text_header(headers, "x-linked-size").and_then(|size| size.parse().ok()) {
            self.size = Some(size);
        }
    }

    /// The SHA-256 of the file, when the etag is one; small files have that of git instead.
    fn sha256(&self) -> Option<String> {
        let etag = self.etag.as_deref()?;
        let bare = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"').to_lowercase();
        (bare.len() == 64 && bare.bytes().all(|b| b.is_ascii_hexdigit())).then_some(bare)
    }
}

fn make_client(config: &LibraryConfig) -> Result<(Client, Url), String> {
    let url = Url::parse(&config.hub_url).map_err(|error| format!("`{}`: {error}", config.hub_url))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(format!("`{}` is no http address", config.hub_url));
    }
    // Whoever came first has installed the same provider; nothing else is built in.
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = Client::builder()
        .user_agent(concat!("bench-runner/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(config.silence_max)
        .build()
        .map_err(|error| describe(&error))?;
    Ok((client, url))
}

fn next_stop(from: &Url, headers: &HeaderMap) -> Result<Url, Failure> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let to = to.ok_or_else(|| Failure::passing("a redirect leads nowhere"))?;
    let downgrade = from.scheme() == "https" && to.scheme() != "https";
    if downgrade || !["http", "https"].contains(&to.scheme()) {
        return Err(Failure::passing("a redirect leads to an address that is not https"));
    }
    Ok(to)
}

fn network(error: reqwest::Error) -> Failure {
    let never_connected = error.is_connect();
    Failure::Passing { problem: describe(&error), wait: None, never_connected }
}

/// An error and its causes, without the address: it may be signed.
fn describe(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "no answer in time".to_owned()
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

/// `Retry-After` in seconds; the form with a date is not used by the hub.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = text_header(headers, "retry-after")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The message in an answer's JSON, `{"error": "…"}`.
async fn error_body(response: Response, token: Option<&Token>) -> Option<String> {
    let body = limited(response, ERROR_BYTES_MAX).await.ok()?;
    let value: serde_json::Value = serde_json::from_slice(&body).ok()?;
    let text = value.get("error")?.as_str()?;
    // Before it is cut, perhaps within the token.
    Some(without(token, text).chars().take(300).collect())
}

/// What a hub said, without the token that it was sent.
fn without(token: Option<&Token>, text: &str) -> String {
    token.map_or_else(|| text.to_owned(), |token| text.replace(token.reveal(), "[redacted]"))
}

/// A whole answer of at most so many bytes.
async fn limited(mut response: Response, limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network)? {
        if body.len() + chunk.len() > limit_bytes {
            return Err(Failure::passing(format!("the answer has more than {limit_bytes} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_the_hub_repeats_is_not_told() {
        let token = Token::new("hf_0123456789");
        assert_eq!(without(token.as_ref(), "no: hf_0123456789, hf_0"), "no: [redacted], hf_0");
        assert_eq!(without(None, "no"), "no");
    }

    #[test]
    fn only_a_sha256_is_taken_for_one() {
        let linked = |etag: &str| Linked { etag: Some(etag.to_owned()), size: None }.sha256();
        let sha = "AB".repeat(32);
        assert_eq!(linked(&format!("\"{sha}\"")), Some(sha.to_lowercase()));
        assert_eq!(linked(&format!("W/\"{sha}\"")), Some(sha.to_lowercase()));
        assert_eq!(linked(&format!("\"{}\"", "ab".repeat(20))), None);
        assert_eq!(linked(&format!("\"{}\"", "zz".repeat(32))), None);
    }

    #[test]
    fn redirects_stay_safe() {
        let from = Url::parse("https://hub.test/a/b").unwrap();
        let to = |location: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(location));
            next_stop(&from, &headers).ok().map(|url| url.to_string())
        };
        assert_eq!(to("/c?d=e").as_deref(), Some("https://hub.test/c?d=e"));
        assert_eq!(to("https://cdn.test/x").as_deref(), Some("https://cdn.test/x"));
        assert_eq!(to("http://hub.test/c"), None);
        assert_eq!(to("file:///etc/passwd"), None);
        assert!(next_stop(&from, &HeaderMap::new()).is_err());
    }

    #[test]
    fn parts_of_an_address_are_escaped() {
        let hub =
            Hub::new(LibraryConfig { hub_url: "http://h.test/base/".into(), ..LibraryConfig::new("c") });
        let url = hub.url(["datasets", "a", "b c", "resolve", "refs/x", "ü?.jsonl", ".."]).unwrap();
        assert_eq!(url.as_str(), "http://h.test/base/datasets/a/b%20c/resolve/refs%2Fx/%C3%BC%3F.jsonl");
    }

    #[test]
    fn an_address_that_is_none_is_unreachable() {
        for bad in ["", "hub", "ftp://h.test", "http://"] {
            let hub = Hub::new(LibraryConfig { hub_url: bad.into(), ..LibraryConfig::new("c") });
            assert!(matches!(hub.url([]), Err(DatasetError::Unreachable { .. })), "{bad}");
        }
    }
}
