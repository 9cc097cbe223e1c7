//! Generation settings of answers, and how a run's settings differ from its benchmark's.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Number of digits of a system prompt's digest to show.
const DIGEST_CHARS: usize = 12;
/// Maximum number of characters of an extra body to show.
const SHOWN_CHARS_MAX: usize = 200;

/// Generation settings. `None` leaves a setting to the provider.
///
/// Settings that are newer than the first five are stored only if they are set, so that runs without them keep their bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Generation {
    /// Randomness, 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Nucleus sampling, above 0 to 1.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Maximum length of the answer in tokens, reasoning included.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    #[serde(default)]
    pub stop: Vec<String>,
    /// Seed of the provider's sampler, if it supports one.
    #[serde(default)]
    pub seed: Option<i64>,
    /// Number of the most probable tokens to sample from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// System message in front of every prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Effort of the model's reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Maximum number of tokens of the model's reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// JSON object, as text, whose fields are added to the body of every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<String>,
    /// Settings of the benchmark that requests leave out, in the order of [`OmittedSetting::ALL`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omit: Vec<OmittedSetting>,
    /// Name of the request's field for `max_tokens`; `None` uses the one that the provider wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<MaxTokensField>,
}

/// Declares an enum of settings that have a name in orders.
macro_rules! names {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $variant_doc:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[doc = $variant_doc])+ #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of listings.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name in orders.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the value with this name. Hyphens count as underscores.
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.trim().replace('-', "_");
                Self::ALL.iter().copied().find(|value| value.as_str() == name)
            }

            /// Lists the names for a message.
            pub fn names() -> String {
                Self::ALL.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

names! {
    /// Effort of a model's reasoning. Not every model accepts every effort.
    ReasoningEffort {
        /// No reasoning.
        None = "none",
        /// As little as possible.
        Minimal = "minimal",
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
        /// Above high.
        ExtraHigh = "xhigh",
    }
}

names! {
    /// Setting of a benchmark that requests can leave out.
    OmittedSetting {
        /// `temperature`.
        Temperature = "temperature",
        /// `top_p`.
        TopP = "top_p",
        /// `max_tokens`.
        MaxTokens = "max_tokens",
        /// `stop`.
        Stop = "stop",
    }
}

names! {
    /// Name of a request's field for the maximum length of the answer.
    MaxTokensField {
        /// `max_tokens`, which most servers know.
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`, which OpenAI's reasoning models require.
        MaxCompletionTokens = "max_completion_tokens",
    }
}

impl Generation {
    /// Returns the effort or the budget of the model's thinking, such as `high` or `8192 tokens`; `None` if it is left to the
    /// provider.
    pub fn thinking_level(&self) -> Option<String> {
        let budget = self.thinking_budget.map(|tokens| format!("{tokens} tokens"));
        budget.or_else(|| self.reasoning_effort.map(|effort| effort.as_str().to_owned()))
    }

    /// Returns true if any setting is set.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns a protocol's settings, overridden by these, without those to omit.
    #[must_use]
    pub fn over(&self, protocol: &Self) -> Self {
        // All fields are named, so that each new one is overridden, too.
        let Self {
            temperature,
            top_p,
            max_tokens,
            stop,
            seed,
            top_k,
            system_prompt,
            reasoning_effort,
            thinking_budget,
            extra_body,
            omit,
            max_tokens_field,
        } = self.clone();
        let mut merged = Self {
            temperature: temperature.or(protocol.temperature),
            top_p: top_p.or(protocol.top_p),
            max_tokens: max_tokens.or(protocol.max_tokens),
            stop: if stop.is_empty() { protocol.stop.clone() } else { stop },
            seed: seed.or(protocol.seed),
            top_k: top_k.or(protocol.top_k),
            system_prompt: system_prompt.or_else(|| protocol.system_prompt.clone()),
            reasoning_effort: reasoning_effort.or(protocol.reasoning_effort),
            thinking_budget: thinking_budget.or(protocol.thinking_budget),
            extra_body: extra_body.or_else(|| protocol.extra_body.clone()),
            omit: if omit.is_empty() { protocol.omit.clone() } else { omit },
            max_tokens_field: max_tokens_field.or(protocol.max_tokens_field),
        };
        for omitted in merged.omit.clone() {
            match omitted {
                OmittedSetting::Temperature => merged.temperature = None,
                OmittedSetting::TopP => merged.top_p = None,
                OmittedSetting::MaxTokens => merged.max_tokens = None,
                OmittedSetting::Stop => merged.stop.clear(),
            }
        }
        merged
    }

    /// Returns a setting that is both given and to be omitted.
    pub fn contradiction(&self) -> Option<OmittedSetting> {
        self.omit.iter().copied().find(|omitted| match omitted {
            OmittedSetting::Temperature => self.temperature.is_some(),
            OmittedSetting::TopP => self.top_p.is_some(),
            OmittedSetting::MaxTokens => self.max_tokens.is_some(),
            OmittedSetting::Stop => !self.stop.is_empty(),
        })
    }

    /// Describes what differs from a protocol's settings, one phrase per setting: `temperature 0.6 (benchmark: 0)`.
    pub fn changes_from(&self, protocol: &Self) -> Vec<String> {
        let pairs = self.facts().into_iter().zip(protocol.facts());
        let changed = pairs.filter(|(own, other)| own != other);
        changed
            .map(|((name, own), (_, other))| {
                let own = own.unwrap_or_else(|| "omitted".to_owned());
                let other = other.unwrap_or_else(|| "none".to_owned());
                format!("{name} {own} (benchmark: {other})")
            })
            .collect()
    }

    /// Describes the differences between the settings of two runs: `temperature 0.6 and 0`.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let pairs = self.facts().into_iter().zip(other.facts());
        pairs
            .filter(|(own, other)| own != other)
            .map(|((name, own), (_, other))| format!("{name} {} and {}", text(own), text(other)))
            .collect()
    }

    /// Returns the settings that can change answers, with their names and values for people. Always the same names in the
    /// same order.
    pub fn facts(&self) -> Vec<(&'static str, Option<String>)> {
        // `omit` shows as missing values. The name of a field carries the same limit, and servers differ in the name that
        // they want, so it is no difference from the benchmark; the stored settings have it.
        let Self {
            temperature,
            top_p,
            max_tokens,
            stop,
            seed,
            top_k,
            system_prompt,
            reasoning_effort,
            thinking_budget,
            extra_body,
            omit: _,
            max_tokens_field: _,
        } = self;
        vec![
            ("temperature", temperature.map(|number| number.to_string())),
            ("top_p", top_p.map(|number| number.to_string())),
            ("top_k", top_k.map(|number| number.to_string())),
            ("max_tokens", max_tokens.map(|number| number.to_string())),
            ("stop", (!stop.is_empty()).then(|| serde_json::json!(stop).to_string())),
            ("sampler seed", seed.map(|number| number.to_string())),
            ("system prompt", system_prompt.as_deref().map(describe_text)),
            ("reasoning effort", reasoning_effort.map(|effort| effort.to_string())),
            ("thinking budget", thinking_budget.map(|tokens| tokens.to_string())),
            ("extra body", extra_body.as_deref().map(shortened)),
        ]
    }
}

/// Identifies a text by its length and digest.
fn describe_text(text: &str) -> String {
    let mut digest = hex::encode(Sha256::digest(text.as_bytes()));
    digest.truncate(DIGEST_CHARS);
    let chars = text.chars().count();
    format!("of {chars} character{} ({digest})", if chars == 1 { "" } else { "s" })
}

/// Shortens a text. Equal results for different texts would hide a difference, so a digest replaces the rest.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}… {}", text.get(..end).unwrap_or_default(), describe_text(text)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    /// Settings of older versions, in their stored order.
    #[derive(Debug, Serialize)]
    struct OldGeneration {
        temperature: Option<f64>,
        top_p: Option<f64>,
        max_tokens: Option<u32>,
        stop: Vec<String>,
        seed: Option<i64>,
    }

    proptest! {
        #[test]
        fn absent_settings_change_nothing(
            (temperature, top_p) in (of(0.0..2.0), of(0.0..1.0)),
            (max_tokens, seed) in (of(any::<u32>()), of(any::<i64>())),
            stop in vec(".{1,8}", 0..3),
            protocol_temperature in of(0.0..2.0),
        ) {
            let old = serde_json::to_string(&OldGeneration { temperature, top_p, max_tokens, stop, seed }).unwrap();
            let read: Generation = serde_json::from_str(&old).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), old);
            prop_assert_eq!(read.changes_from(&read), Vec::<String>::new());
            prop_assert_eq!(read.contradiction(), None);
            prop_assert_eq!(read.over(&Generation::default()), read.clone());
            prop_assert_eq!(Generation::default().over(&read), read.clone());
            let protocol = Generation { temperature: protocol_temperature, ..Generation::default() };
            let merged = read.over(&protocol);
            prop_assert_eq!(merged.temperature, temperature.or(protocol_temperature));
            let changed = merged.changes_from(&protocol);
            prop_assert_eq!(
                changed.iter().any(|text| text.starts_with("temperature")),
                temperature.is_some_and(|own| Some(own) != protocol_temperature)
            );
        }
    }

    fn all_settings() -> Generation {
        Generation {
            temperature: Some(0.6),
            top_p: Some(0.95),
            max_tokens: Some(8192),
            stop: vec!["END".into(), "\n".into()],
            seed: Some(-7),
            top_k: Some(20),
            system_prompt: Some("Be brief.".into()),
            reasoning_effort: Some(ReasoningEffort::ExtraHigh),
            thinking_budget: Some(4096),
            extra_body: Some(r#"{"min_p":0.05}"#.into()),
            omit: Vec::new(),
            max_tokens_field: Some(MaxTokensField::MaxCompletionTokens),
        }
    }

    #[test]
    fn absent_settings_keep_the_stored_bytes_of_older_versions() {
        let old = r#"{"temperature":0.0,"top_p":null,"max_tokens":null,"stop":[],"seed":null}"#;
        let read: Generation = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let all = all_settings();
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Generation>(&text).unwrap(), all);
    }

    #[test]
    fn the_runs_settings_override_the_protocols() {
        let protocol = Generation { temperature: Some(0.0), top_p: Some(1.0), ..Generation::default() };
        assert_eq!(Generation::default().over(&protocol), protocol);
        let all = all_settings();
        assert_eq!(all.over(&protocol), all);
        let omit = Generation { omit: vec![OmittedSetting::Temperature], ..Generation::default() };
        let merged = omit.over(&protocol);
        assert_eq!((merged.temperature, merged.top_p), (None, Some(1.0)));
        assert_eq!(omit.contradiction(), None);
        let both = Generation { temperature: Some(1.0), ..omit };
        assert_eq!(both.contradiction(), Some(OmittedSetting::Temperature));
        let everything =
            Generation { omit: OmittedSetting::ALL.to_vec(), seed: Some(1), ..Generation::default() };
        let left = everything.over(&all);
        assert!(left.temperature.is_none() && left.top_p.is_none() && left.max_tokens.is_none());
        assert!(left.stop.is_empty() && left.seed == Some(1) && left.top_k == Some(20));
    }

    #[test]
    fn what_differs_from_the_benchmark_is_named() {
        let protocol = Generation { temperature: Some(0.0), max_tokens: Some(4096), ..Generation::default() };
        assert_eq!(protocol.changes_from(&protocol), Vec::<String>::new());
        assert_eq!(
            all_settings().changes_from(&protocol),
            [
                "temperature 0.6 (benchmark: 0)",
                "top_p 0.95 (benchmark: none)",
                "top_k 20 (benchmark: none)",
                "max_tokens 8192 (benchmark: 4096)",
                r#"stop ["END","\n"] (benchmark: none)"#,
                "sampler seed -7 (benchmark: none)",
                "system prompt of 9 characters (213c22ed7234) (benchmark: none)",
                "reasoning effort xhigh (benchmark: none)",
                "thinking budget 4096 (benchmark: none)",
                r#"extra body {"min_p":0.05} (benchmark: none)"#,
            ]
        );
        let omit = Generation { omit: vec![OmittedSetting::Temperature], ..Generation::default() };
        assert_eq!(omit.over(&protocol).changes_from(&protocol), ["temperature omitted (benchmark: 0)"]);
        assert_eq!(
            all_settings().differences(&Generation { temperature: None, ..all_settings() }),
            ["temperature 0.6 and none"]
        );
        let long = |last: &str| Generation {
            extra_body: Some(format!("{{\"a\":\"{}{last}\"}}", "x".repeat(300))),
            ..Generation::default()
        };
        assert_eq!(long("1").differences(&long("2")).len(), 1, "the difference is past the shown part");
    }

    #[test]
    fn names_are_read_with_hyphens_too() {
        assert_eq!(OmittedSetting::from_name(" top-p "), Some(OmittedSetting::TopP));
        assert_eq!(ReasoningEffort::from_name("high"), Some(ReasoningEffort::High));
        assert_eq!(ReasoningEffort::from_name("HIGH"), None);
        for effort in ReasoningEffort::ALL {
            assert_eq!(ReasoningEffort::from_name(effort.as_str()), Some(*effort));
        }
        assert_eq!(MaxTokensField::names(), "`max_tokens`, `max_completion_tokens`");
    }
}
