//! What a benchmark says of its dataset: where it is, and how a row becomes an item.

use std::collections::BTreeMap;
use std::fmt;

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

/// Part of a dataset at a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Name of the configuration; `default` when the dataset has none.
    pub config: &'static str,
    /// Name of the split.
    pub split: &'static str,
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

/// An official text that goes into prompts. It is loaded at run time and not part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateSpec {
    /// What the benchmark calls it.
    pub name: &'static str,
    /// The file that has it.
    pub origin: TemplateOrigin,
    /// Which part of the file it is.
    pub part: TemplatePart,
    /// SHA-256 of the text, lowercase hex; `None` where the origin's commit is the only pin.
    pub sha256: Option<&'static str>,
    /// What becomes of the benchmark without it.
    pub role: TemplateRole,
}

/// What an official text is for, hence what there is without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateRole {
    /// Part of a prompt: our own wording stands in.
    Wording,
    /// A program that grades: our own stands in.
    Program,
    /// Part of some items' answers: those items cannot be asked.
    Given,
}

impl TemplateSpec {
    /// The page, for people, of the file that has it.
    pub fn page_url(&self) -> String {
        match self.origin {
            TemplateOrigin::GitHub { repository, commit, path } => {
                format!("https://github.com/{repository}/blob/{commit}/{path}")
            }
            TemplateOrigin::Hub { id, commit, path } => {
                format!("https://huggingface.co/datasets/{id}/blob/{commit}/{path}")
            }
        }
    }
}

/// A file under a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateOrigin {
    /// In a repository on GitHub.
    GitHub {
        /// Owner and name.
        repository: &'static str,
        /// The commit.
        commit: &'static str,
        /// Path within it.
        path: &'static str,
    },
    /// In a dataset's repository at the hub.
    Hub {
        /// The dataset's id.
        id: &'static str,
        /// The commit.
        commit: &'static str,
        /// Path within it.
        path: &'static str,
    },
}

/// Part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePart {
    /// All of it.
    Whole,
    /// The value of a module-level text constant of a Python file, or of a code block of a Markdown file; of a Python
    /// file also `Class.NAME`.
    PythonConstant(&'static str),
    /// The lines of the first fenced code block of a Markdown file after this text, without the line end before
    /// the closing fence.
    FenceAfter(&'static str),
}

impl fmt::Display for TemplatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => write!(f, "the whole file"),
            Self::PythonConstant(name) => write!(f, "constant {name}"),
            Self::FenceAfter(marker) => write!(f, "block after `{marker}`"),
        }
    }
}

/// The file that holds a part of a dataset, for repositories whose card and file names do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartFile {
    /// The part.
    pub part: Part,
    /// Path of its file within the repository: parquet, JSON lines, a JSON array, or CSV by its ending.
    pub path: &'static str,
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

/// How the rows of a dataset become items.
pub trait Layout: Send + Sync {
    /// The benchmark's name.
    fn name(&self) -> &'static str;

    /// Where the dataset is.
    fn spec(&self) -> &DatasetSpec;

    /// Changes when [`Layout::item`] or [`Layout::support`] make something else of the same rows,
    /// so that nothing old is taken from the cache.
    fn version(&self) -> u32 {
        1
    }

    /// Tells layouts apart that have the same name and make other items of the same rows, as two protocols of a
    /// benchmark may: each variant has objects of its own. Letters, digits and `-` only.
    fn variant(&self) -> &'static str {
        ""
    }

    /// Columns of an item that hold the dataset's own id, the preferred one first; empty where it has none.
    fn id_columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// Files of parts that are named here instead of being found by the card or by file names.
    fn files(&self) -> &'static [PartFile] {
        &[]
    }

    /// Documents that prompts need, in an archive beside the items.
    fn documents(&self) -> Option<&'static DocumentArchive> {
        None
    }

    /// Files beside the items that jobs need.
    fn attachments(&self) -> &'static [AttachmentSpec] {
        &[]
    }

    /// Official texts that prompts are made of, loaded at run time.
    fn templates(&self) -> &'static [TemplateSpec] {
        &[]
    }

    /// Whether the index that [`Layout::item`] is given counts items instead of rows: then a row that is left out has
    /// no number.
    fn numbers_items(&self) -> bool {
        false
    }

    /// The item of a row; `None` leaves the row out. `index` counts the rows of all item parts from 0, or the items
    /// where [`Layout::numbers_items`] says so.
    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError>;

    /// What the rows of a support split (or, in a local file, rows that [`Layout::is_support`] told
    /// apart) give to prompts, by name. Each value is stored once and loaded by name.
    fn support(&self, split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        let _ = (split, rows);
        Ok(BTreeMap::new())
    }

    /// Whether a row of a local file belongs to the support split and not to the items.
    fn is_support(&self, row: &Row) -> bool {
        let _ = row;
        false
    }
}
