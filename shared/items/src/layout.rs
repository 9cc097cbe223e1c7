//! How the rows of a dataset become items.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dataset::{AttachmentSpec, DatasetSpec, DocumentArchive, PartFile};
use crate::item::{Item, Row, RowError};
use crate::template::TemplateSpec;

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

    /// Columns of an item that hold its question, the preferred one first: by it an item is recognised across revisions of
    /// its dataset. Without one it is all of its columns.
    fn question_columns(&self) -> &'static [&'static str] {
        &["question"]
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
