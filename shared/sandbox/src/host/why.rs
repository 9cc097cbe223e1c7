//! Causes of a sandbox's end.

/// Why a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Terminated,
    Preempted,
    Idle,
    Lease,
    Over,
    Memory,
    Unclaimed,
    Shutdown,
}

impl Why {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "it was terminated",
            Self::Preempted => "it was preempted",
            Self::Idle => "nobody used it",
            Self::Lease => "its lease is over",
            Self::Over => "its first process is gone",
            Self::Memory => "the machine has hardly any memory left, and it uses most",
            Self::Unclaimed => "whoever asked for it went away",
            Self::Shutdown => "the host ends",
        }
    }
}
