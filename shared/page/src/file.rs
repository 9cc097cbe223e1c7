//! A file as a response.

use std::io::Write;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

/// Bytes of a digest that make an entity tag.
const TAG_BYTES: usize = 12;

/// Content types by the ending of a file's name, and whether the content is compressed. `infra/upload_page.py` reads them
/// from here.
const TYPES: [(&str, &str, bool); 14] = [
    ("html", "text/html; charset=utf-8", true),
    ("css", "text/css; charset=utf-8", true),
    ("js", "text/javascript; charset=utf-8", true),
    ("mjs", "text/javascript; charset=utf-8", true),
    ("json", "application/json", true),
    ("svg", "image/svg+xml", true),
    ("txt", "text/plain; charset=utf-8", true),
    ("md", "text/markdown; charset=utf-8", true),
    ("webmanifest", "application/manifest+json", true),
    ("ico", "image/x-icon", false),
    ("png", "image/png", false),
    ("webp", "image/webp", false),
    ("woff2", "font/woff2", false),
    ("zip", "application/zip", false),
];

/// Returns the content type of a file by its name, and whether to compress it.
pub(crate) fn content_type(name: &str) -> Option<(&'static str, bool)> {
    let (_, ending) = name.rsplit_once('.')?;
    let found = TYPES.iter().find(|(known, ..)| *known == ending)?;
    Some((found.1, found.2))
}

/// A file of the page.
#[derive(Debug, Clone)]
pub(crate) struct File {
    content_type: &'static str,
    whole: Representation,
    compressed: Option<Representation>,
}

#[derive(Debug, Clone)]
struct Representation {
    bytes: Bytes,
    /// Entity tag, with its quotes.
    tag: String,
}

impl File {
    /// Makes a file from its content, uncompressed.
    pub(crate) fn new(name: &str, bytes: Bytes) -> Self {
        let content_type = content_type(name).map_or("application/octet-stream", |(known, _)| known);
        let digest = Sha256::digest(&bytes);
        let tag = format!("\"{}\"", hex::encode(&digest[..TAG_BYTES]));
        Self { content_type, whole: Representation { bytes, tag }, compressed: None }
    }

    /// Makes a file from its content, and compresses it if its type says so and that makes it smaller.
    pub(crate) fn compressed(name: &str, bytes: &'static [u8]) -> Self {
        let mut file = Self::new(name, Bytes::from_static(bytes));
        if content_type(name).is_some_and(|(_, compresses)| compresses)
            && let Some(smaller) = gzip(bytes).filter(|smaller| smaller.len() < bytes.len())
        {
            let tag = format!("{}-gzip\"", file.whole.tag.trim_end_matches('"'));
            file.compressed = Some(Representation { bytes: smaller.into(), tag });
        }
        file
    }

    /// Returns true for scripts and styles, which act only in the document that loads them.
    pub(crate) fn is_subresource(&self) -> bool {
        self.content_type.starts_with("text/javascript") || self.content_type.starts_with("text/css")
    }

    /// Responds with the file, or with 304 if the client has it.
    pub(crate) fn respond(&self, request: &HeaderMap) -> Response {
        let compressed = self.compressed.as_ref().filter(|_| accepts_gzip(request));
        let Representation { bytes, tag } = compressed.unwrap_or(&self.whole);
        let mut response = if is_known(request, tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, self.content_type)], bytes.clone()).into_response()
        };
        let is_whole = response.status() == StatusCode::OK;
        let headers = response.headers_mut();
        if is_whole && compressed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if self.compressed.is_some() {
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Returns the elements of a list in headers.
fn list<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    list(headers, &header::ACCEPT_ENCODING).any(|accepted| {
        let mut parts = accepted.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Returns true if the client has the version with this entity tag.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    list(headers, &header::IF_NONE_MATCH).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}
