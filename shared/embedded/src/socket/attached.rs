//! The services of a data directory that another process owns.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::client::{SocketClient, SocketError};
use super::{RETRY_WAIT, SILENCE_MAX};
use crate::EmbeddedError;
use crate::connector::{RouteResult, Services};
use crate::opening::EmbeddedOptions;

/// Services of another process, until it ends; then those of the next owner, which may be this process.
///
/// A call that was in progress when the owner ended is repeated by the SDK, as after any lost connection.
#[derive(Debug)]
pub(crate) struct Attached {
    options: EmbeddedOptions,
    place: RwLock<Place>,
    /// Held while the next owner is looked for.
    moving: Mutex<()>,
}

/// Place of the services.
#[derive(Debug, Clone)]
enum Place {
    /// Another process.
    There(SocketClient),
    /// This process, since the other one has ended.
    Here(Arc<Services>),
    Closed,
}

impl Attached {
    pub(crate) fn new(options: EmbeddedOptions, client: SocketClient) -> Self {
        Self { options, place: RwLock::new(Place::There(client)), moving: Mutex::new(()) }
    }

    fn place(&self) -> Place {
        self.place.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_place(&self, place: Place) {
        *self.place.write().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Ends the use of the services. Releases the data directory if this process has become its owner.
    pub(crate) fn close(&self) {
        let place = self.place();
        self.set_place(Place::Closed);
        if let Place::Here(services) = place {
            services.shut_down();
        }
    }

    async fn route(&self, mut request: HttpRequest, caller: Option<&'static str>) -> RouteResult {
        loop {
            let client = match self.place() {
                Place::Here(services) => return services.route(request, caller).await,
                Place::Closed => return Err(ConnectorError::user(EmbeddedError::Closed.into())),
                Place::There(client) => client,
            };
            let copy = request.try_clone();
            let error = match client.forward(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            self.find_owner(&client).await.map_err(|error| ConnectorError::other(error.into(), None))?;
            match (error, copy) {
                (SocketError::Gone { unsent: true, .. }, Some(copy)) => request = copy,
                (error, _) => return Err(ConnectorError::io(error.into())),
            }
        }
    }

    /// Finds the owner after a request to `failed`. Becomes the owner if there is none.
    async fn find_owner(&self, failed: &SocketClient) -> Result<(), EmbeddedError> {
        let _moving = self.moving.lock().await;
        if !matches!(self.place(), Place::There(client) if client.is(failed)) {
            return Ok(());
        }
        let since = Instant::now();
        loop {
            let options = self.options.clone();
            let opened = tokio::task::spawn_blocking(|| Services::open(options)).await;
            let error = match opened.unwrap_or(Err(EmbeddedError::Closed)) {
                Ok(opened) => {
                    self.set_place(Place::Here(opened.services));
                    return Ok(());
                }
                Err(error @ EmbeddedError::InUse { .. }) => error,
                Err(error) => return Err(error),
            };
            if let Ok(client) = SocketClient::new(&self.options.data_dir)
                && client.answers().await
            {
                self.set_place(Place::There(client));
                return Ok(());
            }
            if since.elapsed() > SILENCE_MAX {
                return Err(error);
            }
            sleep(RETRY_WAIT).await;
        }
    }
}

/// The SDK's HTTP client for services of another process.
#[derive(Debug, Clone)]
pub(crate) struct AttachedConnector {
    pub(crate) attached: Arc<Attached>,
    pub(crate) caller: Option<&'static str>,
}

impl HttpClient for AttachedConnector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for AttachedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (attached, caller) = (Arc::clone(&self.attached), self.caller);
        HttpConnectorFuture::new(async move { attached.route(request, caller).await })
    }
}
