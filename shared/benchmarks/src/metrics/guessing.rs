//! Accuracy adjusted for guessing where answers are missing.

use std::collections::BTreeMap;

use bench_domain::{Outcome, Verdict};
use serde_json::{Map, Value, json};

use super::{FinishedSample, Metrics, share};

/// Key of a verdict's detail that holds the chance of guessing right.
const CHANCE: &str = "chance";

/// Records in the detail of a verdict on a missing answer the chance that a guess would have been right.
pub(crate) fn record(detail: &mut Map<String, Value>, chance: f64) {
    detail.insert(CHANCE.to_owned(), json!(chance));
}

fn chance(verdict: &Verdict) -> Option<f64> {
    verdict.detail.get(CHANCE).and_then(Value::as_f64)
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Tally {
    correct: u64,
    graded: u64,
    chance: f64,
}

/// Computes `accuracy_chance_adjusted`: the expected accuracy if the missing answers were guessed. Reports nothing if
/// no answer is missing.
#[derive(Debug, Default)]
pub struct GuessedAnswers {
    groups: BTreeMap<Option<String>, Tally>,
}

impl Metrics for GuessedAnswers {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        let tally = self.groups.entry(sample.group.map(str::to_owned)).or_default();
        if sample.verdict.score.is_some() {
            tally.graded += 1;
            tally.correct += u64::from(sample.verdict.outcome == Outcome::Correct);
        }
        tally.chance += chance(sample.verdict).unwrap_or(0.0);
    }

    /// Sums by group first. As in the metrics by group, samples without a group count only if no sample has one.
    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn finish(&self, _planned: u64) -> Map<String, Value> {
        let has_groups = self.groups.keys().any(Option::is_some);
        let counted =
            || self.groups.iter().filter(|(group, _)| group.is_some() == has_groups).map(|(_, tally)| tally);
        let chance: f64 = counted().map(|tally| tally.chance).sum();
        if chance <= 0.0 {
            return Map::new();
        }
        let correct: u64 = counted().map(|tally| tally.correct).sum();
        let graded: u64 = counted().map(|tally| tally.graded).sum();
        Map::from_iter([("accuracy_chance_adjusted".to_owned(), share(correct as f64 + chance, graded))])
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::Code;

    use super::*;

    fn adjusted_metrics(samples: &[(Option<&str>, Verdict)]) -> Value {
        let mut metrics = GuessedAnswers::default();
        for (group, verdict) in samples {
            metrics.add(&FinishedSample { item: 0, group: *group, verdict });
        }
        Value::Object(metrics.finish(9))
    }

    fn missing(chance: f64) -> Verdict {
        let mut verdict = Verdict::wrong(Outcome::Unparsed, "No answer was found in the text.");
        record(&mut verdict.detail, chance);
        verdict
    }

    #[test]
    fn missing_answers_count_with_their_chance() {
        let (law, math) = (Some("law"), Some("math"));
        let wrong = || Verdict::incorrect("B", "The answer is B; right is A.");
        let samples = [
            (law, Verdict::correct("A")),
            (law, wrong()),
            (law, missing(0.25)),
            (math, missing(0.25)),
            (math, Verdict::ungraded(Code::ContextTooLong, "It does not fit.")),
            (None, missing(1.0)),
        ];
        assert_eq!(adjusted_metrics(&samples), json!({ "accuracy_chance_adjusted": 0.375 }));
        assert_eq!(
            adjusted_metrics(&[(None, missing(0.1)), (None, wrong())]),
            json!({ "accuracy_chance_adjusted": 0.05 })
        );
    }

    #[test]
    fn without_a_missing_answer_nothing_is_reported() {
        assert_eq!(adjusted_metrics(&[(None, Verdict::correct("A"))]), json!({}));
        assert_eq!(adjusted_metrics(&[]), json!({}));
    }
}
