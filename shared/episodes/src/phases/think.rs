//! The phase of an agent that asks a model: its steps, one operation or model call each.
//!
//! A step's operation has the step's number in its name, so it runs once. Its result isn't kept in the checkpoint: it goes
//! into the step's record, which the caller stores before the next step ([`Stop::Stepped`]). Model calls are the caller's
//! ([`Stop::Ask`]).

mod act;
mod machine;
mod mind;
pub(crate) mod outcome;
mod terminal;

pub(in crate::phases) use self::act::run_command;
pub(crate) use self::machine::Machine;
pub(crate) use self::mind::{Mind, Need};
pub(super) use self::terminal::{TERMINAL_LOGS, logs_folder, start as start_terminal};

use bench_agents::Act;
use bench_domain::{AgentOutcome, AgentProgress, EpisodeStep};
use bench_terminal_tasks::Step;

use self::machine::MachineState;
use super::Course;
use super::agent::AGENT_MAX;
use super::container::Container;
use crate::program::Program;
use crate::stop::Stop;
use crate::thinker::Thinker;

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
pub(crate) fn outcome_key(task_step: usize) -> String {
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
        let machine = Machine::new(agent, self.thinker, &self.step.instruction, &folder, limit)?;
        let mind = Mind { agent, machine, thinker: self.thinker, limit, task_step: self.index };
        let terminal = self.open_terminal(&mind.machine).await?;
        let saved = self.program.state.agent.clone().filter(|one| one.task_step == self.index);
        let (progress, step, act, left) = match mind.need(saved)? {
            Need::Step(record) => return Err(Stop::Stepped(record)),
            Need::Ask(request) => return Err(Stop::Ask(request)),
            Need::Ended(outcome) => {
                self.close_terminal(terminal).await?;
                return Ok(outcome);
            }
            Need::Act { progress, step, act, left } => (progress, step, act, left),
        };
        let (seen, took_ms) = match act {
            Act::Type(strokes) => self.type_keys(step, &strokes, left).await?,
            Act::Look => self.type_keys(step, &[], left).await?,
            Act::Run(command) => self.run_command(step, &command, left).await?,
            Act::AskModel(_) | Act::End(_) => {
                return Err(Stop::exception("RuntimeError", "the agent has nothing to do"));
            }
        };
        Err(Stop::Stepped(Box::new(mind.observe(&progress, seen, took_ms, None)?)))
    }
}
