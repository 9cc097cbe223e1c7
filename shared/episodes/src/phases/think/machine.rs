//! The state machines of agents behind one interface.

use std::time::Duration;

use bench_agents::bash::{BashAgent, BashSettings, BashState};
use bench_agents::terminus2::{TaskText, Terminus2, Terminus2Settings, Terminus2State};
use bench_agents::{Act, Budget, End, Observation, Part, StepError, Transcript};
use bench_domain::Agent;
use serde::{Deserialize, Serialize};

use crate::stop::Stop;
use crate::thinker::Thinker;

/// An agent for a step of a task.
#[derive(Debug)]
pub(crate) enum Machine {
    Terminus2(Box<Terminus2>),
    Bash(BashAgent),
}

/// State of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "agent", rename_all = "kebab-case")]
pub(crate) enum MachineState {
    #[serde(rename = "terminus-2")]
    Terminus2(Terminus2State),
    Bash(BashState),
}

impl Machine {
    pub(crate) fn new(
        agent: Agent,
        thinker: &Thinker,
        instruction: &str,
        folder: &str,
        limit: Duration,
    ) -> Result<Self, Stop> {
        let refused = |error: bench_agents::OptionError| Stop::refused(error.to_string());
        match agent {
            Agent::Terminus2 => {
                let mut settings = Terminus2Settings::parse(&thinker.options).map_err(refused)?;
                settings.budget = within(settings.budget, limit);
                let default = Terminus2Settings::default().context_tokens;
                if let Some(known) = thinker.context_tokens.filter(|_| settings.context_tokens == default) {
                    settings.context_tokens = known;
                }
                let texts = thinker.terminus2_texts(settings.format);
                let task = TaskText::from(instruction);
                let made = Terminus2::new(settings, &texts, task);
                Ok(Self::Terminus2(Box::new(
                    made.map_err(|error| Stop::exception("RuntimeError", error.to_string()))?,
                )))
            }
            Agent::Bash => {
                let mut settings = BashSettings::parse(&thinker.options, folder).map_err(refused)?;
                settings.budget = within(settings.budget, limit);
                Ok(Self::Bash(BashAgent::new(settings, instruction)))
            }
            Agent::Oracle | Agent::Nop | Agent::Custom => {
                Err(Stop::refused(format!("the agent `{agent}` asks no model")))
            }
        }
    }

    /// Tells an agent that runs commands that processes end with the command that started them.
    pub(crate) fn without_processes(self) -> Self {
        match self {
            Self::Bash(agent) => Self::Bash(agent.without_processes()),
            other => other,
        }
    }

    pub(crate) fn start(&self) -> (MachineState, Vec<Part>) {
        match self {
            Self::Terminus2(agent) => {
                let step = agent.start();
                (MachineState::Terminus2(step.state), step.parts)
            }
            Self::Bash(agent) => {
                let step = agent.start();
                (MachineState::Bash(step.state), step.parts)
            }
        }
    }

    pub(crate) fn act(&self, state: &MachineState, transcript: &Transcript) -> Result<Act, StepError> {
        match (self, state) {
            (Self::Terminus2(agent), MachineState::Terminus2(state)) => agent.act(state, transcript),
            (Self::Bash(agent), MachineState::Bash(state)) => agent.act(state, transcript),
            _ => Err(other_agent(state)),
        }
    }

    pub(crate) fn step(
        &self,
        state: &MachineState,
        transcript: &Transcript,
        observation: Observation,
    ) -> Result<(MachineState, Vec<Part>), StepError> {
        match (self, state) {
            (Self::Terminus2(agent), MachineState::Terminus2(state)) => {
                let step = agent.step(state, transcript, observation)?;
                Ok((MachineState::Terminus2(step.state), step.parts))
            }
            (Self::Bash(agent), MachineState::Bash(state)) => {
                let step = agent.step(state, transcript, observation)?;
                Ok((MachineState::Bash(step.state), step.parts))
            }
            _ => Err(other_agent(state)),
        }
    }
}

impl MachineState {
    pub(crate) const fn step(&self) -> u32 {
        match self {
            Self::Terminus2(state) => state.step(),
            Self::Bash(state) => state.step(),
        }
    }

    pub(crate) const fn turns(&self) -> u32 {
        match self {
            Self::Terminus2(state) => state.turns(),
            Self::Bash(state) => state.turns(),
        }
    }

    pub(crate) const fn end(&self) -> Option<&End> {
        match self {
            Self::Terminus2(state) => state.end(),
            Self::Bash(state) => state.end(),
        }
    }
}

/// Limits the time of a budget to that of the task.
fn within(budget: Budget, limit: Duration) -> Budget {
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    Budget { time_ms_max: Some(budget.time_ms_max.map_or(limit_ms, |own| own.min(limit_ms))), ..budget }
}

fn other_agent(state: &MachineState) -> StepError {
    StepError::OtherKind { step: state.step(), expected: "its own agent", given: "another agent's state" }
}
