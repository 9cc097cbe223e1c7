//! Work of an episode: a terminal task in containers, or files in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::Stage;
use bench_domain::{Agent, Code, EpisodeReport, EpisodeState};
use bench_episodes::{Advance, Episode, EpisodeTask, InstanceEpisode, TaskFiles, Thinker, WorkspaceEpisode};
use bench_sandy::NewSandbox;
use bench_terminal_tasks::CustomAgent;

use super::dialogue::{self, DialogueWork};
use super::instance::{InstanceWork, VerificationWork};
use super::workspace::ItemWorkspace;
use super::{EpisodeTurn, agent_choice_of, engine_sandbox, labels_of, variables_of};
use crate::Pipeline;
use crate::error::PipelineError;

/// Task and agent of an episode.
pub(super) enum Work<'a> {
    /// A terminal task.
    Containers {
        files: Arc<TaskFiles>,
        agent: Agent,
        /// Files of the agent `custom`.
        custom: Option<Arc<CustomAgent>>,
    },
    /// An item whose files the agent changes.
    Workspace { workspace: ItemWorkspace<'a>, agent: Agent },
    /// An item with a repository in an image, which the agent changes.
    Instance { work: Box<InstanceWork>, agent: Agent },
    /// A conversation with a simulated user.
    Dialogue(Box<DialogueWork<'a>>),
    /// The verification of a stored answer to such an item.
    Verification(Box<VerificationWork>),
}

impl Work<'_> {
    pub(super) const fn agent(&self) -> Agent {
        match self {
            Self::Containers { agent, .. } | Self::Workspace { agent, .. } | Self::Instance { agent, .. } => {
                *agent
            }
            // Its models are asked by turns of their own.
            Self::Dialogue(_) | Self::Verification(_) => Agent::Nop,
        }
    }

    pub(super) const fn is_workspace(&self) -> bool {
        matches!(self, Self::Workspace { .. } | Self::Dialogue(_))
    }

    pub(super) const fn is_dialogue(&self) -> bool {
        matches!(self, Self::Dialogue(_))
    }

    /// Returns the request for the episode's sandbox.
    pub(super) fn sandbox(&self) -> NewSandbox {
        match self {
            Self::Containers { .. } | Self::Instance { .. } | Self::Verification(_) => engine_sandbox(),
            Self::Workspace { .. } | Self::Dialogue(_) => {
                NewSandbox { preemptable: false, ..NewSandbox::default() }
            }
        }
    }

    /// Returns the maximum time of the episode, if it has one.
    pub(super) fn time_limit(&self) -> Option<Duration> {
        match self {
            Self::Containers { files, .. } => files.admitted.task.time_limit(),
            Self::Workspace { workspace, .. } => Some(workspace.protocol.time_limit()),
            Self::Instance { work, .. } => Some(work.instance.protocol.time_limit()),
            Self::Verification(work) => Some(work.verification.time_limit),
            Self::Dialogue(_) => Some(dialogue::TIME_MAX),
        }
    }

    /// Returns the name of a step of the task; `None` if it has no steps.
    pub(super) fn step_name(&self, task_step: usize) -> Option<&str> {
        match self {
            Self::Containers { files, .. } => {
                files.admitted.task.steps.get(task_step).and_then(|step| step.name.as_deref())
            }
            Self::Workspace { .. } | Self::Instance { .. } | Self::Dialogue(_) | Self::Verification(_) => {
                None
            }
        }
    }

    /// Computes the agent's change from the files that were collected, and adds what isn't part of it to the report. A change that
    /// can't be graded becomes the report's exception.
    pub(super) fn take_change(
        &self,
        collected: &bench_domain::JobReport,
        report: &mut EpisodeReport,
    ) -> Option<String> {
        match self {
            Self::Workspace { workspace, .. } => workspace.take_change(collected, report),
            Self::Containers { .. } | Self::Instance { .. } | Self::Dialogue(_) | Self::Verification(_) => {
                None
            }
        }
    }
}

impl Pipeline {
    /// Loads the sample's task and agent. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_work<'a>(
        &self,
        turn: EpisodeTurn<'a>,
        state: &EpisodeState,
    ) -> Result<Option<Work<'a>>, PipelineError> {
        let choice = agent_choice_of(turn.claimed);
        if let Some(protocol) = turn.claimed.benchmark.benchmark.workspace() {
            let item = turn.claimed.item(&self.blobs).await?;
            return match ItemWorkspace::new(protocol, item) {
                Ok(workspace) => Ok(Some(Work::Workspace { workspace, agent: choice.agent })),
                Err(problem) => {
                    self.end_episode_sandbox(state).await;
                    self.end_ungraded(turn, state, Code::InvalidItem, &problem.to_string()).await?;
                    Ok(None)
                }
            };
        }
        if let Some(protocol) = turn.claimed.benchmark.benchmark.dialogue() {
            let item = turn.claimed.item(&self.blobs).await?;
            let trial = turn.claimed.sample.position.sample;
            return Ok(Some(Work::Dialogue(Box::new(DialogueWork { protocol, item, trial }))));
        }
        if let Some(protocol) = turn.claimed.benchmark.benchmark.instance() {
            return Ok(match turn.handed_over.stage {
                Stage::Verification => {
                    let work = Box::pin(self.load_verification(turn, state, protocol)).await?;
                    work.map(|work| Work::Verification(Box::new(work)))
                }
                _ => {
                    let work = Box::pin(self.load_instance(turn, state, protocol)).await?;
                    work.map(|work| Work::Instance { work: Box::new(work), agent: choice.agent })
                }
            });
        }
        let Some(files) = Box::pin(self.load_task(turn, state)).await? else { return Ok(None) };
        let custom = match choice.agent {
            Agent::Custom => match Box::pin(self.load_agent(turn, state, &choice)).await? {
                None => return Ok(None),
                custom => custom,
            },
            _ => None,
        };
        Ok(Some(Work::Containers { files, agent: choice.agent, custom }))
    }

    /// Carries an episode on until it ends, or `linger` is over.
    pub(super) async fn advance_work(
        &self,
        turn: EpisodeTurn<'_>,
        state: &mut EpisodeState,
        sandbox: &str,
        work: &Work<'_>,
        thinker: Option<&Thinker>,
        linger: Duration,
    ) -> Advance {
        let (sandy, places_wanted) = (&self.sandboxes.sandy, &*self.sandboxes.places_wanted);
        match (work, thinker) {
            (Work::Containers { files, agent, custom }, thinker) => {
                let (labels, variables) = (labels_of(turn.claimed), variables_of(turn.claimed));
                let task = EpisodeTask {
                    files,
                    agent: *agent,
                    custom: custom.as_deref(),
                    thinker,
                    variables: &variables,
                    labels: &labels,
                };
                let episode = Episode { sandy, sandbox, task, places_wanted };
                Box::pin(episode.advance(state, linger)).await
            }
            (Work::Workspace { workspace, agent }, Some(thinker)) => {
                let episode = WorkspaceEpisode {
                    sandy,
                    sandbox,
                    agent: *agent,
                    instruction: &workspace.instruction,
                    workspace,
                    time_limit: workspace.protocol.time_limit(),
                    thinker,
                    places_wanted,
                };
                Box::pin(episode.advance(state, linger)).await
            }
            (Work::Instance { work, agent }, Some(thinker)) => {
                let labels = labels_of(turn.claimed);
                let task = work.task(*agent, thinker, &labels);
                let episode = InstanceEpisode { sandy, sandbox, places_wanted };
                Box::pin(episode.advance(&task, state, linger)).await
            }
            (Work::Verification(work), _) => {
                let labels = labels_of(turn.claimed);
                let episode = InstanceEpisode { sandy, sandbox, places_wanted };
                Box::pin(episode.verify(&work.task(&labels), state, linger)).await
            }
            (Work::Dialogue(_), _) => Advance::Failed(bench_environments::EnvironmentError::Invalid(
                "a conversation has turns of its own".to_owned(),
            )),
            (Work::Workspace { agent, .. } | Work::Instance { agent, .. }, None) => Advance::Failed(
                bench_environments::EnvironmentError::Invalid(format!("the agent `{agent}` asks no model")),
            ),
        }
    }
}
