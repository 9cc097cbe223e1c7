//! What the job and the reading of its results agree on.

use bench_domain::Step;
use bench_items::Item;
use sha2::{Digest, Sha256};

/// Sandboxes that a problem may use up.
pub(super) const ROUNDS_MAX: u32 = 3;

/// What the driver writes.
pub(super) const RESULTS: &str = "results.jsonl";

/// What the driver seals its results with, and no program knows: it is of this round and these answers alone, and gone
/// from the sandbox before a program runs.
pub(super) fn secret(item: &Item, steps: &[Step], nonce: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(nonce.as_bytes());
    hasher.update([0]);
    hasher.update(item.id.as_bytes());
    hasher.update([0]);
    hasher.update(serde_json::to_vec(steps).unwrap_or_default());
    hex::encode(hasher.finalize())
}

/// The seal of an entry.
pub(super) fn seal(secret: &str, kind: &str, sealed: &[&str]) -> String {
    let entry = std::iter::once(kind).chain(sealed.iter().copied()).collect::<Vec<_>>().join("\n");
    hex::encode(Sha256::digest(format!("{secret}\n{entry}\n{secret}")))
}
