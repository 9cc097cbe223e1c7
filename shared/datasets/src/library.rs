//! The datasets of the blob store, and downloads on their way into it.

use std::fs::File;
use std::path::PathBuf;

use bench_blobs::Blobs;
use bench_domain::run::{DatasetChoice, DatasetUse};
use bench_items::{Item, Layout};

use crate::config::LibraryConfig;
use crate::error::DatasetError;
use crate::hub::{Fetched, Hub, RemoteFile, Total, remove, remove_download};
use crate::index::{FileFact, Index, load_item};
use crate::keys;
use crate::progress::Progress;

/// The datasets of the blob store, and the ways to get more of them.
#[derive(Debug)]
pub struct Library {
    pub(crate) blobs: Blobs,
    pub(crate) hub: Hub,
    /// Speaks to GitHub as to a hub, without the token.
    pub(crate) github: Hub,
}

/// A dataset whose items can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// What a run notes of it.
    pub used: DatasetUse,
    /// What is in it.
    pub index: Index,
}

impl Prepared {
    /// A dataset, with a further reason to be told wherever its results are shown.
    pub(crate) fn new(index: Index, reason: Option<String>) -> Self {
        let mut used = index.dataset_use();
        used.note = match (reason, used.note) {
            (Some(reason), Some(note)) => Some(format!("{reason}; {note}")),
            (reason, note) => reason.or(note),
        };
        Self { used, index }
    }
}

impl Library {
    /// A library that keeps its datasets in `blobs`.
    pub fn new(blobs: Blobs, config: LibraryConfig) -> Self {
        let github_url = config.github_raw_url.clone();
        let github = Hub::new(LibraryConfig { hub_url: github_url, token: None, ..config.clone() });
        Self { blobs, hub: Hub::new(config), github }
    }

    /// Whether the dataset can be prepared at all, as far as that is known without a request: gated
    /// ones need a token. To be asked before anything is queued.
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
    ) -> Result<(File, FileFact), DatasetError> {
        let got = self.hub.download(dataset, &downloads.folder, remote, &mut downloads.total, progress);
        let Fetched { file, path, fact } = got.await?;
        downloads.kept_bytes += fact.bytes;
        downloads.paths.push(path);
        Ok((file, fact))
    }

    pub(crate) fn download_folder(&self, id: &str, commit: &str) -> PathBuf {
        self.config().cache_dir.join("downloads").join(id.replace('/', "--")).join(commit)
    }

    /// Loads an item of a dataset, by where its frame is.
    ///
    /// # Errors
    /// When the blob store fails, or when the frame holds no item.
    pub async fn item(&self, index: &Index, offset: u64, length: u64) -> Result<Item, DatasetError> {
        load_item(&self.blobs, &index.data_key, offset, length).await
    }

    /// Returns whether the dataset has a support value of that name, without loading it.
    ///
    /// # Errors
    /// When the blob store fails.
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

/// Files on their way into the blob store.
pub(crate) struct Downloads {
    folder: PathBuf,
    total: Total,
    pub(crate) facts: Vec<FileFact>,
    paths: Vec<PathBuf>,
    /// Bytes of the files that are on disk.
    kept_bytes: u64,
}

impl Downloads {
    pub(crate) fn new(folder: PathBuf, total_bytes: Option<u64>) -> Self {
        Self {
            folder,
            total: Total { done_bytes: 0, total_bytes },
            facts: Vec::new(),
            paths: Vec::new(),
            kept_bytes: 0,
        }
    }

    /// Bytes of the files that are on disk.
    pub(crate) const fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Counts a file as had that is in the blob store, and removes what an earlier try left of it.
    pub(crate) fn skip(&mut self, remote: &RemoteFile, bytes: u64) {
        self.total.done_bytes += bytes;
        remove_download(&self.folder, remote);
    }

    /// Removes what is in the blob store now.
    pub(crate) fn remove(mut self) {
        self.remove_files();
    }

    /// The same, with more to come.
    pub(crate) fn remove_files(&mut self) {
        for path in self.paths.drain(..) {
            remove(&path);
        }
        self.kept_bytes = 0;
        // Stays when something else is being downloaded into it.
        std::fs::remove_dir(&self.folder).ok();
    }
}

/// Whether a library with these settings can prepare a dataset at all; see [`Library::check`].
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

/// What the dataset is called in front of a person.
fn dataset_name(layout: &dyn Layout) -> String {
    layout.spec().sources.first().map_or(layout.name(), |source| source.id).to_owned()
}
