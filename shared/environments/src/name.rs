//! Names of environments and their operations.

use std::fmt;
use std::str::FromStr;

use bench_sandy::job::{JobError, JobName};
use serde::{Deserialize, Serialize};

/// Maximum length of an environment's name, in characters.
const ENVIRONMENT_CHARS_MAX: usize = 60;
/// Maximum length of an operation's name, in characters. With the environment's name, it is the name of a job.
const OPERATION_CHARS_MAX: usize = 38;

/// Error of a name that has other characters than allowed, or too many.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a valid name: use at most {chars_max} lowercase letters, digits and `-`, beginning with a letter"
)]
pub struct InvalidName {
    name: String,
    chars_max: usize,
}

fn check(name: &str, chars_max: usize) -> Result<String, InvalidName> {
    let is_valid = name.len() <= chars_max
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    match is_valid {
        true => Ok(name.to_owned()),
        false => Err(InvalidName { name: name.chars().take(2 * chars_max).collect(), chars_max }),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $chars_max:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(name: &str) -> Result<Self, InvalidName> {
                check(name, $chars_max).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(name: String) -> Result<Self, InvalidName> {
                name.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// Name of an environment: its compose project. Unique on the sandbox host; at most 60 lowercase letters, digits and
    /// `-`, beginning with a letter.
    EnvironmentName, ENVIRONMENT_CHARS_MAX
}
name! {
    /// Name of an operation, unique in its environment: at most 38 lowercase letters, digits and `-`, beginning with a letter.
    OperationName, OPERATION_CHARS_MAX
}

impl EnvironmentName {
    /// Returns the name of the job that runs an operation.
    pub(crate) fn job(&self, operation: &OperationName) -> Result<JobName, JobError> {
        // Two hyphens, so that no other pair of names has the same job.
        format!("{self}--{operation}").parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "ep-1", "z9", &"a".repeat(ENVIRONMENT_CHARS_MAX)] {
            let parsed: EnvironmentName = name.parse().unwrap();
            assert_eq!(serde_json::to_value(&parsed).unwrap(), name);
        }
        for name in [
            "",
            "A",
            "1a",
            "-a",
            "a-",
            "a_b",
            "a b",
            "a/b",
            "ä",
            "a\n",
            &"a".repeat(ENVIRONMENT_CHARS_MAX + 1),
        ] {
            assert!(name.parse::<EnvironmentName>().is_err(), "{name}");
            assert!(serde_json::from_value::<EnvironmentName>(name.into()).is_err(), "{name}");
        }
    }

    #[test]
    fn the_longest_names_are_names_of_jobs() {
        let environment: EnvironmentName = "a".repeat(ENVIRONMENT_CHARS_MAX).parse().unwrap();
        let operation: OperationName = "b".repeat(OPERATION_CHARS_MAX).parse().unwrap();
        assert!(environment.job(&operation).is_ok());
    }
}
