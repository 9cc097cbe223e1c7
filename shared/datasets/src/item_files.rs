//! Iteration over the files that hold the items of a dataset: local files, or files of a hub that are downloaded one by
//! one.

use crate::error::DatasetError;
use crate::hub::RemoteFile;
use crate::index::FileInfo;
use crate::library::{Downloads, Library};
use crate::progress::Progress;
use crate::rows::{Input, RowFile};

/// Source of the files.
pub(crate) enum ItemFiles<'a> {
    /// All files are available locally.
    Local(std::vec::IntoIter<RowFile>),
    /// Each file is downloaded when it is needed.
    Hub(HubFiles<'a>),
}

/// The files of a hub's dataset.
pub(crate) struct HubFiles<'a> {
    pub(crate) library: &'a Library,
    pub(crate) dataset: &'a str,
    pub(crate) files: std::vec::IntoIter<RemoteFile>,
    pub(crate) downloads: Downloads,
    pub(crate) progress: &'a dyn Progress,
    /// Metadata of the files that were returned or skipped.
    pub(crate) infos: Vec<FileInfo>,
}

impl ItemFiles<'_> {
    /// Returns the next file.
    pub(crate) async fn next(&mut self) -> Result<Option<RowFile>, DatasetError> {
        match self {
            Self::Local(files) => Ok(files.next()),
            Self::Hub(hub) => hub.next().await,
        }
    }

    /// If it is time for a checkpoint and for freeing disk space, returns the metadata of the files whose rows are
    /// stored.
    pub(crate) fn checkpoint_due(&self) -> Option<&[FileInfo]> {
        match self {
            Self::Local(_) => None,
            Self::Hub(hub) => hub.is_full().then_some(hub.infos.as_slice()),
        }
    }

    /// Returns the metadata of all files that were returned or skipped; empty for local files.
    pub(crate) fn infos(&self) -> &[FileInfo] {
        match self {
            Self::Local(_) => &[],
            Self::Hub(hub) => &hub.infos,
        }
    }

    /// Removes the files that were returned from disk.
    pub(crate) fn remove_downloaded(&mut self) {
        if let Self::Hub(hub) = self {
            hub.downloads.remove_files();
        }
    }

    /// Skips files whose rows another process has stored. Returns `false` if they aren't the first files.
    pub(crate) fn skip_stored(&mut self, done: &[FileInfo]) -> bool {
        match self {
            Self::Local(_) => done.is_empty(),
            Self::Hub(hub) => hub.skip_stored(done),
        }
    }
}

impl HubFiles<'_> {
    async fn next(&mut self) -> Result<Option<RowFile>, DatasetError> {
        let Some(remote) = self.files.next() else { return Ok(None) };
        let (file, info) =
            self.library.fetch_one(self.dataset, &remote, &mut self.downloads, self.progress).await?;
        let name = format!("{}/{}", self.dataset, remote.path);
        self.infos.push(info);
        Ok(Some(RowFile { name, input: Input::File(file) }))
    }

    /// Returns true if there are more files and the limit for files on disk is reached.
    fn is_full(&self) -> bool {
        let more = !self.files.as_slice().is_empty();
        more && self.downloads.kept_bytes() >= self.library.config().kept_bytes_max
    }

    fn skip_stored(&mut self, done: &[FileInfo]) -> bool {
        let first = self.files.as_slice();
        let matches = |(info, remote): (&FileInfo, &RemoteFile)| {
            info.name == remote.path
                && remote.sha256.as_ref().is_none_or(|sha256| *sha256 == info.sha256)
                && remote.bytes.is_none_or(|bytes| bytes == info.bytes)
        };
        if done.len() > first.len() || !done.iter().zip(first).all(matches) {
            return false;
        }
        for (info, remote) in done.iter().zip(self.files.by_ref()) {
            self.downloads.skip(&remote, info.bytes);
            self.infos.push(info.clone());
        }
        true
    }
}
