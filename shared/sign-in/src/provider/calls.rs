//! HTTP calls of the provider, each within a time and a size.

use std::time::Duration;

use bench_inference::{error_chain, http_client};
use http::{HeaderMap, header};
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;

use super::Provider;
use crate::SignInError;

/// Time limit of a call.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);
/// Maximum length of a response in bytes.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;

#[derive(Deserialize)]
struct OAuthError {
    error: String,
}

/// Response of the provider.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// Returns the provider's code of an error, if it's one that OAuth 2 defines.
    pub(super) fn error(&self) -> Option<String> {
        let found: OAuthError = serde_json::from_slice(&self.body).ok()?;
        let is_code = found.error.len() <= 40
            && found.error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_code.then_some(found.error)
    }
}

impl Provider {
    /// Writes a form with the client's secret, if there is one.
    fn form_body(&self, fields: &[(&str, &str)]) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        if let Some(secret) = &self.config.client_secret {
            form.append_pair("client_secret", secret.expose());
        }
        form.finish()
    }

    pub(super) async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        time: Duration,
    ) -> Result<Response, SignInError> {
        let body = self.form_body(fields);
        let client = self.client()?;
        let request = client
            .post(url.clone())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        self.send(request, time).await
    }

    pub(super) async fn call(
        &self,
        url: &Url,
        time: Duration,
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, SignInError> {
        let client = self.client()?;
        self.send(change(client.get(url.clone())), time).await
    }

    async fn send(&self, request: RequestBuilder, time: Duration) -> Result<Response, SignInError> {
        let unreachable = |error: reqwest::Error| {
            // Its address may contain a secret.
            let error = error_chain(&error.without_url());
            tracing::warn!(%error, "The sign-in provider can't be reached: {error}");
            SignInError::Unreachable
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let response = request.headers(headers).timeout(time).send().await;
        let mut response = response.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > RESPONSE_BYTES_MAX {
                tracing::warn!("The sign-in provider sent more than {RESPONSE_BYTES_MAX} bytes");
                return Err(SignInError::BadProvider);
            }
        }
        Ok(Response { status, body })
    }

    fn client(&self) -> Result<&reqwest::Client, SignInError> {
        let built = self.http.get_or_init(|| {
            http_client(self.config.is_local(), |builder| {
                // Calls are rare, so a pooled connection would often be closed already.
                builder.connect_timeout(CALL_MAX).pool_max_idle_per_host(0)
            })
        });
        built.as_ref().map_err(|error| {
            tracing::error!(%error, "There is no HTTP client for the sign-in provider: {error}");
            SignInError::Server
        })
    }
}
