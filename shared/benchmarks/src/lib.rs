//! Benchmarks, one module each, and the scorers, metrics and prompts that they share.
//!
//! A benchmark implements [`Benchmark`]: its description ([`Metadata`]), the location of its dataset and the conversion of
//! rows to items ([`Layout`](bench_items::Layout)), its prompts, and the [scorer](scorers) that grades answers. This
//! crate does no I/O and never waits: prompts and verdicts are pure functions of the item and the answer.
//!
//! Grading follows the official program of each benchmark, including its quirks. Where it differs,
//! [`Metadata::deviations`] says how.

mod aa_lcr;
mod aa_omniscience;
mod aime;
mod answer_time;
mod benchmark;
pub mod code_lab;
pub mod columns;
mod expert_questions;
mod gpqa_diamond;
mod grading;
mod hle;
mod ifbench_allenai;
mod ifeval;
mod instruction_set;
mod item_problem;
mod livecodebench;
mod material;
mod metadata;
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
mod signed;
mod steps;
mod swe_bench_pro;
pub mod tau_bench_telecom;
mod terminal_bench_hard;
mod terminal_tasks;
#[cfg(test)]
mod testing;

pub use aa_lcr::AaLcr;
pub use aa_omniscience::AaOmniscience;
pub use aime::{AIME_2022_2024, AIME_2025, Aime};
pub use answer_time::AnswerTime;
pub use bench_code_tasks::CodeTask;
pub use benchmark::Benchmark;
pub use code_lab::CodeLab;
pub use expert_questions::EXPERT_QUESTIONS;
pub use gpqa_diamond::{GpqaDiamond, GpqaDiamondAuthors};
pub use grading::Grading;
pub use hle::Hle;
pub use ifbench_allenai::IF_BENCH_ALLENAI;
pub use ifeval::IF_EVAL;
pub use instruction_set::InstructionSet;
pub use item_problem::ItemProblem;
pub use livecodebench::LiveCodeBench;
pub use material::{Material, Templates};
pub use metadata::{Link, Metadata, NO_TEXT_DIGEST, Template, TemplateSource};
pub use metrics::{FinishedSample, GroupTally, GuessedAnswers, Metrics};
pub use mmlu_pro::MmluPro;
pub use options::{OptionError, OptionMetadata, Options};
pub use questions::{NextQuestion, QuestionPreview, next_question, preview_questions};
pub use registry::{
    UnknownProtocol, all, artifacts, chosen_options, default_agent, demo_items, effective_options,
    executed_code, find, find_for_run, find_named, gated, has_agent, has_agent_in, is_private, listed_name,
    with_protocol,
};
pub use scicode::SciCode;
pub use scorers::dialogue::{DialogueProtocol, DialogueStep, OpenedDialogue, StepProblem, UserMetadata};
pub use scorers::instance::{
    CHANGE_TOO_LARGE_EXIT, InstanceCollection, InstanceFile, InstanceImage, InstanceProtocol,
    InstanceScripts, InstanceVerification,
};
pub use scorers::judge::{Judge, JudgeMetadata, NoVerdict};
pub use scorers::sandbox::{JobMaterial, Round, SandboxGrader, SandboxMetadata, UnreadableReport};
pub use scorers::workspace::{
    WorkspaceChange, WorkspaceCommand, WorkspaceCommandEnd, WorkspaceError, WorkspaceProtocol,
};
pub use steps::{NextStep, Steps};
pub use swe_bench_pro::SweBenchPro;
pub use tau_bench_telecom::TauBenchTelecom;
pub use terminal_bench_hard::{PackedTask, TerminalBenchHard};
pub use terminal_tasks::{
    AgentChoice, CUSTOM_CONTENT, OFFICIAL_WHEEL, TASK_COLUMN, TASK_HASH_COLUMN, TASK_INSTRUCTION_COLUMN,
    TerminalTasks, agent_choice, agent_option_names, custom_content, is_agent_option,
    variables::task_variables,
};

#[cfg(test)]
mod tests;
