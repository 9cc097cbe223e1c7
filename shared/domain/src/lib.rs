//! Domain model of runs: types, state machines, sampling, statistics.
//!
//! This crate does no I/O and knows no services: its values can be created, compared and tested without a network, a
//! clock or a disk. Times are passed in as [`Timestamp`]s, randomness as a seed.

pub mod agent;
pub mod answer;
pub mod body;
pub mod budget;
pub mod causes;
pub mod code;
pub mod episode;
pub mod eta;
pub mod generation;
pub mod ids;
pub mod job;
mod json_size;
pub mod labels;
mod layout_control;
pub mod limits;
pub mod model_role;
pub mod outcome;
pub mod report;
mod reported_models;
pub mod run;
pub mod sample;
pub mod sampling;
pub mod schedule;
pub mod secret;
pub mod session;
pub mod similar;
pub mod spec;
pub mod stage;
pub mod statistics;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::panic)] // a test with a wrong name is a wrong test
pub mod testing;
pub mod time;
mod transition;
pub mod unusual_status;
pub mod usage;
pub mod verification;
pub mod visibility;

pub use agent::{Agent, UnknownAgent};
pub use answer::{Answer, ChatMessage, Finish, Image, Prompt, Role, TextRepairs, ToolCall};
pub use body::{Execution, SampleBody, Step};
pub use budget::{Budget, LimitReached, Prices, Spending};
pub use causes::{CauseCounts, ErrorCause};
pub use code::Code;
pub use episode::{
    AgentOutcome, AgentProgress, AgentRecord, AgentTotals, DialogueReport, EpisodeException, EpisodeLog,
    EpisodeReport, EpisodeStart, EpisodeState, EpisodeStep, OpenOperation, TestCounts,
};
pub use generation::{Generation, MaxTokensField, OmittedSetting, ReasoningEffort};
pub use ids::{BenchmarkName, InvalidId, ModelId, RunId, ScheduleId};
pub use job::{
    FileContent, HarvestedFile, Job, JobEnd, JobFile, JobReport, JobSpec, JobState, ResultFile, StoredFile,
};
pub use json_size::{json_text_bytes, json_width};
pub use labels::RunLabels;
pub use layout_control::is_layout_control;
pub use limits::RunLimits;
pub use model_role::ModelRole;
pub use outcome::{Outcome, OutcomeCounts, Verdict};
pub use reported_models::ReportedModels;
pub use run::{BenchmarkState, BenchmarkStatus, FailureReason, RunState, RunStatus};
pub use sample::{Position, SampleRef};
pub use sampling::Subset;
pub use schedule::Schedule;
pub use secret::Secret;
pub use session::{SESSION_COOKIE_CHARS, SessionId};
pub use spec::{RunSpec, RunTemplate};
pub use stage::Stage;
pub use time::Timestamp;
pub use transition::IllegalTransition;
pub use unusual_status::UnusualStatus;
pub use usage::{Cost, Price, TOKENS_PER_CALL_MAX, Usage};
pub use verification::VerificationReport;
pub use visibility::Visibility;
