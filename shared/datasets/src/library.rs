//! The library of datasets in the blob store, and downloads into it.

use std::fs::File;
use std::path::PathBuf;

use bench_blobs::Blobs;
use bench_domain::run::{DatasetChoice, DatasetUse};
use bench_items::{Item, Layout};

use crate::config::LibraryConfig;
use crate::error::DatasetError;
use crate::hub::{DownloadProgress, DownloadedFile, Hub, RemoteFile, remove, remove_leftovers};
use crate::index::{FileInfo, Index, load_item};
use crate::keys;
use crate::progress::Progress;

/// Access to the datasets in the blob store, and to the sources of further ones.
#[derive(Debug)]
pub struct Library {
    pub(crate) blobs: Blobs,
    pub(crate) hub: Hub,
    /// Client for files on GitHub; it uses the protocol of a hub, without a token.
    pub(crate) github: Hub,
    /// Client for the Python package index, likewise.
    pub(crate) pypi: Hub,
}

/// A dataset whose items can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedDataset {
    /// Record of the dataset for a run.
    pub used: DatasetUse,
    /// Index of the dataset.
    pub index: Index,
    /// Reason why demo rows are used instead of the requested dataset; `None` otherwise.
    pub demo_reason: Option<String>,
}

impl PreparedDataset {
    /// Adds `reason` to the notice that is shown with the dataset's results.
    pub(crate) fn new(index: Index, reason: Option<String>) -> Self {
        let mut used = index.dataset_use();
        used.note = match (reason, used.note) {
            (Some(reason), Some(note)) => Some(format!("{reason}; {note}")),
            (reason, note) => reason.or(note),
        };
        Self { used, index, demo_reason: None }
    }
}

impl Library {
    /// Creates a library that keeps its datasets in `blobs`.
    pub fn new(blobs: Blobs, config: LibraryConfig) -> Self {
        let github_url = config.github_raw_url.clone();
        let github = Hub::new(LibraryConfig { hub_url: github_url, token: None, ..config.clone() });
        let pypi_url = config.pypi_url.clone();
        let pypi = Hub::new(LibraryConfig { hub_url: pypi_url, token: None, ..config.clone() });
        Self { blobs, hub: Hub::new(config), github, pypi }
    }

    /// Checks without any request whether the dataset can be prepared: gated datasets need a token.
    /// Callers should check this before they queue anything.
    pub fn check(&self, layout: &dyn Layout, choice: &DatasetChoice) -> Result<(), DatasetError> {
        check(self.config(), layout, choice)
    }

    pub(crate) fn config(&self) -> &LibraryConfig {
        self.hub.config()
    }

    pub(crate) async fn fetch_one(
        &self,
        dataset: &str,
        remote: &RemoteFile,
        downloads: &mut Downloads,
        progress: &dyn Progress,
    ) -> Result<(File, FileInfo), DatasetError> {
        let got = self.hub.download(dataset, &downloads.folder, remote, &mut downloads.total, progress);
        let DownloadedFile { file, path, info } = got.await?;
        downloads.kept_bytes += info.bytes;
        downloads.paths.push(path);
        Ok((file, info))
    }

    pub(crate) fn download_folder(&self, id: &str, commit: &str) -> PathBuf {
        self.config().cache_dir.join("downloads").join(id.replace('/', "--")).join(commit)
    }

    /// Loads the item whose frame is at `offset`.
    ///
    /// # Errors
    /// Returns an error if the blob store fails, or if the frame isn't an item.
    pub async fn item(&self, index: &Index, offset: u64, length: u64) -> Result<Item, DatasetError> {
        load_item(&self.blobs, &index.data_key, offset, length).await
    }

    /// Returns whether the dataset has a support value of that name, without loading it.
    ///
    /// # Errors
    /// Returns an error if the blob store fails.
    pub async fn has_support(&self, index: &Index, name: &str) -> Result<bool, DatasetError> {
        if index.support.contains_key(name) {
            return Ok(true);
        }
        match &index.documents {
            Some(archive) => Ok(self.blobs.head(&keys::document(archive, name)).await?.is_some()),
            None => Ok(false),
        }
    }
}

/// Downloaded files on their way into the blob store.
pub(crate) struct Downloads {
    folder: PathBuf,
    total: DownloadProgress,
    pub(crate) infos: Vec<FileInfo>,
    paths: Vec<PathBuf>,
    /// Bytes of the files that are on disk.
    kept_bytes: u64,
}

impl Downloads {
    pub(crate) fn new(folder: PathBuf, total_bytes: Option<u64>) -> Self {
        Self {
            folder,
            total: DownloadProgress { done_bytes: 0, total_bytes },
            infos: Vec::new(),
            paths: Vec::new(),
            kept_bytes: 0,
        }
    }

    /// Returns the bytes of the files that are on disk.
    pub(crate) const fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Counts a file that is already in the blob store as downloaded, and removes what an earlier
    /// attempt left of it.
    pub(crate) fn skip(&mut self, remote: &RemoteFile, bytes: u64) {
        self.total.done_bytes += bytes;
        remove_leftovers(&self.folder, remote);
    }

    /// Removes the files, which are in the blob store now.
    pub(crate) fn remove(mut self) {
        self.remove_files();
    }

    /// Removes the files on disk, while more files follow.
    pub(crate) fn remove_files(&mut self) {
        for path in self.paths.drain(..) {
            remove(&path);
        }
        self.kept_bytes = 0;
        // Fails if another download uses the folder, which then stays.
        std::fs::remove_dir(&self.folder).ok();
    }
}

/// Checks whether a library with these settings can prepare a dataset; see [`Library::check`].
pub fn check(
    config: &LibraryConfig,
    layout: &dyn Layout,
    choice: &DatasetChoice,
) -> Result<(), DatasetError> {
    match (layout.spec().gate, choice) {
        (Some(gate), DatasetChoice::Hub) if config.token.is_none() => Err(DatasetError::Gated {
            dataset: dataset_name(layout),
            terms_url: gate.terms_url.to_owned(),
            token_given: false,
        }),
        _ => Ok(()),
    }
}

/// Returns the name of the dataset for messages.
fn dataset_name(layout: &dyn Layout) -> String {
    layout.spec().sources.first().map_or(layout.name(), |source| source.id).to_owned()
}
