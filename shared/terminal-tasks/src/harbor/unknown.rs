//! Warnings about keys of `task.toml` that no version of the format knows.
//!
//! The format demands that they are ignored, so a mistyped key would change nothing without a word.

use bench_domain::similar::most_similar;

use super::TASK_FILE;
use crate::node::{Node, Table, Value};
use crate::refusal::Place;
use crate::tree::Tree;

/// Configuration file of the older format.
const OLD_FILE: &str = crate::terminal_bench::TASK_FILE;
/// Minimum length of a key that may be the beginning of the one that is meant.
const BEGINNING_MIN: usize = 4;
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

/// Keys of `task.yaml`, with the older name `descriptions`.
const OLD_ROOT: &[(&str, Known)] = &[
    ("instruction", Any),
    ("descriptions", Any),
    ("difficulty", Any),
    ("author_name", Any),
    ("author_email", Any),
    ("category", Any),
    ("tags", Any),
    ("parser_name", Any),
    ("max_agent_timeout_sec", Any),
    ("max_test_timeout_sec", Any),
    ("run_tests_in_same_shell", Any),
    ("disable_asciinema", Any),
    ("estimated_duration_sec", Any),
    ("expert_time_estimate_min", Any),
    ("junior_time_estimate_min", Any),
];

/// Latest version of the format of `task.toml` that is known here, as major and minor number.
const VERSION_MAX: (u32, u32) = (1, 4);

/// Returns a sentence for each key of a task's configuration that the format doesn't know, in the order of their lines.
pub(crate) fn warnings(tree: &Tree) -> Vec<String> {
    let bytes = tree.config(TASK_FILE).ok().flatten();
    let node = bytes.and_then(|bytes| Node::parse_toml(TASK_FILE, bytes).ok());
    let mut found = Vec::new();
    if let Some(Node { value: Value::Table(table), .. }) = &node {
        add_version(table, &mut found);
        add(TASK_FILE, table, "", ROOT, &mut found);
    }
    sentences(found)
}

/// Returns a sentence for each key of an older task's configuration that its format doesn't know.
pub(crate) fn old_warnings(tree: &Tree) -> Vec<String> {
    let bytes = tree.config(OLD_FILE).ok().flatten();
    let node = bytes.and_then(|bytes| Node::parse_yaml(OLD_FILE, bytes).ok());
    let mut found = Vec::new();
    if let Some(Node { value: Value::Table(table), .. }) = &node {
        add(OLD_FILE, table, "", OLD_ROOT, &mut found);
    }
    sentences(found)
}

/// Adds a version that is later than the known ones.
fn add_version(table: &Table, found: &mut Vec<(u32, String)>) {
    for key in ["schema_version", "version"] {
        let Some((line, node)) = table.get(key) else { continue };
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Float(number) => number.to_string(),
            Value::Integer(number) => number.to_string(),
            _ => continue,
        };
        let (major, minor) = text.split_once('.').unwrap_or((&text, "0"));
        let minor = minor.split('.').next().unwrap_or_default();
        let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
        if version.is_none_or(|version| version > VERSION_MAX) {
            let place = Place { file: TASK_FILE.to_owned(), line: Some(*line) };
            let (major, minor) = VERSION_MAX;
            let shown: String = text.chars().filter(|c| !c.is_control()).take(KEY_CHARS_MAX).collect();
            found.push((
                *line,
                format!(
                    "{place}: the version `{shown}` is unknown here; the task is read as {major}.{minor}"
                ),
            ));
        }
    }
}

fn sentences(mut found: Vec<(u32, String)>) -> Vec<String> {
    found.sort();
    found.into_iter().take(WARNINGS_MAX).map(|(_, sentence)| sentence).collect()
}

/// Adds the unknown keys of a table with their lines.
fn add(
    file: &str,
    table: &Table,
    path: &str,
    known: &[(&'static str, Known)],
    found: &mut Vec<(u32, String)>,
) {
    for (key, (line, node)) in table {
        let shown: String = key.chars().filter(|c| !c.is_control()).take(KEY_CHARS_MAX).collect();
        let path = if path.is_empty() { shown } else { format!("{path}.{shown}") };
        match (known.iter().find(|(name, _)| name == key).map(|(_, value)| *value), &node.value) {
            (None, _) => {
                let place = Place { file: file.to_owned(), line: Some(*line) };
                let names = || known.iter().map(|(name, _)| *name);
                let longer = || names().find(|name| key.len() >= BEGINNING_MIN && name.starts_with(key));
                let advice = match most_similar(key, names()).or_else(longer) {
                    Some(similar) => format!("did you mean `{similar}`?"),
                    None if file == OLD_FILE => "remove it".to_owned(),
                    None => "remove it, or move it to `[metadata]`".to_owned(),
                };
                found.push((
                    *line,
                    format!("{place}: `{path}` has no effect, since the format has no such key; {advice}"),
                ));
            }
            (Some(InTable(known)), Value::Table(table)) => add(file, table, &path, known, found),
            (Some(InTables(known)), Value::List(nodes)) => {
                for (index, node) in nodes.iter().enumerate() {
                    if let Value::Table(table) = &node.value {
                        add(file, table, &format!("{path}[{index}]"), known, found);
                    }
                }
            }
            (Some(_), _) => {}
        }
    }
}
