//! The host's builder: one sandbox of a host builds at a time.
//!
//! A sandbox holds the builder for as long as a connection of its own is open, so that the builder is free again when
//! the sandbox is gone. Builds of a sandbox that doesn't hold it wait for it, too.

use std::sync::{Arc, PoisonError, Weak};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::serve::Caller;
use crate::client::{AnyBody, full};
use crate::refusal::Refusal;

/// The right to build, until it is dropped.
#[derive(Debug)]
pub(super) struct BuildRight {
    /// Common to the builds that run while the sandbox holds the builder.
    _host: Arc<OwnedSemaphorePermit>,
    _sandbox: OwnedSemaphorePermit,
}

impl Shared {
    /// Waits for the host's builder, and hands it to this sandbox for as long as the connection is open.
    pub(super) async fn hold_builder(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        if request.headers().get(header::UPGRADE).is_none_or(|protocol| protocol != "tcp") {
            return Err(Refusal::Malformed(
                "the builder is held by a connection: send `Upgrade: tcp`".to_owned(),
            ));
        }
        let held = self.host_builder(&caller).await?;
        let shared = Arc::clone(&self);
        tokio::spawn(async move {
            let _permit = caller.permit;
            let time_max = shared.rules.limits.builder_time_max;
            let until_closed = async {
                let Ok(client) = hyper::upgrade::on(&mut request).await else { return };
                let (mut client, mut byte) = (TokioIo::new(client), [0]);
                // Anything but input means that the client is gone.
                while matches!(client.read(&mut byte).await, Ok(1)) {}
            };
            tokio::select! {
                () = shared.stopping.cancelled() => {}
                () = until_closed => {}
                () = tokio::time::sleep(time_max) => {
                    tracing::info!(sandbox.id = shared.rules.owner.sandbox(), "A sandbox held the builder for too long");
                }
            }
            drop(held);
        });
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("tcp"));
        Ok(response)
    }

    /// Waits until this sandbox may build.
    pub(super) async fn build_right(&self, caller: &Caller) -> Result<BuildRight, Refusal> {
        let sandbox = wait(self, caller, Arc::clone(&self.building).acquire_owned()).await?;
        let held = self.held_builder().upgrade();
        let host = match held {
            Some(held) => held,
            None => self.host_builder(caller).await?,
        };
        Ok(BuildRight { _host: host, _sandbox: sandbox })
    }

    /// Waits for the host's builder, unless this sandbox has it.
    async fn host_builder(&self, caller: &Caller) -> Result<Arc<OwnedSemaphorePermit>, Refusal> {
        let permit = wait(self, caller, Arc::clone(&self.builders).acquire_owned()).await?;
        let permit = Arc::new(permit);
        *self.held_builder() = Arc::downgrade(&permit);
        Ok(permit)
    }

    fn held_builder(&self) -> std::sync::MutexGuard<'_, Weak<OwnedSemaphorePermit>> {
        // A panic can't leave the value half changed.
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a permit until the client is gone or the proxy stops.
pub(super) async fn wait<T, E>(
    shared: &Shared,
    caller: &Caller,
    permit: impl Future<Output = Result<T, E>>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = shared.stopping.cancelled() => Err(Refusal::Stopping),
        () = caller.gone.cancelled() => Err(Refusal::Malformed("the client is gone".to_owned())),
        permit = permit => permit.map_err(|_| Refusal::Stopping),
    }
}
