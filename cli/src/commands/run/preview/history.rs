//! Tokens and latencies of earlier runs of the same benchmarks.

use super::estimate::LengthBasis;
use crate::client::Client;
use crate::views::{Benchmark, Run, RunsPage};

/// Number of runs to read.
const RUNS_MAX: u32 = 100;

/// Earlier runs, with what a sample took in each of their benchmarks.
#[derive(Debug, Default)]
pub(super) struct History {
    runs: Vec<EarlierBenchmark>,
}

/// Sums over the samples of a benchmark of an earlier run.
#[derive(Debug, Clone)]
struct EarlierBenchmark {
    model: String,
    benchmark: String,
    sums: Sums,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    samples: f64,
    input: f64,
    output: f64,
    judged_samples: f64,
    judge_input: f64,
    judge_output: f64,
    timed_samples: f64,
    latency_s: f64,
}

/// Averages of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerSample {
    pub(super) basis: LengthBasis,
    /// Tokens of the prompts.
    pub(super) input: f64,
    /// Tokens of the answers.
    pub(super) output: f64,
    /// Tokens of the judge's prompt and reply, if there was one.
    pub(super) judge: Option<(f64, f64)>,
    /// Seconds from request to answer, if known.
    pub(super) latency_s: Option<f64>,
}

impl Sums {
    fn of(benchmark: &Benchmark) -> Self {
        let samples = count(benchmark.completed_samples);
        let has_judge = benchmark.judge_input_tokens > 0;
        let latency = benchmark.latency().filter(|latency| latency.p50 > 0.0);
        Self {
            samples,
            input: count(benchmark.input_tokens),
            // The tokens that the provider didn't count are mostly those of answers.
            output: count(benchmark.output_tokens) + count(benchmark.estimated_tokens),
            judged_samples: if has_judge { samples } else { 0.0 },
            judge_input: count(benchmark.judge_input_tokens),
            judge_output: count(benchmark.judge_output_tokens),
            timed_samples: if latency.is_some() { samples } else { 0.0 },
            // Few answers take much longer than the median, which the mean lies above.
            latency_s: latency
                .map_or(0.0, |latency| (0.8 * latency.p50 + 0.2 * latency.p95) / 1_000.0 * samples),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            input: self.input + other.input,
            output: self.output + other.output,
            judged_samples: self.judged_samples + other.judged_samples,
            judge_input: self.judge_input + other.judge_input,
            judge_output: self.judge_output + other.judge_output,
            timed_samples: self.timed_samples + other.timed_samples,
            latency_s: self.latency_s + other.latency_s,
        }
    }

    fn per_sample(self, basis: LengthBasis) -> PerSample {
        let judged = |sum: f64| sum / self.judged_samples;
        PerSample {
            basis,
            input: self.input / self.samples,
            output: self.output / self.samples,
            judge: (self.judged_samples > 0.0).then(|| (judged(self.judge_input), judged(self.judge_output))),
            latency_s: (self.timed_samples > 0.0).then(|| self.latency_s / self.timed_samples),
        }
    }
}

/// Returns what a sample of a benchmark of a run took so far; `None` if no sample has tokens yet.
pub(super) fn per_sample(benchmark: &Benchmark) -> Option<PerSample> {
    has_tokens(benchmark).then(|| Sums::of(benchmark).per_sample(LengthBasis::ThisRun))
}

/// Returns true if a model was asked. The oracle and stored responses have no tokens.
const fn has_tokens(benchmark: &Benchmark) -> bool {
    benchmark.completed_samples > 0 && benchmark.output_tokens.saturating_add(benchmark.estimated_tokens) > 0
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
const fn count(number: u64) -> f64 {
    number as f64
}

impl History {
    /// Reads the latest runs. Without them, estimates are less exact, so a failure is only logged.
    pub(super) async fn load(client: &Client, benchmarks: &[&str]) -> Self {
        match client.get::<RunsPage>(&format!("/api/runs?limit={RUNS_MAX}&status=succeeded")).await {
            Ok(page) => Self::new(&page.runs, benchmarks),
            Err(error) => {
                tracing::debug!(%error, "Earlier runs can't be read");
                Self::default()
            }
        }
    }

    fn new(runs: &[Run], benchmarks: &[&str]) -> Self {
        let mut earlier = Vec::new();
        for run in runs {
            for benchmark in run.benchmarks.iter().filter(|benchmark| has_tokens(benchmark)) {
                if benchmarks.contains(&benchmark.benchmark_name.as_str()) && !benchmark.demo {
                    earlier.push(EarlierBenchmark {
                        model: run.model(),
                        benchmark: benchmark.benchmark_name.clone(),
                        sums: Sums::of(benchmark),
                    });
                }
            }
        }
        Self { runs: earlier }
    }

    /// Returns what a sample of a benchmark took: in runs of this model or, without any, in those of other models.
    pub(super) fn of(&self, model: &str, benchmark: &str) -> Option<PerSample> {
        let sum = |is_wanted: &dyn Fn(&EarlierBenchmark) -> bool| {
            let found = self.runs.iter().filter(|run| run.benchmark == benchmark && is_wanted(run));
            found.map(|run| run.sums).reduce(Sums::plus)
        };
        let same = sum(&|run| run.model == model).map(|sums| sums.per_sample(LengthBasis::SameModel));
        same.or_else(|| sum(&|_| true).map(|sums| sums.per_sample(LengthBasis::OtherModels)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(model: &str, output: u64) -> Run {
        serde_json::from_value(json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded", "model_slug": model,
            "provider": "chutes", "created_at": "2026-01-02T03:04:05Z",
            "benchmarks": [{
                "benchmark_name": "hle", "status": "succeeded", "planned_samples": 10, "completed_samples": 10,
                "input_tokens": 1_000, "output_tokens": output, "judge_input_tokens": 500,
                "judge_output_tokens": 50, "metrics": { "latency_ms": { "p50": 2_000.0, "p95": 7_000.0 } },
            }],
        }))
        .unwrap()
    }

    #[test]
    fn runs_of_the_same_model_count_first() {
        let runs = [run("a", 2_000), run("a", 4_000), run("b", 90_000), run("oracle", 0)];
        let history = History::new(&runs, &["hle"]);
        let same = history.of("chutes/a", "hle").unwrap();
        assert_eq!(
            same,
            PerSample {
                basis: LengthBasis::SameModel,
                input: 100.0,
                output: 300.0,
                judge: Some((50.0, 5.0)),
                latency_s: Some(3.0),
            }
        );
        let other = history.of("chutes/c", "hle").unwrap();
        assert_eq!(
            (other.basis, other.output),
            (LengthBasis::OtherModels, 3_200.0),
            "the oracle doesn't count"
        );
        assert_eq!(history.of("chutes/a", "mmlu_pro"), None);
        assert_eq!(History::new(&runs, &["mmlu_pro"]).of("chutes/a", "hle"), None);
    }
}
