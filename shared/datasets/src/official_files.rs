//! Official files of single items, such as the programs that run an item's tests.
//!
//! They are stored once per dataset and item, before the item is asked, so that a run doesn't depend on their origin. Files
//! in the folder of a local dataset are preferred; others are downloaded at a pinned commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bench_blobs::{BlobError, Blobs};
use bench_domain::run::DatasetUse;
use bench_items::{Layout, OfficialFile, OfficialFiles};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::index::Index;
use crate::keys;
use crate::library::Library;
use crate::progress::{Progress, Step};

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Number of items whose files are downloaded concurrently.
const ITEMS_AT_ONCE: usize = 8;
/// Maximum number of items with files in a local folder.
const LOCAL_ITEMS_MAX: usize = 20_000;

/// Official files of an item, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredFiles {
    /// Files by name.
    files: BTreeMap<String, StoredText>,
}

/// A file, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredText {
    /// Place that it comes from.
    origin: String,
    /// SHA-256 of its bytes, lowercase hex.
    sha256: String,
    text: String,
}

impl StoredText {
    fn new(origin: String, text: String) -> Self {
        Self { origin, sha256: hex::encode(Sha256::digest(&text)), text }
    }
}

/// Loads the official files of an item, by name; `None` if none are stored.
///
/// # Errors
/// If the blob store fails, or has a file that doesn't match its digest.
pub async fn load_official_files(
    blobs: &Blobs,
    used: &DatasetUse,
    item_id: &str,
) -> Result<Option<BTreeMap<String, String>>, BlobError> {
    let key = keys::official_files(&used.data_key, item_id);
    let Some(StoredFiles { files }) = blobs.get_json(&key).await? else { return Ok(None) };
    let mut texts = BTreeMap::new();
    for (name, StoredText { sha256, text, .. }) in files {
        if hex::encode(Sha256::digest(&text)) != sha256 {
            return Err(BlobError::Damaged {
                key,
                problem: format!("the SHA-256 of `{name}` is another one"),
            });
        }
        texts.insert(name, text);
    }
    Ok(Some(texts))
}

/// Official files in a local folder.
pub(crate) struct LocalFiles {
    folder: PathBuf,
    /// Digest of all of them; `None` if there are none.
    pub(crate) digest: Option<String>,
}

impl Library {
    /// Makes sure that the official files of these items, given by id and own id, are stored. Does nothing for layouts without
    /// such files.
    ///
    /// # Errors
    /// If the blob store fails, or a file can't be loaded from its origin. The error names the file.
    pub async fn store_official_files(
        &self,
        layout: &dyn Layout,
        used: &DatasetUse,
        items: &[(&str, Option<&str>)],
        progress: &dyn Progress,
    ) -> Result<(), DatasetError> {
        let Some(official) = layout.official_files() else { return Ok(()) };
        let is_demo = used.is_demo();
        let stored = items.iter().map(|(item, id)| async move {
            let key = keys::official_files(&used.data_key, item);
            if self.blobs.head(&key).await?.is_some() {
                return Ok(());
            }
            let id = id.ok_or_else(|| DatasetError::not_found(layout.name(), no_id(item)))?;
            let files = match is_demo {
                true => demo_files(official, id),
                false => self.download_official_files(official, id, progress).await?,
            };
            self.blobs.put_json(&key, &StoredFiles { files }).await?;
            Ok::<_, DatasetError>(())
        });
        // Collected first, since a stream of closures that borrow isn't `Send` for every lifetime.
        let stored: Vec<_> = stored.collect();
        stream::iter(stored).buffer_unordered(ITEMS_AT_ONCE).try_collect().await
    }

    async fn download_official_files(
        &self,
        official: &OfficialFiles,
        id: &str,
        progress: &dyn Progress,
    ) -> Result<BTreeMap<String, StoredText>, DatasetError> {
        let OfficialFiles { repository, commit, files, .. } = *official;
        let mut found = BTreeMap::new();
        for file in files {
            let path =
                usable_path(file, id).ok_or_else(|| DatasetError::not_found(repository, unusable(id)))?;
            let parts: Vec<&str> = repository.split('/').chain([commit]).chain(path.split('/')).collect();
            progress.step(Step::Downloading { file: &path, done_bytes: 0, total_bytes: None });
            let content = self.github.download_small_file(repository, &parts, FILE_BYTES_MAX, progress).await;
            let content = content.map_err(|error| named(error, &path))?;
            let text = String::from_utf8(content)
                .map_err(|_| DatasetError::content(&path, None, None, "it is not UTF-8"))?;
            let origin = format!("github {repository}@{commit}/{path}");
            found.insert(file.name.to_owned(), StoredText::new(origin, text));
        }
        Ok(found)
    }

    /// Stores the official files that a local folder has for the items of a dataset.
    pub(crate) async fn store_local_files(
        &self,
        layout: &dyn Layout,
        index: &Index,
        local: &LocalFiles,
    ) -> Result<(), DatasetError> {
        let (Some(official), Some(_)) = (layout.official_files(), &local.digest) else { return Ok(()) };
        for entry in &index.items {
            let Some(id) = &entry.source_id else { continue };
            let mut files = BTreeMap::new();
            for file in official.files {
                let Some(path) = usable_path(file, id) else { break };
                let Some(text) = read_local(&local.folder.join(&path))? else { break };
                files.insert(file.name.to_owned(), StoredText::new(format!("local {path}"), text));
            }
            // An item with only some of its files gets all of them from their origin.
            if files.len() == official.files.len() {
                let key = keys::official_files(&index.data_key, &entry.id);
                self.blobs.put_json(&key, &StoredFiles { files }).await?;
            }
        }
        Ok(())
    }
}

/// Finds the official files beside local rows, and computes their digest.
pub(crate) fn find_local_files(layout: &dyn Layout, folder: PathBuf) -> Result<LocalFiles, DatasetError> {
    let none = |folder| Ok(LocalFiles { folder, digest: None });
    let Some(official) = layout.official_files() else { return none(folder) };
    let Some((first, _)) = official.files.first().and_then(|file| file.path.split_once("/{id}")) else {
        return none(folder);
    };
    let Ok(entries) = std::fs::read_dir(folder.join(first)) else { return none(folder) };
    let mut ids: Vec<String> = Vec::new();
    for entry in entries.take(LOCAL_ITEMS_MAX) {
        let entry = entry.map_err(|error| DatasetError::disk("read", &folder.join(first), error))?;
        ids.extend(entry.file_name().into_string());
    }
    ids.sort();
    let mut digest = Sha256::new();
    for id in &ids {
        for path in official.files.iter().filter_map(|file| usable_path(file, id)) {
            if let Some(text) = read_local(&folder.join(&path))? {
                digest.update(format!("{path}\t{}\n", hex::encode(Sha256::digest(&text))));
            }
        }
    }
    Ok(LocalFiles { folder, digest: (!ids.is_empty()).then(|| hex::encode(digest.finalize())) })
}

/// Reads a file; `None` if there is none.
fn read_local(path: &Path) -> Result<Option<String>, DatasetError> {
    let failed = |problem: String| DatasetError::Path { path: path.display().to_string(), problem };
    let bytes = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
        Ok(metadata) if !metadata.is_file() => return Ok(None),
        Ok(metadata) => metadata.len(),
    };
    if bytes > FILE_BYTES_MAX as u64 {
        return Err(failed(format!("it has {bytes} bytes; such a file has at most {FILE_BYTES_MAX}")));
    }
    let content = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(content).map(Some).map_err(|_| failed("it is not UTF-8".to_owned()))
}

fn demo_files(official: &OfficialFiles, id: &str) -> BTreeMap<String, StoredText> {
    let own = official.demo.iter().filter(|file| file.id == id);
    own.map(|file| (file.name.to_owned(), StoredText::new("demo".to_owned(), file.text.to_owned()))).collect()
}

/// Returns the path of an item's file; `None` if its id isn't the name of a folder.
fn usable_path(file: &OfficialFile, id: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_usable = !id.is_empty() && id.chars().all(is_plain) && id != "." && id != "..";
    is_usable.then(|| file.path_for(id))
}

fn no_id(item: &str) -> String {
    format!("item {item} has no id of its own, which its official files are found by")
}

fn unusable(id: &str) -> String {
    let id: String = id.chars().take(80).collect();
    format!("`{id}` can't be part of a path, so that its official files are not found")
}

/// Names the file in errors that name only its repository.
pub(crate) fn named(error: DatasetError, path: &str) -> DatasetError {
    match error {
        DatasetError::NotFound { dataset, problem } => {
            DatasetError::NotFound { dataset, problem: format!("{path}: {problem}") }
        }
        DatasetError::Unreachable { hub, problem } => {
            DatasetError::Unreachable { hub, problem: format!("{problem}, while {path} was loaded") }
        }
        other => other,
    }
}
