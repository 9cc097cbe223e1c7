//! Webhooks of schedules.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum length of a webhook's address in characters.
pub const WEBHOOK_CHARS_MAX: usize = 2_048;

/// Address that is called if there is a problem with a schedule.
///
/// The address is checked here; the IP addresses that its host resolves to are checked at every call. Displays only the
/// host, because the path of a webhook is often a secret.
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
    #[error("a webhook's address must start with https://")]
    Scheme,
    /// The address contains a user or password.
    #[error("a webhook's address must not contain user or password")]
    Userinfo,
    /// The text isn't a valid address.
    #[error("a webhook's address must be a URL with a host, in visible ASCII and without a fragment")]
    Malformed,
}

impl Webhook {
    /// Creates a checked address. `http://` is allowed only on a local server.
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
        if host_of(authority).is_empty() {
            return Err(InvalidWebhook::Malformed);
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
        assert_eq!(Webhook::new("https://[2001:db8::1]/x", false).unwrap().host(), "2001:db8::1");
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
            ("https://user:pw@example.com/", InvalidWebhook::Userinfo),
        ] {
            assert_eq!(Webhook::new(bad, false), Err(error), "{bad}");
        }
        assert!(Webhook::new(&format!("https://example.com/{}", "x".repeat(3_000)), false).is_err());
    }

    #[test]
    fn a_local_server_also_calls_http() {
        assert!(Webhook::new("http://127.0.0.1:9/", true).is_ok());
        assert!(Webhook::new("gopher://127.0.0.1:9/", true).is_err());
    }
}
