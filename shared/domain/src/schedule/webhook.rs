//! Webhooks of schedules.

mod public;

use core::net::IpAddr;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::public::is_public_address;

/// Maximum length of a webhook's address in characters.
pub const WEBHOOK_CHARS_MAX: usize = 2_048;

/// Address that is called if there is a problem with a schedule.
///
/// The address is checked here; the IP addresses that a host name resolves to are checked at every call. Displays only
/// the host, because the path of a webhook is often a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Webhook(String);

/// Error for an invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebhook {
    /// The address is too long.
    #[error("a webhook's address must have at most {WEBHOOK_CHARS_MAX} characters")]
    Long,
    /// The scheme isn't allowed.
    #[error("a webhook's address must start with `https://`")]
    Scheme,
    /// The address contains a user or password.
    #[error("a webhook's address must not contain a user or password")]
    Userinfo,
    /// The text isn't a valid address.
    #[error("a webhook's address must be a URL with a host, in visible ASCII and without a fragment")]
    Malformed,
    /// The host is this machine, or an IP address that isn't public on the internet.
    #[error("`{0}` is not a public address; a webhook must be reachable on the internet")]
    NotPublic(String),
}

impl Webhook {
    /// Creates a checked address. `http://` and addresses that aren't public are allowed only on a local server.
    ///
    /// # Errors
    /// Returns the reason why the address is invalid.
    pub fn new(url: &str, local: bool) -> Result<Self, InvalidWebhook> {
        let url = url.trim();
        if url.len() > WEBHOOK_CHARS_MAX {
            return Err(InvalidWebhook::Long);
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['#', '\\']) {
            return Err(InvalidWebhook::Malformed);
        }
        let scheme = |name: &str| url.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name));
        let start = scheme("https://").or_else(|| scheme("http://").filter(|_| local));
        let rest = url.get(start.ok_or(InvalidWebhook::Scheme)?.len()..).unwrap_or_default();
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(InvalidWebhook::Userinfo);
        }
        let host = host_of(authority);
        if host.is_empty() || host.contains('%') {
            return Err(InvalidWebhook::Malformed);
        }
        if !local && !may_be_public(host) {
            return Err(InvalidWebhook::NotPublic(host.to_owned()));
        }
        Ok(Self(url.to_owned()))
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host, which may be shown to everyone.
    pub fn host(&self) -> &str {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        host_of(rest.split(['/', '?']).next().unwrap_or_default())
    }
}

fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

/// Returns false for a host that isn't public whatever it resolves to.
///
/// URL parsers read any host whose last label is a number as an IPv4 address, such as `127.1`, `0x7f.1` and
/// `2130706433`. Of these, only the usual notation is accepted.
fn may_be_public(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_public_address(address);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && last != "localhost"
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_without_a_password_is_called() {
        let hook = Webhook::new(" https://hooks.example.com:8443/T0/secret?x=1 ", false).unwrap();
        assert_eq!(hook.host(), "hooks.example.com");
        assert!(!format!("{hook:?}").contains("secret"));
        assert_eq!(Webhook::new("https://[2606:4700::1]/x", false).unwrap().host(), "2606:4700::1");
        for (bad, error) in [
            ("http://example.com/", InvalidWebhook::Scheme),
            ("ftp://example.com/", InvalidWebhook::Scheme),
            ("file:///etc/passwd", InvalidWebhook::Scheme),
            ("https://", InvalidWebhook::Malformed),
            ("https:///path", InvalidWebhook::Malformed),
            ("https://:443/", InvalidWebhook::Malformed),
            ("https://a b/", InvalidWebhook::Malformed),
            ("https://example.com\\@evil/", InvalidWebhook::Malformed),
            ("https://example.com/#x", InvalidWebhook::Malformed),
            ("https://127%2e0.0.1/", InvalidWebhook::Malformed),
            ("https://user:pw@example.com/", InvalidWebhook::Userinfo),
        ] {
            assert_eq!(Webhook::new(bad, false), Err(error), "{bad}");
        }
        assert!(Webhook::new(&format!("https://example.com/{}", "x".repeat(3_000)), false).is_err());
    }

    #[test]
    fn only_public_hosts_are_called() {
        for host in ["example.com", "1.1.1.1", "[2606:4700::1111]", "7eleven.example", "localhost.example"] {
            assert!(Webhook::new(&format!("https://{host}:8443/x"), false).is_ok(), "{host}");
        }
        for host in [
            "localhost",
            "LocalHost.",
            "a.localhost",
            "127.0.0.1",
            "127.0.0.1.",
            "10.1.2.3",
            "169.254.169.254",
            "127.1",
            "0x7f.1",
            "0X7F000001",
            "2130706433",
            "017700000001",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[fd12::1]",
        ] {
            let refused = Webhook::new(&format!("https://{host}:8443/x"), false).unwrap_err();
            assert!(matches!(refused, InvalidWebhook::NotPublic(_)), "{host}: {refused}");
        }
    }

    #[test]
    fn a_local_server_also_calls_http_and_its_own_network() {
        assert!(Webhook::new("https://10.1.2.3/", true).is_ok());
        assert!(Webhook::new("http://127.0.0.1:9/", true).is_ok());
        assert!(Webhook::new("gopher://127.0.0.1:9/", true).is_err());
    }
}
