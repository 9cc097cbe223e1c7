//! Agents: programs that work on terminal tasks.

use std::fmt;
use std::str::FromStr;

/// Agent that works on a terminal task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Runs the task's own solution.
    Oracle,
    /// Does nothing.
    Nop,
    /// Types a model's keystrokes into a terminal, as Harbor's agent of this name does.
    Terminus2,
    /// Runs a model's commands, one a turn.
    Bash,
    /// Runs a program of its user's in the container. The run's options name its files by content hash.
    Custom,
}

impl Agent {
    /// All agents of this version, in the order of lists.
    pub const ALL: [Self; 5] = [Self::Oracle, Self::Nop, Self::Terminus2, Self::Bash, Self::Custom];
    /// Agent of orders that name a model but no agent.
    pub const DEFAULT: Self = Self::Terminus2;

    /// Returns the name in orders and results. An agent that asks no model has the name of its run's model, too.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Nop => "nop",
            Self::Terminus2 => "terminus-2",
            Self::Bash => "bash",
            Self::Custom => "custom",
        }
    }

    /// Returns the name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Oracle => "Oracle (Testing)",
            Self::Nop => "No operation (Testing)",
            Self::Terminus2 => "Terminus 2",
            Self::Bash => "Bash",
            Self::Custom => "Custom agent",
        }
    }

    /// Returns true if the agent asks the run's model. The others have a source of answers with their own name.
    pub const fn asks_model(self) -> bool {
        matches!(self, Self::Terminus2 | Self::Bash)
    }

    /// Returns the agent that stands in the place of a model of this name: `oracle`, `nop`, `custom` or `custom/NAME`.
    pub fn in_place_of_model(model: &str) -> Option<Self> {
        let name = match model.trim().split_once('/') {
            Some((source, _)) if source == Self::Custom.as_str() => source,
            _ => model.trim(),
        };
        name.parse::<Self>().ok().filter(|agent| !agent.asks_model())
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Error for the name of an agent that this version doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this version has no agent `{name}`; its agents are {}", Agent::ALL.map(|agent| format!("`{agent}`")).join(", "))]
pub struct UnknownAgent {
    /// The name, without control characters, cut to 50 characters.
    name: String,
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        let shown = || name.chars().filter(|c| !c.is_control()).take(50).collect();
        let found = Self::ALL.into_iter().find(|agent| agent.as_str() == name);
        found.ok_or_else(|| UnknownAgent { name: shown() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_their_names() {
        for agent in Agent::ALL {
            assert_eq!(agent.as_str().parse(), Ok(agent));
        }
        let error = "terminus\u{1b}".parse::<Agent>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "this version has no agent `terminus`; its agents are `oracle`, `nop`, `terminus-2`, `bash`, `custom`"
        );
    }

    #[test]
    fn agents_stand_in_the_place_of_models() {
        for (model, agent) in [
            ("oracle", Some(Agent::Oracle)),
            (" nop ", Some(Agent::Nop)),
            ("custom", Some(Agent::Custom)),
            ("custom/mine@1", Some(Agent::Custom)),
            ("bash", None),
            ("openrouter/custom", None),
            ("oracle/x", None),
        ] {
            assert_eq!(Agent::in_place_of_model(model), agent, "{model}");
        }
    }
}
