//! Files that sandbox jobs need in addition to the items.
//!
//! They are stored unchanged under their own digest, so that datasets and revisions share them. Jobs read them in
//! pieces, so a whole file is never in memory.

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
use crate::index::FileInfo;
use crate::keys;
use crate::library::{Downloads, Library};
use crate::progress::Progress;
use crate::rows::{self, Input, RowFile};

/// Bytes that are read at once while a file is stored.
const PIECE_BYTES: usize = 1024 * 1024;
/// Maximum length of one call of [`read_attachment`], in bytes.
pub const ATTACHMENT_READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of different files that the rows of a dataset may name.
const NAMED_MAX: usize = 256;
/// Maximum number of leading bytes that identify a file type.
const SIGNATURE_BYTES_MAX: u64 = 64;
/// First bytes of a Git LFS pointer, which a folder may contain instead of the file itself.
const LFS_POINTER: &[u8] = b"version https://git-lfs";
/// Maximum number of folder entries that are searched for a file.
const ENTRIES_MAX: usize = 100_000;
/// Content type of the stored objects.
const CONTENT_TYPE: &str = "application/octet-stream";

/// Files by name, and the metadata of the files that they were made from.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    pub(crate) files: BTreeMap<String, StoredFile>,
    pub(crate) infos: Vec<FileInfo>,
}

impl Attachments {
    /// Adds the files to the digest of a dataset. Without files, the digest doesn't change.
    pub(crate) fn update(files: &BTreeMap<String, StoredFile>, digest: &mut Sha256) {
        for (name, file) in files {
            digest.update(format!("attachment\t{name}\t{}\n", file.sha256));
        }
    }
}

/// Reads `length` bytes of a stored file from `offset`: fewer at its end, none after it.
///
/// # Errors
/// Returns an error if the store fails, if the object is shorter than recorded, or if `length` exceeds
/// [`ATTACHMENT_READ_BYTES_MAX`].
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
    /// Prepares the files that a layout names, from the hub.
    pub(crate) async fn hub_attachments(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let (file, info) = self.hub_attachment(layout, spec, progress).await?;
            found.files.insert(spec.name.to_owned(), file);
            found.infos.push(info);
        }
        Ok(found)
    }

    async fn hub_attachment(
        &self,
        layout: &dyn Layout,
        spec: &AttachmentSpec,
        progress: &dyn Progress,
    ) -> Result<(StoredFile, FileInfo), DatasetError> {
        let reference = spec.revision.unwrap_or("main");
        let repository = self.hub.get_repository(spec.id, reference, progress).await?;
        let remote = repository.file(spec.path)?;
        // Jobs download from the hub without a token, which gated datasets require.
        let url = layout.spec().gate.is_none().then(|| remote.url.to_string());
        if let RemoteFile { sha256: Some(sha256), bytes: Some(bytes), .. } = &remote
            && let Some(file) = find_stored(&self.blobs, sha256, *bytes).await?
        {
            let info = FileInfo { name: spec.path.to_owned(), bytes: *bytes, sha256: sha256.clone() };
            return Ok((StoredFile { url, ..file }, info));
        }
        let mut downloads = Downloads::new(self.download_folder(spec.id, &repository.commit), remote.bytes);
        let (mut file, info) = self.fetch_one(spec.id, &remote, &mut downloads, progress).await?;
        check_signature(spec, &mut file)
            .map_err(|error| DatasetError::content(spec.path, None, None, error.to_string()))?
            .map_err(|problem| DatasetError::content(spec.path, None, None, problem))?;
        let file = store_file(&self.blobs, spec.path, file, &info.sha256, info.bytes).await?;
        downloads.remove();
        Ok((StoredFile { url, ..file }, info))
    }

    /// Prepares the files that belong to local rows: the files that rows name, otherwise the only file with the right
    /// extension in the folder, otherwise the hub's file.
    pub(crate) async fn local_attachments(
        &self,
        layout: &dyn Layout,
        path: &Path,
        files: &[(String, PathBuf)],
        progress: &dyn Progress,
    ) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let named = named_files(spec, files).await?;
            let folder = containing_folder(path);
            let neighbors = match named.is_empty() {
                true => find_only_file(spec, &folder)?.into_iter().collect(),
                false => named.iter().map(|name| folder.join(name)).collect::<Vec<_>>(),
            };
            let Some(first) = neighbors.first() else {
                let (file, info) = self.fallback_attachment(layout, spec, path, progress).await?;
                found.files.insert(spec.name.to_owned(), file);
                found.infos.push(info);
                continue;
            };
            let several = neighbors.len() > 1;
            for own in &neighbors {
                let (file, info) = import_file(&self.blobs, spec, own).await?;
                found.infos.push(info.clone());
                if several {
                    found.files.insert(info.name, file.clone());
                }
                if own == first {
                    found.files.insert(spec.name.to_owned(), file);
                }
            }
        }
        Ok(found)
    }

    /// Prepares the hub's file, for local rows without a file of their own.
    async fn fallback_attachment(
        &self,
        layout: &dyn Layout,
        spec: &AttachmentSpec,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<(StoredFile, FileInfo), DatasetError> {
        match self.hub_attachment(layout, spec, progress).await {
            Err(error @ (DatasetError::Blob(_) | DatasetError::Disk { .. })) => Err(error),
            Err(error) => Err(DatasetError::Path {
                path: path.display().to_string(),
                problem: format!(
                    "there is no {} file beside it, and no row names one in `{}`; that of the hub ({}) is not available: \
                     {error}",
                    spec.ending,
                    file_column(spec),
                    spec.path
                ),
            }),
            found => found,
        }
    }

    /// Prepares the files of the demo items.
    pub(crate) async fn demo_attachments(&self, layout: &dyn Layout) -> Result<Attachments, DatasetError> {
        let mut found = Attachments::default();
        for spec in layout.attachments() {
            let info = demo_file_info(spec);
            let file = match find_stored(&self.blobs, &info.sha256, info.bytes).await? {
                Some(file) => file,
                None => {
                    let key = keys::file(&info.sha256);
                    self.blobs.put(&key, Bytes::from_static(spec.demo), CONTENT_TYPE).await?;
                    StoredFile { key, sha256: info.sha256.clone(), bytes: info.bytes, url: None }
                }
            };
            found.files.insert(spec.name.to_owned(), file);
            found.infos.push(info);
        }
        Ok(found)
    }
}

/// Returns the metadata of the demo items' file.
pub(crate) fn demo_file_info(spec: &AttachmentSpec) -> FileInfo {
    let sha256 = hex::encode(Sha256::digest(spec.demo));
    FileInfo { name: format!("demo {}", spec.name), bytes: spec.demo.len() as u64, sha256 }
}

/// Returns an error if `path` is a file for jobs that was given instead of the items.
pub(crate) fn attachment_instead_of_items(layout: &dyn Layout, path: &Path) -> Option<DatasetError> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let spec = layout.attachments().iter().find(|spec| name.ends_with(spec.ending))?;
    path.is_file().then(|| DatasetError::Path {
        path: path.display().to_string(),
        problem: format!(
            "it has no items, only files that jobs need: give the file with the items (such as JSON lines) or a \
             folder with both; the {} file is found beside the items, by name where rows have a column `{}`",
            spec.ending,
            file_column(spec)
        ),
    })
}

/// Returns the name of the column that names a row's file: `h5_file` for `.h5`.
fn file_column(spec: &AttachmentSpec) -> String {
    format!("{}_file", spec.ending.trim_start_matches('.'))
}

/// Returns the folder that contains a dataset's file, or the path itself if it is a folder.
pub(crate) fn containing_folder(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("."),
    }
}

/// Returns the distinct files that rows name, in the order of the rows.
async fn named_files(
    spec: &AttachmentSpec,
    files: &[(String, PathBuf)],
) -> Result<Vec<String>, DatasetError> {
    let column = file_column(spec);
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
                    Some(_) => return Err(refused("it isn't the name of a file in the same folder")),
                }
            }
        }
    }
    Ok(names)
}

/// Returns true if the text is the name of a file in the same folder.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none();
    plain && !name.contains(['/', '\\', '\0'])
}

/// Finds the only file with the right extension in a folder.
fn find_only_file(spec: &AttachmentSpec, folder: &Path) -> Result<Option<PathBuf>, DatasetError> {
    let failed = |problem: String| DatasetError::Path { path: folder.display().to_string(), problem };
    let mut found = None;
    for entry in std::fs::read_dir(folder).map_err(|error| failed(error.to_string()))?.take(ENTRIES_MAX) {
        let entry = entry.map_err(|error| failed(error.to_string()))?.path();
        let name = entry.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if name.ends_with(spec.ending) && entry.is_file() && found.replace(entry).is_some() {
            return Err(failed(format!(
                "it holds more than one {} file; name the right one in the rows' column `{}`",
                spec.ending,
                file_column(spec)
            )));
        }
    }
    Ok(found)
}

/// Checks that a file starts with the signature of its type; the inner error describes the problem.
fn check_signature(spec: &AttachmentSpec, file: &mut File) -> std::io::Result<Result<(), String>> {
    std::io::Seek::rewind(file)?;
    let mut begin = Vec::new();
    file.by_ref().take(SIGNATURE_BYTES_MAX).read_to_end(&mut begin)?;
    std::io::Seek::rewind(file)?;
    let ending = spec.ending;
    Ok(if begin.starts_with(spec.signature) {
        Ok(())
    } else if begin.starts_with(LFS_POINTER) {
        Err(format!("it is only a Git LFS pointer to a {ending} file: fetch the file with `git lfs pull`"))
    } else {
        Err(format!("it is not a valid {ending} file: its first bytes differ from the format's"))
    })
}

/// Imports a local file.
async fn import_file(
    blobs: &Blobs,
    spec: &AttachmentSpec,
    path: &Path,
) -> Result<(StoredFile, FileInfo), DatasetError> {
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
    let info = FileInfo { name: name.clone(), bytes, sha256 };
    let stored = match find_stored(blobs, &info.sha256, bytes).await? {
        Some(stored) => stored,
        None => store_file(blobs, &name, file, &info.sha256, bytes).await?,
    };
    Ok((stored, info))
}

/// Returns the stored object with that content, if there is one.
async fn find_stored(blobs: &Blobs, sha256: &str, bytes: u64) -> Result<Option<StoredFile>, DatasetError> {
    let key = keys::file(sha256);
    let there = blobs.head(&key).await?.is_some_and(|found| found.length == bytes);
    Ok(there.then(|| StoredFile { key, sha256: sha256.to_owned(), bytes, url: None }))
}

/// Stores a file piece by piece. The object becomes visible only if it is complete and still has the expected digest.
async fn store_file(
    blobs: &Blobs,
    what: &str,
    file: File,
    sha256: &str,
    bytes: u64,
) -> Result<StoredFile, DatasetError> {
    let key = keys::file(sha256);
    let mut upload = blobs.upload(&key, CONTENT_TYPE);
    let mut pieces = read_pieces(file);
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
    tracing::info!(attachment = what, bytes, "Imported {what}");
    Ok(StoredFile { key, sha256: sha256.to_owned(), bytes, url: None })
}

/// Reads a file in pieces on another thread.
fn read_pieces(mut file: File) -> tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>> {
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
    fn only_names_of_files_in_the_same_folder_are_accepted() {
        for good in ["targets.h5", "a b.h5", "..h5", "ü"] {
            assert!(is_file_name(good), "{good}");
        }
        for bad in ["", ".", "..", "/etc/passwd", "../x.h5", "a/b.h5", "a\\b.h5", "x\0.h5"] {
            assert!(!is_file_name(bad), "{bad}");
        }
    }
}
