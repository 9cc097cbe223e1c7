//! Rows of the dataset: a task's files.

use std::collections::BTreeMap;

use bench_code_tasks::{CodeTask, PackedFile, TaskFiles};
use bench_items::{Item, Row, RowError};
use serde_json::{Value, json};

use crate::item_problem::ItemProblem;

/// Column with the task's name.
pub(super) const ID_COLUMN: &str = "task_id";
/// Column with the digest of the files that decide about a verdict.
pub(super) const DIGEST_COLUMN: &str = "digest";
/// Column with the files: an object of `{"text": …}` or `{"base64": …}` by path.
const FILES_COLUMN: &str = "files";

/// Returns a task as the row of a dataset.
pub fn task_row(id: &str, files: &TaskFiles) -> Row {
    let row = json!({ ID_COLUMN: id, FILES_COLUMN: files.pack() });
    match row {
        Value::Object(row) => row,
        _ => Row::new(),
    }
}

/// Reads and checks the task of a row.
pub(super) fn item(mut row: Row) -> Result<Item, RowError> {
    let Some(id) = row.get(ID_COLUMN).and_then(Value::as_str).map(str::to_owned) else {
        return Err(RowError::column(ID_COLUMN, "expected a text"));
    };
    let task = read(&row, &id).map_err(|problem| RowError::column(FILES_COLUMN, problem))?;
    row.insert(DIGEST_COLUMN.to_owned(), json!(task.digest));
    let tags = [
        ("language", task.language.as_str()),
        ("type", task.kind.as_str()),
        ("difficulty", task.difficulty.as_str()),
    ];
    let tags = tags.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(Item {
        tags: tags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..Item::new(id, Some(task.language.to_string()), row)
    })
}

/// Returns the task of an item.
pub(super) fn task(item: &Item) -> Result<CodeTask, ItemProblem> {
    read(&item.row, &item.id).map_err(ItemProblem::Content)
}

/// Reads the task of a row that is no item yet.
pub(super) fn packed_task(row: &Row) -> Result<CodeTask, String> {
    read(row, row.get(ID_COLUMN).and_then(Value::as_str).unwrap_or_default())
}

fn read(row: &Row, id: &str) -> Result<CodeTask, String> {
    let files = row.get(FILES_COLUMN).cloned().unwrap_or_default();
    let packed: BTreeMap<String, PackedFile> =
        serde_json::from_value(files).map_err(|error| error.to_string())?;
    let files = TaskFiles::unpack(packed).map_err(|refusal| refusal.to_string())?;
    CodeTask::read(&files, id).map_err(|refusal| refusal.to_string())
}
