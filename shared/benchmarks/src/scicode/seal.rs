//! Agreement between a job and the reading of its results.

use bench_domain::Step;
use bench_items::Item;
use sha2::{Digest, Sha256};

/// Maximum number of sandboxes that a problem may use.
pub(super) const ROUNDS_MAX: u32 = 3;

/// Name of the file that the driver writes.
pub(super) const RESULTS: &str = "results.jsonl";

/// Returns the secret that seals the driver's results. It depends on the round and the answers, and the driver removes
/// it from the sandbox before any program runs.
pub(super) fn secret(item: &Item, steps: &[Step], nonce: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(nonce.as_bytes());
    hasher.update([0]);
    hasher.update(item.id.as_bytes());
    hasher.update([0]);
    hasher.update(serde_json::to_vec(steps).unwrap_or_default());
    hex::encode(hasher.finalize())
}

/// Returns the seal of an entry.
pub(super) fn seal(secret: &str, kind: &str, sealed: &[&str]) -> String {
    let entry = std::iter::once(kind).chain(sealed.iter().copied()).collect::<Vec<_>>().join("\n");
    hex::encode(Sha256::digest(format!("{secret}\n{entry}\n{secret}")))
}
