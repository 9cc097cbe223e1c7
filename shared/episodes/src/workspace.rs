//! Episodes without containers: an agent changes files in a sandbox, which are collected when it ends.
//!
//! Each command of the agent is a job of the sandbox with the step's number in its name, so that it runs once, however often a
//! turn is repeated ([`bench_sandy::job`]).

pub(crate) mod jobs;

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_agents::{Act, BashCommand, CommandResult, Seen};
use bench_domain::{Agent, AgentOutcome, EpisodeReport, EpisodeState, JobReport, JobSpec};
use bench_environments::EnvironmentError;
use bench_sandy::job::JobError;
use bench_sandy::{ExecRequest, Sandy};
use tokio::time::Instant;

use self::jobs::Jobs;
use crate::episode::Advance;
use crate::phases::think::{Machine, Mind, Need, outcome, outcome_key};
use crate::phases::{BEGAN, SETUP_MS};
use crate::stop::{Stop, WORKSPACE_LOST};
use crate::thinker::Thinker;

/// Mark of such an episode in its checkpoint.
const MARK: &str = "workspace";
/// Folder of the files, in the checkpoint.
const FOLDER: &str = "folder";
/// Names of the jobs. A collection without a result is repeated once.
const LAYOUT: &str = "layout";
const COLLECTIONS: [&str; 2] = ["collect", "collect-again"];

/// Jobs that lay out files, run commands there, and collect what changed.
pub trait Workspace: Send + Sync {
    /// Returns the job that lays out the files.
    ///
    /// # Errors
    /// Returns a sentence if the item can't be used.
    fn layout(&self) -> Result<JobSpec, String>;

    /// Returns the folder of the files from that job's report.
    fn folder(&self, report: &JobReport) -> Option<String>;

    /// Returns the job that runs a command of the agent within this time.
    ///
    /// # Errors
    /// Returns a sentence if the item can't be used.
    fn command(&self, command: &BashCommand, time_limit: Duration) -> Result<JobSpec, String>;

    /// Returns the result of a command from its job's report, and its run time in milliseconds.
    fn result(&self, report: &JobReport) -> (CommandResult, u64);

    /// Returns the job that collects what changed.
    ///
    /// # Errors
    /// Returns a sentence if the item can't be used.
    fn collection(&self) -> Result<JobSpec, String>;

    /// Returns true if that job's report has a result that can be read.
    fn is_collected(&self, report: &JobReport) -> bool;
}

/// An episode without containers, in its sandbox.
#[derive(Clone, Copy)]
pub struct WorkspaceEpisode<'a> {
    /// Client of the sandbox host.
    pub sandy: &'a Sandy,
    /// Id of the sandbox.
    pub sandbox: &'a str,
    /// The agent, which runs commands.
    pub agent: Agent,
    /// Text about the task for the agent.
    pub instruction: &'a str,
    /// The files.
    pub workspace: &'a dyn Workspace,
    /// Maximum time of the agent's work.
    pub time_limit: Duration,
    /// What the agent needs to ask its model.
    pub thinker: &'a Thinker,
    /// Number of queues whose messages find no place. A turn doesn't linger then.
    pub places_wanted: &'a AtomicUsize,
}

/// Marks the checkpoint as that of an episode without containers.
pub fn note_workspace(state: &mut EpisodeState) {
    state.done.insert(MARK.to_owned(), true.into());
}

/// Returns true for the checkpoint of an episode without containers.
pub fn is_workspace(state: &EpisodeState) -> bool {
    state.done.contains_key(MARK)
}

/// Uses a sandbox without changing anything in it, so that its host doesn't end it as unused.
///
/// # Errors
/// If the sandbox can't be reached.
pub async fn keep_workspace(sandy: &Sandy, sandbox: &str) -> Result<(), EnvironmentError> {
    let command = ExecRequest::new("true").repeatable();
    sandy.exec(sandbox, &command).await.map(drop).map_err(|error| JobError::from(error).into())
}

impl WorkspaceEpisode<'_> {
    /// Carries the episode on until it ends, or `linger` is over and a job is still running.
    pub async fn advance(&self, state: &mut EpisodeState, linger: Duration) -> Advance {
        let mut report = EpisodeReport {
            agent: self.agent.as_str().to_owned(),
            round: state.round,
            ..EpisodeReport::default()
        };
        let mut jobs = Jobs {
            sandy: self.sandy,
            sandbox: self.sandbox,
            state,
            leave_at: Instant::now() + linger,
            places_wanted: self.places_wanted,
        };
        match Box::pin(self.run(&mut jobs, &mut report)).await {
            Ok(collected) => Advance::Worked(Box::new(report), Box::new(collected)),
            Err(Stop::Wait(wait)) => Advance::Waiting(wait),
            Err(Stop::Delay(wait, why)) => Advance::Delayed(wait, why),
            Err(Stop::Failure(error)) => Advance::Failed(error),
            Err(Stop::Ask(request)) => Advance::Asks(request),
            Err(Stop::Stepped(record)) => Advance::Stepped(record),
            Err(Stop::Exception(exception, _)) => {
                report.exception = Some(exception);
                Advance::Ended(Box::new(report))
            }
        }
    }

    /// Runs the episode from the beginning; everything that is over returns at once.
    async fn run(&self, jobs: &mut Jobs<'_>, report: &mut EpisodeReport) -> Result<JobReport, Stop> {
        let folder = self.lay_out(jobs).await?;
        report.setup_ms = jobs.known(SETUP_MS);
        let key = outcome_key(0);
        let outcome: AgentOutcome = match jobs.known(&key) {
            Some(known) => known,
            None => {
                let outcome = self.work(jobs, &folder).await?;
                jobs.keep(&key, &outcome);
                jobs.state.agent = None;
                outcome
            }
        };
        outcome::report(report, outcome)?;
        let collection = self.workspace.collection().map_err(Stop::refused)?;
        for name in COLLECTIONS {
            let collected = jobs.run(name, &collection, true).await?;
            if self.workspace.is_collected(&collected) {
                return Ok(collected);
            }
        }
        Err(Stop::exception(WORKSPACE_LOST, "its files could not be read after the agent had ended"))
    }

    /// Checks what the sandbox has, and lays out the files. Returns their folder.
    async fn lay_out(&self, jobs: &mut Jobs<'_>) -> Result<String, Stop> {
        if let Some(known) = jobs.known(FOLDER) {
            return Ok(known);
        }
        let layout = self.workspace.layout().map_err(Stop::refused)?;
        if jobs.known::<bench_domain::Timestamp>(BEGAN).is_none() {
            let probed = bench_sandy::job::probe(self.sandy, self.sandbox, &layout).await;
            probed.map_err(|error| Stop::Failure(error.into()))?;
            jobs.keep(BEGAN, &bench_clock::now());
        }
        let laid_out = jobs.run(LAYOUT, &layout, false).await?;
        let folder = self.workspace.folder(&laid_out).filter(|folder| folder.starts_with('/'));
        let folder = folder
            .ok_or_else(|| Stop::Failure(EnvironmentError::Vanished { operation: LAYOUT.to_owned() }))?;
        let began: Option<bench_domain::Timestamp> = jobs.known(BEGAN);
        let took = began.map(|began| bench_clock::now().since(began)).unwrap_or_default();
        jobs.keep(SETUP_MS, &u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        jobs.keep(FOLDER, &folder);
        Ok(folder)
    }

    /// Carries the agent on to its end, or to the next step that has to be stored.
    async fn work(&self, jobs: &mut Jobs<'_>, folder: &str) -> Result<AgentOutcome, Stop> {
        let machine = Machine::new(self.agent, self.thinker, self.instruction, folder, self.time_limit)?
            .without_processes();
        let (agent, thinker, limit) = (self.agent, self.thinker, self.time_limit);
        let mind = Mind { agent, machine, thinker, limit, task_step: 0 };
        let (progress, step, act, left) = match mind.need(jobs.state.agent.clone())? {
            Need::Step(record) => return Err(Stop::Stepped(record)),
            Need::Ask(request) => return Err(Stop::Ask(request)),
            Need::Ended(outcome) => return Ok(outcome),
            Need::Act { progress, step, act, left } => (progress, step, act, left),
        };
        let Act::Run(command) = act else {
            return Err(Stop::refused(format!(
                "the agent `{agent}` needs a terminal, which workspaces don't have"
            )));
        };
        let time_limit = Duration::from_millis(command.time_limit_ms).min(left);
        let spec = self.workspace.command(&command, time_limit).map_err(Stop::refused)?;
        let report = jobs.run(&format!("do-{step}"), &spec, true).await?;
        let (result, took_ms) = self.workspace.result(&report);
        Err(Stop::Stepped(Box::new(mind.observe(&progress, Seen::Command(result), took_ms, None)?)))
    }
}
