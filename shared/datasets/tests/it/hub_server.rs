//! Hub on loopback: the API and small files on one port, the storage of large files on another.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_RANGE, LOCATION, RANGE};
use axum::http::{HeaderMap, Response, StatusCode};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedRequest {
    /// `hub` or `store`.
    pub(crate) at: &'static str,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) range: Option<String>,
    pub(crate) if_range: Option<String>,
}

/// A failure that occurs once.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// A response with this status and these headers.
    Status(u16, Vec<(&'static str, &'static str)>),
    /// The connection breaks after this number of bytes of the file.
    Cut(usize),
    /// The file has one flipped bit.
    Altered,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Repository {
    pub(crate) commit: String,
    /// Path, content, and true if the file is in the storage of large files.
    pub(crate) files: Vec<(String, Vec<u8>, bool)>,
    pub(crate) card: Value,
    /// If true, downloads need this token.
    pub(crate) token: Option<String>,
    /// Configuration, split, addresses.
    pub(crate) converted: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default)]
struct Inner {
    repositories: BTreeMap<String, Repository>,
    /// Faults by a part of the path.
    faults: Vec<(String, VecDeque<Fault>)>,
    requests: Vec<RecordedRequest>,
    store_url: String,
    etags: bool,
}

/// The two servers. They end with the test's runtime.
#[derive(Debug, Clone)]
pub(crate) struct TestHub {
    inner: Arc<Mutex<Inner>>,
    pub(crate) url: String,
}

impl TestHub {
    pub(crate) async fn start() -> Self {
        let inner = Arc::new(Mutex::new(Inner { etags: true, ..Inner::default() }));
        let url = serve("hub", Arc::clone(&inner)).await;
        let store_url = serve("store", Arc::clone(&inner)).await;
        let hub = Self { inner, url };
        hub.inner().store_url = store_url;
        hub
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish(&self, id: &str, repository: Repository) {
        self.inner().repositories.insert(id.to_owned(), repository);
    }

    /// Makes the next requests whose path contains `part` fail.
    pub(crate) fn fail(&self, part: &str, faults: impl IntoIterator<Item = Fault>) {
        self.inner().faults.push((part.to_owned(), faults.into_iter().collect()));
    }

    /// Stops sending ETags.
    pub(crate) fn no_etags(&self) {
        self.inner().etags = false;
    }

    /// Returns the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.inner().requests)
    }
}

async fn serve(at: &'static str, inner: Arc<Mutex<Inner>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state((at, inner));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

type Shared = (&'static str, Arc<Mutex<Inner>>);

async fn answer(State((at, inner)): State<Shared>, request: Request) -> Result<Response<Body>, Infallible> {
    let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
    let headers = request.headers();
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let path = request.uri().path().to_owned();
    inner.requests.push(RecordedRequest {
        at,
        path: path.clone(),
        authorization: header(AUTHORIZATION),
        range: header(RANGE),
        if_range: header(IF_RANGE),
    });
    // A fault of a large file occurs at its storage.
    let is_redirected = at == "hub" && path.contains("/resolve/") && is_large(&inner.repositories, &path);
    let fault =
        inner.faults.iter_mut().find(|(part, faults)| path.contains(part.as_str()) && !faults.is_empty());
    let fault = match fault {
        Some((_, faults)) if !is_redirected || matches!(faults.front(), Some(Fault::Status(..))) => {
            faults.pop_front()
        }
        _ => None,
    };
    if let Some(Fault::Status(status, headers)) = &fault {
        let mut response = Response::builder().status(*status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        return Ok(response.body(Body::from("{\"error\":\"as the test wants\"}")).unwrap());
    }
    Ok(respond(at, &inner, &path, headers, fault))
}

fn is_large(repositories: &BTreeMap<String, Repository>, path: &str) -> bool {
    repositories
        .values()
        .flat_map(|repository| &repository.files)
        .any(|(name, _, large)| *large && path.ends_with(name))
}

fn status(status: u16, code: &'static str) -> Response<Body> {
    let response =
        Response::builder().status(status).header("x-error-code", code).header("x-error-message", code);
    response.body(Body::empty()).unwrap()
}

fn respond(at: &str, inner: &Inner, path: &str, headers: &HeaderMap, fault: Option<Fault>) -> Response<Body> {
    let known = |id: &str| inner.repositories.get(id);
    if at == "store" {
        let (id, file) = path.trim_start_matches('/').split_once("//").unwrap_or_default();
        let found = known(id).and_then(|r| r.files.iter().find(|(name, ..)| name == file));
        return found
            .map_or_else(|| status(404, ""), |(_, bytes, _)| send(bytes, headers, fault, inner.etags));
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let id = |parts: &[&str]| parts.join("/");
    match parts.as_slice() {
        ["api", "datasets", id_parts @ .., "revision", reference] => match known(&id(id_parts)) {
            None => status(404, "RepoNotFound"),
            Some(r) if *reference != "main" && *reference != r.commit => status(404, "RevisionNotFound"),
            Some(r) => revision(&id(id_parts), r),
        },
        ["api", "datasets", id_parts @ .., "parquet"] => match known(&id(id_parts)) {
            Some(r) if !r.converted.is_empty() => json_answer(&json!(r.converted)),
            _ => status(404, "EntryNotFound"),
        },
        ["datasets", rest @ ..] => {
            let at = rest.iter().position(|part| *part == "resolve").unwrap();
            let (id, file) = (id(&rest[..at]), rest[at + 2..].join("/"));
            let Some(repository) = known(&id) else { return status(404, "RepoNotFound") };
            let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            let wanted = repository.token.as_ref().map(|token| format!("Bearer {token}"));
            if wanted.is_some() && token != wanted.as_deref() {
                return status(if token.is_some() { 403 } else { 401 }, "GatedRepo");
            }
            let Some((_, bytes, large)) = repository.files.iter().find(|(name, ..)| *name == file) else {
                return status(404, "EntryNotFound");
            };
            if !large {
                return send(bytes, headers, fault, inner.etags);
            }
            let response = Response::builder()
                .status(302)
                .header(LOCATION, format!("{}/{id}//{file}", inner.store_url))
                .header("x-repo-commit", &repository.commit)
                .header("x-linked-size", bytes.len())
                .header("x-linked-etag", format!("\"{}\"", hex::encode(Sha256::digest(bytes))));
            response.body(Body::empty()).unwrap()
        }
        // Files on GitHub: their repositories are published under `github:OWNER/NAME`.
        [owner, name, commit, file @ ..] => {
            let found = known(&format!("github:{owner}/{name}")).filter(|found| found.commit == *commit);
            let file = file.join("/");
            match found.and_then(|found| found.files.iter().find(|(path, ..)| *path == file)) {
                Some((_, bytes, _)) => send(bytes, headers, fault, inner.etags),
                None => Response::builder().status(404).body(Body::from("404: Not Found")).unwrap(),
            }
        }
        _ => status(404, "EntryNotFound"),
    }
}

fn revision(id: &str, repository: &Repository) -> Response<Body> {
    let siblings: Vec<Value> = repository.files.iter().map(|(name, ..)| json!({"rfilename": name})).collect();
    json_answer(
        &json!({"id": id, "sha": repository.commit, "siblings": siblings, "cardData": repository.card}),
    )
}

fn json_answer(value: &Value) -> Response<Body> {
    Response::new(Body::from(value.to_string()))
}

fn send(bytes: &[u8], headers: &HeaderMap, fault: Option<Fault>, etags: bool) -> Response<Body> {
    let etag = format!("\"{}\"", hex::encode(&Sha256::digest(bytes)[..8]));
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let from =
        text(RANGE).and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let from = from.filter(|_| text(IF_RANGE) == Some(etag.as_str()));
    let mut response = Response::builder();
    if etags {
        response = response.header(ETAG, &etag);
    }
    let mut content = bytes.to_vec();
    if let Some(from) = from {
        if from >= bytes.len() {
            return response.status(416).body(Body::empty()).unwrap();
        }
        let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
        response = response.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, range);
        content.drain(..from);
    }
    match fault {
        Some(Fault::Cut(after)) => {
            response = response.header(CONTENT_LENGTH, content.len());
            content.truncate(after);
            response.body(cut(content.into())).unwrap()
        }
        Some(Fault::Altered) => {
            let middle = content.len() / 2;
            content[middle] ^= 1;
            response.body(Body::from(content)).unwrap()
        }
        _ => response.body(Body::from(content)).unwrap(),
    }
}

/// Sends the bytes, then ends the connection: the server flushes while it waits.
fn cut(bytes: Bytes) -> Body {
    let broken = stream::once(async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        Err(io::Error::other("cut"))
    });
    Body::from_stream(stream::iter([Ok(bytes)]).chain(broken))
}
