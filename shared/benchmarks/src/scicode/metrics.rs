//! Shares of right problems and right steps, counted in each of the official ways.

use serde_json::{Map, Value, json};

use crate::metrics::{FinishedSample, Metrics};

/// Counts over graded problems and their steps.
#[derive(Debug, Default)]
pub(super) struct SciCodeMetrics {
    graded: u64,
    correct: u64,
    all_asked_passed: u64,
    passed: u64,
    asked: u64,
    all: u64,
    /// Problems that got a score before their programs were run, so their steps aren't counted.
    without_steps: u64,
    early_exits: u64,
}

impl Metrics for SciCodeMetrics {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        let Some(score) = sample.verdict.score else { return };
        self.graded += 1;
        self.correct += u64::from(score >= 1.0);
        let detail = &sample.verdict.detail;
        let count = |name| detail.get(name).and_then(Value::as_u64);
        let (Some(passed), Some(asked), Some(all)) =
            (count("steps_passed"), count("steps_asked"), count("steps_total"))
        else {
            self.without_steps += 1;
            return;
        };
        self.passed += passed;
        self.asked += asked;
        self.all += all;
        self.all_asked_passed += u64::from(passed == asked);
        self.early_exits +=
            detail.get("early_exits").and_then(Value::as_array).map_or(0, |steps| steps.len() as u64);
    }

    fn finish(&self, planned: u64) -> Map<String, Value> {
        let mut metrics = Map::new();
        let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
        put("problem_rate", share(self.correct, self.graded));
        put("subproblem_rate", share(self.passed, self.all));
        put("subproblem_rate_gradable", share(self.passed, self.asked));
        put("problem_rate_old_script", share(self.all_asked_passed, self.graded));
        put(
            "steps",
            json!({"passed": self.passed, "asked": self.asked, "all": self.all, "early_exits": self.early_exits}),
        );
        put(
            "problems",
            json!({
                "correct": self.correct, "graded": self.graded, "planned": planned,
                "without_steps": self.without_steps,
            }),
        );
        metrics
    }
}

#[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
fn share(part: u64, whole: u64) -> Value {
    if whole == 0 { Value::Null } else { json!(part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Outcome, Verdict};

    use super::*;

    fn verdict(correct: bool, passed: u64, asked: u64, all: u64) -> Verdict {
        let mut verdict = if correct { Verdict::correct("") } else { Verdict::incorrect("", "no") };
        for (name, value) in [("steps_passed", passed), ("steps_asked", asked), ("steps_total", all)] {
            verdict.detail.insert(name.into(), json!(value));
        }
        verdict
    }

    #[test]
    fn both_levels_and_every_denominator_are_shown() {
        let mut metrics = SciCodeMetrics::default();
        let mut exit = verdict(false, 1, 4, 4);
        exit.detail.insert("early_exits".into(), json!(["9.1"]));
        let verdicts = [
            verdict(true, 3, 3, 3),
            // Problem with a given step: all asked steps pass, but it doesn't count as right.
            verdict(false, 2, 2, 3),
            exit,
            Verdict::wrong(Outcome::Refused, "no"),
            Verdict::ungraded(Code::SandboxFailed, "gone"),
        ];
        for verdict in &verdicts {
            metrics.add(&FinishedSample { item: 0, group: None, verdict });
        }
        assert_eq!(
            Value::Object(metrics.finish(6)),
            json!({
                "problem_rate": 0.25,
                "subproblem_rate": 0.6,
                "subproblem_rate_gradable": 6.0 / 9.0,
                "problem_rate_old_script": 0.5,
                "steps": {"passed": 6, "asked": 9, "all": 10, "early_exits": 1},
                "problems": {"correct": 1, "graded": 4, "planned": 6, "without_steps": 1},
            })
        );
        assert_eq!(SciCodeMetrics::default().finish(0)["problem_rate"], Value::Null);
    }
}
