//! Estimates of what a run takes before it starts: tokens, cost and time.
//!
//! The command line and the API gather the inputs, each in its own way: the number of samples, the length of prompts if
//! they were read, the averages of earlier runs ([`History`]), the price of the model ([`KnownPrice`]) and the number of
//! answers in progress at once ([`Pace`]). What follows from them is computed here.

mod benchmark;
mod cost;
mod history;
mod items;
mod lengths;
mod pace;
mod price;
mod run;
mod typical;

pub use benchmark::{Basis, BenchmarkEstimate, Inputs, JudgeEstimate, JudgedEstimate};
pub use cost::{TotalCost, UnknownPart};
pub use history::{EarlierBenchmark, History, PerSample, Sums};
pub use items::{ItemSource, known_items};
pub use lengths::{LengthBasis, PromptLength};
pub use pace::{Pace, describe_typical_speed, typical_latency_s};
pub use price::{KnownPrice, without_list};
pub use run::RunEstimate;
pub use typical::{JUDGE_PROMPT_TOKENS, JUDGE_REPLY_TOKENS, answer_tokens, prompt_length};
