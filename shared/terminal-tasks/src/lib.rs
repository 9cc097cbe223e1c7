//! Terminal tasks and custom agents: formats, admission of uploads, compose files, rewards and outcomes. No I/O, no clock.
//!
//! [`admit_archive`] reads an uploaded ZIP into a [`Tree`] and returns its [`Task`], or a [`Refusal`] that names the file
//! and the line. [`admit_terminal_bench`] does so with a gzipped tar archive of a dataset. Tasks come in the formats [`harbor`] and [`terminal_bench`] and have the same model afterwards.
//! [`compose::check_compose`] checks what a task asks of the container engine. [`parse_rewards`] and [`parse_pane`] read
//! the result of a verification, and [`Exception::of`] maps failures to outcomes. [`CustomAgent::read`] reads the folder of
//! a custom agent.

mod admission;
mod archive;
pub mod compose;
mod custom_agent;
mod exception;
pub mod harbor;
mod ignore;
mod inputs;
mod instruction;
mod model;
mod network;
mod node;
mod pane;
mod path;
mod refusal;
mod reward;
mod scripts;
mod tar;
pub mod terminal_bench;
mod tree;
mod variables;

pub use self::tar::{read_tar_gz, read_tar_gz_tree};
pub use admission::{AdmissionLimits, AdmittedTask, admit, admit_archive, admit_terminal_bench};
pub use archive::{ARCHIVE_BYTES_MAX, Archive, ArchiveFile, read_tree};
pub use custom_agent::{AGENT_ARCHIVE_BYTES_MAX, AGENT_BYTES_MAX, AGENT_FILE, AgentFile, CustomAgent};
pub use exception::{Exception, ExceptionCause};
pub use inputs::{InputFiles, solution_files, test_files, workdir_files};
pub use model::{
    AgentPhase, Artifact, Author, CollectHook, Environment, Grading, HealthCheck, Keystrokes, McpServer,
    McpTransport, OperatingSystem, PaneParser, RewardStrategy, Solution, Step, Task, TaskFormat, Tpu, User,
    Verifier, VerifierEnvironment,
};
pub use network::{AllowedHost, NetworkPolicy};
pub use pane::{PaneError, PaneResults, parse_pane};
pub use path::{PATH_BYTES_MAX, PATH_DEPTH_MAX, TaskPath};
pub use refusal::{
    AgentProblem, ArchiveProblem, ComposeProblem, ContentProblem, FormatProblem, Place, Problem, Refusal,
};
pub use reward::{REWARD_BYTES_MAX, REWARD_JSON_PATH, REWARD_TEXT_PATH, RewardError, Rewards, parse_rewards};
pub use tree::{ContentHash, File, Mode, Tree, TreeBuilder, TreeLimits};
pub use variables::{MissingVariable, Template, Variables};
