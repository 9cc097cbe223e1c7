//! Estimates of tokens, cost and time of ordered runs, and their lines.

use super::KnownPrice;
use super::cost::TotalCost;
use super::history::PerSample;
use super::pace::{Pace, describe_typical_speed, typical_latency_s};
use super::prompts::PromptLength;
use super::typical::{JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS, answer_tokens, prompt_length};
use crate::format;

/// Judge of the ordered runs.
#[derive(Debug, Clone)]
pub(super) struct JudgeEstimate {
    pub(super) name: String,
    pub(super) price: KnownPrice,
}

/// Facts about a benchmark that are known before it runs or continues.
pub(super) struct Inputs<'a> {
    pub(super) name: &'a str,
    /// Number of items, if it is known and all their samples are asked for.
    pub(super) items: Option<u64>,
    /// Number of samples to ask for; `None` if it isn't known.
    pub(super) samples: Option<u64>,
    /// Average length of the prompts, if some were read.
    pub(super) prompt: Option<PromptLength>,
    /// Maximum length of an answer.
    pub(super) max_tokens: Option<u32>,
    /// Averages of a sample so far or in earlier runs.
    pub(super) measured: Option<PerSample>,
    /// The judge, if the benchmark needs one.
    pub(super) judge: Option<&'a JudgeEstimate>,
    pub(super) pace: Pace,
}

/// Estimate for a benchmark.
#[derive(Debug, Clone)]
pub(super) struct BenchmarkEstimate {
    pub(super) name: String,
    pub(super) items: Option<u64>,
    pub(super) samples: Option<u64>,
    /// Tokens of prompts and of answers; `None` if they can't be estimated.
    pub(super) tokens: Option<(f64, f64)>,
    pub(super) judge: Option<JudgedEstimate>,
    pub(super) seconds: Option<f64>,
    pub(super) basis: Basis,
}

/// Tokens and price of a benchmark's judge.
#[derive(Debug, Clone)]
pub(super) struct JudgedEstimate {
    pub(super) judge: JudgeEstimate,
    /// Tokens of prompts and of replies; `None` if they can't be estimated.
    pub(super) tokens: Option<(f64, f64)>,
}

/// Basis of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    pub(super) lengths: LengthBasis,
    /// True if no earlier answer tells how fast the model is.
    pub(super) is_typical_speed: bool,
}

/// Source of the estimated lengths of answers, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LengthBasis {
    /// The samples of the same run so far.
    ThisRun,
    SameModel,
    OtherModels,
    /// None but the benchmark; the prompts are real.
    Typical,
    /// None but the benchmark, for prompts, too.
    TypicalWithPrompts,
}

impl Basis {
    /// Returns what holds for two benchmarks together.
    fn with(self, other: Self) -> Self {
        Self {
            lengths: self.lengths.max(other.lengths),
            is_typical_speed: self.is_typical_speed || other.is_typical_speed,
        }
    }

    fn describe(self) -> String {
        let lengths = match self.lengths {
            LengthBasis::ThisRun => "answers as in this run so far",
            LengthBasis::SameModel => "answers as in earlier runs of this model",
            LengthBasis::OtherModels => "answers as in earlier runs of other models",
            LengthBasis::Typical => "typical answers without reasoning",
            LengthBasis::TypicalWithPrompts => "typical prompts and answers without reasoning",
        };
        match self.is_typical_speed {
            true => format!("assumes {lengths}, {}", describe_typical_speed()),
            false => format!("assumes {lengths}"),
        }
    }
}

impl BenchmarkEstimate {
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub(super) fn new(inputs: &Inputs<'_>) -> Self {
        let Inputs { name, items, samples, prompt, max_tokens, measured, judge, pace } = *inputs;
        let typical_prompt = prompt_length(name);
        let questions = prompt.unwrap_or(typical_prompt).questions;
        let typical = match prompt {
            Some(_) => LengthBasis::Typical,
            None => LengthBasis::TypicalWithPrompts,
        };
        // Where the prompts were read, their own lengths count.
        let measured_input = measured.map_or(typical_prompt.tokens, |measured| measured.input);
        let input = prompt.map_or(measured_input, |length| length.tokens);
        let (output, lengths) = match measured {
            Some(measured) => (measured.output, measured.basis),
            None => (f64::from(answer_tokens(name)) * questions, typical),
        };
        let output = max_tokens.map_or(output, |limit| output.min(f64::from(limit) * questions));
        let count = samples.map(|samples| samples as f64);
        let judge = judge.map(|judge| {
            // The judge sees the question and the answer.
            let typical = (input + output + JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS);
            let per_sample = measured.and_then(|measured| measured.judge).unwrap_or(typical);
            JudgedEstimate { judge: judge.clone(), tokens: times(count, per_sample) }
        });
        let latency = measured.and_then(|measured| measured.latency_s);
        let latency_s = latency.unwrap_or_else(|| typical_latency_s(questions, output));
        let seconds = count.and_then(|count| pace.seconds(count, questions, latency_s));
        let basis = Basis { lengths, is_typical_speed: latency.is_none() && seconds.is_some() };
        Self {
            name: name.to_owned(),
            items,
            samples,
            tokens: times(count, (input, output)),
            judge,
            seconds,
            basis,
        }
    }

    /// Returns the cost of the model and of the judge, as far as it is known.
    fn cost(&self, price: KnownPrice) -> TotalCost {
        let judge = self.judge.as_ref().map(|judge| judge.judge.price.cost(judge.tokens));
        price.cost(self.tokens).plus(judge.unwrap_or_default())
    }

    fn line(&self, price: KnownPrice) -> String {
        let mut parts = Vec::new();
        parts.extend(self.items.map(|items| format::plural(items, "item")));
        parts.push(match self.samples {
            Some(samples) => format::plural(samples, "sample"),
            None => "samples unknown".to_owned(),
        });
        parts.push(format_tokens(self.tokens));
        if let Some(JudgedEstimate { judge, tokens }) = &self.judge {
            parts.push(format!("judge {}: {}", judge.name, format_tokens(*tokens)));
        }
        parts.push(self.cost(price).describe());
        parts.push(duration(self.seconds));
        format!("  {}: {}", crate::show::benchmark_name(&self.name), parts.join(", "))
    }
}

fn times(count: Option<f64>, (input, output): (f64, f64)) -> Option<(f64, f64)> {
    count.map(|count| (count * input, count * output))
}

/// Estimate for a run.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    /// Name of the model, or of what continues.
    pub(super) title: String,
    pub(super) price: KnownPrice,
    /// Limit of the cost, or what is left of it.
    pub(super) budget_usd: Option<f64>,
    /// True for the rest of a run that has begun.
    pub(super) is_rest: bool,
    pub(super) benchmarks: Vec<BenchmarkEstimate>,
}

impl Estimate {
    /// Returns the cost up to the budget.
    fn cost(&self) -> TotalCost {
        let cost = self.benchmarks.iter().map(|benchmark| benchmark.cost(self.price));
        cost.fold(TotalCost::default(), TotalCost::plus).within(self.budget_usd)
    }

    /// Returns the cost of several runs.
    pub(super) fn total_cost(all: &[Self]) -> TotalCost {
        all.iter().map(Self::cost).fold(TotalCost::default(), TotalCost::plus)
    }

    /// Returns the seconds of the run, whose samples share the concurrency; `None` if they aren't known.
    fn seconds(&self) -> Option<f64> {
        self.benchmarks.iter().map(|benchmark| benchmark.seconds).sum()
    }

    /// Formats the estimates of several runs: a line for each benchmark, the total of each run, and what is assumed.
    pub(super) fn lines(all: &[Self]) -> Vec<String> {
        let mut lines = Vec::new();
        for run in all {
            lines.push(format!("Estimate for {}:", run.title));
            lines.extend(run.benchmarks.iter().map(|benchmark| benchmark.line(run.price)));
            if run.benchmarks.len() > 1 {
                lines.push(format!("  total: {}", run.total()));
            }
            if let Some(budget) = run.budget_usd {
                let budget = format::dollars(budget);
                lines.push(match run.is_rest {
                    true => format!("  the budget has {budget} left"),
                    false => format!("  the budget stops the run at {budget}"),
                });
            }
            let basis = run.benchmarks.iter().map(|benchmark| benchmark.basis).reduce(Basis::with);
            lines.extend(basis.map(|basis| format!("  {}", basis.describe())));
        }
        if all.len() > 1 {
            let seconds = all.iter().map(Self::seconds).sum();
            lines.push(format!(
                "Estimate for all: {}, {}",
                Self::total_cost(all).describe(),
                duration(seconds)
            ));
        }
        lines
    }

    fn total(&self) -> String {
        let sum = |part: fn(&BenchmarkEstimate) -> Option<u64>| {
            self.benchmarks.iter().map(part).sum::<Option<u64>>()
        };
        let all = self.benchmarks.iter().try_fold((0.0, 0.0), |(input, output), benchmark| {
            benchmark.tokens.map(|(more_input, more_output)| (input + more_input, output + more_output))
        });
        let mut parts = Vec::new();
        parts.extend(sum(|benchmark| benchmark.items).map(|items| format::plural(items, "item")));
        parts.extend(sum(|benchmark| benchmark.samples).map(|samples| format::plural(samples, "sample")));
        parts.push(format_tokens(all));
        parts.push(self.cost().describe());
        parts.push(duration(self.seconds()));
        parts.join(", ")
    }
}

/// Formats tokens of prompts and of answers: `~182k tokens in, ~240k out`.
pub(super) fn format_tokens(tokens: Option<(f64, f64)>) -> String {
    match tokens {
        Some((input, output)) => format!("~{} tokens in, ~{} out", rounded(input), rounded(output)),
        None => "tokens unknown".to_owned(),
    }
}

/// Formats a number with two or three digits, since an estimate has no more.
fn rounded(number: f64) -> String {
    match number {
        few if few < 999.5 => format!("{few:.0}"),
        thousands if thousands < 9_950.0 => format!("{:.1}k", thousands / 1_000.0),
        thousands if thousands < 999_500.0 => format!("{:.0}k", thousands / 1_000.0),
        millions if millions < 9_950_000.0 => format!("{:.1}M", millions / 1_000_000.0),
        millions => format!("{:.0}M", millions / 1_000_000.0),
    }
}

/// Formats a time: `~6 m 10 s`, `time –`.
pub(super) fn duration(seconds: Option<f64>) -> String {
    match seconds {
        Some(seconds) => format!("~{}", format::seconds(seconds.max(1.0))),
        None => "time –".to_owned(),
    }
}

#[cfg(test)]
mod tests;
