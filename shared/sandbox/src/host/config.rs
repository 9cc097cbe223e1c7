//! Configuration of a sandbox host.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::EngineConfig;
use crate::isolation::Limits;

/// Default number of sandboxes per slot, idle ones included.
const SANDBOXES_PER_SLOT: usize = 8;
/// Minimum of the default for [`HostConfig::sandboxes_max`].
const SANDBOXES_MAX_MIN: usize = 64;

/// The key that callers send. Only its digest is kept in memory.
#[derive(Clone)]
pub struct ApiKey([u8; 32]);

impl ApiKey {
    /// Creates a key; `None` if it is empty or blank.
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(Sha256::digest(key.as_bytes()).into()))
    }

    /// Returns true if the request has exactly one `Authorization` header and it is `Bearer KEY` with this key.
    pub fn is_sent_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        // Reject requests with two headers.
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, key)) = value.as_bytes().split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && self.matches(key.trim_ascii())
    }

    /// Compares in a time that doesn't depend on where the keys differ.
    fn matches(&self, sent: &[u8]) -> bool {
        let sent: [u8; 32] = Sha256::digest(sent).into();
        self.0.ct_eq(&sent).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Limits of a sandbox host: number of sandboxes, resources of each, and time limits.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Maximum number of sandboxes that work at once. Default: the number of processors. Graders measure wall-clock
    /// time, and two programs on one processor would each take twice as long.
    pub slots: usize,
    /// Maximum number of sandboxes, including those that lent their slot to others. Default: 8 per slot and at least
    /// 64.
    pub sandboxes_max: usize,
    /// Resource limits of each sandbox.
    pub limits: Limits,
    /// Maximum time that a creation waits for room, and a command for a slot, before the host answers with 503.
    /// Default: 20 s.
    pub create_wait: Duration,
    /// Time without a command or a written file after which a sandbox is ended. Default: 30 min.
    pub idle_timeout: Duration,
    /// Maximum age of a sandbox. Default: 6 h.
    pub lease_max: Duration,
    /// Time without a command after which a sandbox lends its slot to waiting requests, if its background processes
    /// don't use a processor either. Default: 10 s.
    pub lend_after: Duration,
    /// Time limit of commands whose request has none. Default: 30 s. No limit exceeds [`HostConfig::lease_max`].
    pub exec_timeout: Duration,
    /// Maximum number of concurrent commands in one sandbox. Default: 16.
    pub execs_max: usize,
    /// Maximum number of bytes kept of a command's standard output and of its standard error, each. Default: 1 MiB.
    pub output_bytes_max: usize,
    /// Maximum size of a request's body, in bytes. Default: 16 MiB.
    pub body_bytes_max: usize,
    /// Maximum memory for the bodies of all concurrent requests, in bytes, not counting the first 64 KiB of each.
    /// Default: 256 MiB.
    pub bodies_bytes_max: usize,
    /// Maximum time until the body of a request has arrived. Default: 60 s.
    pub body_timeout: Duration,
    /// Maximum number of creations and commands that wait; further ones get 429. Default: 1,000.
    pub waiting_max: usize,
    /// Memory of the machine that must be free to create another sandbox, in bytes. When less than half of it is left,
    /// the host ends the sandbox that uses most. Default: 5% of the memory, at least 256 MiB and at most 1 GiB.
    pub memory_reserve_bytes: u64,
    /// Environment variables of every command, besides those of its caller, such as `SANDY_FILES`.
    pub env: BTreeMap<String, String>,
    /// A folder on the disk whose usage resources and metrics report.
    pub disk_folder: PathBuf,
    /// The container engine for sandboxes that ask for one. If `None`, there is none.
    pub engine: Option<EngineConfig>,
    /// The key that every request must send. If `None`, everyone who can reach the host may use it.
    pub key: Option<ApiKey>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self::with_slots(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

impl HostConfig {
    /// Returns the defaults for this number of slots; at least one.
    pub fn with_slots(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            slots,
            sandboxes_max: slots.saturating_mul(SANDBOXES_PER_SLOT).max(SANDBOXES_MAX_MIN),
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
            memory_reserve_bytes: default_memory_reserve(super::machine::memory_bytes()),
            env: BTreeMap::new(),
            disk_folder: PathBuf::from("/"),
            engine: None,
            key: None,
        }
    }
}

/// Returns the memory to keep free on a machine with this much memory; `None` if the total isn't known.
fn default_memory_reserve(total_bytes: Option<u64>) -> u64 {
    const MIN_BYTES: u64 = 256 << 20;
    const MAX_BYTES: u64 = 1 << 30;
    (total_bytes.unwrap_or_default() / 20).clamp(MIN_BYTES, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_compared_as_a_whole_and_never_printed() {
        let key = ApiKey::new(" secret-key\n").unwrap();
        assert!(key.matches(b"secret-key"));
        for other in [&b"secret-ke"[..], b"secret-key ", b"", b"secret-kez"] {
            assert!(!key.matches(other), "{other:?}");
        }
        assert!(!format!("{key:?}").contains("secret"));
        assert!(ApiKey::new(" \n").is_none());
    }

    #[test]
    fn the_memory_reserve_is_a_limited_share() {
        for (total, reserve) in [(None, 256 << 20), (Some(1 << 30), 256 << 20), (Some(1 << 40), 1 << 30)] {
            assert_eq!(default_memory_reserve(total), reserve);
        }
        assert_eq!(default_memory_reserve(Some(10 << 30)), 512 << 20);
    }

    #[test]
    fn the_defaults_allow_fifty_idle_sandboxes_on_any_machine() {
        for slots in [0, 1, 2, 96] {
            let config = HostConfig::with_slots(slots);
            assert!(config.slots >= 1 && config.sandboxes_max >= 64.max(config.slots), "{slots}");
        }
    }
}
