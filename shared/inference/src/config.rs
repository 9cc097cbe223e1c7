//! Providers and limits as the environment gives them.

use std::time::Duration;

use bench_domain::Secret;
use reqwest::Url;

use crate::endpoint::{join, parse_base};
use crate::{Endpoint, EndpointError, HttpOptions, Keys, ProviderKind};

/// Longest time that a variable may set, in seconds: one day.
const SETTING_SECONDS_MAX: u64 = 86_400;

/// Longest wait that a variable may set after 429 or 503, in seconds: a sample is put off for an hour at most.
const RATE_LIMIT_SLEEP_SECONDS_MAX: u64 = 3_600;

/// One provider's address and key.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The part before `/chat/completions`; `None` only where no default exists.
    pub base_url: Option<String>,
    /// The operator's own key.
    pub key: Option<Secret>,
}

/// Everything that this crate reads from the environment, read once.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `CHUTES_API_KEY` | – | the operator's key at Chutes |
/// | `CHUTES_API_BASE_URL` | `https://llm.chutes.ai/v1` | Chutes' inference gateway |
/// | `CHUTES_MODELS_API_URL` | `https://api.chutes.ai` | Chutes' public list of models |
/// | `CHUTES_MODELS_CACHE_TTL_SECONDS` | 600 | how long a list of models and prices stays good |
/// | `OPENROUTER_API_KEY` | – | key at OpenRouter |
/// | `OPENROUTER_BASE_URL` | `https://openrouter.ai/api/v1` | |
/// | `LMSTUDIO_BASE_URL` | `http://127.0.0.1:1234/v1` | |
/// | `LMSTUDIO_API_KEY` | – | only for an LM Studio that asks for one |
/// | `OPENAI_COMPATIBLE_BASE_URL` | – | needed for `openai-compatible/…` |
/// | `OPENAI_COMPATIBLE_API_KEY` | – | if that server wants one |
/// | `CHUTES_INFERENCE_TIMEOUT_SECONDS` | 300 | longest silence between two pieces of an answer, any provider |
/// | `CHUTES_RATE_LIMIT_SLEEP_SECONDS` | 30 | wait after 429 or 503 where the provider names none, any provider |
///
/// A variable that is empty counts as not set.
#[derive(Debug, Clone)]
pub struct InferenceConfig {
    /// Chutes.
    pub chutes: ProviderConfig,
    /// OpenRouter.
    pub openrouter: ProviderConfig,
    /// LM Studio.
    pub lmstudio: ProviderConfig,
    /// Any other server that speaks the API.
    pub openai_compatible: ProviderConfig,
    /// Chutes' public list of models.
    pub models_api_url: String,
    /// How long a list of models and prices stays good.
    pub models_cache_ttl: Duration,
    /// Longest silence between two pieces of an answer.
    pub idle_timeout: Duration,
    /// Wait after a provider said that it is busy without saying for how long.
    pub rate_limit_sleep: Duration,
}

/// A variable that cannot be used. Values of key variables never appear here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct ConfigError {
    /// The variable's name.
    pub variable: &'static str,
    /// What is wrong with it, in one sentence.
    pub problem: String,
}

impl InferenceConfig {
    /// Reads the variables through `var`, which gives `None` for one that is not set.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable that is no number, out of its range or no address.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let vars = Vars(var);
        let provider = |kind: ProviderKind, url: &'static str, key: &'static str| {
            Ok(ProviderConfig {
                base_url: vars.address(url)?.or_else(|| kind.default_base_url().map(str::to_owned)),
                key: vars.key(key)?,
            })
        };
        Ok(Self {
            chutes: provider(ProviderKind::Chutes, "CHUTES_API_BASE_URL", "CHUTES_API_KEY")?,
            openrouter: provider(ProviderKind::OpenRouter, "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY")?,
            lmstudio: provider(ProviderKind::LmStudio, "LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY")?,
            openai_compatible: provider(
                ProviderKind::OpenAiCompatible,
                "OPENAI_COMPATIBLE_BASE_URL",
                "OPENAI_COMPATIBLE_API_KEY",
            )?,
            models_api_url: vars
                .address("CHUTES_MODELS_API_URL")?
                .unwrap_or_else(|| "https://api.chutes.ai".to_owned()),
            models_cache_ttl: vars.seconds("CHUTES_MODELS_CACHE_TTL_SECONDS", 0, 600)?,
            idle_timeout: vars.seconds("CHUTES_INFERENCE_TIMEOUT_SECONDS", 1, 300)?,
            rate_limit_sleep: Duration::from_secs(
                vars.number("CHUTES_RATE_LIMIT_SLEEP_SECONDS", 0, RATE_LIMIT_SLEEP_SECONDS_MAX)?
                    .unwrap_or(30),
            ),
        })
    }

    /// One provider's settings; `None` for the two kinds that are not asked over the network.
    pub const fn provider(&self, kind: ProviderKind) -> Option<&ProviderConfig> {
        match kind {
            ProviderKind::Chutes => Some(&self.chutes),
            ProviderKind::OpenRouter => Some(&self.openrouter),
            ProviderKind::LmStudio => Some(&self.lmstudio),
            ProviderKind::OpenAiCompatible => Some(&self.openai_compatible),
            ProviderKind::Oracle | ProviderKind::Replay => None,
        }
    }

    /// The operator's keys of all providers.
    pub fn keys(&self) -> Keys {
        let Self { chutes, openrouter, lmstudio, openai_compatible, .. } = self;
        let providers = [chutes, openrouter, lmstudio, openai_compatible];
        Keys::new(providers.into_iter().filter_map(|provider| provider.key.as_ref()))
    }

    /// Whether a model of that provider can be asked with the operator's own settings.
    pub fn is_configured(&self, kind: ProviderKind) -> bool {
        !kind.is_remote() || self.endpoint(kind).is_ok()
    }

    /// The provider's address with the operator's own key.
    ///
    /// # Errors
    /// [`EndpointError`] says which setting is missing.
    pub fn endpoint(&self, kind: ProviderKind) -> Result<Endpoint, EndpointError> {
        let key = self.provider(kind).and_then(|provider| provider.key.clone());
        if kind.needs_key() && key.is_none() {
            let variable = match kind {
                ProviderKind::OpenRouter => "OPENROUTER_API_KEY",
                _ => "CHUTES_API_KEY",
            };
            return Err(EndpointError::NoKey { provider: kind, variable });
        }
        self.at(kind, key)
    }

    /// The provider's address with a key that the caller brought.
    ///
    /// # Errors
    /// [`EndpointError`] says which setting is missing.
    pub fn endpoint_with_key(&self, kind: ProviderKind, key: Secret) -> Result<Endpoint, EndpointError> {
        self.at(kind, Some(key))
    }

    /// Returns the host that answers for a provider, at `base_url` or else at its configured address, with the port
    /// unless it is the scheme's default. `None` for a provider without an address.
    pub fn host(&self, kind: ProviderKind, base_url: Option<&str>) -> Option<String> {
        let configured = self.provider(kind)?;
        let url = parse_base(base_url.or(configured.base_url.as_deref())?).ok()?;
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// The address that tells a provider's key from any other text: it answers `GET` with 200 for a valid key and with
    /// 401 for any other. `None` where the provider has no such address.
    pub fn account_url(&self, kind: ProviderKind) -> Option<Url> {
        let (base, path) = match kind {
            ProviderKind::Chutes => (self.models_api_url.as_str(), "users/me"),
            ProviderKind::OpenRouter => (self.openrouter.base_url.as_deref()?, "key"),
            _ => return None,
        };
        join(&parse_base(base).ok()?, path)
    }

    /// Options of a client that keeps to these settings.
    pub fn http_options(&self) -> HttpOptions {
        HttpOptions { idle_timeout: self.idle_timeout, ..HttpOptions::default() }
    }

    fn at(&self, kind: ProviderKind, key: Option<Secret>) -> Result<Endpoint, EndpointError> {
        let provider = self.provider(kind).ok_or(EndpointError::NotRemote { provider: kind })?;
        let base_url = provider.base_url.as_deref().ok_or(EndpointError::NoBaseUrl { provider: kind })?;
        Endpoint::new(kind, base_url, key)
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
        assert_eq!(config.models_api_url, "https://api.chutes.ai");
        assert!(config.is_configured(ProviderKind::LmStudio));
        assert!(config.is_configured(ProviderKind::Oracle));
        assert_eq!(
            config.endpoint(ProviderKind::Chutes).unwrap_err().to_string(),
            "Chutes needs a key: set CHUTES_API_KEY"
        );
        assert!(matches!(
            config.endpoint(ProviderKind::OpenAiCompatible),
            Err(EndpointError::NoBaseUrl { provider: ProviderKind::OpenAiCompatible })
        ));
        assert!(matches!(config.endpoint(ProviderKind::Oracle), Err(EndpointError::NotRemote { .. })));
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
        let of = |kind| {
            let endpoint = config.endpoint(kind).unwrap();
            (endpoint.base_url().to_owned(), endpoint.key().map(|key| key.expose().to_owned()))
        };
        assert_eq!(of(ProviderKind::Chutes), ("https://llm.chutes.ai/v1".into(), Some("key-c".into())));
        assert_eq!(
            of(ProviderKind::OpenRouter),
            ("https://openrouter.ai/api/v1".into(), Some("key-o".into()))
        );
        assert_eq!(of(ProviderKind::LmStudio), ("http://127.0.0.1:9/v1".into(), None));
        assert_eq!(of(ProviderKind::OpenAiCompatible), ("http://10.0.0.1/v1".into(), Some("key-x".into())));
        let callers = Secret::new("key-caller").unwrap();
        let endpoint = config.endpoint_with_key(ProviderKind::Chutes, callers).unwrap();
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
