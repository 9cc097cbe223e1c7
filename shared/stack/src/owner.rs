//! The process that owns a data directory, as it describes itself to others.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::Secret;
use bench_embedded::Credentials;
use bench_embedded::socket::{OWNER_PATH, SocketClient, SocketError};
use bench_inference::{Endpoint, InferenceConfig, PROVIDERS, Provider};
use bench_sandy::SandyConfig;
use bench_state::Scope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Maximum time for which a process waits for the description.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Description of the process that owns a data directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owner {
    /// Process id.
    pub pid: u32,
    /// Command that the user started, such as `bench serve`.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Start count.
    pub(crate) epoch: u64,
    /// True if it works on runs, or will soon; false for a command that only reads or changes something.
    pub works: bool,
    /// True if it is a server.
    pub serves: bool,
    /// Address of the page, if the process serves it to this machine only.
    pub address: Option<String>,
    /// Digest of each provider's address and key, as this process has them in its variables.
    pub(crate) endpoints: BTreeMap<String, String>,
    /// Base URL of each provider.
    pub(crate) base_urls: BTreeMap<String, String>,
    /// Address of each provider's requests that access tokens of signed-in users pay for.
    #[serde(default)]
    pub(crate) session_addresses: BTreeMap<String, String>,
    /// Address and key of its sandbox host.
    pub(crate) sandboxes: Option<(String, String)>,
}

impl Owner {
    /// Asks the owner for its description, which another version may have in another form.
    pub(crate) async fn ask(client: &SocketClient) -> Result<Value, SocketError> {
        client.get(OWNER_PATH, ANSWER_TIME).await
    }

    /// Returns the runs that the owner works on.
    pub(crate) const fn scope(&self) -> Scope {
        if self.serves { Scope::Server } else { Scope::Foreground }
    }

    /// Returns the configuration of the owner's sandbox host.
    pub(crate) fn sandy(&self) -> Result<SandyConfig, String> {
        SandyConfig::from_vars(|name| {
            let (base_url, key) = self.sandboxes.as_ref()?;
            match name {
                "SANDY_BASE_URL" => Some(base_url.clone()),
                "SANDY_API_KEY" => Some(key.clone()),
                _ => None,
            }
        })
    }
}

/// Address and key that an order contains, because another process works on the run.
#[derive(Debug, Clone)]
pub struct OwnEndpoint {
    /// Base URL, unless it is the provider's default one.
    pub base_url: Option<String>,
    /// Key, if the provider has one.
    pub key: Option<Secret>,
}

/// Returns the digest of each usable provider's address and key. `credentials` are the data directory's, so that only
/// its user can compare digests.
pub(crate) fn endpoint_digests(
    inference: &InferenceConfig,
    credentials: &Credentials,
) -> BTreeMap<String, String> {
    let endpoints = PROVIDERS.iter().filter_map(|provider| inference.endpoint(provider).ok());
    endpoints.map(|endpoint| (endpoint.provider().name.to_owned(), digest(&endpoint, credentials))).collect()
}

/// Returns each provider's base URL, if it has one.
pub(crate) fn base_urls(inference: &InferenceConfig) -> BTreeMap<String, String> {
    let configured = PROVIDERS.iter().filter_map(|provider| inference.provider(provider));
    configured
        .filter_map(|config| Some((config.provider.name.to_owned(), config.base_url.clone()?)))
        .collect()
}

/// Returns the address of each provider's requests that access tokens of signed-in users pay for.
pub(crate) fn session_addresses(inference: &InferenceConfig) -> BTreeMap<String, String> {
    let address = |provider: &&'static Provider| {
        Some((provider.name.to_owned(), session_address(inference, provider)?))
    };
    PROVIDERS.iter().filter_map(address).collect()
}

/// Returns the address of a provider's requests that access tokens of signed-in users pay for, and the host that they name;
/// `None` for a provider that takes no such tokens.
pub(crate) fn session_address(inference: &InferenceConfig, provider: &'static Provider) -> Option<String> {
    let endpoint = inference.session_endpoint(provider).ok()?;
    Some(format!("{} {}", endpoint.base_url(), inference.host(provider, None).unwrap_or_default()))
}

/// Returns the digest of an address and its key.
pub(crate) fn digest(endpoint: &Endpoint, credentials: &Credentials) -> String {
    let key = endpoint.key().map(Secret::expose).unwrap_or_default();
    let mut hasher = Sha256::new();
    for part in [&credentials.secret_access_key, endpoint.base_url(), key] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> InferenceConfig {
        let var = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        InferenceConfig::from_vars(var).unwrap()
    }

    #[test]
    fn sessions_pay_at_the_address_of_the_sign_in() {
        let chutes = Provider::from_name("chutes").unwrap();
        let usual = session_address(&config(&[]), chutes).unwrap();
        let idp = [("CHUTES_IDP_URL", "http://127.0.0.1:9/idp")];
        let moved = session_address(&config(&idp), chutes).unwrap();
        assert!(moved.starts_with("http://127.0.0.1:9/idp/v1 "), "{moved}");
        assert_ne!(usual, moved);
        // The base URL of other requests is the same.
        assert_eq!(base_urls(&config(&[])), base_urls(&config(&idp)));
        assert_eq!(session_addresses(&config(&idp)), BTreeMap::from([("chutes".to_owned(), moved)]));
    }
}
