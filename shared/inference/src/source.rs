//! Sources of a run's answers.

use std::fmt;

use crate::Provider;

/// Source of a model's answers: a provider, or a source without network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelSource {
    /// A provider, `NAME/MODEL`.
    Provider(&'static Provider),
    /// The item's own gold answer, `oracle`.
    Oracle,
    /// Nobody, `nop`: every answer is empty.
    Nop,
    /// An agent of its user's, which works on terminal tasks, `custom`.
    Custom,
    /// Stored responses from a file, `replay:FILE`.
    Replay,
}

impl ModelSource {
    /// Returns the name in JSON and storage; for a provider, also in model names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider(provider) => provider.name,
            Self::Oracle => "oracle",
            Self::Nop => "nop",
            Self::Custom => "custom",
            Self::Replay => "replay",
        }
    }

    /// Returns the name for use in sentences.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Provider(provider) => provider.display_name,
            Self::Oracle => "the oracle",
            Self::Nop => "nobody",
            Self::Custom => "a custom agent",
            Self::Replay => "the stored responses",
        }
    }

    /// Returns the source with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let others = [Self::Oracle, Self::Nop, Self::Custom, Self::Replay].into_iter();
        let provider = Provider::from_name(name).map(Self::Provider);
        provider.or_else(|| others.into_iter().find(|source| source.as_str() == name))
    }

    /// Returns the provider, if it is one.
    pub const fn provider(self) -> Option<&'static Provider> {
        match self {
            Self::Provider(provider) => Some(provider),
            Self::Oracle | Self::Nop | Self::Custom | Self::Replay => None,
        }
    }

    /// Returns true if it is a provider, which may need a key and cost money.
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::Provider(_))
    }
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
