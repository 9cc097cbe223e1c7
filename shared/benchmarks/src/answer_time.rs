//! Time limit for one answer.

use std::time::Duration;

use crate::benchmark::Benchmark;
use crate::registry::all;

/// Operator's limit on the time for one answer. The lower of this and the benchmark's own limit applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTime {
    max_seconds: Option<u64>,
}

impl AnswerTime {
    /// Reads `WORKER_ITEM_TIMEOUT_SECONDS` through `var`. If it is unset or 0, the operator sets no limit.
    ///
    /// # Errors
    /// Returns a sentence that names the variable if its value isn't a whole number.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        const VARIABLE: &str = "WORKER_ITEM_TIMEOUT_SECONDS";
        let text = var(VARIABLE).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let seconds = text.map(|text| {
            text.parse::<u64>().map_err(|_| format!("{VARIABLE}: `{text}` is not a whole number"))
        });
        Ok(Self { max_seconds: seconds.transpose()?.filter(|seconds| *seconds > 0) })
    }

    /// Returns the time limit for one answer of this benchmark, or for one reply of its judge.
    pub fn for_benchmark(self, benchmark: &dyn Benchmark) -> Duration {
        let own = benchmark.metadata().item_timeout_seconds;
        Duration::from_secs(self.max_seconds.map_or(own, |max| max.min(own)))
    }

    /// Returns the time limit for one answer in a run that sets its own, in seconds, instead of the benchmark's. The
    /// operator's limit stays.
    pub fn for_run(self, benchmark: &dyn Benchmark, own_seconds: Option<u32>) -> Duration {
        let Some(own) = own_seconds.map(u64::from) else { return self.for_benchmark(benchmark) };
        Duration::from_secs(self.max_seconds.map_or(own, |max| max.min(own)))
    }

    /// Returns the longest time limit of all benchmarks and protocols.
    pub fn longest(self) -> Duration {
        let benchmarks =
            all().iter().flat_map(|benchmark| std::iter::once(benchmark).chain(benchmark.other_protocols()));
        benchmarks.map(|benchmark| self.for_benchmark(*benchmark)).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn read(text: &str) -> Result<AnswerTime, String> {
        AnswerTime::from_vars(|_| Some(text.to_owned()))
    }

    #[test]
    fn the_lower_of_both_limits_applies() {
        let (aime, mmlu_pro) = (find("aime_2025").unwrap(), find("mmlu_pro").unwrap());
        let seconds = |time: AnswerTime, benchmark| time.for_benchmark(benchmark).as_secs();
        let times = |time| (seconds(time, aime), seconds(time, mmlu_pro), time.longest().as_secs());
        assert_eq!(times(AnswerTime::default()), (3_600, 1_200, 3_600));
        assert_eq!(times(read(" 1500 ").unwrap()), (1_500, 1_200, 1_500));
        assert_eq!(times(read("840").unwrap()), (840, 840, 840));
        let of_run = |time: AnswerTime, own| time.for_run(mmlu_pro, own).as_secs();
        assert_eq!(of_run(AnswerTime::default(), None), 1_200);
        assert_eq!(
            of_run(AnswerTime::default(), Some(3_600)),
            3_600,
            "a run may raise the benchmark's limit"
        );
        assert_eq!(of_run(AnswerTime::default(), Some(5)), 5);
        assert_eq!(of_run(read("840").unwrap(), Some(3_600)), 840);
        for none in ["", "0"] {
            assert_eq!(read(none), Ok(AnswerTime::default()), "{none}");
        }
        assert_eq!(
            read("20 min").unwrap_err(),
            "WORKER_ITEM_TIMEOUT_SECONDS: `20 min` is not a whole number"
        );
    }
}
