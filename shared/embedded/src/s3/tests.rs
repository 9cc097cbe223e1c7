//! Tests through the SDK, in the process and over a listener.

mod concurrency;
mod conditions;
mod durability;
mod fast_path;
mod listing;
mod multipart;
mod objects;
mod presigned;

use std::path::Path;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region, RequestChecksumCalculation};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use super::{Endpoint, Store};

pub(super) const BUCKET: &str = "bench-test";

/// Answers the SDK in the process, through the fast path or the protocol layer alone.
#[derive(Debug, Clone)]
struct InProcessS3 {
    endpoint: Endpoint,
    fast_path: bool,
}

impl HttpConnector for InProcessS3 {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let me = self.clone();
        HttpConnectorFuture::new(async move {
            let request =
                request.try_into_http1x().map_err(|error| ConnectorError::other(error.into(), None))?;
            let response = if me.fast_path {
                me.endpoint.handle_sdk(request).await
            } else {
                me.endpoint.handle(request.map(s3s::Body::http_body)).await.map(super::bodies::sdk_body)
            };
            HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

impl HttpClient for InProcessS3 {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

fn config(endpoint: &Endpoint, fast_path: bool) -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "secret", None, None, "tests"))
        .http_client(InProcessS3 { endpoint: endpoint.clone(), fast_path })
        .endpoint_url("http://local.invalid")
        .force_path_style(true)
        .retry_config(aws_sdk_s3::config::retry::RetryConfig::disabled())
}

pub(super) fn endpoint(store: &Store) -> Endpoint {
    Endpoint::new(store.clone(), "test", "secret")
}

/// Returns a client with the SDK's default settings; every request goes through the protocol layer.
pub(super) fn client(store: &Store) -> Client {
    Client::from_conf(config(&endpoint(store), false).build())
}

/// Returns a client with the program's settings: fast path, no checksums unless requested.
pub(super) fn fast_client(store: &Store) -> Client {
    Client::from_conf(
        config(&endpoint(store), true)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .build(),
    )
}

pub(super) async fn open(dir: &Path) -> Store {
    let dir = dir.to_owned();
    tokio::task::spawn_blocking(move || Store::open(dir, false).unwrap()).await.unwrap()
}

/// Returns a store with one bucket.
pub(super) async fn with_bucket(dir: &Path) -> (Store, Client) {
    let store = open(dir).await;
    let client = client(&store);
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    (store, client)
}

/// Returns error code and status of a failed call.
pub(super) fn failure<T, E>(result: Result<T, SdkError<E>>) -> (Option<String>, u16)
where
    E: ProvideErrorMetadata,
{
    match result {
        Ok(_) => (None, 200),
        Err(error) => {
            let status = error.raw_response().map_or(0, |response| response.status().as_u16());
            (error.as_service_error().and_then(|error| error.code()).map(str::to_owned), status)
        }
    }
}

/// Returns the value that `failure` returns for this error.
pub(super) fn code(code: &str, status: u16) -> (Option<String>, u16) {
    (Some(code.to_owned()), status)
}

/// Returns bytes that differ by position.
pub(super) fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|index| (index as u8).wrapping_mul(31).wrapping_add((index >> 8) as u8) ^ seed).collect()
}

/// Returns the names of the content files of a store.
pub(super) fn content_files(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for shard in std::fs::read_dir(dir.join("content")).unwrap() {
        for entry in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    names.sort();
    names
}
