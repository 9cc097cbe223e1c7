//! Waits of one run for its providers, as this process knows them. They are written rarely: when a wait begins, when it
//! becomes longer, and when it ends.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_domain::{ModelRole, Timestamp};
use bench_state::{ProviderWait, WaitKind};

/// Maximum number of characters of a provider's sentence in views and events.
const MESSAGE_CHARS_MAX: usize = 300;
/// Extensions of a wait by less than this are not written.
const EXTENSION_MIN: Duration = Duration::from_secs(2);
/// Extensions of a wait by less than this don't get an event of their own.
const ANNOUNCED_EXTENSION_MIN: Duration = Duration::from_secs(60);
/// Clocks of two processes differ by less than this.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// Waits of a run for the models that it asks.
#[derive(Debug, Default)]
pub(crate) struct ProviderWaits(Mutex<KnownWaits>);

#[derive(Debug, Default)]
struct KnownWaits {
    /// The wait in the run's record.
    wait: Option<ProviderWait>,
    model: Requests,
    judge: Requests,
    user_model: Requests,
}

/// Results of requests in one role.
#[derive(Debug, Default)]
struct Requests {
    /// Number of failures since the last answer.
    failures: u32,
    /// Time at which the latest answered request was sent.
    answered_at: Timestamp,
}

impl KnownWaits {
    fn requests(&mut self, role: ModelRole) -> &mut Requests {
        match role {
            ModelRole::Model => &mut self.model,
            ModelRole::Judge => &mut self.judge,
            ModelRole::UserModel => &mut self.user_model,
        }
    }
}

impl ProviderWaits {
    /// Creates the waits of a run from its record.
    pub(crate) fn new(wait: Option<ProviderWait>) -> Self {
        Self(Mutex::new(KnownWaits { wait, ..KnownWaits::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, KnownWaits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the wait in the run's record, which other processes change, too.
    pub(crate) fn update(&self, wait: Option<ProviderWait>) {
        self.lock().wait = wait;
    }

    /// Records that a request was answered.
    pub(crate) fn note_answer(&self, role: ModelRole, sent_at: Timestamp) {
        let mut known = self.lock();
        let requests = known.requests(role);
        requests.failures = 0;
        requests.answered_at = requests.answered_at.max(sent_at);
    }

    /// Returns true if the run waits for the provider in this role.
    pub(crate) fn is_waiting(&self, role: ModelRole) -> bool {
        self.lock().wait.as_ref().is_some_and(|wait| wait.role == role)
    }

    /// Records that the wait is over, although its time has not passed: the provider has answered a probe.
    pub(crate) fn note_over(&self, role: ModelRole) {
        let mut known = self.lock();
        if let Some(until) = known.wait.as_ref().filter(|wait| wait.role == role).map(|wait| wait.until) {
            let requests = known.requests(role);
            requests.answered_at = requests.answered_at.max(until);
        }
    }

    /// Records that a request failed, and returns the number of failures since the last answer.
    pub(crate) fn note_failure(&self, role: ModelRole) -> u32 {
        let mut known = self.lock();
        let requests = known.requests(role);
        requests.failures = requests.failures.saturating_add(1);
        requests.failures
    }

    /// Returns the wait to write, or `None` if the run is known to wait about as long. The caller writes it.
    pub(crate) fn begin_or_extend(
        &self,
        role: ModelRole,
        kind: WaitKind,
        until: Timestamp,
        message: Option<&str>,
        now: Timestamp,
    ) -> Option<ProviderWait> {
        let mut known = self.lock();
        let earlier = known.wait.as_ref();
        if let Some(earlier) = earlier {
            let tolerance = EXTENSION_MIN.max(earlier.until.since(now) / 10);
            if earlier.until.plus(tolerance) >= until {
                return None;
            }
        }
        let same = earlier.filter(|earlier| earlier.role == role && earlier.kind == kind);
        let message = message.map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect());
        let wait = ProviderWait {
            kind,
            role,
            since: same.map_or(now, |same| same.since),
            until,
            announced_until: same
                .filter(|same| {
                    let announced = same.announced_until.since(same.since);
                    until.since(same.announced_until) < announced.max(ANNOUNCED_EXTENSION_MIN)
                })
                .map_or(until, |same| same.announced_until),
            message: message.or_else(|| same.and_then(|same| same.message.clone())),
        };
        known.wait = Some(wait.clone());
        Some(wait)
    }

    /// Returns the wait that an answer has ended, if any, and forgets it. The caller removes it from the run's record.
    pub(crate) fn take_ended(&self) -> Option<ProviderWait> {
        let mut known = self.lock();
        let wait = known.wait.clone()?;
        let answered_at = known.requests(wait.role).answered_at;
        let is_over = match wait.kind {
            // Requests that were sent before the limit are answered nevertheless.
            WaitKind::RateLimited => answered_at.plus(CLOCK_TOLERANCE) >= wait.until,
            WaitKind::Unavailable => answered_at > wait.since,
        };
        if !is_over {
            return None;
        }
        known.wait.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn limit(waits: &ProviderWaits, now: i64, until: i64, message: Option<&str>) -> Option<ProviderWait> {
        waits.begin_or_extend(ModelRole::Model, WaitKind::RateLimited, at(until), message, at(now))
    }

    #[test]
    fn a_wait_is_written_once_for_all_samples() {
        let waits = ProviderWaits::new(None);
        let first = limit(&waits, 100, 3_700, Some("slow down")).unwrap();
        assert_eq!((first.since, first.until, first.announced_until), (at(100), at(3_700), at(3_700)));
        for now in 100..200 {
            assert_eq!(limit(&waits, now, 3_701, None), None);
        }
        // A little longer is worth no write, much longer is.
        assert_eq!(limit(&waits, 200, 3_800, None), None);
        let longer = limit(&waits, 3_700, 7_000, None).unwrap();
        assert_eq!((longer.since, longer.announced_until), (at(100), at(3_700)), "no event yet");
        assert_eq!(longer.message.as_deref(), Some("slow down"));
        let much_longer = limit(&waits, 7_000, 7_400, None).unwrap();
        assert_eq!(much_longer.announced_until, at(7_400), "twice as long as announced");
    }

    #[test]
    fn only_an_answer_to_a_later_request_ends_a_rate_limit() {
        let waits = ProviderWaits::new(None);
        limit(&waits, 100, 200, None).unwrap();
        waits.note_answer(ModelRole::Model, at(90));
        assert_eq!(waits.take_ended(), None, "sent before");
        for other in [ModelRole::Judge, ModelRole::UserModel] {
            waits.note_answer(other, at(205));
            assert_eq!(waits.take_ended(), None, "{other:?}");
        }
        waits.note_answer(ModelRole::Model, at(201));
        assert_eq!(waits.take_ended().map(|wait| wait.until), Some(at(200)));
        assert_eq!(waits.take_ended(), None, "reported once");
    }

    #[test]
    fn the_answer_to_a_probe_ends_a_rate_limit() {
        let waits = ProviderWaits::new(None);
        limit(&waits, 100, 700, None).unwrap();
        waits.note_answer(ModelRole::Model, at(150));
        assert_eq!(waits.take_ended(), None);
        for other in [ModelRole::Judge, ModelRole::UserModel] {
            waits.note_over(other);
            assert!(waits.is_waiting(ModelRole::Model) && !waits.is_waiting(other), "{other:?}");
            assert_eq!(waits.take_ended(), None, "{other:?}");
        }
        waits.note_over(ModelRole::Model);
        assert_eq!(waits.take_ended().map(|wait| wait.until), Some(at(700)));
        assert!(!waits.is_waiting(ModelRole::Model));
    }

    #[test]
    fn failures_count_until_an_answer() {
        let waits = ProviderWaits::new(None);
        assert_eq!([1, 2, 3].map(|_| waits.note_failure(ModelRole::Model)), [1, 2, 3]);
        assert_eq!(waits.note_failure(ModelRole::Judge), 1);
        let wait = waits.begin_or_extend(ModelRole::Model, WaitKind::Unavailable, at(30), None, at(10));
        assert!(wait.is_some());
        waits.note_answer(ModelRole::Model, at(12));
        assert!(waits.take_ended().is_some(), "before the time that was planned");
        assert_eq!(waits.note_failure(ModelRole::Model), 1);
    }
}
