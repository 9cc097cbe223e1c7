//! Turns of agents that ask a model: calls of the model, and the records of steps.
//!
//! An agent's step follows from its state, its transcript and one observation. Its record, which has the next state and what
//! was added to the transcript, is stored under the step's number before the checkpoint names it. The first record of a
//! number stays: an attempt that comes later takes it over, and asks for no answer that is stored.

use std::time::Duration;

use bench_agents::{ModelFailure, ModelFailureKind, Seen, TrajectoryNames};
use bench_blobs::{AgentRecords, BlobError};
use bench_domain::{AgentRecord, Answer, Code, EpisodeLog, EpisodeReport, EpisodeState, Spending, Usage};
use bench_episodes::{ModelAnswer, ModelRequest, REFUSED, TRAJECTORIES_BYTES_MAX, Thinker, trajectory_logs};
use bench_inference::tokens::usage_or_estimate;
use bench_inference::{Failure, FailureKind, TooLong};
use bench_lambda::metrics;

use super::reply::model_reply;
use super::work::Work;
use super::{EpisodeTurn, agent_choice_of};
use crate::Pipeline;
use crate::context::{AnswerSource, ModelClient, Unavailable};
use crate::error::PipelineError;
use crate::model::{AskResult, Question};

/// Maximum number of tries to store a record, whose answer has already been paid for.
const STORE_TRIES: u32 = 6;
/// Longest wait for a provider that fails without saying how long to wait.
const FAILED_WAIT_MAX: Duration = Duration::from_secs(300);

impl Pipeline {
    /// Creates the agent of a sample with its transcript. Ends the sample and returns `None` if the transcript is gone.
    pub(super) async fn thinker(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<Option<Thinker>, PipelineError> {
        let claimed = turn.claimed;
        let texts = claimed.benchmark.templates(&self.blobs).await?.clone();
        let mut thinker = Thinker::new(agent_choice_of(claimed).options, texts);
        let Some(progress) = &state.agent else { return Ok(Some(thinker)) };
        let place = AgentRecords::new(&claimed.sample, &state.nonce, progress.task_step);
        match self.transcripts.load(&self.blobs, &place, progress.records).await? {
            Some(transcript) => thinker.transcript = transcript,
            None => {
                self.end_episode_sandbox(state).await;
                let why = "a stored step of the agent is gone";
                self.end_ungraded(turn, state, Code::StoredDataMissing, why).await?;
                return Ok(None);
            }
        }
        Ok(Some(thinker))
    }

    /// Answers an agent's request: from a record that an earlier attempt stored, or by asking the model. Returns `None` if
    /// the sample was ended, put off or given back.
    pub(super) async fn answer_agent(
        &self,
        turn: EpisodeTurn<'_>,
        state: &mut EpisodeState,
        thinker: &mut Thinker,
        request: &ModelRequest,
    ) -> Result<Option<()>, PipelineError> {
        let (task_step, records) =
            state.agent.as_ref().map_or((0, 0), |agent| (agent.task_step, agent.records));
        let place = AgentRecords::new(&turn.claimed.sample, &state.nonce, task_step);
        // Only an attempt before this one can have stored it.
        if turn.claimed.looks_for_record()
            && let Some(record) = self.blobs.agent_record(&place, records).await?
        {
            return Ok(self.take_over_step(turn, state, thinker, record).await?.then_some(()));
        }
        thinker.answer = self.ask_for_agent(turn, state, request).await?;
        Ok(thinker.answer.is_some().then_some(()))
    }

    /// Stores the record of a step, and saves the checkpoint with it. Returns false if another attempt holds the sample.
    pub(super) async fn keep_step(
        &self,
        turn: EpisodeTurn<'_>,
        state: &mut EpisodeState,
        thinker: &mut Thinker,
        mut record: AgentRecord,
    ) -> Result<bool, PipelineError> {
        let keys = &turn.claimed.run.keys;
        record.parts.iter_mut().for_each(|part| keys.redact_value(part));
        let number = record.progress.records.saturating_sub(1);
        let place = AgentRecords::new(&turn.claimed.sample, &state.nonce, record.progress.task_step);
        let stored = match self.store_record(&place, number, &record).await {
            Ok(stored) => stored,
            Err(error) => {
                self.count_paid(turn, &record).await;
                return Err(error.into());
            }
        };
        if stored {
            return self.take_over_step(turn, state, thinker, record).await;
        }
        // Another attempt stored this step first; its answer counts. Ours was paid for, too.
        self.count_paid(turn, &record).await;
        let other = self.blobs.agent_record(&place, number).await?;
        match other {
            Some(other) => self.take_over_step(turn, state, thinker, other).await,
            None => Ok(false),
        }
    }

    /// Counts a stored step, adds it to the transcript, and saves the checkpoint.
    pub(super) async fn take_over_step(
        &self,
        turn: EpisodeTurn<'_>,
        state: &mut EpisodeState,
        thinker: &mut Thinker,
        record: AgentRecord,
    ) -> Result<bool, PipelineError> {
        let damaged = |error: serde_json::Error| BlobError::Damaged {
            key: format!("step {} of an agent", record.progress.records),
            problem: error.to_string(),
        };
        thinker.add(&record).map_err(damaged)?;
        thinker.answer = None;
        if let Some(paid) = record.paid {
            state.paid = Some(state.paid.unwrap_or_default().plus(paid));
            turn.claimed.note_paid(state.paid);
            self.activity.count_tokens(Some(paid));
        }
        if let Some(paid) = record.user_paid {
            state.user_paid = Some(state.user_paid.unwrap_or_default().plus(paid));
            turn.claimed.note_user_paid(state.user_paid);
            self.activity.count_tokens(Some(paid));
        }
        self.count_paid(turn, &record).await;
        let place = AgentRecords::new(&turn.claimed.sample, &state.nonce, record.progress.task_step);
        self.transcripts.note(&place, record.progress.records, &thinker.transcript);
        state.agent = Some(record.progress);
        turn.claimed.note_record();
        self.save_episode(turn, state).await
    }

    /// Adds the trajectories of an agent to the report, each from its stored transcript.
    pub(super) async fn add_trajectories(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        work: &Work<'_>,
        report: &mut EpisodeReport,
    ) -> Result<(), PipelineError> {
        let agent = work.agent();
        if !agent.asks_model() {
            return Ok(());
        }
        let claimed = turn.claimed;
        let options = agent_choice_of(claimed).options;
        let texts = claimed.benchmark.templates(&self.blobs).await?;
        let (mut room, mut trajectories) = (TRAJECTORIES_BYTES_MAX, Vec::new());
        for task_step in 0..report.steps.len().max(1) {
            // An agent that was cut off by the end of its container is still in the checkpoint.
            let open = state.agent.as_ref().filter(|open| open.task_step == task_step);
            let outcome = report.steps.get(task_step).and_then(|step| step.agent.as_ref());
            let Some(records) =
                outcome.map(|outcome| outcome.records).or_else(|| open.map(|open| open.records))
            else {
                continue;
            };
            let place = AgentRecords::new(&claimed.sample, &state.nonce, task_step);
            let Some(transcript) = self.transcripts.load(&self.blobs, &place, records).await? else {
                continue;
            };
            let mut thinker = Thinker::new(options.clone(), texts.clone());
            thinker.transcript = transcript;
            let session = format!("{}__agent", claimed.sample);
            let names = TrajectoryNames { session: &session, model: &claimed.run.spec.model.qualified() };
            trajectories.extend(trajectory_logs(
                work.step_name(task_step),
                agent,
                &thinker,
                names,
                &mut room,
            ));
        }
        // The agent may have written files of the same names, or folders. Views show the first logs only.
        let is_at = |log: &EpisodeLog, ours: &EpisodeLog| {
            log.name.strip_prefix(&ours.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        report.logs.retain(|log| !trajectories.iter().any(|ours| is_at(log, ours)));
        report.logs.splice(0..0, trajectories);
        Ok(())
    }

    async fn store_record(
        &self,
        place: &AgentRecords,
        number: u32,
        record: &AgentRecord,
    ) -> Result<bool, BlobError> {
        let (mut tries, mut wait) = (1, Duration::from_millis(200));
        loop {
            match self.blobs.put_agent_record(place, number, record).await {
                Ok(stored) => return Ok(stored.is_some()),
                Err(error) if tries >= STORE_TRIES => return Err(error),
                Err(error) => tracing::warn!(%error, "Storing a step of an agent failed: {error}"),
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
            tries += 1;
        }
    }

    async fn count_paid(&self, turn: EpisodeTurn<'_>, record: &AgentRecord) {
        let answers = record.paid.unwrap_or_default();
        let user = record.user_paid.unwrap_or_default();
        self.count_spent(turn.claimed, Spending { answers, user, ..Spending::default() }).await;
    }

    /// Asks the run's model. Returns `None` without an answer: the sample was ended, put off or given back.
    async fn ask_for_agent(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        request: &ModelRequest,
    ) -> Result<Option<ModelAnswer>, PipelineError> {
        let claimed = turn.claimed;
        let client = match self.answer_source(claimed) {
            AnswerSource::Model(client) => client,
            AnswerSource::Unavailable(Unavailable { code, why }) => {
                self.end_last_episode_sandbox(state).await;
                self.fail_run(claimed, *code, why).await?;
                return Ok(None);
            }
            _ => {
                self.end_last_episode_sandbox(state).await;
                let why = "the run's source of answers is not a model";
                self.end_ungraded(turn, state, Code::InvalidItem, why).await?;
                return Ok(None);
            }
        };
        let generation = &claimed.benchmark.plan.generation;
        let mut prompt = request.prompt.clone();
        if let Some(text) = &generation.system_prompt {
            prompt.prepend_system(text);
        }
        let question =
            Question { prompt: &prompt, generation, reply_schema: None, tools: None, is_continued: true };
        let failure = match self.ask_in_episode(turn, state, client, &question).await? {
            None => return Ok(None),
            Some(Ok(answer)) => {
                let paid = usage_or_estimate(&prompt, &answer);
                let price = claimed.run.spec.price;
                let seen = Seen::Reply(model_reply(*answer, &client.model.slug, paid, price));
                return Ok(Some(ModelAnswer { step: request.step, seen, paid }));
            }
            Some(Err(failure)) => failure,
        };
        if let Some((kind, message)) = seen_by_agent(&failure) {
            let seen = Seen::ModelFailed(ModelFailure { kind, message, latency_ms: 0 });
            return Ok(Some(ModelAnswer { step: request.step, seen, paid: Usage::ZERO }));
        }
        self.wait_for_episodes_model(turn, state, client, &failure).await?;
        Ok(None)
    }

    /// Asks a model within the budget. Returns its answer or its failure, which is counted; `None` if the sample was ended, put off
    /// or given back.
    pub(super) async fn ask_in_episode(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> Result<Option<Result<Box<Answer>, Failure>>, PipelineError> {
        let claimed = turn.claimed;
        if !self.budget_allows(claimed).await? {
            self.end_sandbox_of_over(turn, state).await?;
            return Ok(None);
        }
        match self.ask(claimed, client, question).await? {
            AskResult::Answer(answer) => Ok(Some(Ok(answer))),
            AskResult::RunOver => {
                self.end_last_episode_sandbox(state).await;
                self.give_back(claimed).await?;
                Ok(None)
            }
            AskResult::PutOff => Ok(None),
            AskResult::Failed(failed) => {
                self.count_failed(claimed, client.role, question.prompt, &failed).await;
                Ok(Some(Err(claimed.benchmark.without_quotes(question.prompt, failed))))
            }
        }
    }

    /// Handles a failure that the agent doesn't see. An episode has cost too much to be given up after a few failures: its
    /// sample waits as long as for a busy provider.
    pub(super) async fn wait_for_episodes_model(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let claimed = turn.claimed;
        match failure.kind {
            FailureKind::Transient | FailureKind::TooLong(TooLong::Time) => {
                let waits = claimed.record.history.waits.saturating_add(1);
                let wait = failure
                    .retry_after
                    .unwrap_or_else(|| bench_domain::sample::backoff(waits).min(FAILED_WAIT_MAX));
                metrics::count(metrics::SAMPLES_WAITED, 1.0);
                self.note_failed_request(claimed, client, failure, wait).await;
                let why = client.role.explain(&failure.cause);
                let code = client.role.code(failure.code());
                self.wait_or_end(claimed, code, &why, wait, self.config.patience).await?;
            }
            _ => self.handle_provider_failure(claimed, client, failure).await?,
        }
        self.end_sandbox_of_over(turn, state).await
    }

    /// Ends the sandbox if the sample or its run is over.
    async fn end_sandbox_of_over(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<(), PipelineError> {
        let sample = &turn.claimed.sample;
        let is_open = self.state.run(sample.run).await?.is_some_and(|run| run.state.status().is_open());
        let is_done = self.state.sample(sample).await?.is_none_or(|found| found.finished.is_some());
        if !is_open || is_done {
            self.end_last_episode_sandbox(state).await;
        }
        Ok(())
    }
}

/// Returns a failure that ends the agent's work or changes it; `None` for one that passes, or that isn't its own.
fn seen_by_agent(failure: &Failure) -> Option<(ModelFailureKind, String)> {
    match failure.kind {
        FailureKind::TooLong(TooLong::Context) => {
            Some((ModelFailureKind::ContextExceeded, failure.cause.clone()))
        }
        FailureKind::Refused => Some((ModelFailureKind::Other, format!("{REFUSED}{}", failure.cause))),
        _ => None,
    }
}
