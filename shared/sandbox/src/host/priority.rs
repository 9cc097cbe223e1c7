//! Priorities of sandboxes.

use serde::{Serialize, Serializer};

/// Priority of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// 0: served before all others.
    Critical,
    /// 1.
    High,
    /// 2: the default.
    Normal,
    /// 3: batch work.
    Low,
}

impl Priority {
    /// All priorities, most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// Returns the priority with this number, 0 to 3.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number, 0 to 3.
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number())
    }
}
