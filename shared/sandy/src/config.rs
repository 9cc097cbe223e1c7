//! Configuration of the client.

use bench_domain::Secret;
use bench_inference::is_loopback;
use reqwest::Url;

use crate::SandyError;

/// Address and key of the service.
///
/// | variable | meaning |
/// | --- | --- |
/// | `SANDY_BASE_URL` | address of the service, with or without a trailing slash |
/// | `SANDY_API_KEY` | its key; without one the service is never called |
#[derive(Debug, Clone, Default)]
pub struct SandyConfig {
    base_url: Option<Url>,
    key: Option<Secret>,
}

impl SandyConfig {
    /// Reads the variables. If one is missing, calls fail with an error that names it.
    ///
    /// # Errors
    /// A sentence that names an invalid variable.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = var("SANDY_BASE_URL").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let base_url = match text {
            None => None,
            Some(text) => {
                let plain = |url: &Url| {
                    matches!(url.scheme(), "http" | "https")
                        && url.has_host()
                        && url.username().is_empty()
                        && url.password().is_none()
                        && url.query().is_none()
                        && url.fragment().is_none()
                };
                let url = Url::parse(text.trim_end_matches('/')).ok().filter(plain);
                // The message doesn't repeat the value, which may contain a password.
                Some(url.ok_or("SANDY_BASE_URL: it must be an address such as https://sandy.example")?)
            }
        };
        let key = var("SANDY_API_KEY").and_then(Secret::new);
        if key.as_ref().is_some_and(|key| !key.expose().bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("SANDY_API_KEY: a key must have visible ASCII characters only".to_owned());
        }
        Ok(Self { base_url, key })
    }

    /// Returns true if address and key are set, so that the service can be called.
    pub const fn is_complete(&self) -> bool {
        self.base_url.is_some() && self.key.is_some()
    }

    /// Returns the name of the service in the ledger of sandboxes, since ids are only valid for one service. Services
    /// on this machine are all named `loopback`, since their ports change with every start. Returns `None` without an
    /// address.
    pub fn host(&self) -> Option<String> {
        let url = self.base_url.as_ref()?;
        if is_loopback(url) {
            return Some("loopback".to_owned());
        }
        let port = url.port_or_known_default().unwrap_or_default();
        Some(format!("{}:{port}", url.host_str().unwrap_or_default()))
    }

    /// Returns address and key, if both are set.
    pub fn address_and_key(&self) -> Option<(&str, &Secret)> {
        self.ready().ok().map(|(url, key)| (url.as_str(), key))
    }

    pub(crate) fn ready(&self) -> Result<(&Url, &Secret), SandyError> {
        let key = self.key.as_ref().ok_or(SandyError::NoKey)?;
        Ok((self.base_url.as_ref().ok_or(SandyError::NoAddress)?, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_variable_is_named_and_its_value_not_shown() {
        let read = |name: &str, value: &str| {
            SandyConfig::from_vars(|variable| (variable == name).then(|| value.to_owned())).map(|_| ())
        };
        assert_eq!(read("SANDY_API_KEY", " key\n"), Ok(()));
        for (name, value) in [("SANDY_BASE_URL", "nowhere"), ("SANDY_API_KEY", "two words")] {
            let error = read(name, value).unwrap_err();
            assert!(error.starts_with(&format!("{name}: ")) && !error.contains(value), "{error}");
        }
    }
}
