//! Files beside the items that jobs in sandboxes need.
//!
//! They are kept as they are, under their own digest, so that datasets and their revisions share them. A job reads them
//! piece by piece: nobody holds one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bench_blobs::{BlobError, Blobs};
use bench_domain::StoredFile;
use bench_items::{AttachmentSpec, Layout};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::hub::{RemoteFile, hash};
use crate::index::FileFact;
use crate::keys;
use crate::library::{Downloads, Library};
use crate::progress::Progress;
use crate::rows::{self, Input, RowFile};

/// Bytes that are read at once on the way into the store.
const PIECE_BYTES: usize = 1024 * 1024;
/// Upper bound of one call of [`read_attachment`].
pub const ATTACHMENT_READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Different files that the rows of a dataset may name.
const NAMED_MAX: usize = 256;
/// Bytes at the beginning of a file that tell its kind, at most.
const SIGNATURE_BYTES_MAX: u64 = 64;
/// What stands in a folder for a file that Git LFS keeps elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs";
/// Entries of a folder among which a file is looked for.
const ENTRIES_MAX: usize = 100_000;
/// What they are in the store: bytes, whatever their form.
const CONTENT_TYPE: &str = "application/octet-stream";

/// Files by name, and what was read to make them.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    pub(crate) files: BTreeMap<String, StoredFile>,
    pub(crate) facts: Vec<FileFact>,
}

impl Attachments {
    /// What they add to the digest of a dataset: nothing where there are none.
    pub(crate) fn update(files: &BTreeMap<String, StoredFile>, digest: &mut Sha256) {
        for (name, file) in files {
            digest.update(format!("attachment\t{name}\t{}\n", file.sha256));
        }
    }
}

/// Bytes of a stored file from `offset`: `length` of them, fewer at its end, none behind it.
///
/// # Errors
/// When the store fails or the object is shorter than it was, and for more than [`ATTACHMENT_READ_BYTES_MAX`].
pub async fn read_attachment(
    blobs: &Blobs,
    file: &StoredFile,
    offset: u64,
    length: u64,
) -> Result<Bytes, DatasetError> {
    if length > ATTACHMENT_READ_BYTES_MAX {
        let what = format!("a piece of `{}`", file.key);
        return Err(DatasetError::TooLarge { what, limit_bytes: ATTACHMENT_READ_BYTES_MAX });
    }
    let length = length.min(file.bytes.saturating_sub(offset));
    Ok(blobs.get_range(&file.key, offset, length).await?)
}

impl Library {
    /// The files that a layout names, at the hub.
    pub(crate) async fn attachments_of_hub(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let (file, fact) = self.attachment_of_hub(layout, spec, progress).await?;
            found.files.insert(spec.name.to_owned(), file);
            found.facts.push(fact);
        }
        Ok(found)
    }

    async fn attachment_of_hub(
        &self,
        layout: &dyn Layout,
        spec: &AttachmentSpec,
        progress: &dyn Progress,
    ) -> Result<(StoredFile, FileFact), DatasetError> {
        let reference = spec.revision.unwrap_or("main");
        let repository = self.hub.repository(spec.id, reference, progress).await?;
        let remote = repository.file(spec.path)?;
        // Whoever must accept terms first cannot be sent there without a token.
        let url = layout.spec().gate.is_none().then(|| remote.url.to_string());
        if let RemoteFile { sha256: Some(sha256), bytes: Some(bytes), .. } = &remote
            && let Some(file) = stored(&self.blobs, sha256, *bytes).await?
        {
            let fact = FileFact { name: spec.path.to_owned(), bytes: *bytes, sha256: sha256.clone() };
            return Ok((StoredFile { url, ..file }, fact));
        }
        let mut downloads = Downloads::new(self.download_folder(spec.id, &repository.commit), remote.bytes);
        let (mut file, fact) = self.fetch_one(spec.id, &remote, &mut downloads, progress).await?;
        check_signature(spec, &mut file)
            .map_err(|error| DatasetError::content(spec.path, None, None, error.to_string()))?
            .map_err(|problem| DatasetError::content(spec.path, None, None, problem))?;
        let file = put(&self.blobs, spec.path, file, &fact.sha256, fact.bytes).await?;
        downloads.remove();
        Ok((StoredFile { url, ..file }, fact))
    }

    /// The files beside local rows: those that rows name, else the only one of its kind, else that of the hub.
    pub(crate) async fn attachments_beside(
        &self,
        layout: &dyn Layout,
        path: &Path,
        files: &[(String, PathBuf)],
        progress: &dyn Progress,
    ) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let named = named(spec, files).await?;
            let folder = folder_of(path);
            let beside = match named.is_empty() {
                true => only_one(spec, &folder)?.into_iter().collect(),
                false => named.iter().map(|name| folder.join(name)).collect::<Vec<_>>(),
            };
            let Some(first) = beside.first() else {
                let (file, fact) = self.attachment_in_place(layout, spec, path, progress).await?;
                found.files.insert(spec.name.to_owned(), file);
                found.facts.push(fact);
                continue;
            };
            let several = beside.len() > 1;
            for own in &beside {
                let (file, fact) = take_in(&self.blobs, spec, own).await?;
                found.facts.push(fact.clone());
                if several {
                    found.files.insert(fact.name, file.clone());
                }
                if own == first {
                    found.files.insert(spec.name.to_owned(), file);
                }
            }
        }
        Ok(found)
    }

    /// The one of the hub, for rows that bring none.
    async fn attachment_in_place(
        &self,
        layout: &dyn Layout,
        spec: &AttachmentSpec,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<(StoredFile, FileFact), DatasetError> {
        match self.attachment_of_hub(layout, spec, progress).await {
            Err(error @ (DatasetError::Blob(_) | DatasetError::Disk { .. })) => Err(error),
            Err(error) => Err(DatasetError::Path {
                path: path.display().to_string(),
                problem: format!(
                    "there is no {} file beside it, and no row names one in `{}`; that of the hub ({}) could not be had: \
                     {error}",
                    spec.ending,
                    column(spec),
                    spec.path
                ),
            }),
            found => found,
        }
    }

    /// Those of the demo items.
    pub(crate) async fn demo_attachments(&self, layout: &dyn Layout) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let fact = demo_fact(spec);
            let file = match stored(&self.blobs, &fact.sha256, fact.bytes).await? {
                Some(file) => file,
                None => {
                    let key = keys::file(&fact.sha256);
                    self.blobs.put(&key, Bytes::from_static(spec.demo), CONTENT_TYPE).await?;
                    StoredFile { key, sha256: fact.sha256.clone(), bytes: fact.bytes, url: None }
                }
            };
            found.files.insert(spec.name.to_owned(), file);
            found.facts.push(fact);
        }
        Ok(found)
    }
}

/// What the file of the demo items is.
pub(crate) fn demo_fact(spec: &AttachmentSpec) -> FileFact {
    let sha256 = hex::encode(Sha256::digest(spec.demo));
    FileFact { name: format!("demo {}", spec.name), bytes: spec.demo.len() as u64, sha256 }
}

/// Why a file that jobs need cannot be taken for the items themselves.
pub(crate) fn is_no_items(layout: &dyn Layout, path: &Path) -> Option<DatasetError> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let spec = layout.attachments().iter().find(|spec| name.ends_with(spec.ending))?;
    path.is_file().then(|| DatasetError::Path {
        path: path.display().to_string(),
        problem: format!(
            "it holds no items, only what jobs need beside them: give the file with the items (such as JSON lines) or a \
             folder with both; the {} file is found beside the items, by name where rows have a column `{}`",
            spec.ending,
            column(spec)
        ),
    })
}

/// The column in which a row may name its file: `h5_file` for `.h5`.
fn column(spec: &AttachmentSpec) -> String {
    format!("{}_file", spec.ending.trim_start_matches('.'))
}

/// The folder of a dataset's file, or the one that was given.
fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("."),
    }
}

/// The files that rows name, each once, in the order of the rows.
async fn named(spec: &AttachmentSpec, files: &[(String, PathBuf)]) -> Result<Vec<String>, DatasetError> {
    let column = column(spec);
    let mut names: Vec<String> = Vec::new();
    for (name, path) in files {
        let file = File::open(path).map_err(|error| DatasetError::disk("read", path, error))?;
        let mut rows = rows::read(RowFile { name: name.clone(), input: Input::File(file) });
        while let Some(batch) = rows.recv().await {
            for numbered in batch?.iter() {
                let refused = |problem: &str| {
                    DatasetError::content(name, numbered.number, Some(column.clone()), problem)
                };
                match numbered.row.get(&column) {
                    None | Some(Value::Null) => {}
                    Some(Value::String(own)) if own.is_empty() || names.contains(own) => {}
                    Some(Value::String(own)) if is_file_name(own) && names.len() < NAMED_MAX => {
                        names.push(own.clone());
                    }
                    Some(Value::String(own)) if is_file_name(own) => {
                        return Err(refused("the rows name too many files"));
                    }
                    Some(_) => return Err(refused("it names no file beside this one")),
                }
            }
        }
    }
    Ok(names)
}

/// Whether it is the name of a file in the same folder.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none();
    plain && !name.contains(['/', '\\', '\0'])
}

/// The only file of that kind in a folder.
fn only_one(spec: &AttachmentSpec, folder: &Path) -> Result<Option<PathBuf>, DatasetError> {
    let failed = |problem: String| DatasetError::Path { path: folder.display().to_string(), problem };
    let mut found = None;
    for entry in std::fs::read_dir(folder).map_err(|error| failed(error.to_string()))?.take(ENTRIES_MAX) {
        let entry = entry.map_err(|error| failed(error.to_string()))?.path();
        let name = entry.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if name.ends_with(spec.ending) && entry.is_file() && found.replace(entry).is_some() {
            return Err(failed(format!(
                "it holds more than one {} file; name the right one in the rows' column `{}`",
                spec.ending,
                column(spec)
            )));
        }
    }
    Ok(found)
}

/// Whether a file begins as its kind does; else what is wrong with it.
fn check_signature(spec: &AttachmentSpec, file: &mut File) -> std::io::Result<Result<(), String>> {
    std::io::Seek::rewind(file)?;
    let mut begin = Vec::new();
    file.by_ref().take(SIGNATURE_BYTES_MAX).read_to_end(&mut begin)?;
    std::io::Seek::rewind(file)?;
    let ending = spec.ending;
    Ok(if begin.starts_with(spec.signature) {
        Ok(())
    } else if begin.starts_with(LFS_POINTER) {
        Err(format!("it only points to a {ending} file that Git LFS keeps: fetch it with `git lfs pull`"))
    } else {
        Err(format!("it is no {ending} file: it does not begin as one, and may be broken or something else"))
    })
}

/// Takes in a file of this machine.
async fn take_in(
    blobs: &Blobs,
    spec: &AttachmentSpec,
    path: &Path,
) -> Result<(StoredFile, FileFact), DatasetError> {
    let failed = |error: std::io::Error| DatasetError::Path {
        path: path.display().to_string(),
        problem: error.to_string(),
    };
    let mut file = File::open(path).map_err(failed)?;
    check_signature(spec, &mut file)
        .map_err(failed)?
        .map_err(|problem| failed(std::io::Error::other(problem)))?;
    let copy = file.try_clone().map_err(failed)?;
    let (sha256, bytes) = hash(copy, path).await?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fact = FileFact { name: name.clone(), bytes, sha256 };
    let stored = match stored(blobs, &fact.sha256, bytes).await? {
        Some(stored) => stored,
        None => put(blobs, &name, file, &fact.sha256, bytes).await?,
    };
    Ok((stored, fact))
}

/// The object of that content, if it is there.
async fn stored(blobs: &Blobs, sha256: &str, bytes: u64) -> Result<Option<StoredFile>, DatasetError> {
    let key = keys::file(sha256);
    let there = blobs.head(&key).await?.is_some_and(|found| found.length == bytes);
    Ok(there.then(|| StoredFile { key, sha256: sha256.to_owned(), bytes, url: None }))
}

/// Stores a file piece by piece. It is seen only whole, and only if it still is what was hashed.
async fn put(
    blobs: &Blobs,
    what: &str,
    file: File,
    sha256: &str,
    bytes: u64,
) -> Result<StoredFile, DatasetError> {
    let key = keys::file(sha256);
    let mut upload = blobs.upload(&key, CONTENT_TYPE);
    let mut pieces = pieces(file);
    let mut digest = Sha256::new();
    let mut sent = Ok(());
    while let Some(piece) = pieces.recv().await {
        sent = match piece {
            Ok(piece) => {
                digest.update(&piece);
                upload.write(&piece).await.map_err(DatasetError::from)
            }
            Err(error) => Err(DatasetError::content(what, None, None, error.to_string())),
        };
        if sent.is_err() {
            break;
        }
    }
    if sent.is_ok() && hex::encode(digest.finalize()) != sha256 {
        sent = Err(DatasetError::Checksum {
            file: what.to_owned(),
            problem: "it changed while it was being stored".to_owned(),
        });
    }
    if let Err(error) = sent {
        if let Err(abort) = upload.abort().await {
            tracing::warn!(error = %abort, "An unfinished upload could not be removed");
        }
        return Err(error);
    }
    let length = upload.finish().await?;
    if length != bytes {
        return Err(BlobError::Damaged { key, problem: format!("{length} of {bytes} bytes arrived") }.into());
    }
    tracing::info!(attachment = what, bytes, "Took in {what}");
    Ok(StoredFile { key, sha256: sha256.to_owned(), bytes, url: None })
}

/// The pieces of a file, read on a thread of its own.
fn pieces(mut file: File) -> tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = std::io::Seek::rewind(&mut file) {
            sender.blocking_send(Err(error)).ok();
            return;
        }
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            match read {
                Ok(0) => return,
                Ok(_) if sender.blocking_send(Ok(piece)).is_err() => return,
                Ok(_) => {}
                Err(error) => {
                    sender.blocking_send(Err(error)).ok();
                    return;
                }
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_neighbours_are_taken() {
        for good in ["targets.h5", "a b.h5", "..h5", "ü"] {
            assert!(is_file_name(good), "{good}");
        }
        for bad in ["", ".", "..", "/etc/passwd", "../x.h5", "a/b.h5", "a\\b.h5", "x\0.h5"] {
            assert!(!is_file_name(bad), "{bad}");
        }
    }
}
