//! Checks of an archive's dates against its key and the current time.
//!
//! The date of an archive is the time at which its run was completed, or the time from which its key was valid if that
//! is later (see `ManifestFields::generated_at`). So a key that was retired, or that leaked later, can't vouch for
//! later archives, and this installation never writes a date before the key's validity.

use jiff::Timestamp;

use crate::keys::TrustedKey;
use crate::reason::{Reason, Refusal, quote_short};
use crate::time::{latest_clock, whole_seconds};

/// Checks the manifest's date.
pub(super) fn check_manifest_date(date: &str, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
    let Ok(time) = date.parse::<Timestamp>() else {
        let text = format!("Manifest field generated_at is not a time: {}", quote_short(date));
        return Some(Refusal::new(Reason::ManifestWrongTypes, text));
    };
    // Archives have whole seconds, keys may have fractions.
    if let Some(from) = signer.valid_from.filter(|from| time.as_second() < from.as_second()) {
        let (date, from) = (whole_seconds(time), whole_seconds(from));
        let text = format!("The archive is dated {date}, but its key signs only since {from}");
        return Some(Refusal::new(Reason::DateOutsideValidity, text));
    }
    check_upper_bounds(time, signer, now)
}

/// Checks the results' date. It may be earlier than the key's validity, since the run was completed before.
pub(super) fn check_results_date(date: &str, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
    match date.parse() {
        Ok(time) => check_upper_bounds(time, signer, now),
        Err(_) => {
            let text = format!("Results field exported_at is not a time: {}", quote_short(date));
            Some(Refusal::new(Reason::ResultsWrongTypes, text))
        }
    }
}

fn check_upper_bounds(time: Timestamp, signer: &TrustedKey, now: Timestamp) -> Option<Refusal> {
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
