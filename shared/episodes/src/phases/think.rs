//! The phase of an agent that asks a model: its steps, one operation or model call each.
//!
//! A step's operation has the step's number in its name, so it runs once. Its result isn't kept in the checkpoint: it goes
//! into the step's record, which the caller stores before the next step ([`Stop::Stepped`]). Model calls are the caller's
//! ([`Stop::Ask`]).

mod act;
mod machine;
mod outcome;
mod terminal;

pub(super) use self::terminal::{TERMINAL_LOGS, logs_folder, start as start_terminal};

use std::time::Duration;

use bench_agents::{Act, End, Observation, Seen};
use bench_domain::{AgentOutcome, AgentProgress, AgentRecord, ChatMessage, EpisodeStep, Prompt, Role};
use bench_terminal_tasks::Step;

use self::machine::{Machine, MachineState};
use super::Course;
use super::agent::AGENT_MAX;
use super::container::Container;
use crate::program::Program;
use crate::stop::Stop;
use crate::thinker::{ModelRequest, Thinker, parts_as_json};

/// Lets the agent work until it ends, and notes how it ended.
pub(super) async fn run(
    program: &mut Program<'_>,
    course: &Course<'_>,
    container: &Container,
    index: usize,
    step: &Step,
    result: &mut EpisodeStep,
) -> Result<(), Stop> {
    let key = outcome_key(index);
    let outcome: AgentOutcome = match program.known(&key) {
        Some(known) => known,
        None => {
            let thinker = course.task.thinker.ok_or_else(|| Stop::refused("the agent has no model"))?;
            let outcome = Work { program, course, container, index, step, thinker }.run().await?;
            program.keep(key, &outcome);
            program.state.agent = None;
            outcome
        }
    };
    result.agent_ms = Some(outcome.elapsed_ms);
    result.exception = outcome.exception.clone();
    let failure = outcome::failure(&outcome);
    result.agent = Some(outcome);
    failure.map_or(Ok(()), Err)
}

/// Returns the name under which the checkpoint has the end of an agent's work on a step of the task.
fn outcome_key(task_step: usize) -> String {
    format!("s{task_step}-agent")
}

/// Returns the index of the task's step that [`outcome_key`] named so.
pub(crate) fn step_of(key: &str) -> Option<usize> {
    key.strip_prefix('s')?.strip_suffix("-agent")?.parse().ok()
}

/// Returns true if the agent's work on its step of the task has ended. Its environment may still have to be closed.
pub(crate) fn has_ended(progress: &AgentProgress) -> bool {
    serde_json::from_value::<MachineState>(progress.state.clone()).is_ok_and(|state| state.end().is_some())
}

/// Work of an agent on a step of the task.
struct Work<'a, 'p> {
    program: &'a mut Program<'p>,
    course: &'a Course<'a>,
    container: &'a Container,
    index: usize,
    step: &'a Step,
    thinker: &'a Thinker,
}

impl Work<'_, '_> {
    /// Carries the agent on to its end, or to the next step that has to be stored.
    async fn run(mut self) -> Result<AgentOutcome, Stop> {
        let agent = self.course.task.agent;
        let limit = self.step.agent.timeout.unwrap_or(AGENT_MAX);
        let folder = self.container.working_folder(self.program).await?;
        let machine = Machine::new(agent, self.thinker, self.step, &folder, limit)?;
        let terminal = self.open_terminal(&machine).await?;
        let Some(progress) = self.program.state.agent.clone().filter(|one| one.task_step == self.index)
        else {
            let (state, parts) = machine.start();
            return Err(self.stepped(&AgentProgress::new(self.index), &state, &parts, None, 0));
        };
        let state: MachineState = serde_json::from_value(progress.state.clone())
            .map_err(|error| Stop::exception("RuntimeError", format!("the agent's state: {error}")))?;
        let ended = |end: &End| outcome::outcome(end, limit, &progress, self.thinker.text_source(agent));
        if let Some(end) = state.end() {
            let outcome = ended(end);
            self.close_terminal(terminal).await?;
            return Ok(outcome);
        }
        let left = limit.saturating_sub(Duration::from_millis(progress.elapsed_ms));
        if left.is_zero() {
            let outcome = ended(&End::TimeLimit);
            self.close_terminal(terminal).await?;
            return Ok(outcome);
        }
        let act = machine.act(&state, &self.thinker.transcript).map_err(Self::mismatch)?;
        let (seen, took_ms, paid) = match act {
            // The state has no end, so there is an act.
            Act::End(end) => return Ok(ended(&end)),
            Act::AskModel(call) => match self.thinker.answer.clone() {
                Some(answer) if answer.step == state.step() => {
                    let took_ms = match &answer.seen {
                        Seen::Reply(reply) => reply.latency_ms,
                        Seen::ModelFailed(failure) => failure.latency_ms,
                        Seen::Terminal(_) | Seen::Command(_) => 0,
                    };
                    (answer.seen, took_ms, Some(answer.paid))
                }
                _ => {
                    let messages = self.thinker.transcript.request(&call);
                    let messages = messages.iter().map(|message| {
                        let role = match message.role {
                            bench_agents::Role::User => Role::User,
                            bench_agents::Role::Assistant => Role::Assistant,
                        };
                        ChatMessage::new(role, message.content)
                    });
                    let prompt = Prompt { messages: messages.collect() };
                    return Err(Stop::Ask(ModelRequest { step: state.step(), prompt }));
                }
            },
            Act::Type(strokes) => self.type_keys(state.step(), &strokes, left).await?,
            Act::Look => self.type_keys(state.step(), &[], left).await?,
            Act::Run(command) => self.run_command(state.step(), &command, left).await?,
        };
        let elapsed_ms = progress.elapsed_ms.saturating_add(took_ms);
        let observation =
            Observation { step: state.step(), elapsed_ms, at: self.thinker.at.clone(), seen: seen.clone() };
        let stepped = machine.step(&state, &self.thinker.transcript, observation).map_err(Self::mismatch)?;
        let mut progress = progress;
        progress.elapsed_ms = elapsed_ms;
        outcome::count(&mut progress.totals, &seen);
        Err(self.stepped(&progress, &stepped.0, &stepped.1, paid, stepped.0.turns()))
    }

    /// Returns the record of a step.
    fn stepped(
        &self,
        before: &AgentProgress,
        state: &MachineState,
        parts: &[bench_agents::Part],
        paid: Option<bench_domain::Usage>,
        turns: u32,
    ) -> Stop {
        let Ok(state) = serde_json::to_value(state) else {
            return Stop::exception("RuntimeError", "the agent's state can't be stored");
        };
        let mut progress =
            AgentProgress { records: before.records.saturating_add(1), state, ..before.clone() };
        progress.totals.turns = progress.totals.turns.max(turns);
        Stop::Stepped(Box::new(AgentRecord { progress, parts: parts_as_json(parts), paid }))
    }

    /// Returns the end of an episode whose transcript was damaged.
    fn mismatch(error: bench_agents::StepError) -> Stop {
        Stop::exception("RuntimeError", format!("the agent's transcript: {error}"))
    }
}
