//! Address of the provider, and this program's credentials with it.

use bench_domain::Secret;
use bench_inference::is_loopback;
use reqwest::Url;

/// Address of the provider of Chutes accounts.
pub const BASE_URL_DEFAULT: &str = "https://idp.chutes.ai";

/// Address of the provider, and this program's credentials with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInConfig {
    /// Base address, without a slash at its end. It's also the issuer's name.
    pub base_url: String,
    /// Name of this program at the provider.
    pub client_id: String,
    /// Secret of this program at the provider. A public client has none.
    pub client_secret: Option<Secret>,
}

impl SignInConfig {
    /// Reads `CHUTES_CLIENT_ID`, `CHUTES_CLIENT_SECRET` and `CHUTES_IDP_URL`. Returns `None` without a client id: then there is
    /// no sign-in.
    ///
    /// # Errors
    /// One sentence that names the variable and the problem.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let var =
            |name: &str| var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let Some(client_id) = var("CHUTES_CLIENT_ID") else { return Ok(None) };
        let base_url = var("CHUTES_IDP_URL").unwrap_or_else(|| BASE_URL_DEFAULT.to_owned());
        let base_url = base_url.trim_end_matches('/').to_owned();
        let bad = |problem| format!("CHUTES_IDP_URL: `{base_url}` {problem}");
        let url = Url::parse(&base_url).map_err(|_| bad("is not an address such as https://idp.example"))?;
        if !is_safe(&url) {
            return Err(bad("must begin with https://, except on this machine"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(bad("must not contain a user, a password or ?"));
        }
        Ok(Some(Self {
            base_url,
            client_id,
            client_secret: var("CHUTES_CLIENT_SECRET").and_then(Secret::new),
        }))
    }

    /// Returns true if the provider is on this machine, where addresses may be plain HTTP.
    pub(crate) fn is_local(&self) -> bool {
        Url::parse(&self.base_url).is_ok_and(|url| is_loopback(&url))
    }
}

/// Returns true if secrets may be sent to this address: by HTTPS, or to this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host_str().is_some_and(|host| !host.is_empty()),
        "http" => is_loopback(url),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Option<SignInConfig>, String> {
        SignInConfig::from_vars(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_client_id_turns_the_sign_in_on() {
        assert_eq!(read(&[("CHUTES_CLIENT_SECRET", "x"), ("CHUTES_CLIENT_ID", " ")]), Ok(None));
        let config =
            read(&[("CHUTES_CLIENT_ID", "bench"), ("CHUTES_CLIENT_SECRET", "hush")]).unwrap().unwrap();
        assert_eq!((config.base_url.as_str(), config.client_id.as_str()), (BASE_URL_DEFAULT, "bench"));
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn addresses_are_encrypted_or_on_this_machine() {
        let address = |url| read(&[("CHUTES_CLIENT_ID", "bench"), ("CHUTES_IDP_URL", url)]);
        assert_eq!(address("http://127.0.0.1:9/op/").unwrap().unwrap().base_url, "http://127.0.0.1:9/op");
        for bad in ["http://idp.example", "idp.example", "ftp://h", "https://u:p@h", "https://h?x=1"] {
            assert!(address(bad).unwrap_err().starts_with("CHUTES_IDP_URL"), "{bad}");
        }
    }
}
