//! Selection of tasks by difficulty or by a list of ids.

use std::collections::BTreeSet;

use bench_items::IndexEntry;

use crate::options::{OptionError, OptionMetadata, Options};
use crate::terminal_tasks::{agent, variables};

/// Tag with the id of a task in the dataset.
pub(super) const TASK_TAG: &str = "task_id";
/// Tag with the difficulty of a task.
pub(super) const DIFFICULTY_TAG: &str = "difficulty";

/// Default difficulty, and the one that selects all tasks.
const HARD: &str = "hard";
const ALL: &str = "all";
const DIFFICULTIES: [&str; 4] = [HARD, "medium", "easy", ALL];
/// Maximum length of a task's id in the option, in bytes.
const TASK_BYTES_MAX: usize = 255;

pub(super) const DIFFICULTY: OptionMetadata = OptionMetadata {
    name: "difficulty",
    description: "difficulty of the tasks: hard, medium, easy, or all",
    default: HARD,
};
pub(super) const TASKS: OptionMetadata = OptionMetadata {
    name: "tasks",
    description: "ids of the tasks, separated by commas, whatever their difficulty",
    default: "",
};

fn value<'a>(options: &'a Options, option: &OptionMetadata) -> Option<&'a str> {
    options.get(option.name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

fn ids(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|id| !id.is_empty())
}

/// Checks names and values of the options for the selection.
pub(super) fn check(options: &Options, known: &[OptionMetadata]) -> Result<(), OptionError> {
    let is_known = |name: &str| name == DIFFICULTY.name || name == TASKS.name || agent::is_agent_option(name);
    for name in options.keys().filter(|name| !is_known(name)) {
        if !variables::is_variable(name)? {
            return Err(OptionError::unknown(name, known));
        }
    }
    let difficulty = value(options, &DIFFICULTY);
    if difficulty.is_some_and(|given| !DIFFICULTIES.contains(&given)) {
        return Err(OptionError(format!("option `difficulty` must be {}", DIFFICULTIES.join(", "))));
    }
    let Some(list) = value(options, &TASKS) else { return Ok(()) };
    if difficulty.is_some_and(|given| given != HARD) {
        let problem =
            "options `tasks` and `difficulty` can't be given together: the list selects any difficulty";
        return Err(OptionError(problem.to_owned()));
    }
    let is_id = |id: &str| {
        id.len() <= TASK_BYTES_MAX
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    match ids(list).find(|id| !is_id(id)) {
        Some(_) => Err(OptionError("option `tasks` must be ids of tasks, separated by commas".to_owned())),
        None if ids(list).next().is_none() => Err(OptionError("option `tasks` names no task".to_owned())),
        None => Ok(()),
    }
}

/// Returns the ids of the list that no item has.
pub(super) fn missing(options: &Options, items: &[IndexEntry]) -> Vec<String> {
    let known: BTreeSet<&str> =
        items.iter().filter_map(|item| item.tags.get(TASK_TAG)).map(String::as_str).collect();
    let list = value(options, &TASKS).unwrap_or_default();
    ids(list).filter(|id| !known.contains(id)).map(str::to_owned).collect()
}

/// Returns true for the tasks of the list if there is one, otherwise for those of the difficulty.
pub(super) fn selects(options: &Options, item: &IndexEntry) -> bool {
    if let Some(list) = value(options, &TASKS) {
        return item.tags.get(TASK_TAG).is_some_and(|task| ids(list).any(|id| id == task));
    }
    match value(options, &DIFFICULTY).unwrap_or(HARD) {
        ALL => true,
        wanted => item.tags.get(DIFFICULTY_TAG).is_some_and(|difficulty| difficulty == wanted),
    }
}
