//! Warnings about keys of `task.toml` that no version of the format knows.
//!
//! The format demands that they are ignored, so a mistyped key would change nothing without a word.

use bench_domain::similar::most_similar;

use super::TASK_FILE;
use crate::node::{Node, Table, Value};
use crate::refusal::Place;
use crate::tree::Tree;

/// Maximum number of warnings about a file.
const WARNINGS_MAX: usize = 20;
/// Maximum length of a key in a warning, in characters.
const KEY_CHARS_MAX: usize = 80;

/// Value of a known key.
#[derive(Clone, Copy)]
enum Known {
    /// A value without keys of the format: a text, a number, a list, or a table that may contain anything.
    Value,
    /// A table.
    Table(&'static [(&'static str, Known)]),
    /// A list, whose tables have these keys.
    Tables(&'static [(&'static str, Known)]),
}

use Known::{Table as InTable, Tables as InTables, Value as Any};

/// Keys of `task.toml` in the versions 1.0 to 1.4, with the older names `version`, `memory`, `storage` and
/// `allow_internet`.
const ROOT: &[(&str, Known)] = &[
    ("schema_version", Any),
    ("version", Any),
    ("source", Any),
    ("metadata", Any),
    ("multi_step_reward_strategy", Any),
    ("artifacts", InTables(ARTIFACT)),
    ("task", InTable(PACKAGE)),
    ("agent", InTable(AGENT)),
    ("verifier", InTable(VERIFIER)),
    ("environment", InTable(ENVIRONMENT)),
    ("solution", InTable(&[("env", Any)])),
    ("steps", InTables(STEP)),
];
const PACKAGE: &[(&str, Known)] = &[
    ("name", Any),
    ("version", Any),
    ("description", Any),
    ("keywords", Any),
    ("authors", InTables(&[("name", Any), ("email", Any)])),
];
const AGENT: &[(&str, Known)] =
    &[("timeout_sec", Any), ("user", Any), ("network_mode", Any), ("allowed_hosts", Any)];
const VERIFIER: &[(&str, Known)] = &[
    ("timeout_sec", Any),
    ("env", Any),
    ("user", Any),
    ("network_mode", Any),
    ("allowed_hosts", Any),
    ("environment_mode", Any),
    ("environment", InTable(ENVIRONMENT)),
    ("collect", InTables(&[("command", Any), ("service", Any), ("timeout_sec", Any), ("user", Any)])),
];
const ENVIRONMENT: &[(&str, Known)] = &[
    ("build_timeout_sec", Any),
    ("docker_image", Any),
    ("os", Any),
    ("cpus", Any),
    ("memory_mb", Any),
    ("memory", Any),
    ("storage_mb", Any),
    ("storage", Any),
    ("gpus", Any),
    ("gpu_types", Any),
    ("tpu", InTable(&[("type", Any), ("topology", Any)])),
    ("network_mode", Any),
    ("allowed_hosts", Any),
    ("allow_internet", Any),
    ("env", Any),
    ("workdir", Any),
    ("skills_dir", Any),
    (
        "mcp_servers",
        InTables(&[
            ("name", Any),
            ("transport", Any),
            ("url", Any),
            ("command", Any),
            ("args", Any),
            ("headers", Any),
        ]),
    ),
    ("healthcheck", InTable(HEALTH_CHECK)),
];
const HEALTH_CHECK: &[(&str, Known)] = &[
    ("command", Any),
    ("interval_sec", Any),
    ("timeout_sec", Any),
    ("start_period_sec", Any),
    ("start_interval_sec", Any),
    ("retries", Any),
];
const ARTIFACT: &[(&str, Known)] =
    &[("source", Any), ("destination", Any), ("exclude", Any), ("service", Any)];
const STEP: &[(&str, Known)] = &[
    ("name", Any),
    ("agent", InTable(AGENT)),
    ("verifier", InTable(VERIFIER)),
    ("min_reward", Any),
    ("healthcheck", InTable(HEALTH_CHECK)),
    ("artifacts", InTables(ARTIFACT)),
];

/// Returns a sentence for each key of a task's configuration that the format doesn't know, in the order of their lines.
pub(crate) fn warnings(tree: &Tree) -> Vec<String> {
    let bytes = tree.config(TASK_FILE).ok().flatten();
    let node = bytes.and_then(|bytes| Node::parse_toml(TASK_FILE, bytes).ok());
    let mut found = Vec::new();
    if let Some(Node { value: Value::Table(table), .. }) = &node {
        add(table, "", ROOT, &mut found);
    }
    found.sort();
    found.into_iter().take(WARNINGS_MAX).map(|(_, sentence)| sentence).collect()
}

/// Adds the unknown keys of a table with their lines.
fn add(table: &Table, path: &str, known: &[(&'static str, Known)], found: &mut Vec<(u32, String)>) {
    for (key, (line, node)) in table {
        let shown: String = key.chars().filter(|c| !c.is_control()).take(KEY_CHARS_MAX).collect();
        let path = if path.is_empty() { shown } else { format!("{path}.{shown}") };
        match (known.iter().find(|(name, _)| name == key).map(|(_, value)| *value), &node.value) {
            (None, _) => {
                let place = Place { file: TASK_FILE.to_owned(), line: Some(*line) };
                let similar = most_similar(key, known.iter().map(|(name, _)| *name));
                let advice = match similar {
                    Some(similar) => format!("did you mean `{similar}`?"),
                    None => "remove it, or move it to `[metadata]`".to_owned(),
                };
                found.push((
                    *line,
                    format!("{place}: `{path}` has no effect, since the format has no such key; {advice}"),
                ));
            }
            (Some(InTable(known)), Value::Table(table)) => add(table, &path, known, found),
            (Some(InTables(known)), Value::List(nodes)) => {
                for (index, node) in nodes.iter().enumerate() {
                    if let Value::Table(table) = &node.value {
                        add(table, &format!("{path}[{index}]"), known, found);
                    }
                }
            }
            (Some(_), _) => {}
        }
    }
}
