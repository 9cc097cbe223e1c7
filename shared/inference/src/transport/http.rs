//! HTTP clients: the settings that all clients of this program share, and the clients of this crate.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

/// Settings of the HTTP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpOptions {
    /// Maximum silence until the response begins, and between two pieces of it. Default 300 s.
    pub idle_timeout: Duration,
    /// Time limit for establishing a connection. Default 10 s.
    pub connect_timeout: Duration,
    /// Time limit of a call without a deadline by the caller. Default 6 h.
    pub call_timeout: Duration,
    /// True to use HTTP/2 with servers that offer it. Off by default: all calls to one host would share one
    /// connection, which servers limit to about 100 streams, and would fail together with it.
    pub http2: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(300),
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(6 * 3600),
            http2: false,
        }
    }
}

/// Maximum number of idle connections kept for each host.
const IDLE_CONNECTIONS_MAX: usize = 1024;
/// Maximum idle time of a connection that is reused. Common servers (uvicorn, Node) close theirs after 5 s; a request
/// sent on a closing connection is lost.
const CONNECTION_IDLE_SECONDS_MAX: u64 = 4;
const TCP_KEEPALIVE_SECONDS: u64 = 30;
const USER_AGENT: &str = concat!("bench-runner/", env!("CARGO_PKG_VERSION"));

/// One client for each [`Destination`], created when first needed.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) options: HttpOptions,
    clients: [OnceLock<Result<reqwest::Client, String>>; 3],
}

/// Kind of address, which determines the proxy and certificate settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// This machine without TLS. No proxy and no root certificates, which take time to load.
    LoopbackHttp,
    /// This machine. No proxy, because proxies can't reach its servers.
    Loopback,
    /// Any other machine. Honors the proxy variables of the environment.
    Remote,
}

impl Destination {
    fn from_url(url: &Url) -> Self {
        match (is_loopback(url), url.scheme()) {
            (true, "http") => Self::LoopbackHttp,
            (true, _) => Self::Loopback,
            (false, _) => Self::Remote,
        }
    }
}

impl Http {
    pub(crate) fn new(options: HttpOptions) -> Arc<Self> {
        Arc::new(Self { options, clients: Default::default() })
    }

    /// Returns the client for an address, or the reason why there is none.
    pub(crate) fn client(&self, url: &Url) -> Result<&reqwest::Client, &str> {
        let destination = Destination::from_url(url);
        let [loopback_http, loopback, remote] = &self.clients;
        let client = match destination {
            Destination::LoopbackHttp => loopback_http,
            Destination::Loopback => loopback,
            Destination::Remote => remote,
        };
        let client = client.get_or_init(|| build(destination, |builder| configure(builder, self.options)));
        client.as_ref().map_err(String::as_str)
    }
}

fn configure(builder: ClientBuilder, options: HttpOptions) -> ClientBuilder {
    let builder = builder
        .connect_timeout(options.connect_timeout)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(Duration::from_secs(CONNECTION_IDLE_SECONDS_MAX))
        .tcp_keepalive(Duration::from_secs(TCP_KEEPALIVE_SECONDS))
        .tcp_nodelay(true);
    if options.http2 { builder } else { builder.http1_only() }
}

/// Builds an HTTP client that follows no redirects, since they would send a key to another host. `configure` adds
/// time limits and other settings.
///
/// If `is_local` is true, the client is for servers on this machine ([`is_loopback`]): it ignores the proxy variables
/// of the environment, because proxies can't reach them.
///
/// # Errors
/// Returns the reason why there is no client. Missing root certificates are no error: plain HTTP still works.
pub fn http_client(
    is_local: bool,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<reqwest::Client, String> {
    build(if is_local { Destination::Loopback } else { Destination::Remote }, configure)
}

/// Builds an HTTP client like [`http_client`], which may be used only for URLs with the scheme and host of `address`. It loads root
/// certificates only if such URLs can need them.
///
/// # Errors
/// As [`http_client`].
pub fn http_client_for(
    address: &Url,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<reqwest::Client, String> {
    build(Destination::from_url(address), configure)
}

fn build(
    destination: Destination,
    configure: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<reqwest::Client, String> {
    // Fails if another crate has already installed a provider; any provider works.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        let builder =
            reqwest::Client::builder().user_agent(USER_AGENT).redirect(Policy::none()).referer(false);
        configure(match destination {
            Destination::LoopbackHttp => builder.no_proxy().tls_certs_only([]),
            Destination::Loopback => builder.no_proxy(),
            Destination::Remote => builder,
        })
    };
    builder().build().or_else(|error| {
        tracing::warn!(error = %error_chain(&error), "No root certificates were found: HTTPS addresses cannot be reached");
        builder().tls_certs_only([]).build().map_err(|error| error_chain(&error))
    })
}

/// Returns true if an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Formats an error with its causes, without those that it names already.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:1234/v1", true),
            ("http://[::1]:80/", true),
            ("http://localhost/", true),
            ("http://localhost.example/", false),
            ("https://llm.chutes.ai/v1", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn a_client_without_root_certificates_can_be_built() {
        assert!(http_client(true, |builder| builder.tls_certs_only([])).is_ok());
    }

    #[test]
    fn only_loopback_http_skips_root_certificates() {
        for (url, expected) in [
            ("http://127.0.0.1:1234/v1", Destination::LoopbackHttp),
            ("https://127.0.0.1:1234/v1", Destination::Loopback),
            ("http://192.168.1.5:1234/v1", Destination::Remote),
            ("https://llm.chutes.ai/v1", Destination::Remote),
        ] {
            assert_eq!(Destination::from_url(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
