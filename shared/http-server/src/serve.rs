//! The loop that accepts connections, and each connection's task.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, UnusualStatus};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::Limits;
use crate::body::{BusyBody, TimedBody};
use crate::connections::{Connection, Connections};
use crate::stream::Stream;

/// Maximum size of a request's header, and of the buffer of one connection, in bytes.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of header fields in a request.
const HEADERS_MAX: usize = 100;
/// Maximum size of a request's header fields, names and values together, in bytes. Together with the longest
/// path that hyper reads (64 KiB), they fit into the buffer.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of header fields that hyper reads. Higher than the number accepted, since hyper's own refusal has no body.
const HEADERS_READ_MAX: usize = 400;
/// Maximum number of connections that are being refused with a response; further ones are closed without one.
const REFUSALS_MAX: usize = 32;
/// Time for a refused client to take its response.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 86\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    {\"detail\":\"this server has too many connections; try again soon\",\"code\":\"server_busy\"}";
/// Minimum and maximum pause after a failed accept. Each failure doubles the pause.
const ACCEPT_PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Serves a router until `stopping` is ready, then completes open requests and returns. Dropping the future
/// closes all connections at once.
///
/// Retries a failed accept, as when no file descriptors are free.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stopping: impl Future<Output = ()> + Send,
) {
    serve_counted(listener, router, Connections::new(limits), stopping).await;
}

pub(crate) async fn serve_counted(
    listener: TcpListener,
    router: Router,
    connections: Arc<Connections>,
    stopping: impl Future<Output = ()> + Send,
) {
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let (stop, stopped) = watch::channel(());
    let mut tasks = JoinSet::new();
    let mut stopping = pin!(stopping);
    let mut pause = ACCEPT_PAUSES[0];
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Reaps ended tasks; a task that panicked has closed its connection.
            Some(_) = tasks.join_next() => continue,
            () = &mut stopping => break,
        };
        match accepted {
            Ok((tcp, peer)) => {
                pause = ACCEPT_PAUSES[0];
                if let Some(connection) = connections.admit(peer) {
                    let limits = connections.limits().clone();
                    tasks.spawn(answer(tcp, peer, connection, router.clone(), limits, stopped.clone()));
                } else if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                    tasks.spawn(async move {
                        let _ = timeout(REFUSAL_TIMEOUT, refuse(tcp)).await;
                        drop(permit);
                    });
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "A connection could not be accepted: {error}");
                // If file descriptors ran out, only closing a connection helps.
                connections.displace_one();
                tokio::select! {
                    () = sleep(pause) => {}
                    () = &mut stopping => break,
                }
                pause = (pause * 2).min(ACCEPT_PAUSES[1]);
            }
        }
    }
    drop(listener);
    drop(stop);
    while tasks.join_next().await.is_some() {}
}

/// Returns true if an accept failed because of the connection rather than this machine.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

/// Answers a client that can't be admitted. Reads the rest of the request, since closing a connection with
/// unread bytes may discard the response on its way.
async fn refuse(mut tcp: TcpStream) -> io::Result<()> {
    tcp.write_all(REFUSAL).await?;
    tcp.shutdown().await?;
    let mut unread = [0; 1024];
    while tcp.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Answers the requests of one connection.
async fn answer(
    tcp: TcpStream,
    peer: SocketAddr,
    connection: Connection,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<()>,
) {
    // Otherwise a response may wait for the acknowledgment of the previous one. Failure is harmless.
    let _ = tcp.set_nodelay(true);
    let connection = Arc::new(connection);
    let shared = Arc::clone(&connection.shared);
    let stream = Stream::new(tcp, Arc::clone(&shared), limits.response_stall_timeout);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(HEADERS_READ_MAX)
        .max_buf_size(BUFFER_BYTES_MAX);
    let service = service_fn(move |request: Request<Incoming>| {
        respond(request, peer, router.clone(), Arc::clone(&connection), limits.clone())
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::trace!(%error, "A connection ended early: {error}");
                }
                return;
            }
            () = shared.closing.notified() => return,
            _ = stopped.changed(), if !is_stopping => {
                is_stopping = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    router: Router,
    connection: Arc<Connection>,
    limits: Limits,
) -> Result<Response<BusyBody>, Infallible> {
    let busy = connection.busy();
    if has_too_large_header(request.headers()) {
        let detail =
            format!("a request may have {HEADERS_MAX} header fields with {HEADER_BYTES_MAX} bytes together");
        let response = closing(Code::HeadersTooLarge, Code::HeadersTooLarge.status(), &detail);
        return Ok(response.map(|body| BusyBody { body, _busy: busy }));
    }
    // RFC 9112, section 3.2: servers in front of this one may have read the other header.
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        let repeated = UnusualStatus::RepeatedHost;
        let detail = "the request has more than one `Host` header; send one";
        let response = closing(repeated.code(), Some(repeated.status()), detail);
        return Ok(response.map(|body| BusyBody { body, _busy: busy }));
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let mut request =
        request.map(|incoming| Body::new(TimedBody::new(incoming, &limits, Arc::clone(&is_late))));
    request.extensions_mut().insert(ConnectInfo(peer));
    let Ok(mut response) = router.oneshot(request).await;
    if is_late.load(Ordering::Relaxed) {
        // Overrides the handler's response, since the cause is known here.
        let status = Code::BodyTimeout.status();
        response = closing(Code::BodyTimeout, status, "the request body did not arrive in time");
    }
    Ok(response.map(|body| BusyBody { body, _busy: busy }))
}

fn has_too_large_header(headers: &HeaderMap) -> bool {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX
}

/// Returns an error response that closes the connection.
fn closing(code: Code, status: Option<u16>, detail: &str) -> Response {
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(json!({ "detail": detail, "code": code }))).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
