//! Averages of earlier runs of the same benchmarks.

use crate::LengthBasis;

/// Benchmarks of earlier runs.
#[derive(Debug, Clone, Default)]
pub struct History {
    benchmarks: Vec<EarlierBenchmark>,
}

/// Benchmark of an earlier run.
#[derive(Debug, Clone)]
pub struct EarlierBenchmark {
    /// Name of the model with its provider.
    pub model: String,
    /// Name of the benchmark.
    pub benchmark: String,
    /// Sums over its samples.
    pub sums: Sums,
}

/// Sums over the samples of a benchmark of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    samples: f64,
    input: f64,
    output: f64,
    judged_samples: f64,
    judge_input: f64,
    judge_output: f64,
    user_samples: f64,
    user_input: f64,
    user_output: f64,
    timed_samples: f64,
    latency_s: f64,
}

/// Averages of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSample {
    /// Origin of the averages.
    pub basis: LengthBasis,
    /// Tokens of the prompts.
    pub input: f64,
    /// Tokens of the answers.
    pub output: f64,
    /// Tokens of the judge's prompt and reply, if there was one.
    pub judge: Option<(f64, f64)>,
    /// Tokens of the user simulator's prompts and messages, if there was one.
    pub user: Option<(f64, f64)>,
    /// Seconds from request to answer, if known.
    pub latency_s: Option<f64>,
}

impl Sums {
    /// Creates the sums of samples with these tokens of prompts and of answers. `None` if no model was asked: the oracle
    /// and stored responses have no tokens.
    pub fn new(samples: u64, input_tokens: u64, output_tokens: u64) -> Option<Self> {
        (samples > 0 && output_tokens > 0).then(|| Self {
            samples: count(samples),
            input: count(input_tokens),
            output: count(output_tokens),
            ..Self::default()
        })
    }

    /// Adds the tokens of the judge's prompts and replies for all samples, if there are any.
    #[must_use]
    pub fn with_judge(self, input_tokens: u64, output_tokens: u64) -> Self {
        match input_tokens {
            0 => self,
            _ => Self {
                judged_samples: self.samples,
                judge_input: count(input_tokens),
                judge_output: count(output_tokens),
                ..self
            },
        }
    }

    /// Adds the tokens of the user simulator's prompts and messages for all samples, if there are any.
    #[must_use]
    pub fn with_user(self, input_tokens: u64, output_tokens: u64) -> Self {
        match input_tokens {
            0 => self,
            _ => Self {
                user_samples: self.samples,
                user_input: count(input_tokens),
                user_output: count(output_tokens),
                ..self
            },
        }
    }

    /// Adds the median and the 95th percentile of the time to an answer.
    #[must_use]
    pub fn with_latency_ms(self, p50: f64, p95: f64) -> Self {
        if p50 <= 0.0 {
            return self;
        }
        // Few answers take much longer than the median, which the mean lies above.
        let latency_s = (0.8 * p50 + 0.2 * p95) / 1_000.0 * self.samples;
        Self { timed_samples: self.samples, latency_s, ..self }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            input: self.input + other.input,
            output: self.output + other.output,
            judged_samples: self.judged_samples + other.judged_samples,
            judge_input: self.judge_input + other.judge_input,
            judge_output: self.judge_output + other.judge_output,
            user_samples: self.user_samples + other.user_samples,
            user_input: self.user_input + other.user_input,
            user_output: self.user_output + other.user_output,
            timed_samples: self.timed_samples + other.timed_samples,
            latency_s: self.latency_s + other.latency_s,
        }
    }

    /// Returns the averages.
    pub fn per_sample(self, basis: LengthBasis) -> PerSample {
        let judged = |sum: f64| sum / self.judged_samples;
        let with_user = |sum: f64| sum / self.user_samples;
        PerSample {
            basis,
            input: self.input / self.samples,
            output: self.output / self.samples,
            judge: (self.judged_samples > 0.0).then(|| (judged(self.judge_input), judged(self.judge_output))),
            user: (self.user_samples > 0.0)
                .then(|| (with_user(self.user_input), with_user(self.user_output))),
            latency_s: (self.timed_samples > 0.0).then(|| self.latency_s / self.timed_samples),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
const fn count(number: u64) -> f64 {
    number as f64
}

impl FromIterator<EarlierBenchmark> for History {
    fn from_iter<T: IntoIterator<Item = EarlierBenchmark>>(benchmarks: T) -> Self {
        Self { benchmarks: benchmarks.into_iter().collect() }
    }
}

impl History {
    /// Returns the averages of a benchmark: in runs of this model or, without any, in those of other models.
    pub fn of(&self, model: &str, benchmark: &str) -> Option<PerSample> {
        let sum = |is_wanted: &dyn Fn(&EarlierBenchmark) -> bool| {
            let found = self.benchmarks.iter().filter(|run| run.benchmark == benchmark && is_wanted(run));
            found.map(|run| run.sums).reduce(Sums::plus)
        };
        let same = sum(&|run| run.model == model).map(|sums| sums.per_sample(LengthBasis::SameModel));
        same.or_else(|| sum(&|_| true).map(|sums| sums.per_sample(LengthBasis::OtherModels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(model: &str, output_tokens: u64) -> Option<EarlierBenchmark> {
        let sums = Sums::new(10, 1_000, output_tokens)?.with_judge(500, 50).with_latency_ms(2_000.0, 7_000.0);
        Some(EarlierBenchmark { model: model.to_owned(), benchmark: "hle".to_owned(), sums })
    }

    #[test]
    fn runs_of_the_same_model_count_first() {
        let runs = [run("a", 2_000), run("a", 4_000), run("b", 90_000), run("oracle", 0)];
        let history: History = runs.into_iter().flatten().collect();
        assert_eq!(
            history.of("a", "hle").unwrap(),
            PerSample {
                basis: LengthBasis::SameModel,
                input: 100.0,
                output: 300.0,
                judge: Some((50.0, 5.0)),
                user: None,
                latency_s: Some(3.0),
            }
        );
        let other = history.of("c", "hle").unwrap();
        assert_eq!(
            (other.basis, other.output),
            (LengthBasis::OtherModels, 3_200.0),
            "the oracle doesn't count"
        );
        assert_eq!(history.of("a", "mmlu_pro"), None);
    }

    #[test]
    fn averages_are_of_samples_that_have_them() {
        let plain = Sums::new(10, 1_000, 2_000).unwrap();
        let both = plain.plus(plain.with_judge(300, 30).with_latency_ms(1_000.0, 1_000.0));
        let average = both.per_sample(LengthBasis::OtherModels);
        assert_eq!((average.judge, average.latency_s), (Some((30.0, 3.0)), Some(1.0)));
        assert_eq!(plain.with_judge(0, 0).with_user(0, 0).with_latency_ms(0.0, 0.0), plain);
        let both = plain.plus(plain.with_user(700, 70)).per_sample(LengthBasis::ThisRun);
        assert_eq!((both.user, both.judge), (Some((70.0, 7.0)), None));
    }
}
