//! Where a dataset is, and what it consists of.

/// Where a benchmark's dataset is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetSpec {
    /// Places to try, the preferred one first.
    pub sources: &'static [HubSource],
    /// Set when terms must be accepted.
    pub gate: Option<Gate>,
    /// Licence as its authors name it.
    pub licence: &'static str,
    /// Items it has, as published; 0 when not known before it is loaded.
    pub items: u64,
    /// Rows of our own for trying things out.
    pub demo: DemoData,
}

impl DatasetSpec {
    /// An open dataset of unknown size.
    pub const DEFAULT: Self =
        Self { sources: &[], gate: None, licence: "", items: 0, demo: DemoData { items: "", support: &[] } };
}

/// One place where a dataset can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubSource {
    /// Id at the hub, such as `TIGER-Lab/MMLU-Pro`.
    pub id: &'static str,
    /// Commit that the protocol is pinned to; `None` takes `main`.
    pub revision: Option<&'static str>,
    /// The parts that hold the items, in order.
    pub items: &'static [Part],
    /// Parts that hold what prompts need besides the item, such as worked examples.
    pub support: &'static [Part],
}

impl HubSource {
    /// The current revision of a dataset without anything but items.
    pub const DEFAULT: Self = Self { id: "", revision: None, items: &[], support: &[] };
}

/// Part of a dataset at a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Name of the configuration; `default` when the dataset has none.
    pub config: &'static str,
    /// Name of the split.
    pub split: &'static str,
}

/// The file that holds a part of a dataset, for repositories whose card and file names do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartFile {
    /// The part.
    pub part: Part,
    /// Path of its file within the repository: parquet, JSON lines, a JSON array, or CSV by its ending.
    pub path: &'static str,
}

/// Terms that must be accepted before a dataset can be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Where they are accepted.
    pub terms_url: &'static str,
}

/// Rows that this program brings along, written for it: one JSON object a line, in the dataset's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoData {
    /// The items.
    pub items: &'static str,
    /// For each support split its name and its rows.
    pub support: &'static [(&'static str, &'static str)],
}

/// A ZIP archive of text documents in a dataset's repository. Each document is a support value: a text named by
/// the member's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentArchive {
    /// Path within the repository, at the revision that the items come from.
    pub path: &'static str,
    /// SHA-256 of the archive, lowercase hex. Revisions with the same archive share what was made of it.
    pub sha256: &'static str,
    /// What the names of the members start with; it is not part of the documents' names. Other members are left out.
    pub prefix: &'static str,
}

/// A file beside the items that jobs in sandboxes need, such as the values that results are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentSpec {
    /// What the benchmark calls it.
    pub name: &'static str,
    /// The dataset at the hub that has it.
    pub id: &'static str,
    /// Commit there; `None` takes `main`.
    pub revision: Option<&'static str>,
    /// Path within the repository.
    pub path: &'static str,
    /// Ending of its name in a local folder, such as `.h5`.
    pub ending: &'static str,
    /// What such a file begins with; another is refused.
    pub signature: &'static [u8],
    /// The one of the demo items.
    pub demo: &'static [u8],
}
