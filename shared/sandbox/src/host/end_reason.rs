//! Reasons for which sandboxes end.

/// Reason for which a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    Terminated,
    Preempted,
    Idle,
    LeaseExpired,
    ProcessGone,
    LowMemory,
    Unclaimed,
    Shutdown,
}

impl EndReason {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "it was terminated",
            Self::Preempted => "it was preempted",
            Self::Idle => "it was not used",
            Self::LeaseExpired => "its lease expired",
            Self::ProcessGone => "its first process is gone",
            Self::LowMemory => "the machine is nearly out of memory, and this sandbox uses most",
            Self::Unclaimed => "its caller went away",
            Self::Shutdown => "the host is shutting down",
        }
    }
}
