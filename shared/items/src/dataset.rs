//! Definition of a dataset: its location, its files and its demo data.

use crate::repository_source::RepositorySource;

/// Location and license of a benchmark's dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetSpec {
    /// Hub locations to try, in order of preference.
    pub sources: &'static [HubSource],
    /// Repository with the items, for datasets that no hub has. It has no [`Self::sources`] then.
    pub repository: Option<RepositorySource>,
    /// Terms that users must accept; `None` for open datasets.
    pub gate: Option<Gate>,
    /// License, as the authors name it.
    pub license: &'static str,
    /// Published number of items; 0 if unknown before loading.
    pub items: u64,
    /// Demo rows that are bundled with the program.
    pub demo: DemoData,
}

impl DatasetSpec {
    /// An open dataset of unknown size.
    pub const DEFAULT: Self = Self {
        sources: &[],
        repository: None,
        gate: None,
        license: "",
        items: 0,
        demo: DemoData { items: "", support: &[] },
    };

    /// Returns true if the bundled rows are the whole dataset, since nothing else has it.
    pub const fn is_bundled(&self) -> bool {
        self.sources.is_empty() && self.repository.is_none() && !self.demo.items.is_empty()
    }
}

/// Hub location of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubSource {
    /// Id at the hub, such as `TIGER-Lab/MMLU-Pro`.
    pub id: &'static str,
    /// Commit that the protocol is pinned to; `None` takes `main`.
    pub revision: Option<&'static str>,
    /// Parts that hold the items, in order.
    pub items: &'static [Part],
    /// Parts that hold other material for prompts, such as few-shot examples.
    pub support: &'static [Part],
}

impl HubSource {
    /// Latest revision of a dataset that has only items.
    pub const DEFAULT: Self = Self { id: "", revision: None, items: &[], support: &[] };
}

/// Split of a dataset at a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Name of the configuration; `default` when the dataset has none.
    pub config: &'static str,
    /// Name of the split.
    pub split: &'static str,
}

/// File of a part, for repositories where neither the card nor the file names say which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartFile {
    /// The part.
    pub part: Part,
    /// Path within the repository. The extension selects the format: Parquet, JSON Lines, JSON array or CSV.
    pub path: &'static str,
}

/// Terms that users must accept before they can download a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Page on which users accept the terms.
    pub terms_url: &'static str,
}

/// Demo rows written for this program: one JSON object per line, in the dataset's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoData {
    /// The items.
    pub items: &'static str,
    /// Name and rows of each support split.
    pub support: &'static [(&'static str, &'static str)],
}

/// ZIP archive of text documents in a dataset's repository. Each document becomes a support value, named by the
/// member's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentArchive {
    /// Path within the repository, at the revision that the items come from.
    pub path: &'static str,
    /// SHA-256 of the archive, lowercase hex. Revisions with the same archive share its extracted documents.
    pub sha256: &'static str,
    /// Path prefix of the members to load; it is removed from the document names. Other members are ignored.
    pub prefix: &'static str,
}

/// File that accompanies the items, for sandbox jobs, such as expected results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentSpec {
    /// Name within the benchmark.
    pub name: &'static str,
    /// Id of the dataset at the hub that holds the file.
    pub id: &'static str,
    /// Commit of that dataset; `None` takes `main`.
    pub revision: Option<&'static str>,
    /// Path within the repository.
    pub path: &'static str,
    /// Extension of the file in a local folder, such as `.h5`.
    pub ending: &'static str,
    /// Leading bytes of a valid file. Files that start differently are rejected.
    pub signature: &'static [u8],
    /// Content of the attachment for the demo items.
    pub demo: &'static [u8],
}
