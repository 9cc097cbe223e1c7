//! Visibility of runs and schedules to callers who don't own them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Visibility of a run or schedule to callers other than its owner and admins. Stricter ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// All callers find it in lists and can read it.
    #[default]
    Public,
    /// No list has it; callers who know its id can read it.
    Unlisted,
    /// Other callers get the answer for a run that doesn't exist.
    Private,
}

/// Error for a text that names no visibility.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a visibility; use public, unlisted or private")]
pub struct UnknownVisibility(String);

impl Visibility {
    /// Every visibility, the most open first.
    pub const ALL: [Self; 3] = [Self::Public, Self::Unlisted, Self::Private];

    /// Returns the name in JSON and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
            Self::Private => "private",
        }
    }

    /// Returns the stricter of two.
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }

    /// Returns true for the default.
    pub const fn is_public(&self) -> bool {
        matches!(self, Self::Public)
    }
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Visibility {
    type Err = UnknownVisibility;

    fn from_str(text: &str) -> Result<Self, UnknownVisibility> {
        let found = Self::ALL.into_iter().find(|visibility| visibility.as_str() == text.trim());
        found.ok_or_else(|| UnknownVisibility(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for visibility in Visibility::ALL {
            assert_eq!(visibility.as_str().parse(), Ok(visibility));
            assert_eq!(serde_json::to_value(visibility).unwrap(), visibility.as_str());
        }
        use Visibility::{Private, Public, Unlisted};
        assert_eq!([Public.stricter(Unlisted), Private.stricter(Unlisted)], [Unlisted, Private]);
        assert!("secret".parse::<Visibility>().unwrap_err().to_string().contains("`secret`"));
    }
}
