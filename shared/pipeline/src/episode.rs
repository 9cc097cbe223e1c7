//! Stages `episode` and `verification`. The first lets an agent work on a terminal task in containers, and grades its work by the task's tests.
//!
//! An episode is a program of durable operations (`bench_episodes`) in one sandbox with a container engine. Each turn
//! carries it on for a while, saves its checkpoint and puts the sample off, so that a killed turn loses nothing:
//!
//! 1. The round's random name is saved. A sandbox is requested, entered into the ledger, and saved.
//! 2. Turns carry the episode on. What is running in the sandbox goes on between them.
//! 3. The report is stored before the sandbox is ended, and its verdict committed.
//!
//! Where a benchmark's agent changes files in a sandbox instead (`bench_benchmarks::WorkspaceProtocol`), the change is stored as the
//! sample's answer before the sandbox is ended, and graded as a reply would be: by stage `sandbox` in another sandbox.
//!
//! Where it works in an image with a repository (`bench_benchmarks::InstanceProtocol`), the change is handed over to stage
//! `verification`, which is such a program, too: it runs the item's official scripts on the stored answer in a second container.
//! Oracles and stored responses go there directly, and a requeue repeats nothing else.
//!
//! A lost sandbox, or a failure that isn't the agent's, starts the episode over in another one. Waiting for a free
//! sandbox counts against no limit.

mod agent;
mod cleanup;
mod custom;
mod dialogue;
mod failure;
mod instance;
mod reply;
mod task;
mod verified;
mod work;
mod workspace;

use std::time::{Duration, Instant};

use bench_benchmarks::{AgentChoice, Grading, agent_choice};
use bench_domain::sample::AttemptHistory;
use bench_domain::{
    Answer, Code, EpisodeReport, EpisodeState, ModelRole, SampleBody, Spending, Stage, Verdict,
};
use bench_environments::Labels;
use bench_episodes::Advance;
use bench_inference::Keys;
use bench_sandy::NewSandbox;
use bench_sandy::job::JobError;
use bench_state::{AnswerRecord, LedgerEntry, StateError, Turn};

use self::work::Work;
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Time for which a sandbox stays in the ledger beyond the task's own limits: waits for the builder, transfers and late
/// turns.
const LEASE_MARGIN: Duration = Duration::from_secs(4 * 3_600);
/// Time limit of an episode whose task has none.
const EPISODE_MAX: Duration = Duration::from_secs(48 * 3_600);
/// Interval at which a turn checks whether its run is still open.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A claimed sample with its turn, as of the claim.
#[derive(Clone, Copy)]
struct EpisodeTurn<'a> {
    claimed: &'a ClaimedSample,
    handed_over: &'a Turn,
}

impl Pipeline {
    /// Carries the sample's episode on. `stored` is a body that an earlier attempt stored without committing it.
    pub(crate) async fn episode(
        &self,
        claimed: &ClaimedSample,
        handed_over: &Turn,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), PipelineError> {
        let turn = EpisodeTurn { claimed, handed_over };
        let state = saved_episode(handed_over)?.unwrap_or_else(|| new_round(1));
        if let Some((body, stored)) = stored {
            match handed_over.stage {
                Stage::Verification
                    if body.verification.as_ref().is_some_and(|report| report.round == state.round) =>
                {
                    return Box::pin(self.end_verification(turn, &state, &body, stored)).await;
                }
                Stage::Verification => {}
                _ if body
                    .episode
                    .as_ref()
                    .is_some_and(|report| report.dialogue.is_some() && report.round == state.round) =>
                {
                    return Box::pin(self.end_dialogue(turn, &state, &body, stored)).await;
                }
                _ if body.episode.as_ref().is_some_and(|report| report.round == state.round) => {
                    return Box::pin(self.end_episode(turn, &state, &body, stored)).await;
                }
                _ => {}
            }
        }
        claimed.note_paid(state.paid);
        claimed.note_user_paid(state.user_paid);
        let Some(work) = Box::pin(self.load_work(turn, &state)).await? else { return Ok(()) };
        if !self.runs.is_open(claimed).await? {
            Box::pin(self.end_last_episode_sandbox(&state)).await;
            return Box::pin(self.give_back(claimed)).await;
        }
        // Boxed, as below it: each state would hold those of all that it calls, and threads have little stack.
        let (state, sandbox) = match state.sandbox.clone() {
            Some(sandbox) => (state, sandbox),
            None => match Box::pin(self.create_episode_sandbox(turn, state, &work)).await? {
                Some(created) => created,
                None => return Ok(()),
            },
        };
        match work.is_dialogue() {
            true => Box::pin(self.advance_dialogue(turn, state, &sandbox, &work)).await,
            false => Box::pin(self.advance_episode(turn, state, &sandbox, &work)).await,
        }
    }

    /// Requests a sandbox for the episode. Returns `None` if there is none, and the sample was put off or ended.
    async fn create_episode_sandbox(
        &self,
        turn: EpisodeTurn<'_>,
        mut state: EpisodeState,
        work: &Work<'_>,
    ) -> Result<Option<(EpisodeState, String)>, PipelineError> {
        if work.is_dialogue() {
            bench_episodes::note_dialogue(&mut state);
        } else if work.is_workspace() {
            bench_episodes::note_workspace(&mut state);
        }
        if !self.save_episode(turn, &state).await? {
            return Ok(None);
        }
        let Some(request) = self.sandboxes.request() else {
            self.wait_for_sandbox(turn, None).await?;
            return Ok(None);
        };
        let created = self.sandboxes.sandy.create(&work.sandbox()).await;
        drop(request);
        let sandbox = match created {
            Ok(sandbox) => sandbox,
            Err(error) => {
                Box::pin(self.handle_episode_failure(turn, &state, &JobError::from(error).into())).await?;
                return Ok(None);
            }
        };
        let time_limit = work.time_limit().unwrap_or(EPISODE_MAX);
        let entry = LedgerEntry {
            sandbox: sandbox.clone(),
            host: self.sandboxes.name.clone(),
            sample: turn.claimed.sample.clone(),
            until: bench_clock::now().plus(time_limit + LEASE_MARGIN),
            has_engine: !work.is_workspace(),
        };
        state.sandbox = Some(sandbox.clone());
        state.started_at.get_or_insert_with(bench_clock::now);
        let saved = match self.state.note_sandbox(&entry).await {
            Ok(()) => self.save_episode(turn, &state).await,
            Err(error) => Err(error.into()),
        };
        match saved {
            Ok(true) => {
                if state.round > 1 && !work.is_workspace() {
                    let (sandy, labels) = (&self.sandboxes.sandy, labels_of(turn.claimed));
                    let removed =
                        bench_episodes::remove_other_rounds(sandy, &sandbox, &labels, &state.nonce).await;
                    if let Err(error) = removed {
                        tracing::warn!(%error, "Containers of a lost sandbox were not removed: {error}");
                    }
                }
                Ok(Some((state, sandbox)))
            }
            // Without the saved checkpoint, no other attempt knows of this sandbox.
            other => {
                self.end_sandbox(&sandbox).await;
                other.map(|_| None)
            }
        }
    }

    async fn advance_episode(
        &self,
        turn: EpisodeTurn<'_>,
        mut state: EpisodeState,
        sandbox: &str,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        let (claimed, agent) = (turn.claimed, work.agent());
        let mut thinker = None;
        if agent.asks_model() {
            thinker = Box::pin(self.thinker(turn, &state)).await?;
            if thinker.is_none() {
                return Ok(());
            }
        }
        let began = Instant::now();
        let mut has_stepped = false;
        loop {
            if let Some(thinker) = &mut thinker {
                thinker.at = Some(bench_clock::now().to_string());
            }
            let left = claimed.deadline.0.since(bench_clock::now()).saturating_sub(self.config.reserve);
            let linger = self.sandboxes.linger.min(left);
            let advance = self.advance_work(turn, &mut state, sandbox, work, thinker.as_ref(), linger);
            let advance = Box::pin(advance);
            let Some(advanced) = self.while_open(claimed, advance).await else {
                Box::pin(self.end_last_episode_sandbox(&state)).await;
                return Box::pin(self.give_back(claimed)).await;
            };
            match (advanced, &mut thinker) {
                (Advance::Waiting(wait), _) => {
                    if !Box::pin(self.save_episode(turn, &state)).await? {
                        return Ok(());
                    }
                    return Box::pin(self.put_episode_off(turn, wait)).await;
                }
                (Advance::Delayed(wait, why), _) => {
                    return Box::pin(self.delay_episode(turn, &state, wait, &why)).await;
                }
                (Advance::Failed(error), _) => {
                    return Box::pin(self.handle_episode_failure(turn, &state, &error)).await;
                }
                (Advance::Ended(mut report), _) => {
                    Box::pin(self.add_trajectories(turn, &state, work, &mut report)).await?;
                    return Box::pin(self.keep_report(turn, &state, *report, None)).await;
                }
                (Advance::Worked(mut report, collected), _) => {
                    let change = work.take_change(&collected, &mut report);
                    Box::pin(self.add_trajectories(turn, &state, work, &mut report)).await?;
                    return Box::pin(self.keep_report(turn, &state, *report, change)).await;
                }
                (Advance::Changed(mut report, change), _) => {
                    Box::pin(self.add_trajectories(turn, &state, work, &mut report)).await?;
                    return Box::pin(self.keep_report(turn, &state, *report, Some(change))).await;
                }
                (Advance::Verified(report), _) => {
                    return Box::pin(self.keep_verification(turn, &state, *report)).await;
                }
                (Advance::Asks(request), Some(thinker)) => {
                    let is_late = claimed.deadline.remaining(self.config.reserve)
                        < self.answer_limit(claimed, ModelRole::Model);
                    if is_late && has_stepped {
                        return Box::pin(self.put_episode_off(turn, Duration::ZERO)).await;
                    }
                    if Box::pin(self.answer_agent(turn, &mut state, thinker, &request)).await?.is_none() {
                        self.keep_sandbox(claimed, sandbox, work).await;
                        return Ok(());
                    }
                }
                (Advance::Stepped(record), Some(thinker)) => {
                    let is_reply = record.paid.is_some();
                    has_stepped = true;
                    if !Box::pin(self.keep_step(turn, &mut state, thinker, *record)).await? {
                        return Ok(());
                    }
                    // The commands of a reply follow in the same message.
                    if !is_reply && began.elapsed() > self.sandboxes.linger {
                        return Box::pin(self.put_episode_off(turn, Duration::ZERO)).await;
                    }
                }
                (Advance::Asks(_) | Advance::Stepped(_), None) => {
                    Box::pin(self.end_last_episode_sandbox(&state)).await;
                    let why = "an agent without a model asked for one";
                    return Box::pin(self.end_ungraded(turn, &state, Code::InternalError, why)).await;
                }
            }
        }
    }

    /// Uses the sandbox of an agent that waits for its provider: hosts end unused sandboxes, and the agent would have to
    /// start over. The first wait is short.
    async fn keep_sandbox(&self, claimed: &ClaimedSample, sandbox: &str, work: &Work<'_>) {
        if claimed.record.history.waiting_since.is_none() {
            return;
        }
        let sandy = &self.sandboxes.sandy;
        let kept = match work.is_workspace() {
            true => Box::pin(bench_episodes::keep_workspace(sandy, sandbox)).await,
            false => Box::pin(bench_episodes::keep(sandy, sandbox)).await,
        };
        if let Err(error) = kept {
            // The next turn finds out whether it is lost.
            tracing::debug!(%error, "Sandbox {sandbox} could not be used: {error}");
        }
    }

    /// Waits for a turn's work. Returns `None` as soon as the run is over.
    async fn while_open<T>(&self, claimed: &ClaimedSample, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    if matches!(self.runs.wants_answers(claimed.sample.run).await, Ok(false)) {
                        return None;
                    }
                }
            }
        }
    }

    /// Stores a report with the agent's change, if it has one to be graded, and ends the sample, hands it over or starts the
    /// episode over.
    async fn keep_report(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        mut report: EpisodeReport,
        change: Option<String>,
    ) -> Result<(), PipelineError> {
        if bench_episodes::is_retried(&report) && failure::is_repeatable(state) {
            let why = report.last_exception().map(|exception| exception.message.clone()).unwrap_or_default();
            return self.repeat_episode(turn, state, &why).await;
        }
        redact(&turn.claimed.run.keys, &mut report);
        let Some(body) = self.handed_over_body(turn, state).await? else { return Ok(()) };
        let mut answer = body.answer.clone();
        if let Some(mut change) = change {
            turn.claimed.run.keys.redact_in(&mut change);
            let latency_ms = report.steps.iter().filter_map(|step| step.agent_ms).sum();
            answer = Answer { usage: state.paid, latency_ms, ..Answer::local(change) };
        }
        let body = SampleBody { episode: Some(report), answer, ..body };
        let stored = self.store(turn.claimed, &body, Spending::default()).await?;
        self.end_episode(turn, state, &body, stored).await
    }

    /// Commits the verdict on a stored report, or hands the stored change over to the stage that grades it.
    async fn end_episode(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        body: &SampleBody,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        self.end_reported_sandbox(state).await;
        let (claimed, report) = (turn.claimed, body.episode.clone().unwrap_or_default());
        let benchmark = claimed.benchmark.benchmark;
        let grading = match (report.exception.is_none(), benchmark.workspace(), benchmark.instance()) {
            (true, Some(protocol), _) => protocol.grade(claimed.item(&self.blobs).await?, &body.answer),
            (true, None, Some(_)) => Grading::NeedsTurn(Stage::Verification),
            _ => Grading::Done(bench_episodes::verdict(&report)),
        };
        let verdict = match grading {
            Grading::Done(mut verdict) => {
                if report.exception.is_none() && benchmark.workspace().is_some() {
                    bench_episodes::describe_change(&report, &mut verdict);
                }
                verdict
            }
            Grading::NeedsTurn(stage) => {
                let answered = AnswerRecord {
                    body: stored.into(),
                    usage: state.paid,
                    latency_ms: report.duration_ms(),
                    ..turn.handed_over.answer.clone()
                };
                let spent = uncounted(claimed, state).answers;
                return self.hand_over(claimed, stage, &answered, spent, None).await;
            }
        };
        self.commit_report(turn, state, stored, verdict, Some(&report)).await
    }

    /// Commits the verdict on a stored report: with the time and tokens of an episode, or those of the answer that was handed
    /// over.
    async fn commit_report(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        stored: StoredBody,
        verdict: Verdict,
        episode: Option<&EpisodeReport>,
    ) -> Result<(), PipelineError> {
        let claimed = turn.claimed;
        let mut finished = claimed.record.to_finished(verdict, bench_clock::now());
        finished.body = Some(stored.into());
        if let Some(report) = episode {
            (finished.latency_ms, finished.usage) = (report.duration_ms(), state.paid);
        }
        self.commit(claimed, &finished, uncounted(claimed, state), None).await
    }

    /// Ends the sandbox of a stored report. The episode removed its environments before it returned the report.
    async fn end_reported_sandbox(&self, state: &EpisodeState) {
        if let Some(sandbox) = &state.sandbox {
            self.end_sandbox(sandbox).await;
        }
    }

    /// Saves the checkpoint. Returns `false` if another attempt holds the sample now.
    async fn save_episode(&self, turn: EpisodeTurn<'_>, state: &EpisodeState) -> Result<bool, PipelineError> {
        let ClaimedSample { sample, attempt, .. } = turn.claimed;
        let earlier = saved_episode(turn.handed_over)?;
        if earlier.as_ref() == Some(state) {
            return Ok(true);
        }
        // Both numbers only grow within a round, and have an end.
        let steps = |state: &EpisodeState| state.agent.as_ref().map_or(0, |agent| agent.records);
        let is_progress = earlier.is_some_and(|earlier| {
            earlier.round == state.round
                && (steps(state) > steps(&earlier) || state.done.len() > earlier.done.len())
        });
        let stage = turn.handed_over.stage;
        let saved = self.state.save_checkpoint(sample, *attempt, stage, state, is_progress).await?;
        if !saved {
            tracing::info!(run.id = %sample.run, "Another attempt took over sample {sample}");
        }
        Ok(saved)
    }

    /// Leaves the rest to a later turn. Resets the counts of failures and waits, since this turn made progress.
    async fn put_episode_off(&self, turn: EpisodeTurn<'_>, wait: Duration) -> Result<(), PipelineError> {
        let history =
            AttemptHistory { failures: 0, waiting_since: None, lost: 0, ..turn.claimed.record.history };
        self.put_off(turn.claimed, wait, history).await
    }
}

/// Returns what an episode has spent and no commit has counted: a run with a budget counts each call when it is stored.
fn uncounted(claimed: &ClaimedSample, state: &EpisodeState) -> Spending {
    match claimed.run.ledger {
        Some(_) => Spending::default(),
        None => Spending {
            answers: state.paid.unwrap_or_default(),
            user: state.user_paid.unwrap_or_default(),
            ..Spending::default()
        },
    }
}

/// Returns the request for an episode's sandbox.
fn engine_sandbox() -> NewSandbox {
    NewSandbox { docker_socket: true, preemptable: false, ..NewSandbox::default() }
}

/// Returns the labels of everything that a sample has at the engine.
fn labels_of(claimed: &ClaimedSample) -> Labels {
    Labels::of_sample(&claimed.sample)
}

/// Returns the agent of a run, with its options.
fn agent_choice_of(claimed: &ClaimedSample) -> AgentChoice {
    let spec = &claimed.run.spec;
    let given = spec.options.get(&claimed.sample.benchmark).cloned().unwrap_or_default();
    let options = bench_benchmarks::effective_options(claimed.benchmark.benchmark, &given);
    agent_choice(&spec.model.provider, Some(&options))
}

/// Returns the variables that the order gives to its tasks.
fn variables_of(claimed: &ClaimedSample) -> std::collections::BTreeMap<String, String> {
    let options = claimed.run.spec.options.get(&claimed.sample.benchmark);
    bench_benchmarks::task_variables(options)
}

/// Reads the saved checkpoint; `None` before the first one.
fn saved_episode(turn: &Turn) -> Result<Option<EpisodeState>, StateError> {
    match turn.stage {
        Stage::Episode | Stage::Verification => turn.checkpoint(),
        Stage::Answer | Stage::Judge | Stage::Sandbox => Ok(None),
    }
}

/// Returns a new round with a fresh name.
fn new_round(round: u32) -> EpisodeState {
    let nonce: [u8; 12] = rand::random();
    EpisodeState::new(round, hex::encode(nonce))
}

/// Removes keys from a report.
fn redact(keys: &Keys, report: &mut EpisodeReport) {
    let logs = report.logs.iter_mut().map(|log| &mut log.text);
    let exceptions = report.steps.iter_mut().filter_map(|step| step.exception.as_mut());
    let messages = exceptions.chain(report.exception.as_mut()).map(|exception| &mut exception.message);
    for text in logs.chain(messages).chain([&mut report.test_output]) {
        keys.redact_in(text);
    }
}
