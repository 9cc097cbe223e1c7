//! Steps: `[[steps]]`, or the one step of a single-step task.

use super::verifier::{self, VerifierTable};
use super::{MinRewards, artifact, common, read_instruction};
use crate::model::{AgentPhase, Environment, Solution, Step};
use crate::node::{Fields, Value};
use crate::path::fold;
use crate::refusal::{FormatProblem, Refusal};
use crate::tree::Tree;
use crate::variables::Variables;

/// Maximum number of steps.
const STEPS_MAX: usize = 100;

/// Reads all steps.
pub(super) fn read_all(
    root: &Fields<'_>,
    tree: &Tree,
    environment: &Environment,
) -> Result<Vec<Step>, Refusal> {
    let agent = common::agent(root)?;
    let verifier = VerifierTable::read(root)?;
    let artifacts = artifact::read(root)?;
    let solution_env = match root.table("solution")? {
        Some(solution) => common::variables(&solution, "env")?,
        None => Variables::default(),
    };
    let tables = root.tables("steps")?;
    if tables.len() > STEPS_MAX {
        return Err(root.invalid("steps", tables.len().to_string(), "a list of at most 100 steps"));
    }
    if tables.is_empty() {
        return Ok(vec![Step {
            name: None,
            instruction: read_instruction(tree, "instruction.md")?,
            agent,
            verifier: verifier::combine(&verifier, None, environment, tree)?,
            solution: solution(tree, "solution", &solution_env),
            min_rewards: MinRewards::new(),
            healthcheck: None,
            artifacts,
        }]);
    }
    let mut steps: Vec<Step> = Vec::new();
    for table in &tables {
        let name = table.required_text("name")?;
        if !is_step_name(name) {
            return Err(table.invalid(
                "name",
                name,
                "a plain folder name that every operating system allows",
            ));
        }
        let is_taken = |step: &Step| step.name.as_ref().is_some_and(|other| fold(other) == fold(name));
        if steps.iter().any(is_taken) {
            return Err(table.refuse("name", FormatProblem::DuplicateKey { key: format!("steps.{name}") }));
        }
        let own_verifier = VerifierTable::read(table)?;
        let folder = format!("steps/{name}");
        // The step's solution wins. Tests are merged in the same order.
        let solution = solution(tree, &format!("{folder}/solution"), &solution_env)
            .or_else(|| solution(tree, "solution", &solution_env));
        steps.push(Step {
            name: Some(name.to_owned()),
            instruction: read_instruction(tree, &format!("{folder}/instruction.md"))?,
            agent: or(common::agent(table)?, &agent),
            verifier: verifier::combine(&verifier, Some((name, &own_verifier)), environment, tree)?,
            solution,
            min_rewards: min_rewards(table)?,
            healthcheck: common::healthcheck(table)?,
            artifacts: artifacts.iter().cloned().chain(artifact::read(table)?).collect(),
        });
    }
    Ok(steps)
}

fn solution(tree: &Tree, folder: &str, env: &Variables) -> Option<Solution> {
    let path = format!("{folder}/solve.sh");
    tree.has(&path).then(|| Solution::Script { path, env: env.clone() })
}

/// Returns the phase of a step with what it leaves open taken from the task.
fn or(own: AgentPhase, task: &AgentPhase) -> AgentPhase {
    AgentPhase {
        timeout: own.timeout.or(task.timeout),
        user: own.user.or_else(|| task.user.clone()),
        network: own.network.or_else(|| task.network.clone()),
    }
}

/// Reads the rewards that a step must reach: a number for the key `reward`, or a table.
fn min_rewards(step: &Fields<'_>) -> Result<MinRewards, Refusal> {
    const KEY: &str = "min_reward";
    if let Some(Value::Table(_)) = step.value(KEY) {
        let Some(table) = step.table(KEY)? else { return Ok(MinRewards::new()) };
        let entries =
            table.keys().map(|key| Ok((key.to_owned(), table.number(key)?.unwrap_or(f64::NEG_INFINITY))));
        return entries.collect();
    }
    Ok(step.number(KEY)?.map(|reward| ("reward".to_owned(), reward)).into_iter().collect())
}

/// Returns true for names that are one folder on every operating system.
fn is_step_name(name: &str) -> bool {
    let device = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_ascii_uppercase();
    let is_device = matches!(device.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || ["COM", "LPT"].iter().any(|prefix| {
            let digit = device.strip_prefix(prefix).map(|digit| digit.chars().collect::<Vec<_>>());
            matches!(digit.as_deref(), Some(['1'..='9' | '¹' | '²' | '³']))
        });
    matches!(name.len(), 1..=255)
        && !name.trim().is_empty()
        && !name.ends_with(['.', ' '])
        && !name.contains(['<', '>', ':', '"', '/', '\\', '|', '?', '*'])
        && !name.chars().any(char::is_control)
        && !is_device
}
