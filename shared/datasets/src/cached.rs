//! What is in the blob store.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::DatasetError;
use crate::index::Index;
use crate::keys;
use crate::library::Library;

/// A dataset in the blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedDataset {
    /// The benchmark it belongs to.
    pub benchmark: String,
    /// Id at the hub, the local file's name, or `demo`.
    pub id: String,
    /// Variant of the layout that made it; empty for the usual one.
    pub variant: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// Its revision.
    pub revision: String,
    /// SHA-256 of its content.
    pub digest: String,
    /// Items in it.
    pub items: u64,
    /// Bytes of all its objects, its documents and the files that jobs need among them, which it may share with others.
    pub bytes: u64,
    /// Files that jobs need, by name, and their bytes.
    pub attachments: BTreeMap<String, u64>,
    /// What must be said of it.
    pub note: Option<String>,
}

impl Library {
    /// Every dataset in the blob store, by benchmark, source and revision.
    pub async fn list_cached(&self) -> Result<Vec<CachedDataset>, DatasetError> {
        let mut listed = Vec::new();
        let Stored { datasets, documents } = self.folders(keys::ROOT).await?;
        for (folder, bytes) in datasets {
            // What is not there any more was removed meanwhile or is of another version of the program.
            let Some(index) = Index::load(&self.blobs, &folder).await? else { continue };
            let archive = index.documents.as_deref().map(keys::documents);
            let shared = archive.and_then(|archive| documents.get(&archive)).copied().unwrap_or_default();
            let attachments: BTreeMap<_, _> =
                index.attachments.iter().map(|(name, file)| (name.clone(), file.bytes)).collect();
            // One file may have several names.
            let files: BTreeMap<_, _> =
                index.attachments.values().map(|file| (&file.key, file.bytes)).collect();
            let shared = shared + files.values().sum::<u64>();
            listed.push(CachedDataset {
                benchmark: index.benchmark,
                id: index.id,
                variant: index.variant,
                source: index.source,
                revision: index.revision,
                digest: index.digest,
                items: index.items.len() as u64,
                bytes: bytes + shared,
                attachments,
                note: index.note,
            });
        }
        Ok(listed)
    }

    /// Removes the datasets of a benchmark, all of them or those whose revision starts with `revision`;
    /// tells how many. Runs that refer to them cannot load their items any more. Documents, and files
    /// that jobs need, go with the last dataset that has them.
    pub async fn remove(&self, benchmark: &str, revision: Option<&str>) -> Result<u64, DatasetError> {
        let mut removed = 0;
        let mut shared = Shared::default();
        for folder in self.folders(&format!("{}{benchmark}/", keys::ROOT)).await?.datasets.into_keys() {
            let own = folder.rsplit('/').next().unwrap_or_default();
            if !own.starts_with(revision.unwrap_or_default()) {
                continue;
            }
            if let Some(index) = Index::load(&self.blobs, &folder).await? {
                shared.note(index);
            }
            // The index goes first, so that nothing half removed can be seen.
            self.blobs.delete(&keys::index(&folder)).await?;
            self.blobs.delete_prefix(&format!("{folder}/")).await?;
            removed += 1;
        }
        if shared.archives.is_empty() && shared.files.is_empty() {
            return Ok(removed);
        }
        for folder in self.folders(keys::ROOT).await?.datasets.into_keys() {
            if let Some(kept) = Index::load(&self.blobs, &folder).await? {
                shared.keep(&kept);
            }
        }
        for archive in shared.archives {
            self.blobs.delete(&keys::document_list(&archive)).await?;
            self.blobs.delete_prefix(&format!("{}/", keys::documents(&archive))).await?;
        }
        for file in shared.files {
            self.blobs.delete(&file).await?;
        }
        Ok(removed)
    }

    /// What is stored under a prefix.
    async fn folders(&self, prefix: &str) -> Result<Stored, DatasetError> {
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        let mut documents: BTreeMap<String, u64> = BTreeMap::new();
        let mut finished = Vec::new();
        let mut from = None;
        loop {
            let (page, next) = self.blobs.list(prefix, from).await?;
            for object in page {
                if object.key.starts_with(keys::DOCUMENTS) {
                    let folder = object.key.rsplit_once('/').map_or("", |(folder, _)| folder);
                    *documents.entry(folder.to_owned()).or_default() += object.length;
                    continue;
                }
                if object.key.starts_with(keys::FILES) {
                    continue;
                }
                // datasets / NAME / vN / SOURCE / REVISION / …
                let folder = object.key.split('/').take(5).collect::<Vec<_>>().join("/");
                if object.key == keys::index(&folder) {
                    finished.push(folder.clone());
                }
                *sizes.entry(folder).or_default() += object.length;
            }
            from = next;
            if from.is_none() {
                break;
            }
        }
        sizes.retain(|folder, _| finished.contains(folder));
        Ok(Stored { datasets: sizes, documents })
    }
}

/// Folders and the bytes in them.
struct Stored {
    /// Of finished datasets.
    datasets: BTreeMap<String, u64>,
    /// Of archives' documents.
    documents: BTreeMap<String, u64>,
}

/// What datasets share with others.
#[derive(Default)]
struct Shared {
    /// Digests of archives of documents.
    archives: BTreeSet<String>,
    /// Keys of files that jobs need.
    files: BTreeSet<String>,
}

impl Shared {
    /// Notes what may not be needed any more.
    fn note(&mut self, index: Index) {
        self.archives.extend(index.documents);
        self.files.extend(index.attachments.into_values().map(|file| file.key));
    }

    /// Forgets what is still needed.
    fn keep(&mut self, index: &Index) {
        if let Some(archive) = &index.documents {
            self.archives.remove(archive);
        }
        for file in index.attachments.values() {
            self.files.remove(&file.key);
        }
    }
}
