//! Entry of a dataset's index.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Index entry of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Item id.
    pub id: String,
    /// Item id in the dataset; `None` if the dataset has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Group of the item.
    #[serde(default)]
    pub group: Option<String>,
    /// Values for selecting items in a run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Byte offset of the item's frame.
    pub offset: u64,
    /// Length of the frame in bytes.
    pub length: u64,
}

impl IndexEntry {
    /// Returns the id that users know: the dataset's own, or the item id if the dataset has none.
    pub fn display_id(&self) -> &str {
        self.source_id.as_deref().unwrap_or(&self.id)
    }
}
