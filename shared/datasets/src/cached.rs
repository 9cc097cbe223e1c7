//! Listing and removal of the datasets in the blob store.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::DatasetError;
use crate::index::Index;
use crate::keys;
use crate::library::Library;

/// A dataset in the blob store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedDataset {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Id at the hub, the local file's name, or `demo`.
    pub id: String,
    /// Variant of the layout that made it; empty for the default.
    pub variant: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// Revision.
    pub revision: String,
    /// SHA-256 of the content.
    pub digest: String,
    /// Number of items.
    pub items: u64,
    /// Bytes of all its objects, including documents and files for jobs, which other datasets may share.
    pub bytes: u64,
    /// Sizes in bytes of the files that jobs need, by name.
    pub attachments: BTreeMap<String, u64>,
    /// Notice to show with results of this dataset.
    pub note: Option<String>,
}

impl Library {
    /// Lists all datasets in the blob store, by benchmark, source and revision.
    pub async fn list_cached(&self) -> Result<Vec<CachedDataset>, DatasetError> {
        let mut listed = Vec::new();
        let StoredFolders { datasets, documents } = self.folders(keys::ROOT).await?;
        for (folder, bytes) in datasets {
            // The index may have been removed meanwhile, or belong to another version of the program.
            let Some(index) = Index::load(&self.blobs, &folder).await? else { continue };
            let archive = index.documents.as_deref().map(keys::documents);
            let shared = archive.and_then(|archive| documents.get(&archive)).copied().unwrap_or_default();
            let attachments: BTreeMap<_, _> =
                index.attachments.iter().map(|(name, file)| (name.clone(), file.bytes)).collect();
            // Several names may refer to one file.
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

    /// Removes the datasets of a benchmark: all of them, or those whose revision starts with `revision`. Returns their
    /// number. Runs that refer to them can't load their items any more. Documents and files for jobs are removed
    /// together with the last dataset that uses them.
    pub async fn remove(&self, benchmark: &str, revision: Option<&str>) -> Result<u64, DatasetError> {
        let mut removed = 0;
        let mut shared = SharedObjects::default();
        for folder in self.folders(&format!("{}{benchmark}/", keys::ROOT)).await?.datasets.into_keys() {
            let own = folder.rsplit('/').next().unwrap_or_default();
            if !own.starts_with(revision.unwrap_or_default()) {
                continue;
            }
            if let Some(index) = Index::load(&self.blobs, &folder).await? {
                shared.add(index);
            }
            // Delete the index first, so that a partially removed dataset isn't visible.
            self.blobs.delete(&keys::index(&folder)).await?;
            self.blobs.delete_prefix(&format!("{folder}/")).await?;
            removed += 1;
        }
        if shared.archives.is_empty() && shared.files.is_empty() {
            return Ok(removed);
        }
        for folder in self.folders(keys::ROOT).await?.datasets.into_keys() {
            if let Some(kept) = Index::load(&self.blobs, &folder).await? {
                shared.remove_used(&kept);
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

    /// Lists the folders under a prefix with their sizes.
    async fn folders(&self, prefix: &str) -> Result<StoredFolders, DatasetError> {
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
        Ok(StoredFolders { datasets: sizes, documents })
    }
}

/// Sizes of folders, in bytes.
struct StoredFolders {
    /// Folders of finished datasets.
    datasets: BTreeMap<String, u64>,
    /// Folders of archives' documents.
    documents: BTreeMap<String, u64>,
}

/// Objects that several datasets may share.
#[derive(Default)]
struct SharedObjects {
    /// Digests of document archives.
    archives: BTreeSet<String>,
    /// Keys of files that jobs need.
    files: BTreeSet<String>,
}

impl SharedObjects {
    /// Adds the shared objects of a removed dataset.
    fn add(&mut self, index: Index) {
        self.archives.extend(index.documents);
        self.files.extend(index.attachments.into_values().map(|file| file.key));
    }

    /// Removes the shared objects that a remaining dataset still uses.
    fn remove_used(&mut self, index: &Index) {
        if let Some(archive) = &index.documents {
            self.archives.remove(archive);
        }
        for file in index.attachments.values() {
            self.files.remove(&file.key);
        }
    }
}
