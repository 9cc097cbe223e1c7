//! One item in the index of a dataset.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Its id.
    pub id: String,
    /// The dataset's own id of it; `None` where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Its group.
    #[serde(default)]
    pub group: Option<String>,
    /// What a run may choose items by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Where its frame starts.
    pub offset: u64,
    /// How long its frame is.
    pub length: u64,
}

impl IndexEntry {
    /// The id that users know the item by: the dataset's own, else that of this program.
    pub fn own_id(&self) -> &str {
        self.source_id.as_deref().unwrap_or(&self.id)
    }
}
