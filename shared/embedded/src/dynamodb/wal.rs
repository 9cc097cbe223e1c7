//! Group commit for `Durability::Full`.
//!
//! With `synchronous = NORMAL` in WAL mode, SQLite never leaves a damaged file: it syncs the log
//! header when the log starts over, and log and database at a checkpoint. It only omits the sync
//! after each commit. So syncing the log once after a group of commits, before any of them is
//! acknowledged, gives the guarantees of `synchronous = FULL` for one disk wait per group.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The write-ahead log of one database.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    path: PathBuf,
    file: Option<File>,
}

impl WriteAheadLog {
    pub(super) fn for_database(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None }
    }

    /// Waits until all data written to the log is on the disk. The file stays the same as long as
    /// the database is open, so it is opened once.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = OpenOptions::new().write(true).open(&self.path)?;
                if let Some(dir) = self.path.parent() {
                    crate::data_dir::sync_dir(dir)?;
                }
                none.insert(file)
            }
        };
        file.sync_data()
    }
}
