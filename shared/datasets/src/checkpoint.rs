//! How far a large dataset is, so that a process that comes after one that was killed need not begin anew.
//!
//! Written after a file whose rows are all stored and before that file is removed from disk. What it does not mention is
//! done again. Two processes that go on from the same one write the same bytes; should they not, the store refuses to
//! put their parts together, and the dataset is begun anew.

use bench_blobs::{BlobError, Blobs};
use serde::{Deserialize, Serialize};

use crate::error::DatasetError;
use crate::index::FileFact;
use crate::keys;
use crate::writer::WriterState;

/// Form of a checkpoint; another one is not read.
const FORMAT: u32 = 2;

/// How far a dataset is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    format: u32,
    /// The program that wrote it: another one may make other items of the same rows.
    program: String,
    pub(crate) writer: WriterState,
    /// The files with items whose rows are all stored, in order.
    pub(crate) files: Vec<FileFact>,
    /// Rows so far, or items where the layout numbers those.
    pub(crate) rows: u64,
    pub(crate) rows_left_out: u64,
}

impl Checkpoint {
    pub(crate) fn new(writer: WriterState, files: &[FileFact], rows: u64, rows_left_out: u64) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, program, writer, files: files.to_vec(), rows, rows_left_out }
    }

    /// That of a dataset's folder, if there is one that this program can go on with.
    pub(crate) async fn load(blobs: &Blobs, folder: &str) -> Result<Option<Self>, DatasetError> {
        let found: Option<Option<Self>> = match blobs.get_json(&keys::checkpoint(folder)).await {
            Err(BlobError::Damaged { .. }) => None,
            other => other?,
        };
        let fits = |found: &Self| found.format == FORMAT && found.program == env!("CARGO_PKG_VERSION");
        Ok(found.flatten().filter(fits))
    }

    pub(crate) async fn store(&self, blobs: &Blobs, folder: &str) -> Result<(), DatasetError> {
        Ok(blobs.put_json(&keys::checkpoint(folder), &Some(self)).await?)
    }

    /// Forgets it: the dataset is finished, or has to be begun anew. Who prepares datasets may not remove objects.
    pub(crate) async fn forget(blobs: &Blobs, folder: &str) -> Result<(), DatasetError> {
        Ok(blobs.put_json(&keys::checkpoint(folder), &None::<Self>).await?)
    }
}
