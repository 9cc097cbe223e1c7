//! Items and the dataset rows that they come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Row of a dataset, in the dataset's own columns.
pub type Row = Map<String, Value>;

/// Item as stored: everything that prompts and graders need, in the dataset's own columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Id that is unique within the dataset; the benchmark's page says how it is built.
    pub id: String,
    /// Group within the benchmark, such as a category.
    #[serde(default)]
    pub group: Option<String>,
    /// Values for selecting items in a run, such as a problem's publication date.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Columns of the row.
    pub row: Row,
}

impl Item {
    /// Creates an item without tags.
    pub fn new(id: impl Into<String>, group: Option<String>, row: Row) -> Self {
        Self { id: id.into(), group, tags: BTreeMap::new(), row }
    }
}

/// File of an item: the value of a column of [`Layout::file_columns`](crate::Layout::file_columns) in a stored item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemFile {
    /// SHA-256 of its content, lowercase hex.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Row that doesn't match the format of its dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", column.as_deref().map(|c| format!("column `{c}`: ")).unwrap_or_default())]
pub struct RowError {
    /// Column that is invalid, if the error concerns a single one.
    pub column: Option<String>,
    /// Description of the error.
    pub problem: String,
}

impl RowError {
    /// Creates an error about one column.
    pub fn column(column: &str, problem: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), problem: problem.into() }
    }
}
