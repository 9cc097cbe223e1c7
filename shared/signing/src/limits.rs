//! How large an archive may be.

use crate::reason::{Reason, Refusal};

/// The largest manifest, in bytes; it is held in memory.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The largest signature or public key, in bytes. They have 88 and 44 and may carry white space.
pub(crate) const TEXT_BYTES_MAX: u64 = 4 << 10;

/// Entries below this size may compress as well as they like.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// Bounds on what an archive may ask of the verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All members together after decompression, in bytes. More than 4 GiB cannot occur: the format's 64-bit
    /// extension is refused.
    pub total_bytes_max: u64,
    /// Entries in the directory.
    pub entries_max: u16,
    /// How many times larger a member above 1 MiB may be than its compressed form. Deflate cannot exceed 1032,
    /// and a run in which the model repeats one word for megabytes comes near 900: only data without content lies above.
    pub ratio_max: u64,
}

impl Default for Limits {
    /// For a file on disk: 2 GiB, 8 entries, ratio 1000.
    fn default() -> Self {
        Self { total_bytes_max: 2 << 30, entries_max: 8, ratio_max: 1000 }
    }
}

impl Limits {
    /// Checks what the headers declare. Readers never deliver more than was declared.
    pub(crate) fn check(&self, entries: impl Iterator<Item = (u64, u64)>) -> Result<(), Refusal> {
        let mut total_bytes = 0u64;
        for (compressed_bytes, bytes) in entries {
            if bytes > RATIO_FREE_BYTES && bytes > compressed_bytes.saturating_mul(self.ratio_max) {
                let text = format!("An entry grows more than {} times when decompressed", self.ratio_max);
                return Err(Refusal::new(Reason::RatioTooHigh, text));
            }
            total_bytes = total_bytes.saturating_add(bytes);
        }
        if total_bytes > self.total_bytes_max {
            let text = format!(
                "The archive holds {total_bytes} bytes, more than the {} allowed",
                self.total_bytes_max
            );
            return Err(Refusal::new(Reason::TooLarge, text));
        }
        Ok(())
    }
}
