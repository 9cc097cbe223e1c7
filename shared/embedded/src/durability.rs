//! What an acknowledged write survives.

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process at any moment, and a power cut: every acknowledged write is on the
    /// disk. Writes that come together share one wait for the disk.
    #[default]
    Full,
    /// The end of the process at any moment. A power cut may take the last writes, never the
    /// consistency of what is left.
    Normal,
}
