//! Material for prompts, in addition to the item.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Official texts by the names of [`crate::Layout::templates`]. A text that could not be loaded is missing; the
/// benchmark then uses its own wording, and its results say so.
pub type Templates = BTreeMap<String, String>;

/// Material for prompts, in addition to the item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Material {
    /// Values from the dataset, by the names of [`crate::Benchmark::support_names`]. Shared, since a document may have a
    /// megabyte.
    pub support: BTreeMap<String, Arc<Value>>,
    /// Official texts.
    pub templates: Templates,
}
