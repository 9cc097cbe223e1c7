//! Datasets: hub download, local files, the normalised cache.
//!
//! A benchmark says by its [`Layout`](bench_items::Layout) where its rows are and what an item is. [`Library::prepare`]
//! brings the items into the blob store, once per revision, and hands out the [`Index`]; a worker
//! then loads one item by [`load_item`] with one ranged read.
//!
//! | object | holds |
//! | --- | --- |
//! | `datasets/NAME/vN/SOURCE/REVISION/data.zst` | one zstd frame per item, in dataset order |
//! | `datasets/NAME/vN/SOURCE/REVISION/support/…` | what prompts need besides, one object per name |
//! | `datasets/NAME/vN/SOURCE/REVISION/index.json.zst` | [`Index`], written last |
//! | `datasets/NAME/vN/SOURCE/REVISION/progress.json.zst` | how far a large one is; null when it is finished |
//! | `datasets/NAME/vN/SOURCE/refs/REF.json.zst` | the revision that a branch last had |
//! | `datasets/documents/SHA256/…` | the documents of an archive, one object each, and their list |
//! | `datasets/files/SHA256` | a file that jobs in sandboxes need, as it is |
//! | `templates/…` | official texts, by their SHA-256 |
//!
//! A layout that has a [variant](bench_items::Layout::variant) has it behind its version, as in `v1-text`.
//!
//! What holds here:
//! - A dataset without an index is not there: a process that is killed half way leaves nothing visible. Of a large one it
//!   leaves a note how far it was (`checkpoint`), and the next process goes on from there.
//! - The same rows give the same digest, on any machine and with any version of zstd.
//! - Memory does not grow with the dataset; only ids and offsets of its items are held, one row where rows are large, and
//!   one document of an archive. Nor does the disk: files that were downloaded are removed once their rows are stored.
//! - The token goes to the hub's own host only.

mod attachments;
mod cached;
mod checkpoint;
mod config;
mod documents;
mod error;
mod held;
mod hub;
mod index;
mod item_files;
mod keys;
mod library;
mod local;
mod normalise;
mod prepare;
mod progress;
mod rows;
mod source_ids;
mod support_cache;
mod templates;
mod writer;

pub use attachments::{ATTACHMENT_READ_BYTES_MAX, read_attachment};
pub use cached::CachedDataset;
pub use config::{LibraryConfig, Token};
pub use error::{ContentError, DatasetError};
pub use index::{FileFact, Index, SupportEntry, load_item, load_support};
pub use library::{Library, Prepared, check};
pub use progress::{NoProgress, Progress, Step};
pub use support_cache::SupportCache;
pub use templates::{OfficialTexts, Reach, TemplateText, load_template, load_templates};
