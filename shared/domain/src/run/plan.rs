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
    /// The protocol's generation settings, if the run's own differ; `None` in plans of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_generation: Option<Generation>,
    /// The protocol's number of samples per item, if the run's own differs; `None` in plans of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_samples: Option<u32>,
    /// The run's own time limit for one answer, if it differs from the benchmark's; `None` in plans of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<OwnTimeout>,
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

    /// Describes the settings that differ from the benchmark's own and can change scores, such as
    /// `temperature 0.6 (benchmark: 0)`.
    pub fn changed_settings(&self) -> Vec<String> {
        self.changes(&self.generation)
    }

    /// Describes the settings that would differ as in [`Plan::changed_settings`] if these were the generation settings.
    pub fn changes(&self, generation: &Generation) -> Vec<String> {
        let protocol = self.protocol_generation.as_ref();
        let mut changed = protocol.map(|protocol| generation.changes_from(protocol)).unwrap_or_default();
        let samples = self.protocol_samples;
        changed.extend(
            samples.map(|protocol| format!("samples {} (benchmark: {protocol})", self.samples_per_item)),
        );
        changed.extend(self.timeout.map(|OwnTimeout { seconds, benchmark_seconds }| {
            format!("timeout {seconds} s (benchmark: {benchmark_seconds} s)")
        }));
        changed
    }
}

/// Time limit for one answer that a run sets instead of its benchmark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTimeout {
    /// The run's limit, in seconds.
    pub seconds: u32,
    /// The benchmark's limit, in seconds.
    pub benchmark_seconds: u64,
}

impl OwnTimeout {
    /// Returns the limit that a run sets, if it differs from its benchmark's.
    pub fn new(own_seconds: Option<u32>, benchmark_seconds: u64) -> Option<Self> {
        let seconds = own_seconds.filter(|own| u64::from(*own) != benchmark_seconds)?;
        Some(Self { seconds, benchmark_seconds })
    }
}

/// Exact dataset that a benchmark of a run used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetUse {
    /// Id at the hub, or name of the file.
    pub id: String,
    /// Revision: a commit at the hub, or the digest of a local file or of the demo data.
    pub revision: String,
    /// `hub`, `local`, `demo`, or `bundled` for a dataset that comes with the program.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing;

    #[test]
    fn every_setting_that_differs_is_named() {
        let own = testing::plan(3, 1);
        assert_eq!(own.changed_settings(), Vec::<String>::new());
        let changed = Plan {
            samples_per_item: 4,
            protocol_samples: Some(1),
            timeout: OwnTimeout::new(Some(30), 1_200),
            generation: Generation { temperature: Some(0.6), ..Generation::default() },
            protocol_generation: Some(Generation::default()),
            ..own
        };
        assert_eq!(
            changed.changed_settings(),
            [
                "temperature 0.6 (benchmark: none)",
                "samples 4 (benchmark: 1)",
                "timeout 30 s (benchmark: 1200 s)",
            ]
        );
        assert_eq!(OwnTimeout::new(Some(1_200), 1_200), None);
        assert_eq!(OwnTimeout::new(None, 1_200), None);
    }

    #[test]
    fn plans_without_changed_settings_keep_the_bytes_of_older_versions() {
        let plan = serde_json::to_value(testing::plan(3, 1)).unwrap();
        for field in ["protocol_generation", "protocol_samples", "timeout"] {
            assert_eq!(plan.get(field), None::<&Value>, "{field}");
        }
    }
}
