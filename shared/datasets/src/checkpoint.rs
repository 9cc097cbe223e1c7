//! Checkpoints of large datasets, which let a new process continue after a process that was killed.
//!
//! A checkpoint is written when all rows of a file are stored, and before that file is removed from disk. Work that
//! isn't in the checkpoint is repeated. Two processes that continue from the same checkpoint write the same bytes. If
//! they don't, the store refuses to assemble their parts, and the dataset is rebuilt from the start.

use bench_blobs::{BlobError, Blobs};
use serde::{Deserialize, Serialize};

use crate::error::DatasetError;
use crate::index::FileInfo;
use crate::keys;
use crate::writer::WriterState;

/// Version of the checkpoint format; checkpoints of other versions are ignored.
const FORMAT: u32 = 2;

/// Progress of a dataset.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    format: u32,
    /// Version of the program that wrote it. Another version may make other items of the same rows.
    program: String,
    pub(crate) writer: WriterState,
    /// Files whose rows are all stored, in order.
    pub(crate) files: Vec<FileInfo>,
    /// Rows so far, or items if the layout numbers items.
    pub(crate) rows: u64,
    pub(crate) rows_left_out: u64,
}

impl Checkpoint {
    pub(crate) fn new(writer: WriterState, files: &[FileInfo], rows: u64, rows_left_out: u64) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, program, writer, files: files.to_vec(), rows, rows_left_out }
    }

    /// Loads the checkpoint of a dataset's folder, if there is one that this program can continue from.
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

    /// Clears the checkpoint, because the dataset is finished or has to be rebuilt. It is overwritten with null, since
    /// the process that prepares datasets may not delete objects.
    pub(crate) async fn clear(blobs: &Blobs, folder: &str) -> Result<(), DatasetError> {
        Ok(blobs.put_json(&keys::checkpoint(folder), &None::<Self>).await?)
    }
}
