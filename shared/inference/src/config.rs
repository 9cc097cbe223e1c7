//! Settings of providers, and limits, from the environment.

use std::time::Duration;

use bench_domain::Secret;
use reqwest::Url;

use crate::address::{join, parse_base};
use crate::providers::{AccountAt, PROVIDERS};
use crate::transport::HttpOptions;
use crate::{Endpoint, EndpointError, Keys, Provider};

/// Maximum time that a variable may set, in seconds: one day.
const SETTING_SECONDS_MAX: u64 = 86_400;

/// Maximum wait that a variable may set after 429 or 503, in seconds: a sample is put off for an hour at most.
const RATE_LIMIT_SLEEP_SECONDS_MAX: u64 = 3_600;

/// Address of the server that takes requests with access tokens of signed-in users.
const SESSIONS_URL_DEFAULT: &str = "https://idp.chutes.ai";

/// One provider's addresses and key.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The provider.
    pub provider: &'static Provider,
    /// The part before the protocol's own paths. `None` only without a default.
    pub base_url: Option<String>,
    /// The operator's own key.
    pub key: Option<Secret>,
    /// Address of the public list of models. `None` only if there is none.
    pub public_list_url: Option<String>,
}

/// All settings that this crate reads from the environment, read once.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | [`Provider::key_variable`] | – | the operator's key at that provider |
/// | [`Provider::base_url_variable`] | [`Provider::default_base_url`] | the provider's base URL |
/// | [`PublicList::base_url_variable`](crate::providers::PublicList::base_url_variable) | of the same list | its public list of models |
/// | `CHUTES_IDP_URL` | `https://idp.chutes.ai` | server that takes requests with access tokens of signed-in users, at `/v1` |
/// | `CHUTES_MODELS_CACHE_TTL_SECONDS` | 600 | time for which a list of models and prices is valid |
/// | `CHUTES_INFERENCE_TIMEOUT_SECONDS` | 300 | maximum silence between two pieces of an answer, any provider |
/// | `CHUTES_RATE_LIMIT_SLEEP_SECONDS` | 30 | wait after 429 or 503 if the provider names none, any provider |
///
/// An empty variable counts as not set.
#[derive(Debug, Clone)]
pub struct InferenceConfig {
    /// In the order of [`PROVIDERS`].
    providers: Vec<ProviderConfig>,
    /// Base URL of requests that access tokens of signed-in users pay for.
    sessions_base_url: String,
    /// Time for which a list of models and prices is valid.
    pub models_cache_ttl: Duration,
    /// Maximum silence between two pieces of an answer.
    pub idle_timeout: Duration,
    /// Wait for a busy provider that doesn't say how long to wait.
    pub rate_limit_sleep: Duration,
}

/// Error for an invalid variable. Never contains the value of a key variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct ConfigError {
    /// The variable's name.
    pub variable: &'static str,
    /// The problem, in one sentence.
    pub problem: String,
}

impl InferenceConfig {
    /// Reads the variables through `var`, which returns `None` for an unset one.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] for the first variable that is not an address or not a number in its range.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let vars = Vars(var);
        let config = |provider: &'static Provider| {
            let list = provider.public_list.as_ref();
            let list_url = list.map(|list| {
                let configured = vars.address(list.base_url_variable)?;
                Ok(configured.unwrap_or_else(|| list.default_base_url.to_owned()))
            });
            Ok(ProviderConfig {
                provider,
                base_url: vars
                    .address(provider.base_url_variable)?
                    .or_else(|| provider.default_base_url.map(str::to_owned)),
                key: vars.key(provider.key_variable)?,
                public_list_url: list_url.transpose()?,
            })
        };
        Ok(Self {
            providers: PROVIDERS.iter().copied().map(config).collect::<Result<_, ConfigError>>()?,
            sessions_base_url: {
                let configured = vars.address("CHUTES_IDP_URL")?;
                let base = configured.unwrap_or_else(|| SESSIONS_URL_DEFAULT.to_owned());
                format!("{}/v1", base.trim_end_matches('/'))
            },
            models_cache_ttl: vars.seconds("CHUTES_MODELS_CACHE_TTL_SECONDS", 0, 600)?,
            idle_timeout: vars.seconds("CHUTES_INFERENCE_TIMEOUT_SECONDS", 1, 300)?,
            rate_limit_sleep: Duration::from_secs(
                vars.number("CHUTES_RATE_LIMIT_SLEEP_SECONDS", 0, RATE_LIMIT_SLEEP_SECONDS_MAX)?
                    .unwrap_or(30),
            ),
        })
    }

    /// Returns the settings of a provider. `None` if the provider isn't in the table.
    pub fn provider(&self, provider: &Provider) -> Option<&ProviderConfig> {
        self.providers.iter().find(|config| config.provider == provider)
    }

    /// Returns true if a provider on this machine has its default address, so that only users of this machine mean it.
    pub fn is_local_by_default(&self, provider: &Provider) -> bool {
        let base_url = self.provider(provider).and_then(|config| config.base_url.as_deref());
        provider.is_local() && base_url == provider.default_base_url
    }

    /// Returns the providers with a public list of models, and the address of that list.
    pub fn public_lists(&self) -> impl Iterator<Item = (&'static Provider, &str)> {
        self.providers.iter().filter_map(|config| Some((config.provider, config.public_list_url.as_deref()?)))
    }

    /// Returns the operator's keys of all providers.
    pub fn keys(&self) -> Keys {
        Keys::new(self.providers.iter().filter_map(|config| config.key.as_ref()))
    }

    /// Tests if a provider's models can be used with the operator's own settings.
    pub fn is_configured(&self, provider: &'static Provider) -> bool {
        self.endpoint(provider).is_ok()
    }

    /// Returns the provider's address with the operator's own key.
    ///
    /// # Errors
    /// Returns an [`EndpointError`] that names the missing setting.
    pub fn endpoint(&self, provider: &'static Provider) -> Result<Endpoint, EndpointError> {
        let key = self.provider(provider).and_then(|config| config.key.clone());
        if provider.needs_key && key.is_none() {
            return Err(EndpointError::NoKey { provider });
        }
        self.endpoint_with(provider, key)
    }

    /// Returns the provider's address with a key provided by the caller.
    ///
    /// # Errors
    /// Returns an [`EndpointError`] that names the missing setting.
    pub fn endpoint_with_key(
        &self,
        provider: &'static Provider,
        key: Secret,
    ) -> Result<Endpoint, EndpointError> {
        self.endpoint_with(provider, Some(key))
    }

    /// Returns the address at which access tokens of signed-in users pay for a provider's models. The tokens are added later
    /// ([`Endpoint::with_key`]). Requests name the provider's host.
    ///
    /// # Errors
    /// Returns [`EndpointError::NoSessions`] for a provider that takes no such tokens.
    pub fn session_endpoint(&self, provider: &'static Provider) -> Result<Endpoint, EndpointError> {
        if *provider != crate::providers::CHUTES {
            return Err(EndpointError::NoSessions { provider });
        }
        let endpoint = Endpoint::new(provider, &self.sessions_base_url, None)?;
        Ok(match self.host(provider, None) {
            Some(host) => endpoint.with_host(&host),
            None => endpoint,
        })
    }

    /// Returns the host of a provider's API, at `base_url` or else at its configured address, with the port unless it
    /// is the scheme's default. `None` for a provider without an address.
    pub fn host(&self, provider: &Provider, base_url: Option<&str>) -> Option<String> {
        let configured = self.provider(provider)?;
        let url = parse_base(base_url.or(configured.base_url.as_deref())?).ok()?;
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// Checks that a run's model is asked at the host that the run was ordered with: its score and its signed manifest name
    /// that host. `ordered` is `None` for runs of older versions, which may be asked anywhere.
    ///
    /// # Errors
    /// Returns [`EndpointError::OtherHost`] for another host.
    pub fn check_host(
        &self,
        provider: &'static Provider,
        base_url: Option<&str>,
        ordered: Option<&str>,
    ) -> Result<(), EndpointError> {
        match (ordered, self.host(provider, base_url)) {
            (Some(ordered), Some(configured)) if ordered != configured => {
                Err(EndpointError::OtherHost { provider, ordered: ordered.to_owned(), configured })
            }
            _ => Ok(()),
        }
    }

    /// Returns the address that validates a provider's keys: it answers `GET` with 200 for a valid key and with 401
    /// for any other text. `None` if the provider has no such address.
    pub fn account_url(&self, provider: &Provider) -> Option<Url> {
        let (account, config) = (provider.account?, self.provider(provider)?);
        let base = match account.at {
            AccountAt::BaseUrl => config.base_url.as_deref()?,
            AccountAt::PublicList => config.public_list_url.as_deref()?,
        };
        join(&parse_base(base).ok()?, account.path.split('/'))
    }

    /// Returns the options of an HTTP client with these settings.
    pub fn http_options(&self) -> HttpOptions {
        HttpOptions { idle_timeout: self.idle_timeout, ..HttpOptions::default() }
    }

    fn endpoint_with(
        &self,
        provider: &'static Provider,
        key: Option<Secret>,
    ) -> Result<Endpoint, EndpointError> {
        let base_url = self.provider(provider).and_then(|config| config.base_url.as_deref());
        Endpoint::new(provider, base_url.ok_or(EndpointError::NoBaseUrl { provider })?, key)
    }
}

struct Vars<F>(F);

impl<F: Fn(&str) -> Option<String>> Vars<F> {
    fn text(&self, variable: &'static str) -> Option<String> {
        (self.0)(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn key(&self, variable: &'static str) -> Result<Option<Secret>, ConfigError> {
        let Some(key) = (self.0)(variable).and_then(Secret::new) else { return Ok(None) };
        if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = "a key has visible ASCII characters only".to_owned();
            return Err(ConfigError { variable, problem });
        }
        Ok(Some(key))
    }

    fn address(&self, variable: &'static str) -> Result<Option<String>, ConfigError> {
        let Some(text) = self.text(variable) else { return Ok(None) };
        match parse_base(&text) {
            Ok(_) => Ok(Some(text)),
            Err(problem) => Err(ConfigError { variable, problem: problem.to_owned() }),
        }
    }

    fn number(&self, variable: &'static str, min: u64, max: u64) -> Result<Option<u64>, ConfigError> {
        let Some(text) = self.text(variable) else { return Ok(None) };
        match text.parse::<u64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => {
                let given: String = text.chars().take(40).collect();
                let problem = format!("`{given}` is not a whole number from {min} to {max}");
                Err(ConfigError { variable, problem })
            }
        }
    }

    fn seconds(&self, variable: &'static str, min: u64, default: u64) -> Result<Duration, ConfigError> {
        let seconds = self.number(variable, min, SETTING_SECONDS_MAX)?;
        Ok(Duration::from_secs(seconds.unwrap_or(default)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{CHUTES, LMSTUDIO, OPENAI_COMPATIBLE, OPENROUTER};

    fn config(vars: &[(&str, &str)]) -> Result<InferenceConfig, ConfigError> {
        InferenceConfig::from_vars(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_gives_the_documented_defaults() {
        let config = config(&[("CHUTES_API_KEY", "  ")]).unwrap();
        assert_eq!(config.idle_timeout, Duration::from_secs(300));
        assert_eq!(config.rate_limit_sleep, Duration::from_secs(30));
        let list = config.provider(&CHUTES).unwrap().public_list_url.as_deref();
        assert_eq!(list, Some("https://api.chutes.ai"));
        assert!(config.is_configured(&LMSTUDIO));
        assert_eq!(
            config.endpoint(&CHUTES).unwrap_err().to_string(),
            "Chutes needs a key: set CHUTES_API_KEY"
        );
        assert!(matches!(
            config.endpoint(&OPENAI_COMPATIBLE),
            Err(EndpointError::NoBaseUrl { provider }) if *provider == OPENAI_COMPATIBLE
        ));
    }

    #[test]
    fn a_run_keeps_the_host_that_it_was_ordered_with() {
        let config = config(&[("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")]).unwrap();
        let check = |base_url, ordered| config.check_host(&OPENAI_COMPATIBLE, base_url, ordered);
        assert_eq!(check(None, Some("127.0.0.1:9")), Ok(()));
        assert_eq!(check(None, None), Ok(()), "older versions stored no host");
        assert_eq!(check(Some("http://127.0.0.1:8/v2"), Some("127.0.0.1:8")), Ok(()));
        let changed = check(None, Some("127.0.0.1:8")).unwrap_err().to_string();
        for part in ["127.0.0.1:8,", "127.0.0.1:9 now", "set OPENAI_COMPATIBLE_BASE_URL"] {
            assert!(changed.contains(part), "{changed}");
        }
    }

    #[test]
    fn each_provider_gets_its_own_address_and_key() {
        let config = config(&[
            ("CHUTES_API_KEY", "key-c"),
            ("OPENROUTER_API_KEY", "key-o\n"),
            ("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1"),
            ("OPENAI_COMPATIBLE_BASE_URL", "http://10.0.0.1/v1"),
            ("OPENAI_COMPATIBLE_API_KEY", "key-x"),
        ])
        .unwrap();
        let of = |provider| {
            let endpoint = config.endpoint(provider).unwrap();
            (endpoint.base_url().to_owned(), endpoint.key().map(|key| key.expose().to_owned()))
        };
        assert_eq!(of(&CHUTES), ("https://llm.chutes.ai/v1".into(), Some("key-c".into())));
        assert_eq!(of(&OPENROUTER), ("https://openrouter.ai/api/v1".into(), Some("key-o".into())));
        assert_eq!(of(&LMSTUDIO), ("http://127.0.0.1:9/v1".into(), None));
        assert_eq!(of(&OPENAI_COMPATIBLE), ("http://10.0.0.1/v1".into(), Some("key-x".into())));
        let callers = Secret::new("key-caller").unwrap();
        let endpoint = config.endpoint_with_key(&CHUTES, callers).unwrap();
        assert_eq!(endpoint.key().unwrap().expose(), "key-caller");
        assert!(!format!("{config:?}").contains("key-"));
    }

    #[test]
    fn a_bad_variable_is_named_and_a_key_is_not_shown() {
        let bad = |name, value| config(&[(name, value)]).unwrap_err();
        assert_eq!(
            bad("CHUTES_INFERENCE_TIMEOUT_SECONDS", "soon").to_string(),
            "CHUTES_INFERENCE_TIMEOUT_SECONDS: `soon` is not a whole number from 1 to 86400"
        );
        assert_eq!(
            bad("CHUTES_RATE_LIMIT_SLEEP_SECONDS", "3601").to_string(),
            "CHUTES_RATE_LIMIT_SLEEP_SECONDS: `3601` is not a whole number from 0 to 3600"
        );
        assert_eq!(bad("CHUTES_INFERENCE_TIMEOUT_SECONDS", "0").variable, "CHUTES_INFERENCE_TIMEOUT_SECONDS");
        assert_eq!(bad("CHUTES_API_BASE_URL", "llm.chutes.ai").variable, "CHUTES_API_BASE_URL");
        let error = bad("OPENROUTER_API_KEY", "two words").to_string();
        assert!(error.starts_with("OPENROUTER_API_KEY") && !error.contains("two words"), "{error}");
    }
}
