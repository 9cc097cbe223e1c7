//! Preparation of a benchmark's dataset in the blob store.

use std::borrow::Cow;

use bench_domain::run::DatasetChoice;
use bench_items::{HubSource, Layout, Part};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::attachments::demo_file_info;
use crate::error::DatasetError;
use crate::hub::RemoteFile;
use crate::index::{FileInfo, Index};
use crate::item_files::{HubFiles, ItemFiles};
use crate::keys;
use crate::library::{Downloads, Library, PreparedDataset};
use crate::normalize::{DatasetParts, normalize};
use crate::progress::Progress;
use crate::rows::{Input, RowFile};

/// Source id of the demo rows, which are built into the program.
const DEMO: &str = "demo";
/// Source id of datasets that are built into the program as a whole.
const BUNDLED: &str = "bundled";

/// The revision that a branch pointed to when the hub was last asked.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BranchPointer {
    revision: String,
}

impl Library {
    /// Makes sure that the dataset is in the blob store, and returns its index.
    ///
    /// Several processes may call this at once: they write the same bytes. If the hub can't be
    /// reached, the last cached revision is used, otherwise the demo rows; `used.note` says so, and
    /// `demo_reason` says why the demo rows were used.
    ///
    /// # Errors
    /// [`DatasetError::Gated`] if terms must be accepted. Demo rows are never a silent substitute.
    pub async fn prepare(
        &self,
        layout: &dyn Layout,
        choice: &DatasetChoice,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        self.check(layout, choice)?;
        match choice {
            DatasetChoice::Demo | DatasetChoice::Hub if layout.spec().is_bundled() => {
                Box::pin(self.built_in(layout, BUNDLED, None, progress)).await
            }
            DatasetChoice::Demo => Box::pin(self.built_in(layout, DEMO, None, progress)).await,
            DatasetChoice::Local { revision } => Box::pin(self.local(layout, revision)).await,
            DatasetChoice::Hub => match Box::pin(self.hub_or_cached(layout, progress)).await {
                Err(DatasetError::Unreachable { hub, problem }) => {
                    let reason = format!(
                        "the hub at {hub} could not be reached ({problem}) and nothing of the dataset was cached"
                    );
                    let note = format!("demo data was used: {reason}");
                    tracing::warn!(
                        benchmark = layout.name(),
                        problem,
                        "Demo data is used because the hub can't be reached"
                    );
                    let prepared = Box::pin(self.built_in(layout, DEMO, Some(note), progress)).await?;
                    Ok(PreparedDataset { demo_reason: Some(reason), ..prepared })
                }
                other => other,
            },
        }
    }

    /// Prepares the dataset of the repository or the hub, or falls back to the cached one if the hub can't be reached or
    /// doesn't have it.
    pub(crate) async fn hub_or_cached(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        let prepared = match &layout.spec().repository {
            // Its revision never changes: a stored one needs no request.
            Some(source) => return self.prepare_from_repository(layout, source, progress).await,
            None => self.prepare_from_hub(layout, progress).await,
        };
        let error = match prepared {
            Err(error @ (DatasetError::Unreachable { .. } | DatasetError::NotFound { .. })) => error,
            other => return other,
        };
        let Some(index) = self.load_cached(layout).await? else { return Err(error) };
        let reason = format!("revision {} was cached earlier and used: {error}", index.revision);
        tracing::warn!(benchmark = layout.name(), %error, "A cached dataset is used");
        Ok(PreparedDataset::new(index, Some(reason)))
    }

    /// Prepares the dataset from the first source that the hub has.
    async fn prepare_from_hub(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        let mut missing = Vec::new();
        for source in layout.spec().sources {
            let mut asked = self.prepare_from_source(layout, source, progress).await;
            if let Err(DatasetError::Blob(error)) = &asked
                && error.is_upload_gone()
            {
                // The upload could not be resumed and was discarded; the second attempt starts from
                // the beginning.
                asked = self.prepare_from_source(layout, source, progress).await;
            }
            match asked {
                Ok(index) => return Ok(PreparedDataset::new(index, None)),
                Err(DatasetError::NotFound { dataset, problem }) => {
                    missing.push(format!("{dataset}: {problem}"))
                }
                Err(DatasetError::Gated { dataset, terms_url, token_given }) => {
                    let gate = layout.spec().gate.map(|gate| gate.terms_url.to_owned());
                    return Err(DatasetError::Gated {
                        dataset,
                        terms_url: gate.unwrap_or(terms_url),
                        token_given,
                    });
                }
                Err(DatasetError::Refused { dataset, status: Some(403), problem })
                    if layout.spec().gate.is_some() =>
                {
                    tracing::debug!(problem, "A gated dataset was refused");
                    let terms_url =
                        layout.spec().gate.map(|gate| gate.terms_url.to_owned()).unwrap_or_default();
                    return Err(DatasetError::Gated { dataset, terms_url, token_given: true });
                }
                Err(error) => return Err(error),
            }
        }
        let problem = if missing.is_empty() { "no hub has it".to_owned() } else { missing.join("; ") };
        Err(DatasetError::NotFound { dataset: layout.name().to_owned(), problem })
    }

    async fn prepare_from_source(
        &self,
        layout: &dyn Layout,
        source: &HubSource,
        progress: &dyn Progress,
    ) -> Result<Index, DatasetError> {
        let reference = self.config().revision_for(layout.name(), source.revision);
        if is_commit(reference)
            && let Some(index) = self.index(layout, &keys::revision(layout, source.id, reference)).await?
        {
            return Ok(index);
        }
        let repository = self.hub.get_repository(source.id, reference, progress).await?;
        let commit = repository.commit.clone();
        let folder = keys::revision(layout, source.id, &commit);
        if let Some(index) = self.index(layout, &folder).await? {
            self.store_reference(layout, source, reference, &commit).await?;
            return Ok(index);
        }
        let mut items = Vec::new();
        for part in source.items {
            items.extend(self.hub.list_files(&repository, *part, layout.files(), progress).await?);
        }
        let mut support = Vec::new();
        for part in source.support {
            support.push((*part, self.hub.list_files(&repository, *part, layout.files(), progress).await?));
        }
        let documents = match layout.documents() {
            Some(archive) => Some(self.hub_documents(source, &repository, archive, progress).await?),
            None => None,
        };
        let attachments = self.hub_attachments(layout, progress).await?;
        let wanted = || items.iter().chain(support.iter().flat_map(|(_, files)| files));
        let total_bytes = wanted().map(|file| file.bytes).sum();
        let mut downloads = Downloads::new(self.download_folder(source.id, &commit), total_bytes);
        let mut support_files = Vec::new();
        for (Part { split, .. }, files) in &support {
            let files = self.fetch(source.id, files, &mut downloads, progress).await?;
            support_files.push(((*split).to_owned(), files));
        }
        downloads.infos.extend(documents.iter().map(|documents| documents.archive.clone()));
        downloads.infos.extend(attachments.infos);
        let parts = DatasetParts {
            folder,
            id: source.id.to_owned(),
            source: "hub",
            revision: commit.clone(),
            note: None,
            infos: std::mem::take(&mut downloads.infos),
            support: support_files,
            inline_support: None,
            documents: documents.map(|documents| documents.archive.sha256),
            borrowed: Default::default(),
            demo_support: false,
            attachments: attachments.files,
        };
        let mut files = ItemFiles::Hub(HubFiles {
            library: self,
            dataset: source.id,
            files: items.into_iter(),
            downloads,
            progress,
            infos: Vec::new(),
        });
        let index = normalize(&self.blobs, layout, parts, &mut files, progress).await?;
        self.store_reference(layout, source, reference, &commit).await?;
        files.remove_downloaded();
        Ok(index)
    }

    async fn fetch(
        &self,
        dataset: &str,
        files: &[RemoteFile],
        downloads: &mut Downloads,
        progress: &dyn Progress,
    ) -> Result<Vec<RowFile>, DatasetError> {
        let mut fetched = Vec::with_capacity(files.len());
        for remote in files {
            let (file, info) = self.fetch_one(dataset, remote, downloads, progress).await?;
            fetched.push(RowFile { name: format!("{dataset}/{}", remote.path), input: Input::File(file) });
            downloads.infos.push(info);
        }
        Ok(fetched)
    }

    /// Stores the revision of a branch, for use while the hub can't be reached.
    async fn store_reference(
        &self,
        layout: &dyn Layout,
        source: &HubSource,
        reference: &str,
        commit: &str,
    ) -> Result<(), DatasetError> {
        let key = keys::reference(layout, source.id, reference);
        let pointer = BranchPointer { revision: commit.to_owned() };
        if self.blobs.get_json(&key).await? != Some(BranchPointer { revision: commit.to_owned() }) {
            self.blobs.put_json(&key, &pointer).await?;
        }
        Ok(())
    }

    /// Returns the last cached dataset of the first source that has one.
    pub(crate) async fn load_cached(&self, layout: &dyn Layout) -> Result<Option<Index>, DatasetError> {
        for source in layout.spec().sources {
            let reference = self.config().revision_for(layout.name(), source.revision);
            let revision = match is_commit(reference) {
                true => reference.to_owned(),
                false => {
                    let key = keys::reference(layout, source.id, reference);
                    let Some(BranchPointer { revision }) = self.blobs.get_json(&key).await? else { continue };
                    revision
                }
            };
            let folder = keys::revision(layout, source.id, &revision);
            if let Some(index) = self.index(layout, &folder).await? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Prepares the rows that are built into the program, under this source id.
    async fn built_in(
        &self,
        layout: &dyn Layout,
        source: &'static str,
        reason: Option<String>,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        let demo = layout.spec().demo;
        let mut texts = vec![("demo items".to_owned(), demo.items)];
        texts.extend(demo.support.iter().map(|(split, rows)| (format!("demo {split}"), *rows)));
        let mut digest = Sha256::new();
        let mut infos = Vec::with_capacity(texts.len());
        for (name, text) in &texts {
            digest.update(format!("{name}\t{}\n", text.len()));
            digest.update(text);
            let sha256 = hex::encode(Sha256::digest(text));
            infos.push(FileInfo { name: name.clone(), bytes: text.len() as u64, sha256 });
        }
        for spec in layout.attachments() {
            let FileInfo { name, sha256, .. } = demo_file_info(spec);
            digest.update(format!("{name}\t{sha256}\n"));
        }
        let revision = hex::encode(digest.finalize());
        let folder = keys::revision(layout, source, &revision);
        if let Some(index) = self.index(layout, &folder).await? {
            return Ok(PreparedDataset::new(index, reason));
        }
        let attachments = self.demo_attachments(layout).await?;
        infos.extend(attachments.infos);
        let rows =
            |name: String, text: &'static str| RowFile { name, input: Input::Text(Cow::Borrowed(text)) };
        let support = demo.support.iter();
        let parts = DatasetParts {
            folder,
            id: source.to_owned(),
            source,
            revision,
            note: None,
            infos,
            support: support
                .map(|(split, text)| ((*split).to_owned(), vec![rows(format!("demo {split}"), text)]))
                .collect(),
            inline_support: None,
            documents: None,
            borrowed: Default::default(),
            demo_support: false,
            attachments: attachments.files,
        };
        let mut files = ItemFiles::Local(vec![rows("demo items".to_owned(), demo.items)].into_iter());
        Ok(PreparedDataset::new(normalize(&self.blobs, layout, parts, &mut files, progress).await?, reason))
    }
}

/// Returns true if a revision is a full commit id, which always refers to the same content.
fn is_commit(reference: &str) -> bool {
    reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}
