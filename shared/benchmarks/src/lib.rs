//! One module per benchmark; scorers, metrics and prompts that several share.
//!
//! A benchmark is a value of [`Benchmark`]: it says what it is ([`Facts`]), where its dataset is and how a
//! row becomes an item ([`Layout`](bench_items::Layout)), what a model is shown, and by which of the
//! [scorers] answers are graded. Nothing here does I/O or waits: prompts and verdicts are pure functions of the item and the answer.
//!
//! Grading follows the official program of each benchmark, surprises included; where it cannot, the
//! difference is listed in [`Facts::deviations`].

mod aa_lcr;
mod aa_omniscience;
mod aime;
mod answer_time;
mod benchmark;
pub mod columns;
mod facts;
mod gpqa_diamond;
mod grading;
mod hle;
mod ifbench_allenai;
mod ifeval;
mod instruction_set;
mod item_problem;
mod livecodebench;
mod material;
mod metrics;
mod mmlu_pro;
mod options;
mod prompts;
mod python;
mod questions;
mod registry;
mod scicode;
pub mod score;
pub mod scorers;
mod steps;

pub use aa_lcr::AaLcr;
pub use aa_omniscience::AaOmniscience;
pub use aime::{AIME_2022_2024, AIME_2025, Aime};
pub use answer_time::AnswerTime;
pub use benchmark::Benchmark;
pub use facts::{Facts, Link, NO_TEXT_DIGEST, Template, TemplateSource};
pub use gpqa_diamond::{GpqaDiamond, GpqaDiamondAuthors};
pub use grading::Grading;
pub use hle::Hle;
pub use ifbench_allenai::IF_BENCH_ALLENAI;
pub use ifeval::IF_EVAL;
pub use instruction_set::InstructionSet;
pub use item_problem::ItemProblem;
pub use livecodebench::LiveCodeBench;
pub use material::{Material, Templates};
pub use metrics::{Ended, GroupTally, GuessedAnswers, Metrics};
pub use mmlu_pro::MmluPro;
pub use options::{OptionError, OptionFacts, Options};
pub use questions::{Foreseen, NextQuestion, foreseen, next_question};
pub use registry::{
    UnknownProtocol, all, chosen_options, demo_items, effective_options, executed_code, find, gated,
    is_private, of_run, under_protocol,
};
pub use scicode::SciCode;
pub use scorers::judge::{Judge, JudgeFacts, NoVerdict};
pub use scorers::sandbox::{JobMaterial, Round, SandboxFacts, SandboxGrader, Unread};
pub use steps::{NextStep, Steps};

#[cfg(test)]
mod tests;
