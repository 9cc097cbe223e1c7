//! Whether an archive's dates fit its key and the present.
//!
//! An archive is dated when its run was completed, or when its key began to sign if that was later (see
//! `ManifestFields::generated_at`). So a key that is retired, or that somebody else got hold of later, vouches for
//! nothing that comes after it; a date before the key's time is none that this installation writes.

use jiff::Timestamp;

use crate::keys::TrustedKey;
use crate::reason::{Reason, Refusal, shown};
use crate::time::{latest_clock, whole_seconds};

/// What is wrong with the manifest's date.
pub(super) fn wrong_for_manifest(date: &str, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
    let Ok(time) = date.parse::<Timestamp>() else {
        let text = format!("Manifest field generated_at is not a time: {}", shown(date));
        return Some(Refusal::new(Reason::ManifestWrongTypes, text));
    };
    // Archives have whole seconds, keys may have more.
    if let Some(from) = signer.valid_from.filter(|from| time.as_second() < from.as_second()) {
        let (date, from) = (whole_seconds(time), whole_seconds(from));
        let text = format!("The archive is dated {date}, but its key signs only since {from}");
        return Some(Refusal::new(Reason::DateOutsideValidity, text));
    }
    too_late(time, signer, now)
}

/// What is wrong with the results' date. It may be earlier than the key: that is when the run was completed.
pub(super) fn wrong_for_results(date: &str, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
    match date.parse() {
        Ok(time) => too_late(time, signer, now),
        Err(_) => {
            let text = format!("Results field exported_at is not a time: {}", shown(date));
            Some(Refusal::new(Reason::ResultsWrongTypes, text))
        }
    }
}

fn too_late(time: Timestamp, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
    let date = whole_seconds(time);
    if let Some(until) = signer.valid_until.filter(|until| time > *until) {
        let until = whole_seconds(until);
        let text = format!("The archive is dated {date}, but its key was retired on {until}");
        return Some(Refusal::new(Reason::DateOutsideValidity, text));
    }
    (time > latest_clock(now)).then(|| {
        Refusal::new(Reason::DateInFuture, format!("The archive is dated {date}, which is in the future"))
    })
}
