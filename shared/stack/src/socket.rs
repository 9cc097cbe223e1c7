//! The owner's socket: the API of the data directory for other processes of its user.
//!
//! | request | answer |
//! | --- | --- |
//! | any of the HTTP API | as for the command line of the same user |
//! | to the host `local.invalid` | the embedded services: the calls of an attached stack |
//! | `GET /local/owner` | the owner's description |
//! | `POST /local/hold` | works on runs until the client closes the connection |
//! | `POST /local/resume/{run}` | delivers the messages of a run that was interrupted |

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bench_domain::RunId;
use bench_embedded::Embedded;
use bench_embedded::socket::{OWNER_PATH, SocketListener};
use futures_util::stream;
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use crate::holds::Holds;
use crate::options::CONCURRENCY_MAX;
use crate::owner::Owner;

/// Interval of the signs of life on a held connection.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(1);
/// Maximum time for requests in progress when the server stops.
const STOP_TIME: Duration = Duration::from_secs(1);

/// Request to work on runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HoldRequest {
    pub(crate) runs: Vec<RunId>,
    /// Samples of these runs to work on at once.
    pub(crate) concurrency: usize,
}

/// Path of the request to work on runs.
pub(crate) const HOLD_PATH: &str = "/local/hold";

/// Returns the path that delivers the messages of a run again.
pub(crate) fn resume_path(run: RunId) -> String {
    format!("/local/resume/{run}")
}

/// State of the requests that only the socket answers.
#[derive(Clone)]
struct LocalApi {
    owner: Arc<Owner>,
    /// Address of the page, once it is served.
    address: Arc<OnceLock<String>>,
    holds: Holds,
    /// True if the server is stopping.
    stopped: watch::Receiver<bool>,
}

/// The server of a data directory's socket.
pub(crate) struct SocketServer {
    file: PathBuf,
    address: Arc<OnceLock<String>>,
    stop: watch::Sender<bool>,
    task: AbortOnDropHandle<()>,
}

impl SocketServer {
    /// Serves `api` and the services.
    pub(crate) fn start(
        listener: SocketListener,
        owner: Owner,
        holds: Holds,
        embedded: &Embedded,
        api: Router,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let file = listener.file().to_owned();
        let services = bench_embedded::http::router(embedded).unwrap_or_default();
        let address = Arc::default();
        let local = LocalApi {
            owner: Arc::new(owner),
            address: Arc::clone(&address),
            holds,
            stopped: stopped.clone(),
        };
        let api = api.merge(
            Router::new()
                .route(OWNER_PATH, get(get_owner))
                .route(HOLD_PATH, post(post_hold))
                .route("/local/resume/{run}", post(post_resume))
                .with_state(local),
        );
        let service = tower::service_fn(move |request: Request| {
            let router = if is_service_call(&request) { services.clone() } else { api.clone() };
            async move {
                Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {}))
            }
        });
        let server = axum::serve(listener, tower::make::Shared::new(service));
        let server = server.with_graceful_shutdown(until_stopped(stopped));
        let task = tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::warn!(%error, "The socket of the data directory failed: {error}");
            }
        });
        Self { file, address, stop, task: AbortOnDropHandle::new(task) }
    }

    /// Sets the address of the page in the owner's description. The first one stays.
    pub(crate) fn announce(&self, address: &str) {
        let _ = self.address.set(address.to_owned());
    }

    /// Accepts no more connections, waits a limited time for requests in progress, and removes the socket's file. This
    /// process must still hold the lock, so that the file isn't another one's.
    pub(crate) async fn stop(self) {
        // Sending fails if the server has ended.
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(STOP_TIME, self.task).await;
        // A socket without a listener does no harm: the next owner replaces it.
        let _ = std::fs::remove_file(&self.file);
    }
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // The sender is dropped after the server.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn is_service_call(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    host == Some(bench_embedded::HOST)
}

async fn get_owner(State(local): State<LocalApi>) -> Json<Owner> {
    let works = local.owner.works && !local.holds.is_ending();
    Json(Owner { works, address: local.address.get().cloned(), ..Owner::clone(&local.owner) })
}

async fn post_hold(State(local): State<LocalApi>, Json(request): Json<HoldRequest>) -> Response {
    let HoldRequest { runs, concurrency } = request;
    let guard = local.holds.hold(runs.clone(), concurrency.min(CONCURRENCY_MAX), true);
    if !local.holds.works_on(&runs).await {
        // They were ordered at an earlier owner, or have been interrupted.
        return StatusCode::CONFLICT.into_response();
    }
    // The connection's end drops the body, and with it the guard.
    let state = (guard, local.stopped, Duration::ZERO);
    let signs = stream::unfold(state, |(guard, stopped, wait)| async move {
        if tokio::time::timeout(wait, until_stopped(stopped.clone())).await.is_ok() {
            return None;
        }
        let sign = Ok::<_, Infallible>(Bytes::from_static(b"\n"));
        Some((sign, (guard, stopped, SIGN_OF_LIFE_EVERY)))
    });
    Response::new(Body::from_stream(signs))
}

async fn post_resume(State(local): State<LocalApi>, Path(run): Path<RunId>) -> Response {
    match local.holds.resume(run).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => {
            let message = format!("run {run} stays paused, since it can't be read: {error}");
            (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        }
    }
}
