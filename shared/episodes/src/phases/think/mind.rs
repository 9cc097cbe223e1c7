//! What an agent needs next, and its steps, wherever its commands run.

use std::time::Duration;

use bench_agents::{Act, End, Observation, Part, Seen, StepError};
use bench_domain::{Agent, AgentOutcome, AgentProgress, AgentRecord, ChatMessage, Prompt, Role, Usage};

use super::machine::{Machine, MachineState};
use super::outcome;
use crate::stop::Stop;
use crate::thinker::{ModelRequest, Thinker, parts_as_json};

/// An agent that asks a model, on a step of its task.
#[derive(Debug)]
pub(crate) struct Mind<'a> {
    pub(crate) agent: Agent,
    pub(crate) machine: Machine,
    pub(crate) thinker: &'a Thinker,
    /// Time limit of its work on this step.
    pub(crate) limit: Duration,
    /// Index of the task's step.
    pub(crate) task_step: usize,
}

/// What an agent needs next.
pub(crate) enum Need {
    /// Its step has to be stored.
    Step(Box<AgentRecord>),
    /// It asks its model.
    Ask(ModelRequest),
    /// Something has to be done in its environment, within the time that is left.
    Act { progress: AgentProgress, step: u32, act: Act, left: Duration },
    /// Nothing: it has ended.
    Ended(AgentOutcome),
}

impl Mind<'_> {
    /// Returns what the agent needs next. `saved` is its progress; `None` before its first step.
    pub(crate) fn need(&self, saved: Option<AgentProgress>) -> Result<Need, Stop> {
        let Some(progress) = saved else {
            let (state, parts) = self.machine.start();
            let first = record(&AgentProgress::new(self.task_step), &state, &parts, None, 0)?;
            return Ok(Need::Step(Box::new(first)));
        };
        let state = state_of(&progress)?;
        let ended =
            |end: &End| outcome::outcome(end, self.limit, &progress, self.thinker.text_source(self.agent));
        if let Some(end) = state.end() {
            return Ok(Need::Ended(ended(end)));
        }
        let left = self.limit.saturating_sub(Duration::from_millis(progress.elapsed_ms));
        if left.is_zero() {
            return Ok(Need::Ended(ended(&End::TimeLimit)));
        }
        let step = state.step();
        let call = match self.machine.act(&state, &self.thinker.transcript).map_err(mismatch)? {
            // The state has no end, so there is an act.
            Act::End(end) => return Ok(Need::Ended(ended(&end))),
            Act::AskModel(call) => call,
            act => return Ok(Need::Act { progress, step, act, left }),
        };
        if let Some(answer) = self.thinker.answer.clone().filter(|answer| answer.step == step) {
            let took_ms = match &answer.seen {
                Seen::Reply(reply) => reply.latency_ms,
                Seen::ModelFailed(failure) => failure.latency_ms,
                Seen::Terminal(_) | Seen::Command(_) => 0,
            };
            let stepped = self.observe(&progress, answer.seen, took_ms, Some(answer.paid))?;
            return Ok(Need::Step(Box::new(stepped)));
        }
        let messages = self.thinker.transcript.request(&call);
        let messages = messages.iter().map(|message| {
            let role = match message.role {
                bench_agents::Role::User => Role::User,
                bench_agents::Role::Assistant => Role::Assistant,
            };
            ChatMessage::new(role, message.content)
        });
        Ok(Need::Ask(ModelRequest { step, prompt: Prompt { messages: messages.collect() } }))
    }

    /// Makes the agent's next step from what was seen, and returns its record.
    pub(crate) fn observe(
        &self,
        before: &AgentProgress,
        seen: Seen,
        took_ms: u64,
        paid: Option<Usage>,
    ) -> Result<AgentRecord, Stop> {
        let state = state_of(before)?;
        let mut progress = before.clone();
        progress.elapsed_ms = progress.elapsed_ms.saturating_add(took_ms);
        outcome::count(&mut progress.totals, &seen);
        let at = self.thinker.at.clone();
        let observation = Observation { step: state.step(), elapsed_ms: progress.elapsed_ms, at, seen };
        let (state, parts) =
            self.machine.step(&state, &self.thinker.transcript, observation).map_err(mismatch)?;
        record(&progress, &state, &parts, paid, state.turns())
    }
}

fn state_of(progress: &AgentProgress) -> Result<MachineState, Stop> {
    serde_json::from_value(progress.state.clone())
        .map_err(|error| Stop::exception("RuntimeError", format!("the agent's state: {error}")))
}

/// Returns the record of a step.
fn record(
    before: &AgentProgress,
    state: &MachineState,
    parts: &[Part],
    paid: Option<Usage>,
    turns: u32,
) -> Result<AgentRecord, Stop> {
    let state = serde_json::to_value(state)
        .map_err(|_| Stop::exception("RuntimeError", "the agent's state can't be stored"))?;
    let mut progress = AgentProgress { records: before.records.saturating_add(1), state, ..before.clone() };
    progress.totals.turns = progress.totals.turns.max(turns);
    Ok(AgentRecord { progress, parts: parts_as_json(parts), paid, user_paid: None })
}

/// Returns the end of an episode whose transcript was damaged.
fn mismatch(error: StepError) -> Stop {
    Stop::exception("RuntimeError", format!("the agent's transcript: {error}"))
}
