//! Rewards that a test script writes: `/logs/verifier/reward.json`, or else `/logs/verifier/reward.txt`.

use std::collections::BTreeMap;
use std::fmt;

use bench_domain::{Code, Verdict};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::model::{RewardStrategy, Step};
use crate::refusal::Quoted;

/// Path of the text file with one reward, in the verifier's container.
pub const REWARD_TEXT_PATH: &str = "/logs/verifier/reward.txt";
/// Path of the JSON file with rewards by key. It takes precedence.
pub const REWARD_JSON_PATH: &str = "/logs/verifier/reward.json";
/// Maximum size of either file, in bytes.
pub const REWARD_BYTES_MAX: usize = 64 * 1024;
/// Key of the reward that counts, if there are several.
const REWARD_KEY: &str = "reward";
/// Reward with which an episode passes.
const FULL_REWARD: f64 = 1.0;

/// Rewards of a verification by key. All of them are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewards(BTreeMap<String, f64>);

impl Rewards {
    /// Creates rewards that were stored. A reward that isn't finite is left out.
    pub fn from_map(rewards: BTreeMap<String, f64>) -> Self {
        Self(rewards.into_iter().filter(|(_, reward)| reward.is_finite()).collect())
    }

    /// Returns the rewards of a step that an agent can't earn any more: as missing ones, they count as 0 in a mean.
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Returns all rewards by key.
    pub const fn all(&self) -> &BTreeMap<String, f64> {
        &self.0
    }

    /// Returns the reward that counts: the one with the key `reward`, or the only one.
    ///
    /// # Errors
    /// If there are several and none has the key `reward`.
    pub fn main(&self) -> Result<f64, RewardError> {
        let only = || self.0.values().next().filter(|_| self.0.len() == 1);
        self.0.get(REWARD_KEY).or_else(only).copied().ok_or(RewardError::Ambiguous { count: self.0.len() })
    }

    /// Returns the verdict: correct for a reward of exactly 1, partial between 0 and 1, incorrect up to 0. The rewards
    /// are in its `detail`.
    pub fn verdict(&self) -> Verdict {
        let reward = match self.main() {
            Ok(reward) if reward <= FULL_REWARD => reward,
            Ok(reward) => return RewardError::AboveOne { reward }.verdict(),
            Err(error) => return error.verdict(),
        };
        let reason = if reward == FULL_REWARD { String::new() } else { format!("the reward is {reward}") };
        let mut verdict = Verdict::partial(reward.max(0.0), None, reason);
        let rewards: Map<String, Value> = self
            .0
            .iter()
            .map(|(key, reward)| (key.clone(), Number::from_f64(*reward).map_or(Value::Null, Value::Number)))
            .collect();
        verdict.detail.insert("rewards".to_owned(), Value::Object(rewards));
        verdict
    }

    /// Returns true if the step's rewards reach its lowest ones, so that the next step begins. A missing reward never
    /// does.
    pub fn reach(rewards: Option<&Self>, step: &Step) -> bool {
        step.min_rewards.iter().all(|(key, lowest)| {
            let reward = rewards.and_then(|rewards| rewards.0.get(key)).copied();
            reward.unwrap_or(f64::NEG_INFINITY) >= *lowest
        })
    }

    /// Combines the rewards of steps. `None` stands for a step whose verification ended without rewards, which a mean
    /// leaves out, as in Harbor.
    pub fn combine(strategy: RewardStrategy, steps: &[Option<Self>]) -> Option<Self> {
        match strategy {
            RewardStrategy::Final => steps.last().cloned().flatten().filter(|rewards| !rewards.0.is_empty()),
            RewardStrategy::Mean => {
                let graded: Vec<&Self> = steps.iter().flatten().collect();
                let keys = graded.iter().flat_map(|rewards| rewards.0.keys());
                let mean = |key: &String| {
                    let sum: f64 = graded.iter().filter_map(|rewards| rewards.0.get(key)).sum();
                    (key.clone(), sum / graded.len() as f64)
                };
                let means: BTreeMap<String, f64> = keys.map(mean).collect();
                (!means.is_empty()).then_some(Self(means))
            }
        }
    }
}

/// Reason for which a verification has no reward. The episode ends without a grade.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RewardError {
    /// The test script wrote neither file.
    #[error("the test script wrote neither `{REWARD_TEXT_PATH}` nor `{REWARD_JSON_PATH}`")]
    Missing,
    /// The file is empty.
    #[error("`{path}` is empty")]
    Empty {
        /// File that takes precedence.
        path: &'static str,
    },
    /// The file is larger than [`REWARD_BYTES_MAX`].
    #[error("`{path}` has more than {REWARD_BYTES_MAX} bytes")]
    TooLarge {
        /// File that takes precedence.
        path: &'static str,
    },
    /// The file isn't one number, or an object of numbers.
    #[error("`{path}` is {}, not {expected}", Quoted(found))]
    NotANumber {
        /// File that takes precedence.
        path: &'static str,
        /// Content, shortened.
        found: String,
        /// Expected content.
        expected: &'static str,
    },
    /// A reward is NaN or infinite.
    #[error("`{path}` has the reward {}, which is not finite", Quoted(found))]
    NotFinite {
        /// File that takes precedence.
        path: &'static str,
        /// The reward.
        found: String,
    },
    /// There are several rewards, and none has the key `reward`.
    #[error("`{REWARD_JSON_PATH}` has {count} rewards, and none with the key `{REWARD_KEY}`")]
    Ambiguous {
        /// Number of rewards.
        count: usize,
    },
    /// The reward is above 1.
    #[error("the reward is {reward}; rewards are from 0 to 1")]
    AboveOne {
        /// The reward.
        reward: f64,
    },
}

impl RewardError {
    /// Returns the name of the exception with which Harbor reports the failure. Harbor has none for several rewards and
    /// rewards above 1.
    pub const fn exception_name(&self) -> &'static str {
        match self {
            Self::Missing => "RewardFileNotFoundError",
            Self::Empty { .. } => "RewardFileEmptyError",
            _ => "VerifierOutputParseError",
        }
    }

    /// Returns the verdict: an infrastructure-error, since the episode wasn't measured.
    pub fn verdict(&self) -> Verdict {
        Verdict::ungraded(Code::SandboxNoVerdict, self.to_string())
    }
}

/// Parses the files that a test script wrote; `None` for a file that doesn't exist.
///
/// The caller reads at most one byte more than [`REWARD_BYTES_MAX`] of each.
///
/// # Errors
/// If there is no usable reward. The script's exit code doesn't count.
pub fn parse_rewards(json: Option<&[u8]>, text: Option<&[u8]>) -> Result<Rewards, RewardError> {
    let (path, bytes) = match (json, text) {
        (Some(bytes), _) => (REWARD_JSON_PATH, bytes),
        (None, Some(bytes)) => (REWARD_TEXT_PATH, bytes),
        (None, None) => return Err(RewardError::Missing),
    };
    if bytes.is_empty() {
        return Err(RewardError::Empty { path });
    }
    if bytes.len() > REWARD_BYTES_MAX {
        return Err(RewardError::TooLarge { path });
    }
    let content = String::from_utf8_lossy(bytes);
    if json.is_some() { parse_json(&content) } else { parse_text(&content) }
}

fn parse_text(content: &str) -> Result<Rewards, RewardError> {
    let path = REWARD_TEXT_PATH;
    let found = || content.trim().to_owned();
    let reward: f64 = content.trim().parse().map_err(|_| RewardError::NotANumber {
        path,
        found: found(),
        expected: "one number",
    })?;
    if !reward.is_finite() {
        return Err(RewardError::NotFinite { path, found: found() });
    }
    Ok(Rewards([(REWARD_KEY.to_owned(), reward)].into()))
}

fn parse_json(content: &str) -> Result<Rewards, RewardError> {
    let path = REWARD_JSON_PATH;
    let not_a_number = || {
        let expected = "an object of numbers with different keys";
        RewardError::NotANumber { path, found: content.trim().to_owned(), expected }
    };
    let Unique(values) = serde_json::from_str(content).map_err(|_| not_a_number())?;
    let rewards = values.into_iter().map(|(key, value)| {
        let reward = match &value {
            // Python counts booleans as numbers.
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            value => value.as_f64(),
        };
        match reward {
            Some(reward) if reward.is_finite() => Ok((key, reward)),
            Some(_) => Err(RewardError::NotFinite { path, found: value.to_string() }),
            None => Err(not_a_number()),
        }
    });
    let rewards: BTreeMap<String, f64> = rewards.collect::<Result<_, _>>()?;
    if rewards.is_empty() { Err(not_a_number()) } else { Ok(Rewards(rewards)) }
}

/// JSON object without repeated keys, of which other parsers would take different ones.
struct Unique(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if entries.insert(key, value).is_some() {
                        return Err(serde::de::Error::custom("a key is repeated"));
                    }
                }
                Ok(Unique(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests;
