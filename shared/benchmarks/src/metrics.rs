//! Metrics: figures over the verdicts of a benchmark. Every benchmark has metrics by group of items; some add their
//! own.

pub(crate) mod guessing;
mod refusals;

use bench_domain::Verdict;
use serde_json::{Map, Value, json};

pub use guessing::GuessedAnswers;
pub(crate) use refusals::Refusals;

/// Finished sample, as metrics see it.
#[derive(Debug, Clone, Copy)]
pub struct FinishedSample<'a> {
    /// Index of the sample's item in the plan.
    pub item: u32,
    /// Group of the item.
    pub group: Option<&'a str>,
    /// Verdict of the sample.
    pub verdict: &'a Verdict,
}

/// Figures computed from all verdicts of a benchmark, in plan order.
pub trait Metrics: Send {
    /// Notes the plan, before the first sample.
    fn begin(&mut self, _items: u64, _samples_per_item: u32) {}

    /// Adds a finished sample.
    fn add(&mut self, sample: &FinishedSample<'_>);

    /// Returns the figures. `planned` is the number of planned samples, finished or not.
    fn finish(&self, planned: u64) -> Map<String, Value>;
}

/// Outcome counts of one group's samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupTally {
    /// Group, as named in [`Item::group`](bench_items::Item::group).
    pub group: Option<String>,
    /// Number of right answers.
    pub correct: u64,
    /// Number of graded samples.
    pub graded: u64,
    /// Number of planned samples.
    pub planned: u64,
}

/// Returns a ratio as JSON; `null` if the denominator is zero.
#[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
fn share(part: f64, whole: u64) -> Value {
    if whole == 0 { Value::Null } else { json!(part / whole as f64) }
}

/// Returns accuracy and coverage of each group.
#[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
pub(crate) fn by_group(noun: &str, groups: &[GroupTally]) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut named = Map::new();
    for tally in groups {
        let Some(group) = &tally.group else { continue };
        named.insert(
            group.clone(),
            json!({
                "accuracy": share(tally.correct as f64, tally.graded),
                "correct": tally.correct,
                "graded": tally.graded,
                "planned": tally.planned,
                "coverage": share(tally.graded as f64, tally.planned),
            }),
        );
    }
    if !named.is_empty() {
        metrics.insert(noun.to_owned(), Value::Object(named));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_accuracy_and_coverage() {
        let tally = |group: &str, correct, graded, planned| GroupTally {
            group: Some(group.into()),
            correct,
            graded,
            planned,
        };
        let metrics = by_group("categories", &[tally("law", 1, 4, 5), tally("math", 0, 0, 2)]);
        assert_eq!(
            Value::Object(metrics),
            json!({
                "categories": {
                    "law": {"accuracy": 0.25, "correct": 1, "graded": 4, "planned": 5, "coverage": 0.8},
                    "math": {"accuracy": null, "correct": 0, "graded": 0, "planned": 2, "coverage": 0.0},
                },
            })
        );
    }

    #[test]
    fn without_groups_nothing_is_reported() {
        let tally = GroupTally { correct: 3, graded: 4, planned: 4, ..GroupTally::default() };
        assert!(by_group("parts", &[tally]).is_empty());
    }
}
