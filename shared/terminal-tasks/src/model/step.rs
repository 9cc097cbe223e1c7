//! Steps: an instruction, the agent's phase and its verification.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Artifact, Environment, HealthCheck, User};
use crate::network::NetworkPolicy;
use crate::variables::Variables;

/// Step of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Name, which is also its folder below `steps`; `None` in single-step tasks.
    pub name: Option<String>,
    /// Text for the agent, without canary lines.
    pub instruction: String,
    /// Phase of the agent.
    pub agent: AgentPhase,
    /// Verification.
    pub verifier: Verifier,
    /// Solution for the agent `oracle`; `None` if the task has none.
    pub solution: Option<Solution>,
    /// Lowest rewards by key with which the next step begins.
    pub min_rewards: BTreeMap<String, f64>,
    /// Check before the agent begins, in addition to the environment's.
    pub healthcheck: Option<HealthCheck>,
    /// Files that are kept: those of the task and those of the step.
    pub artifacts: Vec<Artifact>,
}

/// Phase of the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPhase {
    /// Time limit; `None` for none.
    pub timeout: Option<Duration>,
    /// User of its commands; `None` for the image's.
    pub user: Option<User>,
    /// Network access; `None` for the environment's.
    pub network: Option<NetworkPolicy>,
}

/// Verification of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Verifier {
    /// Time limit of the whole verification.
    pub timeout: Duration,
    /// Variables of the test script.
    pub env: Variables,
    /// User of the test script; `None` for the image's.
    pub user: Option<User>,
    /// Network access; `None` for the environment's.
    pub network: Option<NetworkPolicy>,
    /// Environment in which it runs.
    pub environment: VerifierEnvironment,
    /// Commands after the agent's phase, before artifacts are collected. Their failures don't count.
    pub collect: Vec<CollectHook>,
    /// Path of the test script in the task; `None` if the verifier's image contains it.
    pub script: Option<String>,
    /// Source of the reward.
    pub grading: Grading,
}

/// Environment of a verification.
#[derive(Debug, Clone, PartialEq)]
pub enum VerifierEnvironment {
    /// The agent's.
    Shared,
    /// Its own, started after the agent's has been stopped.
    Separate {
        /// Definition.
        environment: Box<Environment>,
        /// True if the image contains the tests, so that they aren't copied.
        has_tests: bool,
    },
}

/// Command in a service after the agent's phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectHook {
    /// Shell command.
    pub command: String,
    /// Service of the container.
    pub service: String,
    /// Time limit.
    pub timeout: Duration,
    /// User; `None` for the container's.
    pub user: Option<User>,
}

/// Source of the reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grading {
    /// `/logs/verifier/reward.json` or `/logs/verifier/reward.txt`.
    RewardFile,
    /// Text of the terminal after the test script.
    Pane {
        /// Parser of the text.
        parser: PaneParser,
        /// True if the tests run in the agent's shell, false for a shell of root.
        is_same_shell: bool,
    },
}

/// Parser of the text of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaneParser {
    /// The summary of pytest.
    Pytest,
    /// A block with `PASSED`.
    SweBench,
    /// A block with `PASSED`.
    SwePerf,
    /// A block with `ALL TESTS PASSED`.
    MleBench,
    /// A sentence anywhere.
    SweLancer,
}

impl PaneParser {
    /// All parsers.
    pub const ALL: [Self; 5] = [Self::Pytest, Self::SweBench, Self::SwePerf, Self::MleBench, Self::SweLancer];

    /// Returns the name in `task.yaml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pytest => "pytest",
            Self::SweBench => "swebench",
            Self::SwePerf => "sweperf",
            Self::MleBench => "mlebench",
            Self::SweLancer => "swelancer",
        }
    }
}

/// Solution for the agent `oracle`.
#[derive(Debug, Clone, PartialEq)]
pub enum Solution {
    /// A script.
    Script {
        /// Path in the task.
        path: String,
        /// Variables of the script.
        env: Variables,
    },
    /// Commands that are typed into the terminal one by one.
    Keystrokes(Vec<Keystrokes>),
}

/// Command that is typed into the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keystrokes {
    /// Text.
    pub command: String,
    /// Time to wait after it.
    pub min_timeout: Duration,
    /// Time limit if it blocks.
    pub max_timeout: Duration,
    /// True if the next command waits for the end of this one.
    pub is_blocking: bool,
    /// True if Enter follows the text.
    pub has_enter: bool,
}
