//! Calls addresses chosen by callers.
//!
//! Such an address must not lead into the operator's own network. So this module resolves the name itself, drops
//! addresses that aren't public, and connects to one of the rest: there is no second lookup that could return
//! something else. It doesn't follow redirects or use proxies.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bench_domain::schedule::{Webhook, is_public_address};
use bench_inference::error_chain;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde_json::Value;

/// Time limit of a call, from the lookup of its name to the response's status.
const CALL_MAX: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("bench-runner/", env!("CARGO_PKG_VERSION"));

/// Error for an address that must not be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address")]
pub struct Refused(IpAddr);

/// Calls webhooks.
#[derive(Debug)]
pub(crate) struct WebhookClient {
    /// If true, all addresses may be called, also by plain HTTP.
    local: bool,
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl WebhookClient {
    pub(crate) const fn new(local: bool) -> Self {
        Self { local, http: OnceLock::new() }
    }

    /// Sends a message. The error leaves out the address, since its path may be a secret.
    pub(crate) async fn post(&self, webhook: &Webhook, body: &Value) -> Result<(), String> {
        let client = self.http.get_or_init(|| build(self.local)).as_ref().map_err(Clone::clone)?;
        // Checked again: the webhook may have been stored by a server that was local at the time.
        let webhook = Webhook::new(webhook.as_str(), self.local).map_err(|error| error.to_string())?;
        let url = Url::parse(webhook.as_str()).map_err(|error| error.to_string())?;
        // An IP address isn't resolved, so it is checked here.
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if let (false, Ok(address)) = (self.local, host.parse::<IpAddr>()) {
            refuse_address(address).map_err(|error| error.to_string())?;
        }
        let sent = client.post(url).json(body).timeout(CALL_MAX).send().await;
        let status = sent.map_err(|error| error_chain(&error.without_url()))?.status();
        if status.is_success() { Ok(()) } else { Err(format!("the server answered {status}")) }
    }
}

fn build(local: bool) -> Result<reqwest::Client, String> {
    // Fails if another crate has already installed a provider; any provider works.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .http1_only()
            .connect_timeout(CALL_MAX)
            // Messages are rare, so a pooled connection would already be closed.
            .pool_max_idle_per_host(0);
        if local { builder } else { builder.https_only(true).dns_resolver(Arc::new(PublicOnly)) }
    };
    builder().build().or_else(|error| {
        // A machine without root certificates can still use plain HTTP.
        tracing::warn!(error = %error_chain(&error), "No root certificates were found: HTTPS webhooks cannot be reached");
        builder().tls_certs_only([]).build().map_err(|error| error_chain(&error))
    })
}

/// Resolver that returns only public addresses.
#[derive(Debug)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let mut refused = None;
            let public: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| match refuse_address(address.ip()) {
                    Ok(()) => true,
                    Err(error) => {
                        refused = Some(error);
                        false
                    }
                })
                .collect();
            match refused {
                Some(error) if public.is_empty() => Err(error.into()),
                _ => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

/// Rejects every address that isn't public on the internet.
///
/// # Errors
/// Rejects every address for which [`is_public_address`] is false.
pub fn refuse_address(address: IpAddr) -> Result<(), Refused> {
    if is_public_address(address) { Ok(()) } else { Err(Refused(address)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_public_addresses_are_called() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert_eq!(refuse_address(public.parse().unwrap()), Ok(()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.8.9.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "240.0.0.1",
            "224.0.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "203.0.113.7",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "::127.0.0.1",
            "100::1",
        ] {
            let address: IpAddr = private.parse().unwrap();
            assert_eq!(refuse_address(address), Err(Refused(address)), "{private}");
        }
    }

    #[tokio::test]
    async fn names_and_numbers_of_this_machine_are_refused() {
        let client = WebhookClient::new(false);
        // All notations of this machine's addresses.
        for url in [
            "https://localhost:1/x",
            "https://127.0.0.1:1/x",
            "https://0x7f.1:1/x",
            "https://2130706433:1/x",
            "https://[::1]:1/x",
            "https://[::ffff:127.0.0.1]:1/x",
            "https://017700000001:1/x",
            "https://127.1:1/x",
        ] {
            // Stored by a version that didn't check the host.
            let webhook: Webhook = serde_json::from_value(json!(url)).unwrap();
            let error = client.post(&webhook, &json!({})).await.unwrap_err();
            assert!(error.contains("is not a public address"), "{url}: {error}");
            assert!(!error.contains("/x"), "{error}");
        }
        // A webhook that a local server stored.
        let plain = Webhook::new("http://1.1.1.1/", true).unwrap();
        assert!(client.post(&plain, &json!({})).await.unwrap_err().contains("https"));
    }
}
