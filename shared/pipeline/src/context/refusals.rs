//! Counts the refusals that one run got in one role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_domain::{BenchmarkName, Position, SampleRef, Timestamp};
use bench_inference::Failure;
use bench_state::Refusals as SharedRefusals;
use sha2::{Digest, Sha256};

/// Number of samples that must be refused alike before a run is stopped. Applies to all samples if the run
/// has fewer.
pub const REFUSED_SAMPLES: u64 = 5;
/// Maximum time for which a process waits for answers to requests of other processes, which it can't see, if
/// most of the refusals are not its own.
const OTHERS_TAKE: Duration = Duration::from_secs(60);
/// Maximum number of refusals of a run that one process writes to the state. Messages that keep differing
/// concern single items.
const NOTED_MAX: u32 = 100;

/// Refusals that one run got in one role since it was last requeued or resumed, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    counts: Mutex<RefusalCounts>,
}

#[derive(Debug, Default)]
struct RefusalCounts {
    /// Number of requests in flight.
    in_flight: u64,
    /// True if the provider has answered a request of the run.
    answered: bool,
    /// Number of refusals written to the state.
    noted: u32,
    /// Refusals by digest of their message.
    groups: BTreeMap<String, RefusalGroup>,
}

#[derive(Debug)]
struct RefusalGroup {
    /// The first message of the provider.
    cause: String,
    /// Samples for which this process asked.
    own_samples: BTreeSet<(BenchmarkName, Position)>,
    /// Number of samples in all processes.
    samples: u64,
    /// Time of the first refusal.
    since: Timestamp,
}

/// Conclusion from the refusals so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// They concern single samples, or are too few.
    Nothing,
    /// The run may have to be stopped, depending on the requests in flight.
    Suspected,
    /// All known requests were refused alike.
    AllRefused { cause: String, samples: u64 },
}

/// A request in flight.
pub(crate) struct InFlightGuard<'a>(&'a Refusals);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let mut counts = self.0.counts();
        counts.in_flight = counts.in_flight.saturating_sub(1);
    }
}

impl Refusals {
    fn counts(&self) -> MutexGuard<'_, RefusalCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in flight until the returned value is dropped.
    pub(crate) fn begin_request(&self) -> InFlightGuard<'_> {
        self.counts().in_flight += 1;
        InFlightGuard(self)
    }

    /// Records that the provider has answered. From now on, a refusal concerns one sample only.
    pub(crate) fn note_answer(&self) {
        let mut counts = self.counts();
        counts.answered = true;
        counts.groups.clear();
    }

    /// Returns true if the provider has answered a request of the run.
    pub(crate) fn is_answered(&self) -> bool {
        self.counts().answered
    }

    /// Records a refusal. Returns the digest of its message if the refusal has to be written to the state.
    pub(crate) fn note_refusal(
        &self,
        sample: &SampleRef,
        failure: &Failure,
        now: Timestamp,
    ) -> Option<String> {
        let mut counts = self.counts();
        if counts.answered || counts.noted >= NOTED_MAX {
            return None;
        }
        counts.noted += 1;
        let digest = digest(failure.status, &failure.cause);
        let group = counts.groups.entry(digest.clone()).or_insert_with(|| RefusalGroup {
            cause: failure.cause.clone(),
            own_samples: BTreeSet::new(),
            samples: 0,
            since: now,
        });
        group.own_samples.insert((sample.benchmark.clone(), sample.position));
        Some(digest)
    }

    /// Records how many samples all processes saw refused like this.
    pub(crate) fn update_shared_count(&self, digest: &str, noted: SharedRefusals) {
        if let Some(group) = self.counts().groups.get_mut(digest) {
            group.samples = group.samples.max(noted.samples);
            group.since = group.since.min(noted.since);
        }
    }

    /// Returns the conclusion from the refusals if `enough` samples make one.
    pub(crate) fn conclusion(&self, enough: u64, now: Timestamp) -> Conclusion {
        let counts = self.counts();
        let alike = counts.groups.values().find(|group| group.samples >= enough);
        let Some(group) = alike.filter(|_| !counts.answered) else { return Conclusion::Nothing };
        let is_own = group.own_samples.len() as u64 >= enough;
        if counts.in_flight > 0 || !(is_own || now.since(group.since) >= OTHERS_TAKE) {
            return Conclusion::Suspected;
        }
        Conclusion::AllRefused { cause: group.cause.clone(), samples: group.samples }
    }
}

/// Returns the digest of a refusal without the parts that differ by request: case, and words with a digit in
/// them, such as ids and lengths.
fn digest(status: Option<u16>, cause: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(status.map_or_else(String::new, |status| status.to_string()));
    for word in cause.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()) {
            hash.update(" ");
            hash.update(word);
        }
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_differ_by_ids_and_numbers_are_one() {
        let refusal_digest = |text: &str| digest(Some(400), &format!("HTTP 400 from Chutes: {text}"));
        assert_eq!(
            refusal_digest(
                r#"{"message":"Temperature 0.0 is not supported","id":"req_81f2"} (request_id=a-1)"#
            ),
            refusal_digest(
                r#"{"message":"temperature 0.7 is not supported","id":"req_9c40"} (request_id=a-22)"#
            )
        );
        assert_ne!(refusal_digest("temperature is not supported"), refusal_digest("top_p is not supported"));
        assert_ne!(digest(Some(400), "HTTP 400 from X: no"), digest(Some(422), "HTTP 422 from X: no"));
    }

    fn group(samples: u64, own_samples: u32, since: Timestamp) -> Refusals {
        let own_samples =
            (0..own_samples).map(|item| ("a".parse().unwrap(), Position { item, sample: 0 })).collect();
        let group = RefusalGroup { cause: "no".to_owned(), own_samples, samples, since };
        let counts =
            RefusalCounts { groups: BTreeMap::from([("d".to_owned(), group)]), ..RefusalCounts::default() };
        Refusals { counts: Mutex::new(counts) }
    }

    #[test]
    fn answers_under_way_and_other_processes_are_waited_for() {
        let now = Timestamp::from_micros(1_000_000_000);
        let alike = |samples| Conclusion::AllRefused { cause: "no".to_owned(), samples };
        let own = group(5, 5, now);
        assert_eq!(own.conclusion(5, now), alike(5));
        let in_flight = own.begin_request();
        assert_eq!(own.conclusion(5, now), Conclusion::Suspected);
        drop(in_flight);
        assert_eq!(own.conclusion(5, now), alike(5));
        assert_eq!(own.conclusion(6, now), Conclusion::Nothing);
        own.note_answer();
        assert_eq!(own.conclusion(5, now), Conclusion::Nothing);
        let others = group(7, 1, now);
        assert_eq!(others.conclusion(5, now), Conclusion::Suspected);
        assert_eq!(others.conclusion(5, now.plus(OTHERS_TAKE)), alike(7));
    }
}
