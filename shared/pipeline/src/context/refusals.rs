//! Counts the refusals that one run got in one role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_domain::{BenchmarkName, Position, SampleRef, Timestamp};
use bench_inference::Failure;
use bench_state::Refusals as Noted;
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
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// Number of requests in flight.
    asking: u64,
    /// True if the provider has answered a request of the run.
    answered: bool,
    /// Number of refusals written to the state.
    noted: u32,
    /// Refusals by digest of their message.
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// The first message of the provider.
    cause: String,
    /// Samples for which this process asked.
    here: BTreeSet<(BenchmarkName, Position)>,
    /// Number of samples in all processes.
    samples: u64,
    /// Time of the first refusal.
    since: Timestamp,
}

/// Conclusion from the refusals so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// They concern single samples, or are too few.
    Nothing,
    /// The run may have to be stopped, depending on the requests in flight.
    Suspicion,
    /// All known requests were refused alike.
    Alike { cause: String, samples: u64 },
}

/// A request in flight.
pub(crate) struct Asking<'a>(&'a Refusals);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut book = self.0.book();
        book.asking = book.asking.saturating_sub(1);
    }
}

impl Refusals {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in flight until the returned value is dropped.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.book().asking += 1;
        Asking(self)
    }

    /// Records that the provider has answered. From now on, a refusal concerns one sample only.
    pub(crate) fn answered(&self) {
        let mut book = self.book();
        book.answered = true;
        book.seen.clear();
    }

    /// Returns true if the provider has answered a request of the run.
    pub(crate) fn is_answered(&self) -> bool {
        self.book().answered
    }

    /// Records a refusal. Returns the digest of its message if the refusal has to be written to the state.
    pub(crate) fn refused(&self, sample: &SampleRef, failure: &Failure, now: Timestamp) -> Option<String> {
        let mut book = self.book();
        if book.answered || book.noted >= NOTED_MAX {
            return None;
        }
        book.noted += 1;
        let digest = digest(failure.status, &failure.cause);
        let seen = book.seen.entry(digest.clone()).or_insert_with(|| Seen {
            cause: failure.cause.clone(),
            here: BTreeSet::new(),
            samples: 0,
            since: now,
        });
        seen.here.insert((sample.benchmark.clone(), sample.position));
        Some(digest)
    }

    /// Records how many samples all processes saw refused like this.
    pub(crate) fn noted(&self, digest: &str, noted: Noted) {
        if let Some(seen) = self.book().seen.get_mut(digest) {
            seen.samples = seen.samples.max(noted.samples);
            seen.since = seen.since.min(noted.since);
        }
    }

    /// Returns the conclusion from the refusals if `enough` samples make one.
    pub(crate) fn meaning(&self, enough: u64, now: Timestamp) -> Meaning {
        let book = self.book();
        let alike = book.seen.values().find(|seen| seen.samples >= enough);
        let Some(seen) = alike.filter(|_| !book.answered) else { return Meaning::Nothing };
        let is_own = seen.here.len() as u64 >= enough;
        if book.asking > 0 || !(is_own || now.since(seen.since) >= OTHERS_TAKE) {
            return Meaning::Suspicion;
        }
        Meaning::Alike { cause: seen.cause.clone(), samples: seen.samples }
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
        let said = |text: &str| digest(Some(400), &format!("HTTP 400 from Chutes: {text}"));
        assert_eq!(
            said(r#"{"message":"Temperature 0.0 is not supported","id":"req_81f2"} (request_id=a-1)"#),
            said(r#"{"message":"temperature 0.7 is not supported","id":"req_9c40"} (request_id=a-22)"#)
        );
        assert_ne!(said("temperature is not supported"), said("top_p is not supported"));
        assert_ne!(digest(Some(400), "HTTP 400 from X: no"), digest(Some(422), "HTTP 422 from X: no"));
    }

    fn seen(samples: u64, here: u32, since: Timestamp) -> Refusals {
        let here = (0..here).map(|item| ("a".parse().unwrap(), Position { item, sample: 0 })).collect();
        let seen = Seen { cause: "no".to_owned(), here, samples, since };
        let book = Book { seen: BTreeMap::from([("d".to_owned(), seen)]), ..Book::default() };
        Refusals { book: Mutex::new(book) }
    }

    #[test]
    fn answers_under_way_and_other_processes_are_waited_for() {
        let now = Timestamp::from_micros(1_000_000_000);
        let alike = |samples| Meaning::Alike { cause: "no".to_owned(), samples };
        let own = seen(5, 5, now);
        assert_eq!(own.meaning(5, now), alike(5));
        let asking = own.ask();
        assert_eq!(own.meaning(5, now), Meaning::Suspicion);
        drop(asking);
        assert_eq!(own.meaning(5, now), alike(5));
        assert_eq!(own.meaning(6, now), Meaning::Nothing);
        own.answered();
        assert_eq!(own.meaning(5, now), Meaning::Nothing);
        let others = seen(7, 1, now);
        assert_eq!(others.meaning(5, now), Meaning::Suspicion);
        assert_eq!(others.meaning(5, now.plus(OTHERS_TAKE)), alike(7));
    }
}
