//! Time that answers take: how many are asked for at once, how often, and how fast a model writes.

/// Tokens per second of an answer, for models without an earlier run.
const TYPICAL_TOKENS_PER_S: f64 = 50.0;
/// Seconds until an answer begins, for models without an earlier run.
const TYPICAL_START_S: f64 = 1.0;

/// Limits on how fast a run asks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pace {
    /// Number of samples in progress at the same time; `None` if it isn't known.
    pub concurrency: Option<u64>,
    /// The run's own limit on requests.
    pub requests_per_minute: Option<u32>,
    /// The run's own time limit for an answer, in seconds.
    pub timeout_seconds: Option<u32>,
}

impl Pace {
    /// Returns the seconds for this number of samples, each with `questions` requests one after the other; `None` if the
    /// concurrency isn't known.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn seconds(self, samples: f64, questions: f64, latency_s: f64) -> Option<f64> {
        let longest_s = self.timeout_seconds.map_or(f64::INFINITY, |limit| f64::from(limit) * questions);
        let latency_s = latency_s.min(longest_s);
        let side_by_side = self.concurrency.map(|at_once| {
            let all = samples * latency_s;
            (all / at_once.max(1) as f64).max(latency_s.min(all))
        });
        // The first request is sent at once.
        let paced = self
            .requests_per_minute
            .map(|per_minute| (samples * questions - 1.0).max(0.0) * 60.0 / f64::from(per_minute.max(1)));
        side_by_side.map(|seconds| seconds.max(paced.unwrap_or_default()))
    }
}

/// Returns the seconds that a model takes for answers of this length.
pub fn typical_latency_s(questions: f64, output: f64) -> f64 {
    questions * TYPICAL_START_S + output / TYPICAL_TOKENS_PER_S
}

/// Names the assumption about the speed of answers.
pub fn describe_typical_speed() -> String {
    format!("at {TYPICAL_TOKENS_PER_S} tokens per second")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_limit_counts() {
        let pace =
            |concurrency, requests_per_minute| Pace { concurrency, requests_per_minute, ..Pace::default() };
        assert_eq!(pace(Some(16), None).seconds(200.0, 1.0, 8.0), Some(100.0));
        assert_eq!(pace(Some(16), None).seconds(2.0, 1.0, 8.0), Some(8.0), "an answer takes its time");
        assert_eq!(pace(Some(16), None).seconds(0.5, 1.0, 8.0), Some(4.0));
        assert_eq!(pace(Some(16), Some(60)).seconds(201.0, 1.0, 8.0), Some(200.0));
        assert_eq!(
            pace(Some(16), Some(60)).seconds(200.0, 3.0, 8.0),
            Some(599.0),
            "each question is a request"
        );
        assert_eq!(pace(Some(16), Some(6_000)).seconds(200.0, 1.0, 8.0), Some(100.0));
        assert_eq!(pace(None, Some(60)).seconds(200.0, 1.0, 8.0), None);
        let cut = Pace { timeout_seconds: Some(2), ..pace(Some(16), None) };
        assert_eq!(cut.seconds(200.0, 1.0, 8.0), Some(25.0), "no answer takes longer");
    }

    #[test]
    fn a_typical_answer_takes_as_long_as_its_tokens() {
        assert_eq!(typical_latency_s(1.0, 600.0), 13.0);
        assert_eq!(typical_latency_s(3.0, 600.0), 15.0);
    }
}
