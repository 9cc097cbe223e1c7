//! The provider's description of itself.

use reqwest::Url;
use serde::Deserialize;

use crate::config::{SignInConfig, is_safe};

/// Addresses of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) authorization: Url,
    pub(crate) token: Url,
    pub(crate) user_info: Url,
    pub(crate) revocation: Option<Url>,
    /// Address of the keys that sign ID tokens. `None` for a provider without a description, which gives no ID tokens.
    pub(crate) keys: Option<Url>,
}

/// Description of a provider, as OpenID Connect Discovery defines it.
#[derive(Debug, Deserialize)]
struct Description {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    userinfo_endpoint: String,
    #[serde(default)]
    revocation_endpoint: Option<String>,
    jwks_uri: String,
}

impl Endpoints {
    /// Returns the address of the description.
    pub(crate) fn description_url(config: &SignInConfig) -> String {
        format!("{}/.well-known/openid-configuration", config.base_url)
    }

    /// Reads a description.
    ///
    /// # Errors
    /// Describes the problem, for the log.
    pub(crate) fn read(config: &SignInConfig, body: &[u8]) -> Result<Self, String> {
        let found: Description = serde_json::from_slice(body)
            .map_err(|error| format!("the provider's description of itself can't be read: {error}"))?;
        if found.issuer.trim_end_matches('/') != config.base_url {
            return Err("the provider's description names another issuer than `CHUTES_IDP_URL`".to_owned());
        }
        let address = |name: &str, text: &str| {
            let url = Url::parse(text).ok().filter(is_safe);
            url.ok_or_else(|| format!("`{name}` of the provider's description isn't an https address"))
        };
        Ok(Self {
            authorization: address("authorization_endpoint", &found.authorization_endpoint)?,
            token: address("token_endpoint", &found.token_endpoint)?,
            user_info: address("userinfo_endpoint", &found.userinfo_endpoint)?,
            revocation: found
                .revocation_endpoint
                .map(|text| address("revocation_endpoint", &text))
                .transpose()?,
            keys: Some(address("jwks_uri", &found.jwks_uri)?),
        })
    }

    /// Returns the fixed addresses of a provider without a description.
    ///
    /// # Errors
    /// Describes the problem, for the log.
    pub(crate) fn fixed(config: &SignInConfig) -> Result<Self, String> {
        let address = |path: &str| {
            Url::parse(&format!("{}{path}", config.base_url))
                .map_err(|error| format!("CHUTES_IDP_URL: {error}"))
        };
        Ok(Self {
            authorization: address("/idp/authorize")?,
            token: address("/idp/token")?,
            user_info: address("/idp/userinfo")?,
            revocation: Some(address("/idp/token/revoke")?),
            keys: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_is_of_the_configured_issuer_and_has_safe_addresses() {
        let config = SignInConfig {
            base_url: "https://idp.example".into(),
            client_id: "b".into(),
            client_secret: None,
        };
        let good = json!({
            "issuer": "https://idp.example", "authorization_endpoint": "https://idp.example/a",
            "token_endpoint": "https://idp.example/t", "userinfo_endpoint": "https://idp.example/u",
            "jwks_uri": "https://keys.example/k",
        });
        let read = |value: &serde_json::Value| Endpoints::read(&config, value.to_string().as_bytes());
        let endpoints = read(&good).unwrap();
        assert_eq!(endpoints.keys.unwrap().as_str(), "https://keys.example/k");
        assert_eq!(endpoints.revocation, None);
        for (field, value) in [
            ("issuer", "https://evil.example"),
            ("token_endpoint", "http://idp.example/t"),
            ("jwks_uri", "file:///etc/passwd"),
            ("userinfo_endpoint", ""),
        ] {
            let mut bad = good.clone();
            bad[field] = value.into();
            assert!(read(&bad).is_err(), "{field}");
        }
        let fixed = Endpoints::fixed(&config).unwrap();
        assert_eq!(fixed.authorization.as_str(), "https://idp.example/idp/authorize");
        assert_eq!(fixed.keys, None);
    }
}
