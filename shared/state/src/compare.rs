//! Comparison of one benchmark of two runs, item by item.

use std::collections::{HashMap, HashSet};

use bench_domain::run::{JudgeUse, OwnTimeout, Plan, name_with_host};
use bench_domain::statistics::{PairedComparison, PairedSample, compare_paired};
use bench_domain::{BenchmarkName, Outcome, RunId};
use futures_util::future::try_join;
use futures_util::{StreamExt, stream};

use crate::{BenchmarkRecord, State, StateError};

/// Number of samples in a page.
const PAGE: u64 = 1_000;
/// Number of pages of one side that are read concurrently.
const PAGES_AT_ONCE: usize = 4;
/// Maximum number of samples of a benchmark that can be compared, because they are all kept in memory.
pub const COMPARED_SAMPLES_MAX: u64 = 500_000;

/// Comparison of one benchmark of two runs, over the items that are graded in both.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonResult {
    /// True if both runs used the same items, by their digest. If not, items are matched by the dataset's own ids, or
    /// by the indices of their rows if a run has no such ids.
    pub same_dataset: bool,
    /// True if both runs used the same protocol, options, prompt template, generation settings and samples per item.
    pub same_protocol: bool,
    /// True if both runs used the same judge with the same prompt and settings, or if neither used one.
    pub same_judge: bool,
    /// Reasons to doubt the comparison, one sentence each.
    pub warnings: Vec<String>,
    /// Paired comparison. Differences are second minus first: positive if the second is better.
    pub paired: PairedComparison,
}

/// Error for two runs that can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Reading the state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The benchmark is too large.
    #[error("{benchmark} has {samples} samples; at most {COMPARED_SAMPLES_MAX} can be compared")]
    TooMany {
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// Number of its samples.
        samples: u64,
    },
}

/// Judge that isn't called over a network.
const ORACLE: &str = "oracle";
/// Number of characters of a digest that people see.
const DIGEST_CHARS: usize = 12;

struct Graded {
    item_id: String,
    source_id: Option<String>,
    item_hash: Option<String>,
    score: f64,
    correct: bool,
}

impl State {
    /// Compares one benchmark of two runs.
    pub async fn compare_benchmarks(
        &self,
        (run_a, a): (RunId, &BenchmarkRecord),
        (run_b, b): (RunId, &BenchmarkRecord),
    ) -> Result<ComparisonResult, CompareError> {
        let (graded_a, graded_b) = try_join(self.graded(run_a, a), self.graded(run_b, b)).await?;
        let same_dataset = plans_match(a, b, |a, b| a.dataset.digest == b.dataset.digest);
        // Another revision may have other rows, so only the dataset's own ids identify equal items.
        let by_source_id = !same_dataset
            && [&graded_a, &graded_b].iter().all(|graded| graded.iter().any(|it| it.source_id.is_some()));
        let changed =
            if same_dataset { HashSet::new() } else { changed_items(&graded_a, &graded_b, by_source_id) };
        let samples = |graded| paired_samples(graded, by_source_id);
        let unchanged = |sample: &PairedSample<'_>| !changed.contains(sample.item);
        let mut paired =
            compare_paired(samples(&graded_a).filter(unchanged), samples(&graded_b).filter(unchanged));
        paired.only_in_a += changed.len() as u64;
        paired.only_in_b += changed.len() as u64;
        let same_protocol = plans_match(a, b, |a, b| {
            a.protocol == b.protocol
                && a.prompt_digest == b.prompt_digest
                && a.options == b.options
                && a.generation == b.generation
                && a.samples_per_item == b.samples_per_item
                && a.timeout == b.timeout
        });
        let same_judge = plans_match(a, b, |a, b| used_same_judge(a.judge.as_ref(), b.judge.as_ref()));
        let mut warnings = Vec::new();
        if a.plan.is_none() || b.plan.is_none() {
            warnings.push("One of the runs ended before this benchmark was planned.".to_owned());
        } else if !same_dataset {
            warnings.push(format!(
                "The runs used different revisions of the dataset; items are matched by {}.",
                if by_source_id { "the dataset's own ids" } else { "the indices of their rows" }
            ));
        }
        if !changed.is_empty() {
            warnings.push(format!(
                "{} of the items that have the same id in both runs have another question in each; they are not compared.",
                changed.len()
            ));
        }
        if let (Some(a), Some(b)) = (&a.plan, &b.plan) {
            if a.protocol != b.protocol {
                warnings.push(format!(
                    "The runs used different protocols: {} and {}.",
                    protocol(a),
                    protocol(b)
                ));
            } else {
                let differ = a.prompt_digest != b.prompt_digest || a.samples_per_item != b.samples_per_item;
                if differ && a.options == b.options {
                    warnings.push("The runs differ in prompt template or samples per item.".to_owned());
                }
                let settings = a.generation.differences(&b.generation);
                if !settings.is_empty() {
                    let settings = settings.join(", ");
                    warnings.push(format!("The runs used different generation settings: {settings}."));
                }
                if a.timeout != b.timeout {
                    warnings.push(format!(
                        "The runs had different time limits for an answer: {} and {}.",
                        answer_time(a.timeout),
                        answer_time(b.timeout)
                    ));
                }
            }
            if a.options != b.options {
                let same_items = paired.only_in_a == 0 && paired.only_in_b == 0;
                warnings.push(format!(
                    "The runs had different options: {} and {}{}.",
                    options(a),
                    options(b),
                    if same_items { "" } else { "; they may have asked different items" }
                ));
            }
            if !same_judge {
                warnings.push(format!(
                    "The runs were judged differently: {} and {}.",
                    judge(a.judge.as_ref()),
                    judge(b.judge.as_ref())
                ));
            } else if let Some(judge) = judge_without_host(a.judge.as_ref(), b.judge.as_ref()) {
                warnings.push(format!(
                    "The host of the judge {judge} is unknown, since a run of an older version did not record it; it may \
                     have been another judge of that name."
                ));
            }
        }
        let is_demo = |record: &BenchmarkRecord| record.plan.as_ref().is_some_and(|p| p.dataset.is_demo());
        if a.plan.is_some() && b.plan.is_some() && paired.items == 0 {
            warnings.push("The runs have no graded item in common; there is nothing to compare.".to_owned());
        }
        if is_demo(a) || is_demo(b) {
            warnings.push("Demo data: the scores say nothing about the real benchmark.".to_owned());
        }
        Ok(ComparisonResult { same_dataset, same_protocol, same_judge, warnings, paired })
    }

    async fn graded(&self, run: RunId, benchmark: &BenchmarkRecord) -> Result<Vec<Graded>, CompareError> {
        let samples = benchmark.plan.as_ref().map_or(0, Plan::samples);
        if samples > COMPARED_SAMPLES_MAX {
            return Err(CompareError::TooMany { benchmark: benchmark.name.clone(), samples });
        }
        let mut graded = Vec::new();
        let read = |page| self.samples_page(run, benchmark, page * PAGE, PAGE);
        let mut pages = stream::iter((0..samples.div_ceil(PAGE)).map(read)).buffered(PAGES_AT_ONCE);
        while let Some(page) = pages.next().await {
            for sample in page? {
                let Some(finished) = sample.finished else { continue };
                let Some(score) = finished.verdict.score.filter(|score| score.is_finite()) else { continue };
                let correct = finished.verdict.outcome == Outcome::Correct;
                let (item_id, source_id, item_hash) = (sample.item_id, sample.source_id, finished.item_hash);
                graded.push(Graded { item_id, source_id, item_hash, score, correct });
            }
        }
        Ok(graded)
    }
}

fn plans_match(a: &BenchmarkRecord, b: &BenchmarkRecord, same: impl Fn(&Plan, &Plan) -> bool) -> bool {
    a.plan.as_ref().zip(b.plan.as_ref()).is_some_and(|(a, b)| same(a, b))
}

/// Returns the name of the judge that both runs used, if its host isn't recorded for one of them. The oracle has no
/// host.
fn judge_without_host<'a>(a: Option<&'a JudgeUse>, b: Option<&JudgeUse>) -> Option<&'a str> {
    let (a, b) = a.zip(b)?;
    let is_unknown = a.endpoint_host.is_none() || b.endpoint_host.is_none();
    (is_unknown && a.model != ORACLE).then_some(a.model.as_str())
}

/// Returns true if both used the same judge with the same prompt and settings, as far as its host is recorded. The
/// version of the judging is only a number, so it isn't compared.
fn used_same_judge(a: Option<&JudgeUse>, b: Option<&JudgeUse>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            // Older records don't name the host; a warning says so.
            let same_host =
                a.endpoint_host.is_none() || b.endpoint_host.is_none() || a.endpoint_host == b.endpoint_host;
            a.model == b.model
                && same_host
                && a.prompt_digest == b.prompt_digest
                && a.generation == b.generation
        }
        (None, None) => true,
        _ => false,
    }
}

fn protocol(plan: &Plan) -> &str {
    if plan.protocol_name.is_empty() { &plan.protocol } else { &plan.protocol_name }
}

fn answer_time(timeout: Option<OwnTimeout>) -> String {
    timeout.map_or_else(|| "the benchmark's own".to_owned(), |timeout| format!("{} s", timeout.seconds))
}

fn options(plan: &Plan) -> String {
    let all: Vec<String> = plan.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Describes a judge with everything that can differ between two judges.
fn judge(judge: Option<&JudgeUse>) -> String {
    let Some(judge) = judge else { return "by no model".to_owned() };
    let mut text = name_with_host(&judge.model, judge.endpoint_host.as_deref());
    if judge.version > 1 {
        text.push_str(&format!(", version {}", judge.version));
    }
    let digest = judge.prompt_digest.get(..DIGEST_CHARS).unwrap_or(&judge.prompt_digest);
    text.push_str(&format!(" (prompt {digest}, {}", judge.prompt_source));
    let settings = &judge.generation;
    text.extend(settings.temperature.map(|temperature| format!(", temperature {temperature}")));
    text.extend(settings.seed.map(|seed| format!(", seed {seed}")));
    text.push(')');
    text
}

fn paired_samples(graded: &[Graded], by_source_id: bool) -> impl Iterator<Item = PairedSample<'_>> {
    graded.iter().filter_map(move |sample| {
        let item = matching_id(sample, by_source_id)?;
        Some(PairedSample { item, score: sample.score, correct: sample.correct })
    })
}

/// Returns the ids that identify different questions in `a` and `b`, by the hashes of the questions.
fn changed_items<'a>(a: &'a [Graded], b: &'a [Graded], by_source_id: bool) -> HashSet<&'a str> {
    let hashes = |graded: &'a [Graded]| {
        graded.iter().filter_map(move |sample| {
            Some((matching_id(sample, by_source_id)?, sample.item_hash.as_deref()?))
        })
    };
    let of_a: HashMap<&str, &str> = hashes(a).collect();
    hashes(b).filter(|(id, hash)| of_a.get(id).is_some_and(|of_a| of_a != hash)).map(|(id, _)| id).collect()
}

/// Returns the id that an item is matched by: the dataset's own id, or the index of its row. If items are matched by
/// their own ids, an item without one has no match.
fn matching_id(sample: &Graded, by_source_id: bool) -> Option<&str> {
    if by_source_id { sample.source_id.as_deref() } else { Some(&sample.item_id) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn graded(row: u32, source_id: Option<&str>, score: f64) -> Graded {
        Graded {
            item_id: row.to_string(),
            source_id: source_id.map(str::to_owned),
            item_hash: None,
            score,
            correct: score == 1.0,
        }
    }

    #[test]
    fn items_of_two_revisions_go_by_the_datasets_own_ids() {
        let old = [graded(0, Some("70"), 1.0), graded(1, Some("71"), 0.0), graded(2, None, 0.0)];
        let new = [graded(0, Some("71"), 0.0), graded(1, Some("70"), 1.0), graded(2, None, 1.0)];
        let by_id = compare_paired(paired_samples(&old, true), paired_samples(&new, true));
        assert_eq!((by_id.items, by_id.difference), (2, Some(0.0)));
        let by_row = compare_paired(paired_samples(&old, false), paired_samples(&new, false));
        assert_eq!((by_row.items, by_row.only_a_right, by_row.only_b_right), (3, 1, 2));
    }

    #[test]
    fn items_of_one_id_with_different_questions_are_not_the_same() {
        let graded_question = |row, id, question: &str| Graded {
            item_hash: Some(question.into()),
            ..graded(row, Some(id), 1.0)
        };
        let old =
            [graded_question(0, "70", "sums"), graded_question(1, "71", "roots"), graded(2, Some("72"), 1.0)];
        let new = [
            graded_question(0, "70", "law"),
            graded_question(1, "71", "roots"),
            graded_question(2, "72", "power"),
        ];
        assert_eq!(
            changed_items(&old, &new, true),
            HashSet::from(["70"]),
            "an unknown question may be the same"
        );
        assert_eq!(changed_items(&old, &new, false), HashSet::from(["0"]));
        assert!(changed_items(&old, &old, true).is_empty());
    }

    #[test]
    fn a_judge_without_a_recorded_host_is_reported() {
        let judge = |model: &str, host: Option<&str>| -> JudgeUse {
            let judge = json!({
                "model": model, "endpoint_host": host, "version": 1, "prompt_digest": "d",
                "prompt_source": "official", "generation": {},
            });
            serde_json::from_value(judge).unwrap()
        };
        let known = judge("chutes/m", Some("llm.chutes.ai"));
        let old = judge("chutes/m", None);
        for (a, b, expected) in [
            (&known, &known, None),
            (&known, &old, Some("chutes/m")),
            (&old, &known, Some("chutes/m")),
            (&old, &old, Some("chutes/m")),
        ] {
            assert!(used_same_judge(Some(a), Some(b)));
            assert_eq!(judge_without_host(Some(a), Some(b)), expected, "{a:?} {b:?}");
        }
        let oracle = judge("oracle", None);
        assert_eq!(judge_without_host(Some(&oracle), Some(&oracle)), None);
        assert_eq!(judge_without_host(None, None), None);
        assert!(!used_same_judge(Some(&known), Some(&judge("chutes/m", Some("other")))));
    }
}
