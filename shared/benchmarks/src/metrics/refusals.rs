//! Refusal rate as the GPQA authors count it: the share of replies without a letter that their parser finds.

use serde_json::{Map, Value, json};

use super::{FinishedSample, Metrics};

/// Counts graded replies without a letter.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    graded: u64,
    refused: u64,
}

impl Metrics for Refusals {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        if sample.verdict.outcome.is_graded() {
            self.graded += 1;
            self.refused += u64::from(sample.verdict.extracted.is_none());
        }
    }

    #[allow(clippy::cast_precision_loss)] // counts stay far below 2^53
    fn finish(&self, _planned: u64) -> Map<String, Value> {
        let share = (self.graded > 0).then(|| self.refused as f64 / self.graded as f64);
        Map::from_iter([("refusals".to_owned(), json!({ "count": self.refused, "share": share }))])
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Outcome, Verdict};

    use super::*;

    #[test]
    fn replies_without_a_letter_are_refusals() {
        let mut refusals = Refusals::default();
        let finished = |refusals: &Refusals| Value::Object(refusals.finish(9))["refusals"].clone();
        assert_eq!(finished(&refusals), json!({ "count": 0, "share": null }));
        for verdict in [
            Verdict::correct("A"),
            Verdict::incorrect("B", "The answer is B; right is A."),
            Verdict::wrong(Outcome::Unparsed, "No answer was found in the text."),
            Verdict::wrong(Outcome::NoAnswer, "The answer is empty."),
            Verdict::ungraded(Code::ContextTooLong, "It does not fit."),
        ] {
            refusals.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
        }
        assert_eq!(finished(&refusals), json!({ "count": 2, "share": 0.5 }));
    }
}
