//! Intact archives that are signed by an unknown key.

use std::fs::File;
use std::path::Path;

use bench_signing::{FINGERPRINT_MISMATCH, KeyRole, Limits, PublicKey, Reason, TrustedKey, embedded_signer};
use jiff::Timestamp;

use crate::format;

/// Explains the refusal of an archive whose only problem is its key, or returns `None` if there are other problems.
pub(super) fn explain(path: &Path, reasons: &[Reason], trusted: &[TrustedKey]) -> Option<String> {
    let by_key = [Reason::SignatureInvalid, Reason::FingerprintMismatch, Reason::KeysUnavailable];
    if reasons.is_empty() || !reasons.iter().all(|reason| by_key.contains(reason)) {
        return None;
    }
    let key = signer(path)?;
    let fingerprint = format::short(&key.fingerprint());
    let is_given = !trusted.is_empty() && trusted.iter().all(|key| key.role == KeyRole::Given);
    Some(match is_given {
        true => format!("intact, but signed by `{fingerprint}`, which is not one of the given keys"),
        false => format!(
            "intact, signed by an unknown key `{fingerprint}`; pin it with `bench keys pin` if its owner confirms {}, or name \
             the data directory that signed it with --data-dir",
            key.to_base64()
        ),
    })
}

/// Explains the same for an archive that a server refused with these errors. The verification protocol has no codes and
/// fixes this text.
pub(super) fn explain_servers(path: &Path, errors: &[String]) -> Option<String> {
    let by_key = errors.iter().any(|error| error == FINGERPRINT_MISMATCH);
    let key = by_key.then(|| signer(path)).flatten()?;
    let fingerprint = format::short(&key.fingerprint());
    Some(format!("intact, signed by a key `{fingerprint}` that the server does not know"))
}

fn signer(path: &Path) -> Option<PublicKey> {
    embedded_signer(File::open(path).ok()?, &Limits::default(), Timestamp::now())
}
