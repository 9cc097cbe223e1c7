//! Group commit for `Durability::Full`.
//!
//! SQLite with `synchronous = NORMAL` in WAL mode never leaves a damaged file: it syncs the log
//! header when the log starts over, and log and database at a checkpoint. What it leaves out is
//! the sync after each commit. So one sync of the log after a group of commits, before any of
//! them is acknowledged, gives what `synchronous = FULL` gives, at one disk wait per group.

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
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None }
    }

    /// Waits until everything written to the log is on the disk. The file keeps its identity as
    /// long as the database is open, so it is opened once.
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
