//! Priorities of sandboxes.

use serde::{Serialize, Serializer};

/// How urgent a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// 0: before all others.
    Critical,
    /// 1.
    High,
    /// 2: unless said otherwise.
    Normal,
    /// 3: batches.
    Low,
}

impl Priority {
    /// The most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The priority of that number, 0 to 3.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// 0 to 3.
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// Its name.
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
