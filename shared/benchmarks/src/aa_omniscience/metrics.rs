//! Computes the Omniscience Index, accuracy and hallucination rate.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::grade::Grade;
use crate::metrics::{FinishedSample, Metrics};

/// Number of answers by grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GradeCounts {
    correct: u64,
    incorrect: u64,
    partial: u64,
    not_attempted: u64,
    /// Samples that ended without a grade.
    ungraded: u64,
}

impl GradeCounts {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        let letter = sample.verdict.detail.get("grade").and_then(Value::as_str);
        let grade = letter.and_then(Grade::from_letter).unwrap_or(Grade::NotAttempted);
        match grade {
            // An ungraded answer says nothing about the model's knowledge.
            _ if !sample.verdict.outcome.is_graded() => self.ungraded += 1,
            Grade::Correct => self.correct += 1,
            Grade::Incorrect => self.incorrect += 1,
            Grade::Partial => self.partial += 1,
            // A prompt that the provider's content policy rejects has no grade and counts as not attempted.
            Grade::NotAttempted => self.not_attempted += 1,
        }
    }

    const fn graded(self) -> u64 {
        self.correct + self.incorrect + self.partial + self.not_attempted
    }

    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn figures(self) -> Map<String, Value> {
        let ratio = |part: f64, whole: u64| match whole {
            0 => Value::Null,
            whole => json!(part / whole as f64),
        };
        let graded = self.graded();
        let mut figures = Map::new();
        let index = 100.0 * (self.correct as f64 - self.incorrect as f64);
        figures.insert("omniscience_index".into(), ratio(index, graded));
        figures.insert("accuracy".into(), ratio(self.correct as f64, graded));
        figures.insert("hallucination_rate".into(), ratio(self.incorrect as f64, graded - self.correct));
        figures.insert("attempt_rate".into(), ratio((graded - self.not_attempted) as f64, graded));
        let grades = json!({
            "A": self.correct, "B": self.incorrect, "C": self.partial, "D": self.not_attempted,
        });
        figures.insert("grades".into(), grades);
        figures.insert("ungraded".into(), json!(self.ungraded));
        figures
    }
}

#[derive(Debug, Default)]
pub(super) struct OmniscienceMetrics {
    all: GradeCounts,
    domains: BTreeMap<String, GradeCounts>,
}

impl Metrics for OmniscienceMetrics {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        self.all.add(sample);
        if let Some(domain) = sample.group {
            self.domains.entry(domain.to_owned()).or_default().add(sample);
        }
    }

    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn finish(&self, planned: u64) -> Map<String, Value> {
        let mut figures = self.all.figures();
        let coverage = (planned > 0).then(|| self.all.graded() as f64 / planned as f64);
        figures.insert("grading_coverage".into(), json!(coverage));
        if !self.domains.is_empty() {
            let domains = self.domains.iter();
            let domains: Map<String, Value> =
                domains.map(|(name, grades)| (name.clone(), Value::Object(grades.figures()))).collect();
            figures.insert("domains".into(), Value::Object(domains));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Answer, Code, Outcome, Verdict};
    use proptest::prelude::*;

    use super::*;

    fn metrics(counts: [usize; 4]) -> OmniscienceMetrics {
        let mut metrics = OmniscienceMetrics::default();
        let grades = [Grade::Correct, Grade::Incorrect, Grade::Partial, Grade::NotAttempted];
        for (grade, count) in grades.into_iter().zip(counts) {
            let verdict = grade.verdict(&Answer::local("x"));
            for _ in 0..count {
                metrics.add(&FinishedSample { item: 0, group: Some("Law"), verdict: &verdict });
            }
        }
        metrics
    }

    #[test]
    fn figures_match_worked_examples() {
        for (counts, index, accuracy, hallucination) in [
            ([3, 2, 1, 4], 10.0, 0.3, Some(2.0 / 7.0)),
            ([0, 0, 0, 10], 0.0, 0.0, Some(0.0)),
            ([0, 10, 0, 0], -100.0, 0.0, Some(1.0)),
            ([10, 0, 0, 0], 100.0, 1.0, None),
            ([5, 5, 0, 0], 0.0, 0.5, Some(1.0)),
        ] {
            let figures = metrics(counts).finish(10);
            assert_eq!(figures["omniscience_index"], json!(index), "{counts:?}");
            assert_eq!(figures["accuracy"], json!(accuracy));
            assert_eq!(figures["hallucination_rate"], json!(hallucination));
            assert_eq!(figures["attempt_rate"], json!((10 - counts[3]) as f64 / 10.0));
            assert_eq!(figures["domains"]["Law"]["omniscience_index"], json!(index));
        }
    }

    #[test]
    fn ungraded_samples_are_not_abstentions() {
        let mut metrics = metrics([1, 1, 0, 0]);
        let failed = Verdict::ungraded(Code::JudgeNoVerdict, "no verdict");
        metrics.add(&FinishedSample { item: 0, group: None, verdict: &failed });
        let figures = metrics.finish(4);
        assert_eq!((&figures["omniscience_index"], &figures["attempt_rate"]), (&json!(0.0), &json!(1.0)));
        assert_eq!((&figures["ungraded"], &figures["grading_coverage"]), (&json!(1), &json!(0.5)));
        let refused = Verdict::wrong(Outcome::Refused, "policy");
        metrics.add(&FinishedSample { item: 0, group: None, verdict: &refused });
        assert_eq!(metrics.finish(4)["grades"]["D"], json!(1));
        let nothing = OmniscienceMetrics::default().finish(0);
        assert_eq!(nothing["omniscience_index"], Value::Null);
        assert_eq!(nothing["grading_coverage"], Value::Null);
    }

    proptest! {
        #[test]
        fn figures_stay_in_their_ranges(a in 0_usize..9, b in 0_usize..9, c in 0_usize..9, d in 0_usize..9) {
            let figures = metrics([a, b, c, d]).finish(40);
            let is_within = |name: &str, low: f64, high: f64| {
                figures[name].as_f64().is_none_or(|value| (low..=high).contains(&value))
            };
            prop_assert!(is_within("omniscience_index", -100.0, 100.0));
            prop_assert!(is_within("accuracy", 0.0, 1.0) && is_within("attempt_rate", 0.0, 1.0));
            prop_assert!(is_within("hallucination_rate", 0.0, 1.0) && is_within("grading_coverage", 0.0, 1.0));
            prop_assert_eq!(figures["hallucination_rate"].is_null(), b + c + d == 0);
        }
    }
}
