//! Connections of a sandbox to its proxy.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::client::{AnyBody, full};
use crate::refusal::Refusal;

/// Time limit for the header of a request, also between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of headers, and of bytes of a request's head.
const HEADERS_MAX: usize = 100;
const HEAD_BYTES_MAX: usize = 128 << 10;
/// Pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Interval between checks for a client that is gone.
const GONE_INTERVAL: Duration = Duration::from_millis(250);

/// Connection of a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Counts the connection, also after it has become one for a terminal.
    pub(super) permit: Arc<OwnedSemaphorePermit>,
    /// Canceled when the client is gone, or the connection has become one for a terminal.
    pub(super) gone: CancellationToken,
}

/// Accepts connections until the proxy stops.
pub(super) async fn serve(shared: Arc<Shared>, listener: UnixListener) {
    let connections = Arc::new(Semaphore::new(shared.rules.limits.connections_max));
    loop {
        // Connections above the limit wait in the system's queue.
        let accepted = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let accepted = tokio::select! {
            () = shared.stopping.cancelled() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            (Ok((stream, _)), Ok(permit)) => {
                tokio::spawn(connection(Arc::clone(&shared), stream, permit));
            }
            (Err(error), _) => {
                tracing::warn!(%error, "Connection to a sandbox's engine socket was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            (_, Err(_)) => return,
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: UnixStream, permit: OwnedSemaphorePermit) {
    let watched = stream.as_fd().try_clone_to_owned();
    let caller = Caller { permit: Arc::new(permit), gone: CancellationToken::new() };
    let _gone = caller.gone.clone().drop_guard();
    let service = service_fn(|request| respond(Arc::clone(&shared), request, caller.clone()));
    let mut server = hyper::server::conn::http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .half_close(true);
    let serving = server.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::select! {
        () = shared.stopping.cancelled() => {}
        // Otherwise a client that has gone would be noticed only when there is something to send.
        () = wait_until_gone(watched) => {}
        ended = serving => if let Err(error) = ended {
            tracing::debug!(%error, "Connection to a sandbox's engine socket ended");
        },
    }
}

/// Waits until the client has closed its connection for both directions.
async fn wait_until_gone(connection: std::io::Result<OwnedFd>) {
    let Ok(connection) = connection else { return std::future::pending().await };
    loop {
        tokio::time::sleep(GONE_INTERVAL).await;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut watched = [PollFd::new(&connection, PollFlags::empty())];
        if poll(&mut watched, Some(&now)).is_ok_and(|found| found > 0) {
            return;
        }
    }
}

/// Handles a request in a task of its own: a client that goes away doesn't interrupt half of an operation.
async fn respond(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    caller: Caller,
) -> Result<Response<AnyBody>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let task = Arc::clone(&shared);
    let handled = shared.tasks.spawn(async move {
        if task.stopping.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        Arc::clone(&task).dispatch(request, caller).await
    });
    let result = match handled.await {
        Ok(result) => result,
        Err(error) => Err(Refusal::Malformed(format!("the request was not handled: {error}"))),
    };
    Ok(result.unwrap_or_else(|refusal| {
        tracing::info!(
            sandbox.id = shared.rules.owner.sandbox(),
            "Refused {method} {path} of a sandbox to its container engine: {refusal}"
        );
        refused(&refusal)
    }))
}

/// Creates the response for a refusal.
fn refused(refusal: &Refusal) -> Response<AnyBody> {
    let mut response = Response::new(full(refusal.body()));
    *response.status_mut() = refusal.status();
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
