//! Handles requests that a provider refuses for a reason that all requests share, such as a setting that the
//! model doesn't support.
//!
//! A refused request is never sent again unchanged: its sample ends after one refusal. If the first samples
//! of a run all get the same refusal, the run is stopped, since the others would get it, too.
//!
//! Each process counts the refusals that it gets. Counts of several processes add up in the state, which is
//! written and read only while a provider refuses and has answered nothing. Once the provider has answered a
//! request of the run, a refusal concerns one sample only. Before a run is stopped, this process waits for
//! its requests in flight and sends no new ones, since refusals arrive sooner than answers.
//!
//! A run that is requeued or resumed starts over: earlier answers and refusals say nothing about what the
//! provider accepts now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_domain::sample::backoff;
use bench_domain::{BenchmarkName, Code, Position, SampleRef, Timestamp, Verdict};
use bench_inference::{Failure, FailureKind, GaveUpBy};
use bench_state::{Refusals as Noted, Shards};
use sha2::{Digest, Sha256};

use super::{ModelClient, Role};
use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::error::PipelineError;

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
pub(super) struct Refusals {
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
enum Meaning {
    /// They concern single samples, or are too few.
    Nothing,
    /// The run may have to be stopped, depending on the requests in flight.
    Suspicion,
    /// All known requests were refused alike.
    Alike { cause: String, samples: u64 },
}

/// A request in flight.
pub(super) struct Asking<'a>(&'a Refusals);

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
    pub(super) fn ask(&self) -> Asking<'_> {
        self.book().asking += 1;
        Asking(self)
    }

    /// Records that the provider has answered. From now on, a refusal concerns one sample only.
    pub(super) fn answered(&self) {
        let mut book = self.book();
        book.answered = true;
        book.seen.clear();
    }

    /// Records a refusal. Returns the digest of its message if the refusal has to be written to the state.
    fn refused(&self, sample: &SampleRef, failure: &Failure, now: Timestamp) -> Option<String> {
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

    fn noted(&self, digest: &str, noted: Noted) {
        if let Some(seen) = self.book().seen.get_mut(digest) {
            seen.samples = seen.samples.max(noted.samples);
            seen.since = seen.since.min(noted.since);
        }
    }

    fn meaning(&self, enough: u64, now: Timestamp) -> Meaning {
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

impl Pipeline {
    /// Ends a sample whose request was refused, and stops the run if its first samples were all refused.
    pub(super) async fn refused(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let now = bench_clock::now();
        if failure.gave_up_by == GaveUpBy::Provider
            && let Some(digest) = client.refusals.refused(&claimed.sample, failure, now)
        {
            let since = claimed.run.resumption.map_or(Timestamp::default(), |resumption| resumption.at);
            let stage = client.role.stage();
            let noted = self.state.note_refusal(stage, &claimed.sample, since, &digest, now).await?;
            client.refusals.noted(&digest, noted);
            self.stop_if_refused(claimed, client).await?;
        }
        let why = client.role.explain(&failure.cause);
        self.end(claimed, Verdict::ungraded(client.role.code(failure), why)).await
    }

    /// Returns the reason not to send a request now: none, a wait while the provider has only refused so far,
    /// or the end of the run.
    pub(super) async fn held_up(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<Option<HeldUp>, PipelineError> {
        let refusals = &client.refusals;
        if refusals.meaning(refused_samples(claimed), bench_clock::now()) == Meaning::Nothing {
            return Ok(None);
        }
        if self.stop_if_refused(claimed, client).await? {
            return Ok(Some(HeldUp::RunOver));
        }
        if refusals.book().answered {
            return Ok(None);
        }
        let waits = claimed.record.history.waits;
        Ok(Some(HeldUp::Wait(Failure {
            kind: FailureKind::RateLimited,
            status: None,
            cause: "the provider has refused all requests so far, and some are under way".to_owned(),
            request_id: None,
            retry_after: Some(backoff(waits.saturating_add(1))),
            gave_up_by: GaveUpBy::Runner,
            usage: None,
        })))
    }

    /// Stops the run if all known requests of it were refused alike. Returns true if the run is over.
    async fn stop_if_refused(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<bool, PipelineError> {
        let meaning = client.refusals.meaning(refused_samples(claimed), bench_clock::now());
        let Meaning::Alike { cause, samples } = meaning else { return Ok(false) };
        if self.has_answers(claimed, client.role).await? {
            client.refusals.answered();
            return Ok(false);
        }
        let who = match client.role {
            Role::Model => "the provider",
            Role::Judge => "the judge's provider",
        };
        let hint = hint(&cause, client.role.as_str());
        let alike = match samples {
            1 => format!("{who} refused the only sample"),
            _ => format!("{who} refused the first {samples} samples alike"),
        };
        let why = format!("{alike}: {cause}; {hint}");
        self.close_run(claimed, Code::AllRequestsRejected, &why).await?;
        Ok(true)
    }

    /// Returns true if a request of this run in this role was answered since the run was ordered or last
    /// requeued or resumed, as far as its counters show. Every answer of a provider counts some tokens,
    /// estimated ones if necessary. A grade alone proves nothing, since it may come from an earlier answer.
    async fn has_answers(&self, claimed: &ClaimedSample, role: Role) -> Result<bool, PipelineError> {
        let run = claimed.sample.run;
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(false) };
        let shards: Vec<Shards> = found.benchmarks.iter().filter_map(Shards::from_benchmark).collect();
        let count = self.state.run_count(run, &shards).await?;
        let before = found.run.resumption;
        Ok(match role {
            Role::Model => count.spent().total() > before.map_or(0, |before| before.answer_tokens),
            Role::Judge => count.judge_spent().total() > before.map_or(0, |before| before.judge_tokens),
        })
    }
}

impl ModelClient {
    /// Returns a hint for a model that the provider doesn't have.
    pub(super) fn model_hint(&self, failure: &Failure) -> Option<String> {
        let is_refused =
            failure.gave_up_by == GaveUpBy::Provider && matches!(failure.status, Some(400 | 404 | 422));
        (is_refused && names_model(&failure.cause.to_lowercase())).then(|| model_hint(self.role.as_str()))
    }
}

/// Returns the number of samples that must be refused alike. Lower than the constant only if the run has
/// fewer samples.
fn refused_samples(claimed: &ClaimedSample) -> u64 {
    claimed.run.samples().unwrap_or(REFUSED_SAMPLES).clamp(1, REFUSED_SAMPLES)
}

/// Reason why a request isn't sent.
pub(super) enum HeldUp {
    /// The request has to wait.
    Wait(Failure),
    /// The run is over.
    RunOver,
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

/// Returns a hint on how to resolve a refusal. `party` is `model` or `judge`.
fn hint(cause: &str, party: &str) -> String {
    let cause = cause.to_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    let is_judge = party == "judge";
    let of = if is_judge { "judge-" } else { "" };
    if names(&["temperature"]) {
        format!("start a new run with a temperature that the {party} takes, such as `--{of}temperature 1`")
    } else if names(&["max_tokens", "max_completion_tokens", "max tokens", "maximum tokens"]) {
        format!("start a new run with a `--{of}max-tokens` that the {party} takes")
    } else if is_judge && names(&["seed"]) {
        "start a new run without `--judge-seed`".to_owned()
    } else if names_model(&cause) {
        model_hint(party)
    } else {
        format!(
            "start a new run with settings that the {party} takes, or resume this one once it takes these"
        )
    }
}

/// Returns true if a refusal, in lowercase, is about the name of the model.
fn names_model(cause: &str) -> bool {
    let missing =
        ["not found", "not_found", "unknown", "not exist", "not a valid model", "invalid model", "no such"];
    cause.contains("model") && missing.iter().any(|words| cause.contains(words))
}

fn model_hint(party: &str) -> String {
    format!("check the name of the {party}: `bench models` lists what the provider offers")
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

    #[test]
    fn hints_name_what_was_refused() {
        let told = |text| hint(text, "model");
        assert!(told("temperature is not supported with this model").contains("`--temperature 1`"));
        assert!(told("Unsupported value: max_tokens").contains("`--max-tokens`"));
        assert!(told("model a/b does not exist").contains("`bench models`"));
        assert!(told("no").contains("resume this one"));
        assert!(hint("temperature: no", "judge").contains("`--judge-temperature 1`"));
        assert!(hint("seed: no", "judge").contains("`--judge-seed`"));
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
