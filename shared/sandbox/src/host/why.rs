//! Reasons for which sandboxes end.

/// Reason for which a sandbox ended.
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
            Self::Idle => "it was not used",
            Self::Lease => "its lease expired",
            Self::Over => "its first process is gone",
            Self::Memory => "the machine is nearly out of memory, and this sandbox uses most",
            Self::Unclaimed => "its caller went away",
            Self::Shutdown => "the host is shutting down",
        }
    }
}
