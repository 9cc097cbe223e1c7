//! Harbor's format: a folder with `task.toml`, schema versions 1.0 to 1.4.
//!
//! Unknown keys are ignored at any level, as the format demands; admission warns of them.

use std::collections::BTreeMap;

use crate::instruction::strip_canary;
use crate::model::{Author, RewardStrategy, Task, TaskFormat};
use crate::node::{Fields, Node, Value};
use crate::refusal::{ContentProblem, FormatProblem, Refusal};
use crate::tree::Tree;

mod artifact;
mod common;
mod environment;
mod resources;
mod servers;
mod step;
mod unknown;
mod verifier;

pub(crate) use environment::ignored_files;
pub(crate) use unknown::{old_warnings, warnings};

/// Configuration file of the format.
pub const TASK_FILE: &str = "task.toml";
/// Version of files that name none.
const SCHEMA_VERSION: &str = "1.4";
/// Longest name of a task, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Reads a task.
///
/// # Errors
/// If `task.toml` or a file that it needs is missing or invalid.
pub fn read(tree: &Tree) -> Result<Task, Refusal> {
    let missing = ContentProblem::MissingFile { advice: "add the task's configuration" };
    let bytes = tree.config(TASK_FILE)?.ok_or_else(|| Refusal::file(TASK_FILE, missing))?;
    let node = Node::parse_toml(TASK_FILE, bytes)?;
    let root = Fields::root(TASK_FILE, &node)?;
    let version_key = if root.has("schema_version") { "schema_version" } else { "version" };
    let schema_version = root.text(version_key)?.unwrap_or(SCHEMA_VERSION).to_owned();
    let environment = environment::read(&root, tree)?;
    let steps = step::read_all(&root, tree, &environment)?;
    let package = root.table("task")?;
    let mut task = Task {
        format: TaskFormat::Harbor { schema_version },
        name: None,
        version: None,
        description: String::new(),
        keywords: Vec::new(),
        authors: Vec::new(),
        metadata: serde_json::Map::new(),
        source: root.text("source")?.map(str::to_owned),
        environment,
        steps,
        reward_strategy: reward_strategy(&root)?,
    };
    if let Some(Value::Table(_)) = root.value("metadata") {
        let metadata = root.value("metadata").map(Value::to_json);
        task.metadata = metadata.and_then(|value| value.as_object().cloned()).unwrap_or_default();
    } else if root.has("metadata") {
        root.table("metadata")?;
    }
    if let Some(package) = package {
        read_package(&package, &mut task)?;
    }
    Ok(task)
}

fn reward_strategy(root: &Fields<'_>) -> Result<RewardStrategy, Refusal> {
    const KEY: &str = "multi_step_reward_strategy";
    match root.text(KEY)? {
        None | Some("mean") => Ok(RewardStrategy::Mean),
        Some("final") => Ok(RewardStrategy::Final),
        Some(other) => Err(root.invalid(KEY, other, "`mean` or `final`")),
    }
}

/// Reads `[task]`.
fn read_package(package: &Fields<'_>, task: &mut Task) -> Result<(), Refusal> {
    let name = package.required_text("name")?;
    if !is_package_name(name) {
        return Err(package.invalid(
            "name",
            name,
            "`ORGANIZATION/NAME` of letters, digits, `-`, `_` and `.`",
        ));
    }
    task.name = Some(name.to_owned());
    task.version = match package.text("version")? {
        Some("") => return Err(package.invalid("version", "", "a text that is not empty")),
        other => other.map(str::to_owned),
    };
    task.description = package.text("description")?.unwrap_or_default().to_owned();
    task.keywords = package.texts("keywords")?.unwrap_or_default();
    for author in package.tables("authors")? {
        let email = author.text("email")?.map(str::to_owned);
        task.authors.push(Author { name: author.required_text("name")?.to_owned(), email });
    }
    Ok(())
}

fn is_package_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        part.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) && part.bytes().all(is_inner)
    };
    let parts = name.split_once('/');
    name.len() <= NAME_BYTES_MAX
        && !name.contains("..")
        && parts.is_some_and(|(organization, name)| is_part(organization) && is_part(name))
}

/// Reads an instruction and removes its canary lines.
fn read_instruction(tree: &Tree, path: &str) -> Result<String, Refusal> {
    let missing = ContentProblem::MissingFile { advice: "write the instruction for the agent" };
    let bytes = tree.config(path)?.ok_or_else(|| Refusal::file(path, missing))?;
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::file(path, FormatProblem::NotUtf8))?;
    let text = strip_canary(text.strip_prefix('\u{feff}').unwrap_or(text));
    if text.trim().is_empty() {
        let problem = ContentProblem::EmptyFile { expected: "the instruction for the agent" };
        return Err(Refusal::file(path, problem));
    }
    Ok(text.to_owned())
}

/// Rewards by key that a step must reach.
type MinRewards = BTreeMap<String, f64>;

#[cfg(test)]
mod tests;
