//! Formatting of times in exports, and tolerances for clocks and deployments.

use jiff::{SignedDuration, Timestamp};

/// Maximum difference between the clocks of a signer and a verifier.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Time for which processes may keep running after the secret with their key was replaced. They sign with the retired
/// key until then.
const ROLLOUT: SignedDuration = SignedDuration::from_hours(1);

/// Formats a time as RFC 3339 in UTC with whole seconds and `Z`, truncating the fraction. All times in a signed archive
/// have this form.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> String {
    format!("{}", time.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

/// Returns the latest time that another machine's clock may show now.
pub(crate) fn latest_clock(now: Timestamp) -> Timestamp {
    now.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX)
}

/// Returns the latest time at which a key may still sign that was retired at `retired` by replacing a stored secret.
pub(crate) fn after_rollout(retired: Timestamp) -> Timestamp {
    retired.checked_add(ROLLOUT).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fractions_are_cut_off() {
        let time = "2026-01-02T04:10:00.999999+01:00".parse().unwrap();
        assert_eq!(super::whole_seconds(time), "2026-01-02T03:10:00Z");
    }
}
