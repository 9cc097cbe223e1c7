//! Bounds of a host.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::isolation::Limits;

/// Sandboxes at once for each slot, idle ones included, unless said otherwise.
const SANDBOXES_PER_SLOT: usize = 8;
/// And at least so many.
const SANDBOXES_MAX_LEAST: usize = 64;

/// The key that callers show. Only its digest is kept.
#[derive(Clone)]
pub struct ApiKey([u8; 32]);

impl ApiKey {
    /// A key; `None` when it is empty or blank.
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(Sha256::digest(key.as_bytes()).into()))
    }

    /// Whether a request shows this key: `Authorization: Bearer KEY`, once.
    pub fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        // Two keys are none.
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, key)) = value.as_bytes().split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && self.is(key.trim_ascii())
    }

    /// Whether this is the key, in a time that does not depend on where they differ.
    fn is(&self, shown: &[u8]) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        self.0.ct_eq(&shown).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// How many sandboxes there may be, what each may use, and how long things may take.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Sandboxes that may work at once. Default: the number of processors, since graders measure time by the clock on the
    /// wall and two programs on one processor would each take twice as long.
    pub slots: usize,
    /// Sandboxes at once, those included that lent their slot to others. Default: 8 per slot and at least 64.
    pub sandboxes_max: usize,
    /// What each sandbox may use.
    pub limits: Limits,
    /// How long a creation waits for a place, and a command for a slot, until 503. Default: 20 s.
    pub create_wait: Duration,
    /// A sandbox that neither ran a command nor got a file for so long is ended. Default: 30 min.
    pub idle_timeout: Duration,
    /// A sandbox that is so old is ended. Default: 6 h.
    pub lease_max: Duration,
    /// A sandbox that ran no command for so long, and uses no processor either, lends its slot to who waits for one.
    /// Default: 10 s.
    pub lend_after: Duration,
    /// How long a command may take that does not say so itself. Default: 30 s. More than [`HostConfig::lease_max`] is
    /// never given.
    pub exec_timeout: Duration,
    /// Commands at once in one sandbox. Default: 16.
    pub execs_max: usize,
    /// Bytes kept of a command's standard output and of its standard error, each. Default: 1 MiB.
    pub output_bytes_max: usize,
    /// Bytes of a request's body. Default: 16 MiB.
    pub body_bytes_max: usize,
    /// Bytes of all requests' bodies that are in memory at once, besides 64 KiB of each. Default: 256 MiB.
    pub bodies_bytes_max: usize,
    /// How long the body of a request may take to arrive. Default: 60 s.
    pub body_timeout: Duration,
    /// Creations and commands that wait at once; whoever comes later is told 429. Default: 1,000.
    pub waiting_max: usize,
    /// Memory of the machine that must be free for another sandbox to be made, in bytes. When less than half of it is
    /// left, the sandbox that uses most is ended. Default: 5 % of the memory, 256 MiB at least and 1 GiB at most.
    pub memory_reserve_bytes: u64,
    /// Variables that every command has, beside those of its caller, such as `SANDY_FILES`.
    pub env: BTreeMap<String, String>,
    /// A folder on the disk that is told of in resources and metrics.
    pub disk_folder: PathBuf,
    /// The key that every request must show; without one everybody who can reach the host may use it.
    pub key: Option<ApiKey>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self::with_slots(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl HostConfig {
    /// The defaults for so many slots; at least one.
    pub fn with_slots(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            slots,
            sandboxes_max: slots.saturating_mul(SANDBOXES_PER_SLOT).max(SANDBOXES_MAX_LEAST),
            limits: Limits::default(),
            create_wait: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(30 * 60),
            lease_max: Duration::from_secs(6 * 3_600),
            lend_after: Duration::from_secs(10),
            exec_timeout: Duration::from_secs(30),
            execs_max: 16,
            output_bytes_max: 1 << 20,
            body_bytes_max: 16 << 20,
            bodies_bytes_max: 256 << 20,
            body_timeout: Duration::from_secs(60),
            waiting_max: 1_000,
            memory_reserve_bytes: reserve_of(super::machine::memory_bytes()),
            env: BTreeMap::new(),
            disk_folder: PathBuf::from("/"),
            key: None,
        }
    }
}

/// Memory that is kept free on a machine with so much of it, where that is known.
fn reserve_of(total_bytes: Option<u64>) -> u64 {
    const LEAST: u64 = 256 << 20;
    const MOST: u64 = 1 << 30;
    (total_bytes.unwrap_or_default() / 20).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_compared_whole_and_never_shown() {
        let key = ApiKey::new(" secret-key\n").unwrap();
        assert!(key.is(b"secret-key"));
        for other in [&b"secret-ke"[..], b"secret-key ", b"", b"secret-kez"] {
            assert!(!key.is(other), "{other:?}");
        }
        assert!(!format!("{key:?}").contains("secret"));
        assert!(ApiKey::new(" \n").is_none());
    }

    #[test]
    fn a_share_of_the_memory_is_kept_free() {
        for (total, reserve) in [(None, 256 << 20), (Some(1 << 30), 256 << 20), (Some(1 << 40), 1 << 30)] {
            assert_eq!(reserve_of(total), reserve);
        }
        assert_eq!(reserve_of(Some(10 << 30)), 512 << 20);
    }

    #[test]
    fn the_defaults_hold_fifty_idle_sandboxes_on_any_machine() {
        for slots in [0, 1, 2, 96] {
            let config = HostConfig::with_slots(slots);
            assert!(config.slots >= 1 && config.sandboxes_max >= 64.max(config.slots), "{slots}");
        }
    }
}
