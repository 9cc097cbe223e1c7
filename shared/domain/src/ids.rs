//! Typed identifiers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::Timestamp;

/// Error for a text that isn't a valid identifier of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a valid {kind}: {rule}")]
pub struct InvalidId {
    /// Kind of identifier that was expected, for people.
    pub kind: &'static str,
    /// Given text, cut to 80 characters.
    pub given: String,
    /// Rule that the text violates.
    pub rule: &'static str,
}

impl InvalidId {
    pub(crate) fn new(kind: &'static str, given: &str, rule: &'static str) -> Self {
        Self { kind, given: given.chars().take(80).collect(), rule }
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts every common notation of a UUID; [`fmt::Display`] writes the lowercase hyphenated form.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text.trim()).map(Self).map_err(|_| InvalidId::new($kind, text, "it must be a UUID"))
            }
        }
    };
}

uuid_id!(
    /// Id of a run: a version 4 UUID, always written in lowercase with hyphens.
    RunId,
    "run id"
);
uuid_id!(
    /// Id of a model in the catalog: a version 5 UUID of its provider and slug, so that every installation gives a
    /// model the same id.
    ModelId,
    "model id"
);

uuid_id!(
    /// Id of a schedule: a version 4 UUID.
    ScheduleId,
    "schedule id"
);

/// Namespace of the version 5 UUIDs that this project derives from names.
const NAMESPACE: Uuid = Uuid::from_u128(0x6f1d_3a52_9a8c_4d0e_8b57_2c41_f0e9_7d13);

impl RunId {
    /// Creates a random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Derives a UUID from the run's id and `name`. The result is always the same.
    pub fn derive(self, name: &str) -> Uuid {
        Uuid::new_v5(&self.0, name.as_bytes())
    }
}

impl ScheduleId {
    /// Creates a random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Derives the id of the run that this schedule orders for a planned time. The id is always the same, so a planned
    /// time gets at most one run.
    pub fn run_id_at(self, planned: Timestamp) -> RunId {
        RunId(Uuid::new_v5(&self.0, planned.as_micros().to_string().as_bytes()))
    }
}

impl ModelId {
    /// Returns the id of the model that `provider` calls `slug`.
    pub fn from_name(provider: &str, slug: &str) -> Self {
        Self(Uuid::new_v5(&NAMESPACE, format!("{provider}/{slug}").as_bytes()))
    }
}

/// Name of a benchmark, such as `mmlu_pro`: 1 to 64 characters of `a-z`, `0-9` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BenchmarkName(String);

impl BenchmarkName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BenchmarkName {
    type Err = InvalidId;

    /// Trims and lowercases the text. `if_bench` and `if-bench` are older names of `ifbench`.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let name = text.trim().to_lowercase();
        let name = if name == "if_bench" || name == "if-bench" { "ifbench".to_owned() } else { name };
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
            return Err(InvalidId::new("benchmark name", text, "use 1 to 64 of a-z, 0-9 and _"));
        }
        Ok(Self(name))
    }
}

impl fmt::Display for BenchmarkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for BenchmarkName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for BenchmarkName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for BenchmarkName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for BenchmarkName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_written_in_one_way_only() {
        let id: RunId = "3F2B8C1E7D4A4F609B1E0A5C6D7E8F90".parse().unwrap();
        assert_eq!(id.to_string(), "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90");
        assert!("abc".parse::<RunId>().is_err());
    }

    #[test]
    fn benchmark_names_are_normalized_and_checked() {
        assert_eq!(" MMLU_Pro ".parse::<BenchmarkName>().unwrap().as_str(), "mmlu_pro");
        assert_eq!("if-bench".parse::<BenchmarkName>().unwrap().as_str(), "ifbench");
        for bad in ["", "a b", "a/b", "é", "../x"] {
            assert!(bad.parse::<BenchmarkName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn one_model_has_one_id_everywhere() {
        assert_eq!(ModelId::from_name("chutes", "a/b"), ModelId::from_name("chutes", "a/b"));
        assert_ne!(ModelId::from_name("chutes", "a/b"), ModelId::from_name("openrouter", "a/b"));
    }
}
