//! Datasets whose items are in files of a repository on GitHub, with pinned digests.

use bench_items::{Layout, PinnedFile, RepositorySource};
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::index::FileInfo;
use crate::item_files::ItemFiles;
use crate::keys;
use crate::library::{Library, PreparedDataset};
use crate::normalize::{DatasetParts, normalize};
use crate::official_files::named;
use crate::progress::{Progress, Step};
use crate::rows::{Input, RowFile};

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Library {
    /// Prepares the dataset from files of a repository, unless they are stored.
    pub(crate) async fn prepare_from_repository(
        &self,
        layout: &dyn Layout,
        source: &RepositorySource,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        let repository = source.repository;
        let revision = self.config().revision_for(layout.name(), Some(source.revision));
        let folder = keys::revision(layout, repository, revision);
        if let Some(index) = self.index(layout, &folder).await? {
            return Ok(PreparedDataset::new(index, None));
        }
        progress.step(Step::Resolving { dataset: repository });
        let (mut infos, mut texts) = (Vec::new(), Vec::new());
        for file in source.files {
            let content = self.download_pinned(repository, revision, file, progress).await?;
            infos.push(FileInfo {
                name: file.path.to_owned(),
                bytes: content.len() as u64,
                sha256: file.sha256.to_owned(),
            });
            texts.push(content);
        }
        let rows = layout
            .repository_rows(&texts)
            .map_err(|error| DatasetError::content(repository, None, error.column, error.problem))?;
        drop(texts);
        let mut lines = String::new();
        for row in rows {
            lines.push_str(&serde_json::Value::Object(row).to_string());
            lines.push('\n');
        }
        let parts = DatasetParts {
            folder,
            id: repository.to_owned(),
            source: "hub",
            revision: revision.to_owned(),
            note: None,
            infos,
            support: Vec::new(),
            inline_support: None,
            documents: None,
            borrowed: Default::default(),
            demo_support: false,
            attachments: Default::default(),
        };
        let file = RowFile { name: repository.to_owned(), input: Input::Text(lines.into()) };
        let mut files = ItemFiles::Local(vec![file].into_iter());
        Ok(PreparedDataset::new(normalize(&self.blobs, layout, parts, &mut files, progress).await?, None))
    }

    /// Downloads a file, and checks its digest.
    async fn download_pinned(
        &self,
        repository: &str,
        revision: &str,
        file: &PinnedFile,
        progress: &dyn Progress,
    ) -> Result<String, DatasetError> {
        let PinnedFile { path, sha256 } = *file;
        let parts: Vec<&str> = repository.split('/').chain([revision]).chain(path.split('/')).collect();
        progress.step(Step::Downloading { file: path, done_bytes: 0, total_bytes: None });
        let content = self.github.download_small_file(repository, &parts, FILE_BYTES_MAX, progress).await;
        let content = content.map_err(|error| named(error, path))?;
        let found = hex::encode(Sha256::digest(&content));
        if found != sha256 {
            let problem = format!("its SHA-256 is {found} instead of {sha256}");
            return Err(DatasetError::Checksum { file: format!("{repository}@{revision}/{path}"), problem });
        }
        String::from_utf8(content).map_err(|_| DatasetError::content(path, None, None, "it is not UTF-8"))
    }
}
