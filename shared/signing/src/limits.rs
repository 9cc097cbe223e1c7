//! Size limits of archives.

use crate::reason::{Reason, Refusal};

/// Maximum size of a manifest, in bytes. It is held in memory.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Maximum size of a signature or public key file, in bytes. Their text has 88 and 44, plus optional white space.
pub(crate) const TEXT_BYTES_MAX: u64 = 4 << 10;

/// The compression ratio of entries below this size isn't checked.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// Limits on the resources that an archive may take during verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Total size of all members after decompression, in bytes. More than 4 GiB is impossible, since ZIP64 is rejected.
    pub total_bytes_max: u64,
    /// Number of entries in the directory.
    pub entries_max: u16,
    /// Maximum ratio of the decompressed to the compressed size of a member above 1 MiB. Deflate can't exceed 1032. A
    /// run in which the model repeats one word for megabytes comes close to 900; only data without content exceeds
    /// that.
    pub ratio_max: u64,
}

impl Default for Limits {
    /// Limits for a file on disk: 2 GiB, 8 entries, ratio 1000.
    fn default() -> Self {
        Self { total_bytes_max: 2 << 30, entries_max: 8, ratio_max: 1000 }
    }
}

impl Limits {
    /// Checks the sizes that the headers declare. Readers never return more than that.
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
