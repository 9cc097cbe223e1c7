//! One question of a benchmark, and the row that it is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One row of a dataset, in the dataset's own columns.
pub type Row = Map<String, Value>;

/// One question as it is stored: what prompt and grader need, in the dataset's own columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Unique within the dataset; see the benchmark's page for what it is made of.
    pub id: String,
    /// Group within the benchmark, such as a category.
    #[serde(default)]
    pub group: Option<String>,
    /// What a run may choose items by, such as the day on which a problem was published.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The columns.
    pub row: Row,
}

impl Item {
    /// An item without tags.
    pub fn new(id: impl Into<String>, group: Option<String>, row: Row) -> Self {
        Self { id: id.into(), group, tags: BTreeMap::new(), row }
    }
}

/// A row that is not as its dataset promises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", column.as_deref().map(|c| format!("column `{c}`: ")).unwrap_or_default())]
pub struct RowError {
    /// The column, when one is to blame.
    pub column: Option<String>,
    /// What is wrong with it.
    pub problem: String,
}

impl RowError {
    /// An error in one column.
    pub fn column(column: &str, problem: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), problem: problem.into() }
    }
}
