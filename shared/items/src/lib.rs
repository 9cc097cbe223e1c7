//! Items, rows and dataset definitions, without I/O.
//!
//! A benchmark says by its [`Layout`] where its rows are and what an item is. `bench-datasets` brings them here, and
//! `bench-benchmarks` asks and grades them; neither has to know the other.

mod dataset;
mod document;
mod entry;
mod identity;
mod item;
mod layout;
mod names;
mod source_id;
mod template;

pub use dataset::{AttachmentSpec, DatasetSpec, DemoData, DocumentArchive, Gate, HubSource, Part, PartFile};
pub use document::{document_text, undecodable_document};
pub use entry::IndexEntry;
pub use identity::identity;
pub use item::{Item, Row, RowError};
pub use layout::Layout;
pub use names::{ItemNames, NameError, NameProblems, ROW_SIGN};
pub use source_id::{SOURCE_ID_CHARS_MAX, source_id};
pub use template::{TemplateOrigin, TemplatePart, TemplateRole, TemplateSpec};
