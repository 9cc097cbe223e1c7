//! The HTTP client behind everything in this crate.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;

/// Settings of the HTTP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpOptions {
    /// Longest silence: until the response begins, and between two pieces of it. Default 300 s.
    pub idle_timeout: Duration,
    /// Longest time until a connection stands. Default 10 s.
    pub connect_timeout: Duration,
    /// Longest call where the caller gives no deadline. Default 6 h.
    pub call_timeout: Duration,
    /// Set to use HTTP/2 with servers that offer it. Off by default: all calls to one host would share one connection,
    /// which servers limit to about 100 streams, and would break off with it.
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

/// Idle connections kept for each host.
const IDLE_CONNECTIONS_MAX: usize = 1024;
/// Maximum idle time of a connection that is used again. Common servers (uvicorn, Node) close theirs
/// after 5 s; a request sent into a closing connection is lost.
const CONNECTION_IDLE_SECONDS_MAX: u64 = 4;
const TCP_KEEPALIVE_SECONDS: u64 = 30;
const USER_AGENT: &str = concat!("bench-runner/", env!("CARGO_PKG_VERSION"));

/// Two clients, each made when it is first needed: one for this machine's own servers, which no proxy can
/// reach, and one for all others, which honours the proxy variables of the environment.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) options: HttpOptions,
    here: OnceLock<Result<reqwest::Client, String>>,
    elsewhere: OnceLock<Result<reqwest::Client, String>>,
}

impl Http {
    pub(crate) fn new(options: HttpOptions) -> Arc<Self> {
        // Another part of the process may have installed one; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Arc::new(Self { options, here: OnceLock::new(), elsewhere: OnceLock::new() })
    }

    /// The client for an address; the error says why there is none.
    pub(crate) fn client(&self, url: &Url) -> Result<&reqwest::Client, &str> {
        let client = if is_loopback(url) {
            self.here.get_or_init(|| build(self.options, false))
        } else {
            self.elsewhere.get_or_init(|| build(self.options, true))
        };
        client.as_ref().map_err(String::as_str)
    }
}

fn build(options: HttpOptions, through_proxies: bool) -> Result<reqwest::Client, String> {
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // A redirect would carry the key to another host.
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(options.connect_timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(Duration::from_secs(CONNECTION_IDLE_SECONDS_MAX))
            .tcp_keepalive(Duration::from_secs(TCP_KEEPALIVE_SECONDS))
            .tcp_nodelay(true);
        let builder = if options.http2 { builder } else { builder.http1_only() };
        if through_proxies { builder } else { builder.no_proxy() }
    };
    builder().build().or_else(|error| {
        // A machine without any root certificate can still use plain HTTP.
        tracing::warn!(error = %chain(&error), "No root certificates were found: HTTPS addresses cannot be reached");
        builder().tls_certs_only([]).build().map_err(|error| chain(&error))
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// An error with its causes, without the address (which the caller knows).
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
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
        let _ = Http::new(HttpOptions::default());
        assert!(reqwest::Client::builder().tls_certs_only([]).build().is_ok());
    }
}
