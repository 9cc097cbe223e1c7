//! What guessing would be worth where an answer is missing.

use std::collections::BTreeMap;

use bench_domain::{Outcome, Verdict};
use serde_json::{Map, Value, json};

use super::{Ended, Metrics, share};

/// Where a verdict keeps the chance to be right by guessing.
const CHANCE: &str = "chance";

/// Records the chance that a guess would have been right in the detail of a verdict on an answer that is missing.
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

/// The accuracy that guessing the missing answers would give on average, as `accuracy_chance_adjusted`; nothing where no
/// answer is missing.
#[derive(Debug, Default)]
pub struct GuessedAnswers {
    groups: BTreeMap<Option<String>, Tally>,
}

impl Metrics for GuessedAnswers {
    fn add(&mut self, sample: &Ended<'_>) {
        let tally = self.groups.entry(sample.group.map(str::to_owned)).or_default();
        if sample.verdict.score.is_some() {
            tally.graded += 1;
            tally.correct += u64::from(sample.verdict.outcome == Outcome::Correct);
        }
        tally.chance += chance(sample.verdict).unwrap_or(0.0);
    }

    /// Sums by group first and takes samples without a group only where there are no groups, as the figures of groups do.
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

    fn adjusted(samples: &[(Option<&str>, Verdict)]) -> Value {
        let mut metrics = GuessedAnswers::default();
        for (group, verdict) in samples {
            metrics.add(&Ended { item: 0, group: *group, verdict });
        }
        Value::Object(metrics.finish(9))
    }

    fn missing(chance: f64) -> Verdict {
        let mut verdict = Verdict::wrong(Outcome::Unparsed, "No answer was found in the text.");
        record(&mut verdict.detail, chance);
        verdict
    }

    #[test]
    fn missing_answers_count_by_their_chance() {
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
        assert_eq!(adjusted(&samples), json!({ "accuracy_chance_adjusted": 0.375 }));
        assert_eq!(
            adjusted(&[(None, missing(0.1)), (None, wrong())]),
            json!({ "accuracy_chance_adjusted": 0.05 })
        );
    }

    #[test]
    fn without_a_missing_answer_there_is_nothing_to_say() {
        assert_eq!(adjusted(&[(None, Verdict::correct("A"))]), json!({}));
        assert_eq!(adjusted(&[]), json!({}));
    }
}
