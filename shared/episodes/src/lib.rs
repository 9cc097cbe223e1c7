//! Episodes: an agent works in the environment of a terminal task, and the task's tests verify its work; or it changes files in a
//! sandbox, and its change is graded elsewhere ([`WorkspaceEpisode`]).
//!
//! [`Episode::advance`] carries an episode on, from a checkpoint ([`bench_domain::EpisodeState`]) to its end or to the
//! next wait. The program of an episode is written as one procedure that starts at the beginning in each turn:
//! operations that are over return their results at once, from the checkpoint or from the sandbox, and the first one
//! that isn't is continued. Operations run once in their sandbox, however often a turn is repeated
//! ([`bench_environments`]).
//!
//! The order of operations, the paths in containers and the meaning of rewards are those of Harbor 0.25 for its own
//! format, and those of Terminal-Bench 0.2.18 for the older one. [`verdict`] turns a report into the outcome of a sample.

mod dialogue;
mod engine;
mod episode;
mod files;
mod instance;
mod instance_episode;
mod kept;
mod phases;
mod program;
mod stop;
mod stored;
mod task;
mod thinker;
mod trajectory;
mod transcripts;
mod verdict;
mod work;
mod workspace;

pub use dialogue::{
    DialogueAdvance, DialogueEpisode, DialogueFacts, DialogueSteps, ReceivedReply, SandboxStep, StepFailure,
    dialogue_report, in_another_sandbox, is_dialogue, note_dialogue,
};
pub use engine::known_engine;
pub use episode::{Advance, Episode, cancel, keep, remove_other_rounds};
pub use files::{TaskFiles, TaskFilesError};
pub use instance::{Instance, InstanceImage, InstanceTask, VerificationTask};
pub use instance_episode::{InstanceEpisode, is_verified_again, verification_failure};
pub use stop::CHANGE_TOO_LARGE;
pub use task::{EpisodeTask, environment_name};
pub use thinker::{ModelAnswer, ModelRequest, REFUSED, Thinker};
pub use trajectory::{StepRoom, TRAJECTORIES_BYTES_MAX, shortened_step, trajectory_logs, trajectory_steps};
pub use transcripts::Transcripts;
pub use verdict::{describe_change, is_retried, verdict};
pub use work::{AgentWork, agent_work};
pub use workspace::{Workspace, WorkspaceEpisode, is_workspace, keep_workspace, note_workspace};
