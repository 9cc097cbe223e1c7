//! Conversion of dataset rows to items.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dataset::{AttachmentSpec, DatasetSpec, DocumentArchive, PartFile};
use crate::item::{Item, Row, RowError};
use crate::official_files::OfficialFiles;
use crate::template::TemplateSpec;

/// Defines how the files and rows of a dataset become items.
pub trait Layout: Send + Sync {
    /// Name of the benchmark.
    fn name(&self) -> &'static str;

    /// Location and license of the dataset.
    fn spec(&self) -> &DatasetSpec;

    /// Version of the conversion. Raise it when [`Layout::item`] or [`Layout::support`] produce different values from
    /// the same rows, so that old cache entries are not used.
    fn version(&self) -> u32 {
        1
    }

    /// Distinguishes layouts of the same name that make different items from the same rows, such as two protocols of a
    /// benchmark. Each variant has its own cache objects. Only letters, digits and `-` are allowed.
    fn variant(&self) -> &'static str {
        ""
    }

    /// Columns that may hold the dataset's own item id, in order of preference; empty if there is none.
    fn id_columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// Columns that may hold the question, in order of preference. The question identifies an item across revisions of
    /// its dataset. Without such a column, all columns together do.
    fn question_columns(&self) -> &'static [&'static str] {
        &["question"]
    }

    /// Files of parts that can't be found through the dataset card or by file name.
    fn files(&self) -> &'static [PartFile] {
        &[]
    }

    /// Archive of documents that prompts need.
    fn documents(&self) -> Option<&'static DocumentArchive> {
        None
    }

    /// Columns of items with a file: Base64 in [`Layout::item`]'s row, as bytes arrive there. Each file is stored as an
    /// object of its own, so that items stay small, and its column holds an [`ItemFile`](crate::ItemFile) then, or null
    /// if it has no Base64.
    fn file_columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// Makes rows from the content of the files of [`DatasetSpec::repository`], in their order.
    fn repository_rows(&self, files: &[String]) -> Result<Vec<Row>, RowError> {
        let _ = files;
        Ok(Vec::new())
    }

    /// Files that accompany the items, for sandbox jobs.
    fn attachments(&self) -> &'static [AttachmentSpec] {
        &[]
    }

    /// Official files that each item has; `None` if there are none. The layout has [`Self::id_columns`] then.
    fn official_files(&self) -> Option<&'static OfficialFiles> {
        None
    }

    /// Official texts that prompts are made of, loaded at run time.
    fn templates(&self) -> &'static [TemplateSpec] {
        &[]
    }

    /// If true, the index passed to [`Layout::item`] counts items instead of rows, so rows that are left out get no
    /// number.
    fn numbers_items(&self) -> bool {
        false
    }

    /// Converts a row to an item; `None` leaves the row out. `index` counts the rows of all item parts from 0, or the
    /// items if [`Layout::numbers_items`] is true.
    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError>;

    /// Converts the rows of a support split, or the rows of a local file for which [`Layout::is_support`] is true, to
    /// named values for prompts. Each value is stored once and loaded by name.
    fn support(&self, split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        let _ = (split, rows);
        Ok(BTreeMap::new())
    }

    /// Returns true if a row of a local file belongs to the support split instead of the items.
    fn is_support(&self, row: &Row) -> bool {
        let _ = row;
        false
    }
}
