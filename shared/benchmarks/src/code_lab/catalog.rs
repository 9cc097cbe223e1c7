//! The tasks of the program, to read before a run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bench_code_tasks::CodeTask;
use bench_items::Row;

use super::row;

/// All tasks in the order of their names, without tests and solutions: those who choose tasks need neither, and what isn't here
/// can't get into an answer of the API.
pub(super) static TASKS: LazyLock<Vec<CodeTask>> = LazyLock::new(|| {
    let rows = super::TASKS.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    let mut tasks: Vec<CodeTask> = rows.filter_map(|row| row::packed_task(&row).ok()).map(public).collect();
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    tasks
});

/// Removes what a model must not know.
fn public(task: CodeTask) -> CodeTask {
    CodeTask { tests: BTreeMap::new(), overlay: BTreeMap::new(), reference: None, wrong: Vec::new(), ..task }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tasks_are_listed_and_proven() {
        assert_eq!(TASKS.len(), super::super::TASKS.lines().count());
        for task in TASKS.iter() {
            let proof =
                task.proof.as_ref().unwrap_or_else(|| panic!("{} has no proof that fits its files", task.id));
            let described: Vec<&str> = task.mistakes.iter().map(|mistake| mistake.name.as_str()).collect();
            let proven: Vec<&str> = proof.wrong.keys().map(String::as_str).collect();
            assert_eq!(described, proven, "{}", task.id);
            assert!(proof.reference_ms.is_some() && proof.host_ms.is_some(), "{}: no times", task.id);
            assert!(task.mistakes.iter().all(|mistake| !mistake.why.is_empty()), "{}", task.id);
            assert!(task.tests.is_empty() && task.overlay.is_empty() && task.reference.is_none());
        }
    }
}
