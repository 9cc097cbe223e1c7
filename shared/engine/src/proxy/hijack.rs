//! Connections in both directions: attached containers and commands.

use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Shared;
use super::dispatch::Call;
use super::forward::{limited, remove_hop_headers};
use crate::client::{AnyBody, full, request as engine_request};
use crate::refusal::Refusal;

/// Size of the buffer in each direction, in bytes.
const BUFFER_BYTES: usize = 16 << 10;

impl Shared {
    /// Passes on a request after which the connection carries a terminal or its streams.
    pub(super) async fn hijack(
        &self,
        call: &Call,
        address: &str,
        mut request: Request<Incoming>,
        body: Option<&Value>,
        permit: Arc<OwnedSemaphorePermit>,
    ) -> Result<Response<AnyBody>, Refusal> {
        let wants_upgrade = request.headers().get(header::UPGRADE).is_some_and(|protocol| protocol == "tcp");
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut to_engine = engine_request(call.method.clone(), address, full(body))?;
        if wants_upgrade {
            let headers = to_engine.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("tcp"));
        }
        let limits = self.stream();
        let client_side = hyper::upgrade::on(&mut request);
        let sent = tokio::select! {
            () = self.stopping.cancelled() => return Err(Refusal::Stopping),
            sent = self.client.send(to_engine) => sent,
        };
        let mut response = sent?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !wants_upgrade {
            let (mut parts, body) = response.into_parts();
            remove_hop_headers(&mut parts.headers);
            return Ok(Response::from_parts(parts, limited(body, limits)));
        }
        let engine_side = hyper::upgrade::on(&mut response);
        let stopping = self.stopping.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let copied = copy_both(client_side, engine_side, limits.bytes_max);
            tokio::select! {
                () = stopping.cancelled() => {}
                ended = timeout(limits.time_max, copied) => {
                    if !matches!(ended, Ok(Ok(()))) {
                        tracing::debug!(?ended, "Attached connection ended early");
                    }
                }
            }
        });
        let (mut parts, _) = response.into_parts();
        remove_hop_headers(&mut parts.headers);
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, HeaderValue::from_static("tcp"));
        Ok(Response::from_parts(parts, full("")))
    }
}

/// Copies in both directions until the engine has sent everything.
async fn copy_both(client: OnUpgrade, engine: OnUpgrade, bytes_max: u64) -> std::io::Result<()> {
    let upgraded =
        |side: Result<Upgraded, hyper::Error>| side.map(TokioIo::new).map_err(std::io::Error::other);
    let (client, engine) = (upgraded(client.await)?, upgraded(engine.await)?);
    let (client_read, client_write) = tokio::io::split(client);
    let (engine_read, engine_write) = tokio::io::split(engine);
    let mut input = std::pin::pin!(copy(client_read, engine_write, bytes_max));
    let mut output = std::pin::pin!(copy(engine_read, client_write, bytes_max));
    tokio::select! {
        // A client that has no more input may still wait for output.
        ended = &mut input => match ended {
            Ok(()) => output.await,
            Err(error) => Err(error),
        },
        ended = &mut output => ended,
    }
}

/// Copies at most `bytes_max` bytes and then closes the writing side.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    bytes_max: u64,
) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut left = bytes_max;
    loop {
        let bytes = from.read(&mut buffer).await?;
        if bytes == 0 {
            return to.shutdown().await;
        }
        left = left.checked_sub(bytes as u64).ok_or(std::io::ErrorKind::FileTooLarge)?;
        to.write_all(&buffer[..bytes]).await?;
        to.flush().await?;
    }
}
