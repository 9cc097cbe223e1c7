//! Admission of archives.

use std::collections::BTreeSet;

use bench_terminal_tasks::{AdmittedTask, Refusal, Step, Task, TaskFormat, Variables, admit_archive};
use serde::{Deserialize, Serialize};

use crate::archive::UploadedArchive;
use crate::error::TaskError;
use crate::limits::TaskLimits;

/// Maximum size of the instructions in a row of a dataset, in bytes.
pub const INSTRUCTION_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a name in datasets, in characters.
const NAME_CHARS_MAX: usize = 100;
/// Name of a task whose names have no usable character.
const NAMELESS: &str = "task";

/// Facts about the content of an admitted archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedTask {
    /// Name that the task has itself, or the one of its folder.
    pub name: Option<String>,
    /// Content hash, 64 hexadecimal digits.
    pub content_hash: String,
    /// Format: `harbor` or `terminal-bench-1`.
    pub format: String,
    /// Instructions of all steps, cut to 64 KiB.
    pub instruction: String,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub expanded_bytes: u64,
    /// Number of steps.
    pub steps: u64,
    /// True if every step has a solution, which the agent `oracle` needs.
    pub has_solution: bool,
    /// Keys of the configuration that have no effect, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Variables of orders that the task asks for, with or without a default. `None` for a task that an older version
    /// checked.
    #[serde(default)]
    pub variables: Option<Vec<String>>,
}

impl CheckedTask {
    /// Reads and admits an archive. Blocks for as long as it takes to inflate it.
    ///
    /// # Errors
    /// [`TaskError::Refused`] with file and line for an archive that isn't admitted.
    pub fn read(archive: &mut UploadedArchive, limits: &TaskLimits) -> Result<Self, TaskError> {
        let admitted = admit_archive(archive.reader()?, limits.tree, &limits.admission);
        admitted.map(|admitted| Self::new(&admitted)).map_err(TaskError::Refused)
    }

    fn new(admitted: &AdmittedTask) -> Self {
        let AdmittedTask { task, tree, hash, .. } = admitted;
        Self {
            name: admitted.name().map(str::to_owned),
            content_hash: hash.to_string(),
            format: match task.format {
                TaskFormat::Harbor { .. } => "harbor",
                TaskFormat::TerminalBench1 => "terminal-bench-1",
            }
            .to_owned(),
            instruction: instructions(&task.steps),
            files: tree.files().count() as u64,
            expanded_bytes: tree.bytes(),
            steps: task.steps.len() as u64,
            has_solution: task.has_solution(),
            warnings: admitted.warnings.clone(),
            variables: Some(variables(task)),
        }
    }
}

impl From<Refusal> for TaskError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Returns the names of the order's variables that a task asks for, each once.
fn variables(task: &Task) -> Vec<String> {
    let names: BTreeSet<&str> = task.variables().flat_map(Variables::of_order).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the instructions of all steps, each under its name if there are several.
fn instructions(steps: &[Step]) -> String {
    let texts = steps.iter().map(|step| match &step.name {
        Some(name) => format!("# {name}\n\n{}", step.instruction),
        None => step.instruction.clone(),
    });
    let mut text = texts.collect::<Vec<_>>().join("\n\n");
    if text.len() > INSTRUCTION_BYTES_MAX {
        let end = (0..=INSTRUCTION_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
    }
    text
}

/// Returns a task's name in datasets: its own, otherwise the uploader's. It has only letters, digits and `-_./`, since
/// people type it and terminals show it.
pub fn task_name(own: Option<&str>, given: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let clean = |text: &str| {
        let kept: String =
            text.chars().map(|c| if is_kept(c) { c } else { '-' }).take(NAME_CHARS_MAX).collect();
        kept.trim_matches(['-', '.', '/']).to_owned()
    };
    let names = [own.map(clean).unwrap_or_default(), clean(given)];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| NAMELESS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::task_name;

    #[test]
    fn names_have_plain_characters() {
        for (own, given, expected) in [
            (Some("org/break-filter"), "x", "org/break-filter"),
            (None, "Load Test ü 1", "Load-Test---1"),
            (Some("../../evil"), "x", "evil"),
            (None, "\u{1b}[2J", "2J"),
            (None, "🦀", "task"),
            (Some(""), "", "task"),
        ] {
            assert_eq!(task_name(own, given), expected, "{own:?} {given:?}");
        }
        assert_eq!(task_name(None, &"x".repeat(300)).len(), 100);
    }
}
