//! API of a running server.

use std::time::Duration;

use bench_inference::{http_client, is_loopback};
use futures_util::TryStreamExt;
use http::{HeaderMap, Method, header};
use reqwest::Url;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

use super::{Payload, Response, transport_error};
use crate::exit::Problem;

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without data from a server, which may be building an export.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Maximum number of file bytes to read at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Maximum number of redirects to follow, which lead to the storage of an export.
const REDIRECTS_MAX: usize = 3;

#[derive(Debug, Clone)]
pub(super) struct Remote {
    client: reqwest::Client,
    base: Url,
}

impl Remote {
    /// Creates a client of a server at an address such as `https://bench.example` or `localhost:3000`.
    pub(super) fn new(server: &str) -> anyhow::Result<Self> {
        let text = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let base = Url::parse(text.trim_end_matches('/'))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .filter(|url| url.query().is_none() && url.fragment().is_none())
            .ok_or_else(|| {
                Problem::usage(format!(
                    "--server: `{server}` is not an address such as http://127.0.0.1:3000"
                ))
            })?;
        if !base.username().is_empty() || base.password().is_some() {
            let message = "--server: the address must not contain a user or password";
            return Err(Problem::usage(message)
                .hint("give the name of the variable that holds the key with --api-key-env")
                .into());
        }
        // The client follows no redirects. `send` does it, without the key. Redirects and uploads lead to other hosts, so the client
        // isn't one for this address alone (`http_client_for`).
        let client = http_client(is_loopback(&base), |builder| {
            builder.connect_timeout(CONNECT_TIMEOUT).read_timeout(SILENCE_MAX)
        })
        .map_err(|error| Problem::failure(format!("could not create an HTTP client: {error}")))?;
        Ok(Self { client, base })
    }

    pub(super) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Returns true if the server is on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_loopback(&self.base)
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Payload<'_>,
    ) -> anyhow::Result<Response> {
        let url = format!("{}{path}", self.address());
        let what = format!("could not use the server at {}", self.address());
        let failed = |error: reqwest::Error| match error.is_connect() {
            true => Problem::failure(format!("{what}: {}", no_connection(&error)))
                .hint("check the address, and that the server runs")
                .into(),
            false => transport_error(&what, error.without_url()),
        };
        let mut request = self.client.request(method, url).headers(headers);
        request = match body {
            Payload::None => request,
            Payload::Json(body) => request.json(body),
            Payload::Bytes { content_type, bytes } => {
                request.header(header::CONTENT_TYPE, content_type).body(bytes)
            }
        };
        let mut response = request.send().await.map_err(failed)?;
        for _ in 0..REDIRECTS_MAX {
            if !response.status().is_redirection() {
                break;
            }
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let target = location.and_then(|location| response.url().join(location).ok());
            let target =
                target.filter(|target| matches!(target.scheme(), "http" | "https")).ok_or_else(|| {
                    Problem::failure(format!("{what}: it sent a redirect without a usable address"))
                })?;
            response = self.client.get(target).send().await.map_err(failed)?;
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes_stream().map_err(move |error| transport_error(&what, error.without_url()));
        Ok(Response { status, headers, body: Box::pin(body) })
    }

    /// Uploads a file to an address that a server gave, and calls `sent` with the length of each piece. Sends no key
    /// and no cookie.
    pub(super) async fn put_file(
        &self,
        url: &str,
        headers: HeaderMap,
        file: File,
        sent: impl Fn(u64) + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        let pieces = ReaderStream::with_capacity(file, PIECE_BYTES).inspect_ok(move |piece| {
            sent(piece.len() as u64);
        });
        self.put_body(url, headers, reqwest::Body::wrap_stream(pieces)).await
    }

    /// Does the same with bytes in memory.
    pub(super) async fn put_bytes(
        &self,
        url: &str,
        headers: HeaderMap,
        bytes: Vec<u8>,
    ) -> anyhow::Result<()> {
        self.put_body(url, headers, bytes.into()).await
    }

    async fn put_body(&self, url: &str, headers: HeaderMap, body: reqwest::Body) -> anyhow::Result<()> {
        let what = "could not upload the file";
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url =
            url.ok_or_else(|| Problem::failure(format!("{what}: the server sent no usable address")))?;
        let answer = self.client.put(url).headers(headers).body(body).send().await;
        let answer = answer.map_err(|error| transport_error(what, error.without_url()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let text = answer.text().await.unwrap_or_default();
        // S3 explains errors in XML.
        let message = text.split_once("<Message>").and_then(|(_, rest)| rest.split_once("</Message>"));
        let message = message.map_or_else(String::new, |(message, _)| format!(": {message}"));
        Err(Problem::failure(format!("{what}: the file store answered {status}{message}")).into())
    }
}

/// Describes why a connection failed, without the layers of the HTTP client.
fn no_connection(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("no connection: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        assert_eq!(Remote::new("localhost:3000/").unwrap().address(), "http://localhost:3000");
        assert_eq!(Remote::new("https://x.example/base/").unwrap().address(), "https://x.example/base");
        for bad in ["", "ftp://x", "http://", "https://user:secret@x.example", "http://x/?a=b"] {
            let error = Remote::new(bad).unwrap_err().to_string();
            assert!(error.starts_with("--server") && !error.contains("secret@"), "{error}");
        }
    }
}
