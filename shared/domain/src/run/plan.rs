//! Plan of a benchmark of a run: exactly what is asked, and of which dataset and judge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Generation;
use crate::job::StoredFile;

/// How one benchmark of a run is carried out, fixed when the planner is done with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which attempt of the planner made it: the fencing token in the keys of its samples.
    pub attempt: u32,
    /// Over how many partitions the samples are spread.
    pub shards: u32,
    /// Items chosen.
    pub items: u64,
    /// Samples per item.
    pub samples_per_item: u32,
    /// Items of the dataset.
    pub dataset_items: u64,
    /// Where the items come from.
    pub dataset: DatasetUse,
    /// Digest of the prompt template that was used.
    pub prompt_digest: String,
    /// Where that template came from: `official` or `own`.
    pub prompt_source: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Its short name, by which it is chosen; empty in plans of an older program.
    #[serde(default)]
    pub protocol_name: String,
    /// Settings of the benchmark's own that counted, the defaults among them; empty where it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The generation settings after the run's own have been applied.
    pub generation: Generation,
    /// Digests of the official texts that go into prompts, by name. Those that could not be had are not here.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
    /// Who judges; `None` where no judge is needed.
    #[serde(default)]
    pub judge: Option<JudgeUse>,
}

impl Plan {
    /// Samples planned: items × samples per item.
    pub const fn samples(&self) -> u64 {
        self.items.saturating_mul(self.samples_per_item as u64)
    }
}

/// The dataset that a benchmark of a run used, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetUse {
    /// Id at the hub, or the file's name.
    pub id: String,
    /// Revision: a commit at the hub, or the digest of a local file or of the demo data.
    pub revision: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// SHA-256 of the normalised content, lowercase hex.
    pub digest: String,
    /// Object that holds one compressed frame per item.
    pub data_key: String,
    /// SHA-256 of the archive that its documents come from, lowercase hex; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Files beside the items that jobs need, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachments: BTreeMap<String, StoredFile>,
    /// Why demo data was used without being asked for.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether the items are real and the few-shot examples or documents in their prompts came with the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_support: bool,
}

impl DatasetUse {
    /// Whether the items are those bundled with the program.
    pub fn is_demo(&self) -> bool {
        self.source == "demo"
    }
}

/// The judge that a benchmark of a run used, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeUse {
    /// The judge, with its provider.
    pub model: String,
    /// Host of the judge's base URL; see [`ModelRef::endpoint_host`](crate::run::ModelRef::endpoint_host).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
    /// Version of the judging: 1 unless answers were judged again.
    pub version: u32,
    /// Digest of the judge's prompt template.
    pub prompt_digest: String,
    /// Where that template came from: `official` or `own`.
    pub prompt_source: String,
    /// The judge's generation settings after the run's own have been applied.
    pub generation: Generation,
}
