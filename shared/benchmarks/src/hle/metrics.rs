//! Figures that the official program prints.

use bench_domain::Outcome;
use serde_json::{Map, Value, json};

use super::calibration::{Calibration, JudgedAnswer};
use crate::metrics::{FinishedSample, Metrics};

/// Half the width of a 95% interval in standard errors, with the official program's rounding.
const QUANTILE: f64 = 1.96;

/// Collects two bytes per judged answer.
#[derive(Debug, Default)]
pub(super) struct HleMetrics {
    correct: u64,
    judged: Vec<JudgedAnswer>,
}

impl Metrics for HleMetrics {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        let correct = sample.verdict.outcome == Outcome::Correct;
        self.correct += u64::from(correct);
        // Only a judge's verdict has a confidence. Answers that weren't judged don't count for the calibration.
        let confidence = sample.verdict.detail.get("confidence").and_then(Value::as_u64);
        if let Some(confidence) = confidence.and_then(|confidence| u8::try_from(confidence.min(100)).ok()) {
            self.judged.push(JudgedAnswer { confidence, correct });
        }
    }

    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn finish(&self, planned: u64) -> Map<String, Value> {
        let n = planned as f64;
        let accuracy = (planned > 0).then(|| round_to_hundredths(100.0 * self.correct as f64 / n));
        let half_width = accuracy
            .map(|accuracy| round_to_hundredths(QUANTILE * (accuracy * (100.0 - accuracy) / n).sqrt()));
        let calibration = Calibration::from_answers(self.judged.clone());
        let printed = |error: f64| 100.0 * round_to_hundredths(error);
        let mut metrics = Map::new();
        metrics.insert("accuracy_official".into(), json!(accuracy));
        metrics.insert("half_width".into(), json!(half_width));
        metrics.insert(
            "calibration_error".into(),
            json!(calibration.map(|calibration| printed(calibration.official))),
        );
        metrics.insert(
            "calibration_error_all_bins".into(),
            json!(calibration.map(|calibration| 100.0 * calibration.all_bins)),
        );
        metrics.insert("judged".into(), json!(self.judged.len()));
        metrics
    }
}

/// Python's `round(value, 2)`. Formatting also rounds the exact binary value half to even.
fn round_to_hundredths(value: f64) -> f64 {
    format!("{value:.2}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Verdict};

    use super::*;

    #[test]
    fn figures_match_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/hle_metrics.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = all["cases"].as_array().unwrap();
        assert!(cases.len() >= 10);
        for case in cases {
            let mut metrics = HleMetrics::default();
            let confidences = case["confidence"].as_array().unwrap();
            for (confidence, correct) in confidences.iter().zip(case["correct"].as_array().unwrap()) {
                let mut verdict = match correct.as_bool().unwrap() {
                    true => Verdict::correct("x"),
                    false => Verdict::incorrect("x", "no"),
                };
                verdict.detail.insert("confidence".into(), confidence.clone());
                metrics.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
            }
            let planned = case["total_questions"].as_u64().unwrap();
            let figures = metrics.finish(planned);
            if case.get("error").is_some() {
                assert_eq!((&figures["calibration_error"], planned), (&Value::Null, 99));
                assert_eq!(figures["calibration_error_all_bins"], Value::Null);
                continue;
            }
            assert_eq!(figures["accuracy_official"], case["accuracy_percent"]);
            assert_eq!(figures["half_width"], case["half_width_percent"]);
            assert_eq!(figures["calibration_error"], case["reported_calibration_stable"]);
            let close = |actual: f64, expected: &Value| {
                assert!((actual - expected.as_f64().unwrap()).abs() < 1e-12, "{actual} {expected}");
            };
            close(figures["calibration_error_all_bins"].as_f64().unwrap() / 100.0, &case["all_bins_rms"]);
            let exact = Calibration::from_answers(metrics.judged.clone()).unwrap();
            close(exact.official, &case["calib_err_stable_sort"]);
        }
    }

    #[test]
    fn unjudged_answers_count_as_wrong_and_not_for_calibration() {
        let mut metrics = HleMetrics::default();
        let mut right = Verdict::correct("x");
        right.detail.insert("confidence".into(), json!(1_000));
        let verdicts = [
            right,
            Verdict::wrong(Outcome::NoAnswer, "empty"),
            Verdict::ungraded(Code::JudgeNoVerdict, "no verdict"),
        ];
        for verdict in &verdicts {
            metrics.add(&FinishedSample { item: 0, group: None, verdict });
        }
        let figures = metrics.finish(4);
        assert_eq!((&figures["accuracy_official"], &figures["judged"]), (&json!(25.0), &json!(1)));
        assert_eq!(figures["half_width"], json!(42.44));
        assert_eq!(HleMetrics::default().finish(0)["accuracy_official"], Value::Null);
    }
}
