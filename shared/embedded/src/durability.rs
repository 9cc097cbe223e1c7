//! Durability of acknowledged writes.

/// Durability of acknowledged writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Writes survive the end of the process at any moment, and a power failure: every acknowledged
    /// write is on the disk, except receives and deletes of messages: after a power failure, the last of them may be delivered
    /// again. Concurrent writes share one wait for the disk.
    #[default]
    Full,
    /// Writes survive the end of the process at any moment. A power failure may lose the last
    /// writes, but the rest stays consistent.
    Normal,
}
