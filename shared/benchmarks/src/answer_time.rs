//! How long one answer may take.

use std::time::Duration;

use crate::benchmark::Benchmark;
use crate::registry::all;

/// The operator's bound of the time for one answer: a benchmark's own time holds up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTime {
    max_seconds: Option<u64>,
}

impl AnswerTime {
    /// Reads `WORKER_ITEM_TIMEOUT_SECONDS` through `var`. Without it, and with 0, there is no bound.
    ///
    /// # Errors
    /// One sentence that names the variable when it is no number.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        const VARIABLE: &str = "WORKER_ITEM_TIMEOUT_SECONDS";
        let text = var(VARIABLE).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let seconds = text.map(|text| {
            text.parse::<u64>().map_err(|_| format!("{VARIABLE}: `{text}` is not a whole number"))
        });
        Ok(Self { max_seconds: seconds.transpose()?.filter(|seconds| *seconds > 0) })
    }

    /// Returns how long one answer, or one reply of its judge, may take in this benchmark.
    pub fn of(self, benchmark: &dyn Benchmark) -> Duration {
        let own = benchmark.facts().item_timeout_seconds;
        Duration::from_secs(self.max_seconds.map_or(own, |max| max.min(own)))
    }

    /// Returns the longest of these times.
    pub fn longest(self) -> Duration {
        let benchmarks =
            all().iter().flat_map(|benchmark| std::iter::once(benchmark).chain(benchmark.other_protocols()));
        benchmarks.map(|benchmark| self.of(*benchmark)).max().unwrap_or_default()
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
    fn a_benchmarks_time_holds_up_to_the_operators() {
        let (aime, mmlu_pro) = (find("aime_2025").unwrap(), find("mmlu_pro").unwrap());
        let seconds = |time: AnswerTime, benchmark| time.of(benchmark).as_secs();
        let times = |time| (seconds(time, aime), seconds(time, mmlu_pro), time.longest().as_secs());
        assert_eq!(times(AnswerTime::default()), (3_600, 1_200, 3_600));
        assert_eq!(times(read(" 1500 ").unwrap()), (1_500, 1_200, 1_500));
        assert_eq!(times(read("840").unwrap()), (840, 840, 840));
        for none in ["", "0"] {
            assert_eq!(read(none), Ok(AnswerTime::default()), "{none}");
        }
        assert_eq!(
            read("20 min").unwrap_err(),
            "WORKER_ITEM_TIMEOUT_SECONDS: `20 min` is not a whole number"
        );
    }
}
