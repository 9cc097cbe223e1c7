//! Turns of an episode without a result, as its agent takes them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_agents::{AtifSource, AtifStep, Trajectory, TrajectoryNames, dialogue_trajectory};
use bench_benchmarks::{AgentChoice, DialogueProtocol, agent_choice};
use bench_blobs::{AgentRecords, BlobError};
use bench_domain::{Agent, AgentTotals, EpisodeReport, EpisodeState, RunId, Stage};
use bench_episodes::{AgentWork, StepRoom, Thinker, agent_work, shortened_step, trajectory_steps};
use bench_state::{BodyRef, SampleRecord};
use bench_web::error::ErrorBody;
use bench_web::size::fitting;
use bench_web::{ApiError, FieldReader, Identity, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::one_sample::{OneSample, SampleQuery};
use crate::runs::requests::run_id;

/// Room for a step. As JSON within a response, a byte takes up to seven, so a step always fits.
const ROOM: StepRoom = StepRoom { text: 128 << 10, all: 512 << 10 };

/// Turns of an episode that is running.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ItemTurns)]
pub(crate) struct ItemTurnsView {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    run_id: RunId,
    /// Name of the benchmark.
    benchmark_name: String,
    /// Index of the item in the run's plan, from 0.
    position: u32,
    /// Index of the sample among those of its item, from 0.
    sample: u32,
    /// Phase of the episode: `waiting` for a sandbox, `setup` of the environment, `agent` at work, `verifier` after the agent;
    /// `running` for agents that ask no model; `interrupted` while no process works on the run; `over`, also if the run ended
    /// before the episode.
    phase: &'static str,
    /// Name of the agent; null if the sample isn't an episode. Steps of a conversation with a simulated user have the user's calls,
    /// results and figures in `extra`, and the ids of failed calls of both sides.
    agent: Option<&'static str>,
    /// Number of the episode's sandbox, from 1. In another one, the agent starts over; 0 before the first one.
    round: u32,
    /// Index of the task's step on which the agent works, or worked last; null before it begins, if it asks no model, and once the
    /// sample has a result: its log `agent/trajectory.json` has the turns then.
    task_step: Option<usize>,
    /// Tokens, cost and turns on this step so far; null without one.
    totals: Option<AgentTotalsView>,
    /// Number of steps of the trajectory so far.
    total: usize,
    /// Index of the first step in `steps`.
    from: usize,
    /// Steps of the trajectory (ATIF) from `from` on, as many as fit into the response; long texts are cut. The last step of all gets
    /// its observation later, so ask for it again. None for others than the run's owner if the dataset is gated.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<AtifStep>,
}

/// Sums over the model calls of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentTotals)]
pub(crate) struct AgentTotalsView {
    /// Turns that were taken.
    turns: usize,
    /// Tokens of requests, those read from a cache included.
    input_tokens: u64,
    /// Part of the requests' tokens that was read from a cache.
    cached_tokens: u64,
    /// Tokens of replies, reasoning included.
    output_tokens: u64,
    /// Cost in US dollars; null if it is unknown.
    cost_usd: Option<f64>,
}

impl AgentTotalsView {
    fn new(turns: usize, totals: AgentTotals) -> Self {
        let AgentTotals { input_tokens, cached_tokens, output_tokens, cost_usd, .. } = totals;
        let cost_usd = Some(cost_usd).filter(|cost| *cost > 0.0);
        Self { turns, input_tokens, cached_tokens, output_tokens, cost_usd }
    }
}

/// Returns the turns of an episode that is running, from one of its trajectory's steps on.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/items/turns", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("benchmark" = String, Query, description = "Name of the benchmark"),
        ("position" = Option<u32>, Query, description = "Index of the item in the run's plan, default 0"),
        ("sample" = Option<u32>, Query, description = "Index of the sample among those of its item, default 0"),
        ("from" = Option<u64>, Query, description = "Index of the first step to return, default 0"),
    ),
    responses(
        (status = 200, body = ItemTurnsView),
        (status = 404, body = ErrorBody, description = "The run doesn't exist, or doesn't have the benchmark or the sample"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_item_turns(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<ItemTurnsView>, ApiError> {
    let run = run_id(&run)?;
    let mut fields = FieldReader::from_query(&uri);
    let query = SampleQuery::read(&mut fields);
    let from = usize::try_from(fields.integer("from", 0, 0, u64::MAX)).unwrap_or(usize::MAX);
    fields.finish()?;
    let one = query.find(&api, run, &identity).await?;
    let state = one.record.as_ref().and_then(checkpoint);
    one.must_exist()?;
    let run_state = match (one.found.run.state.status().is_open(), api.state.works_on(&one.found.run)) {
        (false, _) => RunState::Over,
        (true, false) => RunState::Interrupted,
        (true, true) => RunState::Open,
    };
    let has_result = one.record.as_ref().is_some_and(|record| record.finished.is_some());
    let work = state.as_ref().filter(|_| !has_result).and_then(agent_work);
    let choice = choice(&one);
    // A change that is being graded is stored with the agent's trajectory.
    let graded = match one.record.as_ref().filter(|_| !has_result).and_then(|record| record.turn.as_ref()) {
        Some(turn) if matches!(turn.stage, Stage::Sandbox | Stage::Verification) => {
            report(&api, &one, &turn.answer.body).await?
        }
        _ => None,
    };
    let steps = match (&state, &work, &graded) {
        _ if one.is_hidden => Vec::new(),
        (Some(state), Some(work), _) => steps(&api, &one, &choice, state, work).await?,
        (_, _, Some(report)) => stored_steps(report),
        _ => Vec::new(),
    };
    let total = steps.len();
    let turns = steps.iter().filter(|step| step.source == AtifSource::Agent).count();
    let mut steps: Vec<AtifStep> = steps.iter().skip(from).map(|step| shortened_step(step, ROOM)).collect();
    steps.truncate(fitting(&steps));
    Ok(Json(ItemTurnsView {
        run_id: run,
        benchmark_name: one.benchmark.to_string(),
        position: query.position,
        sample: query.sample,
        phase: match (run_state, has_result) {
            (RunState::Over, _) | (_, true) => "over",
            (RunState::Interrupted, false) => "interrupted",
            (RunState::Open, false) if graded.is_some() || is_verified(one.record.as_ref()) => "verifier",
            (RunState::Open, false) => phase(state.as_ref(), work.as_ref(), choice.agent),
        },
        agent: bench_benchmarks::has_agent_in(&one.found.run.spec, &one.benchmark)
            .then(|| dialogue(&one).map_or_else(|| choice.agent.as_str(), |protocol| protocol.agent())),
        round: match (&graded, state.as_ref().filter(|state| state.sandbox.is_some())) {
            (Some(report), _) => report.round,
            (None, Some(state)) => state.round,
            (None, None) => 0,
        },
        task_step: work.map(|work| work.task_step).or(graded.as_ref().map(|_| 0)),
        totals: work
            .map(|work| work.totals)
            .or(graded.as_ref().and_then(totals_of))
            .map(|totals| AgentTotalsView::new(turns, totals)),
        total,
        from: from.min(total),
        steps,
    }))
}

/// Returns the checkpoint of a sample's episode; `None` if it is none, or before the first one.
fn checkpoint(record: &SampleRecord) -> Option<EpisodeState> {
    record.turn.as_ref().filter(|turn| turn.stage == Stage::Episode)?.checkpoint().ok().flatten()
}

/// Returns true if the sample's answer is being verified, whoever made it.
fn is_verified(record: Option<&SampleRecord>) -> bool {
    record.and_then(|record| record.turn.as_ref()).is_some_and(|turn| turn.stage == Stage::Verification)
}

/// Returns the report of an episode whose change is being graded.
async fn report(api: &Api, one: &OneSample, body: &BodyRef) -> Result<Option<EpisodeReport>, ApiError> {
    let Some(address) = &one.address else { return Ok(None) };
    match api.blobs.get_body(address, body.attempt, Some(&body.sha256)).await {
        Ok(found) => Ok(found.and_then(|(body, _)| body.episode)),
        Err(error @ (BlobError::Damaged { .. } | BlobError::TooLarge { .. })) => {
            tracing::error!(run.id = %address.run, %error, "The report of {address} cannot be read: {error}");
            Ok(None)
        }
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// Returns the steps of the stored trajectory.
fn stored_steps(report: &EpisodeReport) -> Vec<AtifStep> {
    let log = report.log("agent/trajectory.json");
    let trajectory = log.and_then(|log| serde_json::from_str::<Trajectory>(&log.text).ok());
    trajectory.map_or_else(Vec::new, |trajectory| trajectory.steps)
}

fn totals_of(report: &EpisodeReport) -> Option<AgentTotals> {
    report.steps.first()?.agent.as_ref().map(|agent| agent.totals)
}

fn choice(one: &OneSample) -> AgentChoice {
    let spec = &one.found.run.spec;
    agent_choice(&spec.model.provider, spec.options.get(&one.benchmark))
}

/// Returns the protocol of a sample that is a conversation.
fn dialogue(one: &OneSample) -> Option<&'static dyn DialogueProtocol> {
    bench_benchmarks::find_for_run(&one.found.run.spec, &one.benchmark)?.dialogue()
}

/// State of a run, as it affects its episodes.
#[derive(Clone, Copy)]
enum RunState {
    Open,
    /// No process works on it until it is resumed.
    Interrupted,
    Over,
}

fn phase(state: Option<&EpisodeState>, work: Option<&AgentWork>, agent: Agent) -> &'static str {
    match (state.and_then(|state| state.sandbox.as_ref()), work) {
        (None, _) => "waiting",
        (Some(_), None) if !agent.asks_model() => "running",
        (Some(_), None) => "setup",
        (Some(_), Some(AgentWork { is_open: true, .. })) => "agent",
        (Some(_), Some(AgentWork { is_open: false, .. })) => "verifier",
    }
}

/// Builds the steps of the trajectory so far from the stored records. Records that are known already aren't read again.
async fn steps(
    api: &Api,
    one: &OneSample,
    choice: &AgentChoice,
    state: &EpisodeState,
    work: &AgentWork,
) -> Result<Vec<AtifStep>, ApiError> {
    let Some(address) = &one.address else { return Ok(Vec::new()) };
    let place = AgentRecords::new(address, &state.nonce, work.task_step);
    let transcript = match api.transcripts.load(&api.blobs, &place, work.records).await {
        Ok(Some(transcript)) => transcript,
        // The episode has just started over, or its run was deleted.
        Ok(None) => return Ok(Vec::new()),
        Err(error @ (BlobError::Damaged { .. } | BlobError::TooLarge { .. })) => {
            tracing::error!(run.id = %address.run, %error, "The turns of {address} cannot be read: {error}");
            return Ok(Vec::new());
        }
        Err(error) => return Err(ApiError::internal(error)),
    };
    api.transcripts.note(&place, work.records, &transcript);
    let session = address.to_string();
    let spec = &one.found.run.spec;
    let model = spec.model.qualified();
    let names = TrajectoryNames { session: &session, model: &model };
    if let Some(protocol) = dialogue(one) {
        let user_model = spec.user.as_ref().map(|user| user.model.qualified()).unwrap_or_default();
        return Ok(dialogue_trajectory(protocol.agent(), &user_model, &transcript.dialogue(), names).steps);
    }
    let mut thinker = Thinker::new(choice.options.clone(), Default::default());
    thinker.transcript = transcript;
    Ok(trajectory_steps(choice.agent, &thinker, names))
}

#[cfg(test)]
mod tests {
    use bench_web::size::{CARRIED_BYTES_MAX, carried_bytes};

    use super::*;

    #[test]
    fn every_step_fits_into_a_response() {
        let step = AtifStep {
            step_id: 1,
            timestamp: None,
            source: AtifSource::Agent,
            message: "\u{1}".repeat(3 << 20),
            model_name: None,
            reasoning_content: Some("\u{1}".repeat(3 << 20)),
            tool_calls: Vec::new(),
            observation: None,
            metrics: None,
            llm_call_count: None,
            extra: Default::default(),
        };
        let bytes = carried_bytes(&shortened_step(&step, ROOM));
        assert!(bytes <= CARRIED_BYTES_MAX, "{bytes}");
    }
}
