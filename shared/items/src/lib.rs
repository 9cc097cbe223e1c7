//! Items, rows and dataset definitions, without I/O.
//!
//! A benchmark's [`Layout`] defines where its rows are and how they become items. `bench-datasets` loads them, and
//! `bench-benchmarks` makes prompts from them and grades answers. Neither crate depends on the other.

mod dataset;
mod document;
mod entry;
mod identity;
mod item;
mod layout;
mod names;
mod official_files;
mod repository_source;
mod source_id;
mod template;

pub use dataset::{AttachmentSpec, DatasetSpec, DemoData, DocumentArchive, Gate, HubSource, Part, PartFile};
pub use document::{document_text, undecodable_document};
pub use entry::IndexEntry;
pub use identity::identity;
pub use item::{Item, ItemFile, Row, RowError};
pub use layout::Layout;
pub use names::{ItemNames, NameError, NameProblems, ROW_SIGN};
pub use official_files::{DemoFile, OfficialFile, OfficialFiles};
pub use repository_source::{PinnedFile, RepositorySource};
pub use source_id::{SOURCE_ID_CHARS_MAX, source_id};
pub use template::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec, WheelSpec};
