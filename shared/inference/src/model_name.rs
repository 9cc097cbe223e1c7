//! Model names as users write them: `provider/slug`.

use std::fmt;
use std::str::FromStr;

use crate::providers::PROVIDERS;
use crate::{ModelSource, Provider};

/// Maximum length of a model name in bytes.
const NAME_BYTES_MAX: usize = 512;

/// A model and its answer source. [`fmt::Display`] returns the text that [`ModelName::parse`] reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    /// Source of the answers.
    pub source: ModelSource,
    /// The provider's own id of the model, the file's path for stored responses, or `oracle` or `nop`, or the name
    /// of a custom agent.
    pub slug: String,
}

/// Error for a text that isn't the name of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelNameError {
    /// The part before the first `/` is not a provider.
    #[error("`{given}` starts with no known provider; use {}", ModelName::forms())]
    UnknownProvider {
        /// The text as given, cut to 80 characters.
        given: String,
    },
    /// The same for a judge, which can't be stored responses.
    #[error("`{given}` starts with no known provider; use {}", known_judges())]
    UnknownJudge {
        /// The text as given, cut to 80 characters.
        given: String,
    },
    /// Stored responses, or an agent, given as the judge.
    #[error("stored responses and agents cannot judge; use {}", known_judges())]
    StoredJudge,
    /// A provider without a model.
    #[error("`{prefix}` lacks the model; write {form}")]
    NoSlug {
        /// The provider's prefix as given.
        prefix: &'static str,
        /// A valid form.
        form: String,
    },
    /// Control characters or too long a text.
    #[error("a model name has at most {NAME_BYTES_MAX} bytes and no control characters")]
    Malformed,
}

/// Returns the form of a model name for each provider: `chutes/MODEL, openrouter/MODEL, …`.
fn provider_forms() -> String {
    let forms: Vec<String> = PROVIDERS.iter().map(|provider| format!("{provider}/MODEL")).collect();
    forms.join(", ")
}

fn known_judges() -> String {
    format!("{} or oracle", provider_forms())
}

impl ModelName {
    /// Returns all forms of a model name, as a list in a sentence.
    pub fn forms() -> String {
        format!("{}, oracle, nop or replay:FILE", provider_forms())
    }

    /// Parses names such as `chutes/deepseek-ai/DeepSeek-V3`, `oracle` or `replay:answers.jsonl`.
    ///
    /// # Errors
    /// Returns a [`ModelNameError`] that names the valid forms.
    pub fn parse(text: &str) -> Result<Self, ModelNameError> {
        let text = text.trim();
        if text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(ModelNameError::Malformed);
        }
        for source in [ModelSource::Oracle, ModelSource::Nop, ModelSource::Custom] {
            if text == source.as_str() {
                return Ok(Self { source, slug: text.to_owned() });
            }
        }
        if let Some((source, agent)) = text.split_once('/')
            && source == ModelSource::Custom.as_str()
            && !agent.trim().is_empty()
        {
            return Ok(Self { source: ModelSource::Custom, slug: agent.trim().to_owned() });
        }
        if let Some(file) = text.strip_prefix("replay:") {
            return match file.trim() {
                "" => Err(ModelNameError::NoSlug { prefix: "replay:", form: "replay:FILE".to_owned() }),
                file => Ok(Self { source: ModelSource::Replay, slug: file.to_owned() }),
            };
        }
        let (prefix, slug) = text.split_once('/').unwrap_or((text, ""));
        match (Provider::from_name(prefix), slug.trim()) {
            (None, _) => Err(ModelNameError::UnknownProvider { given: text.chars().take(80).collect() }),
            (Some(provider), "") => {
                Err(ModelNameError::NoSlug { prefix: provider.name, form: format!("{provider}/MODEL") })
            }
            (Some(provider), slug) => {
                Ok(Self { source: ModelSource::Provider(provider), slug: slug.to_owned() })
            }
        }
    }
}

impl ModelName {
    /// Parses the name of a judge: a model name, except for stored responses.
    ///
    /// # Errors
    /// Returns a [`ModelNameError`] that names the valid forms of a judge.
    pub fn parse_judge(text: &str) -> Result<Self, ModelNameError> {
        if text.trim().starts_with("replay:")
            || Self::parse(text)
                .is_ok_and(|name| matches!(name.source, ModelSource::Nop | ModelSource::Custom))
        {
            return Err(ModelNameError::StoredJudge);
        }
        Self::parse(text).map_err(|error| match error {
            ModelNameError::UnknownProvider { given } => ModelNameError::UnknownJudge { given },
            other => other,
        })
    }
}

impl FromStr for ModelName {
    type Err = ModelNameError;

    fn from_str(text: &str) -> Result<Self, ModelNameError> {
        Self::parse(text)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            ModelSource::Oracle | ModelSource::Nop => f.write_str(self.source.as_str()),
            ModelSource::Custom if self.slug == self.source.as_str() => f.write_str(&self.slug),
            ModelSource::Custom => write!(f, "{}/{}", self.source, self.slug),
            ModelSource::Replay => write!(f, "replay:{}", self.slug),
            ModelSource::Provider(provider) => write!(f, "{provider}/{}", self.slug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{CHUTES, LMSTUDIO, OPENAI_COMPATIBLE, OPENROUTER};
    use ModelSource::{Custom, Oracle, Provider, Replay};

    #[test]
    fn every_form_reads_and_writes_itself() {
        for (text, source, slug) in [
            ("chutes/deepseek-ai/DeepSeek-V3", Provider(&CHUTES), "deepseek-ai/DeepSeek-V3"),
            ("openrouter/a/b:free", Provider(&OPENROUTER), "a/b:free"),
            ("lmstudio/qwen3-4b@q4", Provider(&LMSTUDIO), "qwen3-4b@q4"),
            ("openai-compatible//models/x.gguf", Provider(&OPENAI_COMPATIBLE), "/models/x.gguf"),
            ("oracle", Oracle, "oracle"),
            ("custom", Custom, "custom"),
            ("custom/mine@1.0", Custom, "mine@1.0"),
            ("replay:/tmp/a b.jsonl", Replay, "/tmp/a b.jsonl"),
        ] {
            let name = ModelName::parse(text).unwrap();
            assert_eq!((name.source, name.slug.as_str()), (source, slug));
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn the_error_for_an_unknown_prefix_lists_the_known_ones() {
        for text in ["deepseek-ai/DeepSeek-V3", "gpt-5", "", "oracle/x", "Chutes/x"] {
            let error = ModelName::parse(text).unwrap_err().to_string();
            for name in PROVIDERS.iter().map(|provider| provider.name).chain(["oracle", "replay"]) {
                assert!(error.contains(name), "{error}");
            }
        }
    }

    #[test]
    fn stored_responses_cannot_be_a_judge() {
        assert!(ModelName::parse("nop").is_ok());
        assert_eq!(ModelName::parse_judge("oracle"), ModelName::parse("oracle"));
        assert_eq!(ModelName::parse_judge("openrouter/a/b"), ModelName::parse("openrouter/a/b"));
        for text in ["nope/j", "replay:x.jsonl", " replay:", "nop", "custom", "custom/x", "j"] {
            let error = ModelName::parse_judge(text).unwrap_err().to_string();
            assert!(error.contains("openrouter/MODEL") && !error.contains("replay:FILE"), "{error}");
        }
    }

    #[test]
    fn a_provider_without_a_model_is_rejected() {
        for text in ["chutes", "chutes/", "lmstudio/ ", "replay:", "openai-compatible/"] {
            assert!(matches!(ModelName::parse(text), Err(ModelNameError::NoSlug { .. })), "{text}");
        }
        assert_eq!(ModelName::parse("chutes/a\u{0}b"), Err(ModelNameError::Malformed));
    }
}
