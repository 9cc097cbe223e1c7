//! Documents that prompts need, from an archive next to the items.
//!
//! Each document is a support value. Documents are stored under the digest of their archive, so that revisions of a
//! dataset with the same archive share them.
//!
//! | object | holds |
//! | --- | --- |
//! | `datasets/documents/SHA256/…` | one document each: a JSON string, or `{"undecodable": "why"}` |
//! | `datasets/documents/SHA256/list.json.zst` | list of the documents, written last |

mod archive;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use bench_blobs::Blobs;
use bench_items::{DocumentArchive, HubSource, Layout, undecodable_document};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::hub::{RemoteFile, Repository, hash};
use crate::index::{FileInfo, SupportEntry};
use crate::keys;
use crate::library::{Downloads, Library};
use crate::progress::{Progress, Step};
use archive::Document;

/// Version of the list format; lists of other versions are rebuilt.
const FORMAT: u32 = 1;
/// Number of documents between two progress reports.
const DOCUMENTS_PER_STEP: usize = 10;

/// Contents of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DocumentList {
    format: u32,
    /// Prefix of the members' names.
    prefix: String,
    /// Metadata of the archive.
    pub(crate) archive: FileInfo,
    documents: BTreeMap<String, SupportEntry>,
    /// Names of the documents that aren't valid text.
    undecodable: BTreeSet<String>,
}

impl Library {
    /// Returns the documents of a layout's archive, from the blob store or from the source of the items.
    pub(crate) async fn hub_documents(
        &self,
        source: &HubSource,
        repository: &Repository,
        archive: &DocumentArchive,
        progress: &dyn Progress,
    ) -> Result<DocumentList, DatasetError> {
        if let Some(list) = load_list(&self.blobs, archive.sha256, archive.prefix).await? {
            return Ok(list);
        }
        // With the pinned digest, a leftover of an earlier attempt is used only if it is this archive.
        let remote = RemoteFile { sha256: Some(archive.sha256.to_owned()), ..repository.file(archive.path)? };
        let mut downloads = Downloads::new(self.download_folder(source.id, &repository.commit), remote.bytes);
        let (file, info) = self.fetch_one(source.id, &remote, &mut downloads, progress).await?;
        if info.sha256 != archive.sha256 {
            downloads.remove();
            return Err(DatasetError::Checksum {
                file: format!("{}/{}", source.id, archive.path),
                problem: format!("its SHA-256 is {} instead of {}", info.sha256, archive.sha256),
            });
        }
        let what = format!("{}/{}", source.id, archive.path);
        let list = import_archive(&self.blobs, &what, file, info, archive.prefix, progress).await;
        downloads.remove();
        list
    }

    /// Returns the documents of a local archive.
    pub(crate) async fn local_documents(
        &self,
        path: &Path,
        prefix: &str,
        progress: &dyn Progress,
    ) -> Result<DocumentList, DatasetError> {
        let open = || File::open(path).map_err(|error| DatasetError::disk("read", path, error));
        let (sha256, bytes) = hash(open()?, path).await?;
        if let Some(list) = load_list(&self.blobs, &sha256, prefix).await? {
            return Ok(list);
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let info = FileInfo { name: name.clone(), bytes, sha256 };
        import_archive(&self.blobs, &name, open()?, info, prefix, progress).await
    }

    /// Returns the documents that a layout pins, independently of the items: from the blob store, otherwise from the
    /// first source that has them.
    pub(crate) async fn pinned_documents(
        &self,
        layout: &dyn Layout,
        archive: &DocumentArchive,
        progress: &dyn Progress,
    ) -> Result<DocumentList, DatasetError> {
        if let Some(list) = load_list(&self.blobs, archive.sha256, archive.prefix).await? {
            return Ok(list);
        }
        let mut last = DatasetError::not_found(layout.name(), "no hub has it");
        for source in layout.spec().sources {
            let reference = self.config().revision_for(layout.name(), source.revision);
            let found = match self.hub.get_repository(source.id, reference, progress).await {
                Ok(repository) => self.hub_documents(source, &repository, archive, progress).await,
                Err(error) => Err(error),
            };
            match found {
                Err(error @ DatasetError::NotFound { .. }) => last = error,
                other => return other,
            }
        }
        Err(last)
    }
}

async fn load_list(blobs: &Blobs, sha256: &str, prefix: &str) -> Result<Option<DocumentList>, DatasetError> {
    let list: Option<DocumentList> = match blobs.get_json(&keys::document_list(sha256)).await {
        Err(bench_blobs::BlobError::Damaged { key, problem }) => {
            tracing::warn!(key, problem, "A list of documents can't be read and is rebuilt");
            None
        }
        other => other?,
    };
    Ok(list.filter(|list| list.format == FORMAT && list.prefix == prefix))
}

/// Stores the documents of an archive. The list is written last, so that a partial import isn't visible.
async fn import_archive(
    blobs: &Blobs,
    what: &str,
    file: File,
    info: FileInfo,
    prefix: &str,
    progress: &dyn Progress,
) -> Result<DocumentList, DatasetError> {
    let mut list = DocumentList {
        format: FORMAT,
        prefix: prefix.to_owned(),
        archive: info,
        documents: BTreeMap::new(),
        undecodable: BTreeSet::new(),
    };
    let mut members = archive::read(what.to_owned(), file, prefix);
    while let Some(member) = members.recv().await {
        let Document { names, text } = member?;
        let value = match &text {
            Ok(text) => json!(text),
            Err(reason) => undecodable_document(reason),
        };
        let content = value.to_string();
        let sha256 = hex::encode(Sha256::digest(&content));
        for name in names {
            // Two ambiguous names may decode to the same text; the first member keeps it.
            if list.documents.contains_key(&name) {
                continue;
            }
            blobs.put_json(&keys::document(&list.archive.sha256, &name), &value).await?;
            if text.is_err() {
                list.undecodable.insert(name.clone());
            }
            list.documents.insert(name, SupportEntry { sha256: sha256.clone(), bytes: content.len() as u64 });
            if list.documents.len().is_multiple_of(DOCUMENTS_PER_STEP) {
                progress.step(Step::Unpacking { documents: list.documents.len() as u64 });
            }
        }
    }
    if list.documents.is_empty() {
        return Err(DatasetError::content(what, None, None, format!("it has no member under `{prefix}`")));
    }
    blobs.put_json(&keys::document_list(&list.archive.sha256), &list).await?;
    let (documents, undecodable) = (list.documents.len(), list.undecodable.len());
    tracing::info!(archive = what, documents, undecodable, "Imported {documents} documents of {what}");
    Ok(list)
}
