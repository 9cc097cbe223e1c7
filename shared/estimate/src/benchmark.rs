//! Estimate for one benchmark of a run.

use crate::{
    JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS, KnownPrice, LengthBasis, Pace, PerSample, PromptLength,
    TotalCost, answer_tokens, describe_typical_speed, prompt_length, typical_latency_s,
};

/// Judge or user simulator of the ordered runs.
#[derive(Debug, Clone)]
pub struct JudgeEstimate {
    /// Name of the model with its provider.
    pub name: String,
    /// Price of its tokens.
    pub price: KnownPrice,
}

/// Facts about a benchmark that are known before it runs or continues.
pub struct Inputs<'a> {
    /// Name of the benchmark.
    pub name: &'a str,
    /// True if an agent works on its items, as ordered.
    pub has_agent: bool,
    /// Number of items, if it is known and all their samples are asked for.
    pub items: Option<u64>,
    /// Number of samples to ask for; `None` if it isn't known.
    pub samples: Option<u64>,
    /// Average length of the prompts, if some were read.
    pub prompt: Option<PromptLength>,
    /// Maximum length of an answer.
    pub max_tokens: Option<u32>,
    /// Averages of a sample so far or in earlier runs.
    pub measured: Option<PerSample>,
    /// The judge, if the benchmark needs one.
    pub judge: Option<&'a JudgeEstimate>,
    /// The user simulator, if the benchmark's items are conversations with one.
    pub user: Option<&'a JudgeEstimate>,
    /// Limits on how fast the run asks.
    pub pace: Pace,
}

/// Estimate for a benchmark.
#[derive(Debug, Clone)]
pub struct BenchmarkEstimate {
    /// Name of the benchmark.
    pub name: String,
    /// Number of items, if it is known.
    pub items: Option<u64>,
    /// Number of samples, if it is known.
    pub samples: Option<u64>,
    /// Tokens of prompts and of answers; `None` if they can't be estimated.
    pub tokens: Option<(f64, f64)>,
    /// The judge, if the benchmark needs one.
    pub judge: Option<JudgedEstimate>,
    /// The user simulator, if there is one.
    pub user: Option<JudgedEstimate>,
    /// Seconds that the benchmark takes, if they can be estimated.
    pub seconds: Option<f64>,
    /// Basis of the estimate.
    pub basis: Basis,
}

/// Tokens and price of a benchmark's judge or user simulator.
#[derive(Debug, Clone)]
pub struct JudgedEstimate {
    /// The judge or user simulator.
    pub judge: JudgeEstimate,
    /// Tokens of prompts and of replies; `None` if they can't be estimated.
    pub tokens: Option<(f64, f64)>,
}

/// Basis of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// Source of the lengths.
    pub lengths: LengthBasis,
    /// True if no earlier answer tells how fast the model is.
    pub is_typical_speed: bool,
}

impl Basis {
    /// Returns what holds for two benchmarks together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            lengths: self.lengths.max(other.lengths),
            is_typical_speed: self.is_typical_speed || other.is_typical_speed,
        }
    }

    /// Describes the assumptions in one phrase.
    pub fn describe(self) -> String {
        let lengths = match self.lengths {
            LengthBasis::ThisRun => "answers as in this run so far",
            LengthBasis::SameModel => "answers as in earlier runs of this model",
            LengthBasis::OtherModels => "answers as in earlier runs of other models",
            LengthBasis::Typical => "typical answers without reasoning",
            LengthBasis::TypicalWithPrompts => "typical prompts and answers without reasoning",
            LengthBasis::Unknown => "nothing: an agent's turns are only known from earlier runs",
        };
        match self.is_typical_speed {
            true => format!("{lengths}, {}", describe_typical_speed()),
            false => lengths.to_owned(),
        }
    }
}

impl BenchmarkEstimate {
    /// Estimates a benchmark from its inputs.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let Inputs { name, has_agent, items, samples, prompt, max_tokens, measured, judge, user, pace } =
            *inputs;
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
        let user = user.map(|user| JudgedEstimate {
            judge: user.clone(),
            tokens: measured.and_then(|measured| measured.user).and_then(|user| times(count, user)),
        });
        if measured.is_none() && has_agent {
            let basis = Basis { lengths: LengthBasis::Unknown, is_typical_speed: false };
            return Self {
                name: name.to_owned(),
                items,
                samples,
                tokens: None,
                judge: None,
                user,
                seconds: None,
                basis,
            };
        }
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
            user,
            seconds,
            basis,
        }
    }

    /// Returns the cost of the model, the judge and the user simulator, as far as it is known.
    pub fn cost(&self, price: KnownPrice) -> TotalCost {
        let others = [&self.judge, &self.user].into_iter().flatten();
        let others = others.map(|other| other.judge.price.cost(other.tokens));
        others.fold(price.cost(self.tokens), TotalCost::plus)
    }
}

fn times(count: Option<f64>, (input, output): (f64, f64)) -> Option<(f64, f64)> {
    count.map(|count| (count * input, count * output))
}
