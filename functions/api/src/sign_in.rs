//! The server's sign-in: the provider's client and the address of the pages. The routes are in `auth`.

mod settings;

use std::sync::{Arc, OnceLock};

use bench_sign_in::Provider;
use bench_web::{ApiError, ServerConfig};
use http::{HeaderMap, header};

pub use settings::SignInSettings;

/// The server's sign-in.
#[derive(Debug)]
pub(crate) struct SignIn {
    provider: Arc<Provider>,
    page_url: Option<String>,
    /// Address that a server on this machine listens on.
    own_address: OnceLock<String>,
}

impl SignIn {
    pub(crate) fn new(settings: SignInSettings) -> Self {
        let SignInSettings { provider, page_url } = settings;
        Self { provider: Arc::new(Provider::new(provider)), page_url, own_address: OnceLock::new() }
    }

    /// Returns the client of the provider.
    pub(crate) fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    /// Sets the address that a server on this machine listens on. Has no effect after the first call.
    pub(crate) fn set_own_address(&self, address: &str) {
        let _ = self.own_address.set(address.trim_end_matches('/').to_owned());
    }

    /// Returns the address of this server's pages, such as `https://bench.example`.
    pub(crate) fn page_url(&self, headers: &HeaderMap, config: &ServerConfig) -> Result<String, ApiError> {
        if let Some(known) = self.page_url.as_ref().or_else(|| self.own_address.get()) {
            return Ok(known.clone());
        }
        // On this machine, other layers have checked that the host is a loopback address.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(|_| config.local);
        let host = host.ok_or_else(|| ApiError::internal("the address of the page isn't known"))?;
        Ok(format!("http://{host}"))
    }
}
