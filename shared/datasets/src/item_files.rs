//! The files with the items of a dataset, one after the other: those that are here, or those of a hub, of which only a few
//! are on disk at a time.

use crate::error::DatasetError;
use crate::hub::RemoteFile;
use crate::index::FileFact;
use crate::library::{Downloads, Library};
use crate::progress::Progress;
use crate::rows::{Input, RowFile};

/// Where the next file comes from.
pub(crate) enum ItemFiles<'a> {
    /// All of them are here.
    Here(std::vec::IntoIter<RowFile>),
    /// They are downloaded when it is their turn.
    Hub(HubFiles<'a>),
}

/// The files of a hub's dataset.
pub(crate) struct HubFiles<'a> {
    pub(crate) library: &'a Library,
    pub(crate) dataset: &'a str,
    pub(crate) files: std::vec::IntoIter<RemoteFile>,
    pub(crate) downloads: Downloads,
    pub(crate) progress: &'a dyn Progress,
    /// Facts of the files that were handed out or passed over.
    pub(crate) facts: Vec<FileFact>,
}

impl ItemFiles<'_> {
    /// The next file, and its name.
    pub(crate) async fn next(&mut self) -> Result<Option<RowFile>, DatasetError> {
        match self {
            Self::Here(files) => Ok(files.next()),
            Self::Hub(hub) => hub.next().await,
        }
    }

    /// Facts of the files whose rows are stored, and whether it is time to note that and to make room on disk.
    pub(crate) fn full(&self) -> Option<&[FileFact]> {
        match self {
            Self::Here(_) => None,
            Self::Hub(hub) => hub.is_full().then_some(hub.facts.as_slice()),
        }
    }

    /// Facts of all files that were handed out or passed over; none for those that were here.
    pub(crate) fn facts(&self) -> &[FileFact] {
        match self {
            Self::Here(_) => &[],
            Self::Hub(hub) => &hub.facts,
        }
    }

    /// Removes from disk what was handed out.
    pub(crate) fn make_room(&mut self) {
        if let Self::Hub(hub) = self {
            hub.downloads.remove_files();
        }
    }

    /// Passes over files that another process has stored. `false` when these are not the first ones.
    pub(crate) fn pass_over(&mut self, done: &[FileFact]) -> bool {
        match self {
            Self::Here(_) => done.is_empty(),
            Self::Hub(hub) => hub.pass_over(done),
        }
    }
}

impl HubFiles<'_> {
    async fn next(&mut self) -> Result<Option<RowFile>, DatasetError> {
        let Some(remote) = self.files.next() else { return Ok(None) };
        let (file, fact) =
            self.library.fetch_one(self.dataset, &remote, &mut self.downloads, self.progress).await?;
        let name = format!("{}/{}", self.dataset, remote.path);
        self.facts.push(fact);
        Ok(Some(RowFile { name, input: Input::File(file) }))
    }

    /// Whether there is more to come than may rest on disk.
    fn is_full(&self) -> bool {
        let more = !self.files.as_slice().is_empty();
        more && self.downloads.kept_bytes() >= self.library.config().kept_bytes_max
    }

    fn pass_over(&mut self, done: &[FileFact]) -> bool {
        let first = self.files.as_slice();
        let fits = |(fact, remote): (&FileFact, &RemoteFile)| {
            fact.name == remote.path
                && remote.sha256.as_ref().is_none_or(|sha256| *sha256 == fact.sha256)
                && remote.bytes.is_none_or(|bytes| bytes == fact.bytes)
        };
        if done.len() > first.len() || !done.iter().zip(first).all(fits) {
            return false;
        }
        for (fact, remote) in done.iter().zip(self.files.by_ref()) {
            self.downloads.skip(&remote, fact.bytes);
            self.facts.push(fact.clone());
        }
        true
    }
}
