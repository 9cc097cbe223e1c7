//! Datasets: hub download, local files and the cache of normalized items.
//!
//! The [`Layout`](bench_items::Layout) of a benchmark says where its rows are and how they become items.
//! [`Library::prepare`] writes the items to the blob store, once per revision, and returns the [`Index`]. A worker then
//! loads items with ranged reads, each with its neighbors ([`ItemCache`]) or alone ([`load_item`]).
//!
//! | object | holds |
//! | --- | --- |
//! | `datasets/NAME/vN/SOURCE/REVISION/data.zst` | one zstd frame per item, in dataset order |
//! | `datasets/NAME/vN/SOURCE/REVISION/support/…` | other values that prompts need, one object per name |
//! | `datasets/NAME/vN/SOURCE/REVISION/files/SHA256` | files in columns of the items, unchanged |
//! | `datasets/NAME/vN/SOURCE/REVISION/official/…` | official files of each item that a run has asked, one object per item |
//! | `datasets/NAME/vN/SOURCE/REVISION/index.json.zst` | [`Index`], written last |
//! | `datasets/NAME/vN/SOURCE/REVISION/progress.json.zst` | checkpoint of a large dataset; null when it is finished |
//! | `datasets/NAME/vN/SOURCE/refs/REF.json.zst` | the revision that a branch pointed to when the hub was last asked |
//! | `datasets/documents/SHA256/…` | the documents of an archive, one object each, and their list |
//! | `datasets/files/SHA256` | a file that sandbox jobs need, unchanged |
//! | `templates/…` | official texts, by their SHA-256 |
//!
//! A [variant](bench_items::Layout::variant) of a layout follows its version, as in `v1-text`.
//!
//! Invariants:
//! - A dataset without an index isn't visible, so a process that is killed halfway leaves nothing visible. For a large
//!   dataset it leaves a checkpoint, and the next process continues from there.
//! - The same rows give the same digest, on any machine and with any version of zstd.
//! - Memory doesn't grow with the content of a dataset: only the ids and offsets of its items, a batch of rows (a
//!   single one where rows are large) and one document of an archive are in memory. Disk use is bounded too: downloaded
//!   files are removed once their rows are stored.
//! - The token is sent to the hub's own host only.

mod attachments;
mod availability;
mod bounded_cache;
mod cached;
mod checkpoint;
mod column_files;
mod config;
mod documents;
mod error;
mod hub;
mod index;
mod item_cache;
mod item_files;
mod keys;
mod library;
mod local;
mod normalize;
mod official_files;
mod prepare;
mod progress;
mod repository;
mod rows;
mod source_ids;
mod support_cache;
mod templates;
mod writer;

pub use attachments::{ATTACHMENT_READ_BYTES_MAX, read_attachment};
pub use cached::CachedDataset;
pub use column_files::load_item_file;
pub use config::{LibraryConfig, Token};
pub use error::{ContentError, DatasetError};
pub use hub::ask_hub;
pub use index::{FileInfo, Index, SupportEntry, load_item, load_support};
pub use item_cache::ItemCache;
pub use library::{Library, PreparedDataset, check};
pub use official_files::load_official_files;
pub use progress::{NoProgress, Progress, Step};
pub use support_cache::SupportCache;
pub use templates::{OfficialTexts, TemplateLookup, TemplateText, load_template, load_templates};
