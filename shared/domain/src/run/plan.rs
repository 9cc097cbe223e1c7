//! Plan of a benchmark of a run: the exact items, settings, dataset and judge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Generation;
use crate::job::StoredFile;

/// Settings that one benchmark of a run uses, fixed by the planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Number of the planner's attempt that made the plan: the fencing token in the keys of its samples.
    pub attempt: u32,
    /// Number of shards over which the samples are spread.
    pub shards: u32,
    /// Number of selected items.
    pub items: u64,
    /// Samples per item.
    pub samples_per_item: u32,
    /// Number of items in the dataset.
    pub dataset_items: u64,
    /// Dataset that the items come from.
    pub dataset: DatasetUse,
    /// Digest of the prompt template.
    pub prompt_digest: String,
    /// Source of the prompt template: `official` or `own`.
    pub prompt_source: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Short name that users choose the protocol with; empty in plans of older versions.
    #[serde(default)]
    pub protocol_name: String,
    /// Effective options of the benchmark, defaults included; empty if it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Generation settings after applying the run's own.
    pub generation: Generation,
    /// Digests of the official texts that are part of prompts, by name. Texts that weren't available are missing.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
    /// Judge; `None` if the benchmark needs none.
    #[serde(default)]
    pub judge: Option<JudgeUse>,
}

impl Plan {
    /// Returns the number of planned samples: items × samples per item.
    pub const fn samples(&self) -> u64 {
        self.items.saturating_mul(self.samples_per_item as u64)
    }
}

/// Exact dataset that a benchmark of a run used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetUse {
    /// Id at the hub, or name of the file.
    pub id: String,
    /// Revision: a commit at the hub, or the digest of a local file or of the demo data.
    pub revision: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// SHA-256 of the normalized content, lowercase hex.
    pub digest: String,
    /// Key of the object that contains one compressed frame per item.
    pub data_key: String,
    /// SHA-256 of the archive that contains the documents, lowercase hex; `None` without documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Files beside the items that jobs need, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachments: BTreeMap<String, StoredFile>,
    /// Reason for using demo data that the order didn't request.
    #[serde(default)]
    pub note: Option<String>,
    /// True if the items are real, but the few-shot examples or documents in their prompts are bundled with the
    /// program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_support: bool,
}

impl DatasetUse {
    /// Returns true if the items are those bundled with the program.
    pub fn is_demo(&self) -> bool {
        self.source == "demo"
    }
}

/// Exact judge that a benchmark of a run used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeUse {
    /// Name of the judge, with its provider.
    pub model: String,
    /// Host of the judge's base URL; see [`ModelRef::endpoint_host`](crate::run::ModelRef::endpoint_host).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
    /// Number of the judging: 1 unless answers were judged again.
    pub version: u32,
    /// Digest of the judge's prompt template.
    pub prompt_digest: String,
    /// Source of the judge's prompt template: `official` or `own`.
    pub prompt_source: String,
    /// Generation settings of the judge after applying the run's own.
    pub generation: Generation,
}
