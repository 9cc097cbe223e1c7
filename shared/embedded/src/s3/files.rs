//! Content files: written once, and removed after the last reader.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use super::digest::Digests;
use super::error::StoreError;

/// The folders of content files.
#[derive(Debug)]
pub(super) struct Files {
    content: PathBuf,
    incoming: PathBuf,
    sync: bool,
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    /// Number of readers per content.
    pinned: HashMap<i64, usize>,
    /// Files to remove after the last reader of a content.
    pending_removal: HashMap<i64, Vec<String>>,
    /// Contents whose files are being removed.
    being_removed: HashSet<i64>,
}

impl Files {
    /// Opens or creates the folders below `dir`. Removes files that an earlier process was still receiving.
    pub(super) fn open(dir: &Path, sync: bool) -> Result<Self, StoreError> {
        let content = dir.join("content");
        let incoming = dir.join("incoming");
        fs::create_dir_all(&content)?;
        if incoming.exists() {
            fs::remove_dir_all(&incoming)?;
        }
        fs::create_dir_all(&incoming)?;
        if sync {
            sync_dir(dir)?;
        }
        Ok(Self { content, incoming, sync, claims: Mutex::default() })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.content.join(shard(name)).join(name)
    }

    /// Removes every content file for which `is_named` returns false. Returns their number.
    pub(super) fn sweep(
        &self,
        mut is_named: impl FnMut(&str) -> Result<bool, StoreError>,
    ) -> Result<usize, StoreError> {
        let mut removed = 0;
        for shard in fs::read_dir(&self.content)? {
            let shard = shard?.path();
            if !shard.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&shard)? {
                let entry = entry?;
                // Leave files whose names aren't UTF-8, since this program doesn't create any.
                if let Some(name) = entry.file_name().to_str()
                    && !is_named(name)?
                {
                    fs::remove_file(entry.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Starts a file for incoming content. Blocking.
    pub(super) fn begin(self: &Arc<Self>, digests: Digests) -> Result<FileWriter, StoreError> {
        let name = Uuid::new_v4().simple().to_string();
        let path = self.incoming.join(&name);
        let file = File::create_new(&path)?;
        Ok(FileWriter {
            files: self.clone(),
            file,
            guard: NewFile { path, name, size_bytes: 0, kept: AtomicBool::new(false) },
            digests,
        })
    }

    fn create_target_path(&self, name: &str) -> Result<PathBuf, StoreError> {
        let folder = self.content.join(shard(name));
        match fs::create_dir(&folder) {
            Ok(()) if self.sync => sync_dir(&self.content)?,
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        Ok(folder.join(name))
    }

    fn sync_parent(&self, path: &Path) -> Result<(), StoreError> {
        match path.parent() {
            Some(parent) if self.sync => Ok(sync_dir(parent)?),
            _ => Ok(()),
        }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins the files of a content; `None` if they are being removed (look the object up again).
    pub(super) fn pin(self: &Arc<Self>, content_id: i64) -> Option<Pin> {
        let mut claims = self.claims();
        if claims.being_removed.contains(&content_id) {
            return None;
        }
        *claims.pinned.entry(content_id).or_insert(0) += 1;
        Some(Pin { files: self.clone(), content_id })
    }

    /// Removes the files of a content that no row refers to, immediately or after its last reader.
    pub(super) fn remove_unreferenced(&self, content_id: i64, names: Vec<String>) {
        {
            let mut claims = self.claims();
            if claims.pinned.contains_key(&content_id) {
                claims.pending_removal.insert(content_id, names);
                return;
            }
            claims.being_removed.insert(content_id);
        }
        self.remove(&names);
        self.claims().being_removed.remove(&content_id);
    }

    fn remove(&self, names: &[String]) {
        for name in names {
            let path = self.path(name);
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // The sweep at the next start removes it.
                tracing::warn!(error = %error, "A content file could not be removed");
            }
        }
    }
}

fn shard(name: &str) -> &str {
    name.get(..2).unwrap_or("00")
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Keeps the files of a content until it is dropped.
#[derive(Debug)]
pub(super) struct Pin {
    files: Arc<Files>,
    content_id: i64,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let names = {
            let mut claims = self.files.claims();
            match claims.pinned.get_mut(&self.content_id) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    None
                }
                _ => {
                    claims.pinned.remove(&self.content_id);
                    claims.pending_removal.remove(&self.content_id)
                }
            }
        };
        if let Some(names) = names {
            self.files.remove(&names);
        }
    }
}

/// A content file that no row refers to yet. It is removed on drop unless it is kept.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    pub(super) name: String,
    pub(super) size_bytes: u64,
    kept: AtomicBool,
}

impl NewFile {
    /// Keeps the file, since the row that refers to it has been committed.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire) {
            // If this fails, the sweep at the next start removes the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writer of one content file.
pub(super) struct FileWriter {
    files: Arc<Files>,
    file: File,
    guard: NewFile,
    digests: Digests,
}

impl FileWriter {
    /// Appends chunks. Blocking.
    pub(super) fn write(&mut self, chunks: &[Bytes]) -> Result<(), StoreError> {
        for chunk in chunks {
            self.digests.update(chunk);
            self.file.write_all(chunk)?;
            self.guard.size_bytes += chunk.len() as u64;
        }
        Ok(())
    }

    /// Moves the file to its final place; with `sync`, it is on the disk then. Blocking.
    pub(super) fn finish(mut self) -> Result<(NewFile, Digests), StoreError> {
        if self.files.sync {
            self.file.sync_all()?;
        }
        let path = self.files.create_target_path(&self.guard.name)?;
        fs::rename(&self.guard.path, &path)?;
        self.guard.path = path;
        self.files.sync_parent(&self.guard.path)?;
        Ok((self.guard, self.digests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(files: &Arc<Files>, bytes: &'static [u8]) -> String {
        let mut writer = files.begin(Digests::new(|_| false)).unwrap();
        writer.write(&[Bytes::from_static(bytes)]).unwrap();
        let (file, _) = writer.finish().unwrap();
        file.keep();
        file.name.clone()
    }

    #[test]
    fn a_pinned_content_outlives_its_row() {
        let dir = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::open(dir.path(), false).unwrap());
        let name = content(&files, b"old");
        let first = files.pin(7).unwrap();
        let second = files.pin(7).unwrap();
        files.remove_unreferenced(7, vec![name.clone()]);
        drop(first);
        assert_eq!(fs::read(files.path(&name)).unwrap(), b"old");
        drop(second);
        assert!(!files.path(&name).exists());
        assert!(files.claims().pinned.is_empty() && files.claims().pending_removal.is_empty());
    }

    #[test]
    fn a_file_that_is_not_kept_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::open(dir.path(), true).unwrap());
        let mut writer = files.begin(Digests::new(|_| false)).unwrap();
        writer.write(&[Bytes::from_static(b"x")]).unwrap();
        let (file, _) = writer.finish().unwrap();
        let path = files.path(&file.name);
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn the_sweep_keeps_what_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::open(dir.path(), false).unwrap());
        let named = content(&files, b"1");
        let orphan = content(&files, b"2");
        assert_eq!(files.sweep(|name| Ok(name == named)).unwrap(), 1);
        assert!(files.path(&named).exists());
        assert!(!files.path(&orphan).exists());
    }
}
