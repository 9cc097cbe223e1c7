//! Download of one file, which resumes after an interruption.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap};
use reqwest::{Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::{Failure, FileHeaders, Hub, RemoteFile, RetryState, network, text_header};
use crate::error::DatasetError;
use crate::index::FileInfo;
use crate::progress::{Progress, Step};

/// Maximum size of one file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Maximum size of all files of a dataset.
const DATASET_BYTES_MAX: u64 = 48 * 1024 * 1024 * 1024;
/// Number of downloads with a wrong checksum after which a file fails.
const CHECKSUM_FAILURES_MAX: u32 = 2;

/// A file that was downloaded and verified.
#[derive(Debug)]
pub(crate) struct DownloadedFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) info: FileInfo,
}

/// Progress of the download of a dataset.
#[derive(Debug)]
pub(crate) struct DownloadProgress {
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: Option<u64>,
}

/// A partially downloaded file. Only one downloader writes it at a time.
struct PartialDownload {
    file: tokio::fs::File,
    path: PathBuf,
    written: u64,
    /// Strong ETag of the content so far. Without one, nothing can be appended safely.
    validator: Option<String>,
}

impl Hub {
    /// Downloads a file into `folder`, or returns the copy that is already there.
    pub(crate) async fn download(
        &self,
        dataset: &str,
        folder: &Path,
        remote: &RemoteFile,
        total: &mut DownloadProgress,
        progress: &dyn Progress,
    ) -> Result<DownloadedFile, DatasetError> {
        check_size(remote, remote.bytes.unwrap_or(0), total.done_bytes)?;
        let path = folder.join(local_name(&remote.path));
        if let Some(found) = self.find_finished(&path, remote).await? {
            total.done_bytes += found.info.bytes;
            return Ok(found);
        }
        let mut partial = PartialDownload::open(&path)?;
        let mut retries = RetryState::default();
        let mut checksum_failures = 0;
        let info = loop {
            let before = partial.written;
            let attempt = self.attempt(dataset, remote, &mut partial, total, progress).await?;
            let file_headers = match attempt {
                Ok(file_headers) => file_headers,
                Err(failure) => {
                    if partial.written > before {
                        retries.reset();
                    }
                    retries.wait_or_fail(self, failure, progress).await?;
                    continue;
                }
            };
            partial.file.sync_data().await.map_err(|e| DatasetError::disk("write", &partial.path, e))?;
            match self.verify(&partial, remote, &file_headers).await? {
                Ok(info) => break info,
                Err(problem) => {
                    checksum_failures += 1;
                    partial.restart().await?;
                    if checksum_failures >= CHECKSUM_FAILURES_MAX {
                        partial.discard();
                        return Err(DatasetError::Checksum { file: remote.path.clone(), problem });
                    }
                }
            }
        };
        total.done_bytes += info.bytes;
        partial.finish(path, info).await
    }

    /// Sends one request. The inner error may be transient; the outer one is permanent.
    async fn attempt(
        &self,
        dataset: &str,
        remote: &RemoteFile,
        partial: &mut PartialDownload,
        total: &DownloadProgress,
        progress: &dyn Progress,
    ) -> Result<Result<FileHeaders, Failure>, DatasetError> {
        if partial.written > 0 && partial.validator.is_none() {
            partial.restart().await?;
        }
        let validator = partial.validator.clone();
        let range = validator.as_deref().filter(|_| partial.written > 0).map(|v| (partial.written, v));
        let (mut response, file_headers) = match self.get(dataset, remote.url.clone(), range).await {
            Ok(got) => got,
            Err(Failure::Permanent(error)) => return Err(error),
            Err(failure) => return Ok(Err(failure)),
        };
        let expected = file_headers.size.or(remote.bytes);
        match continuation(&response, partial.written, expected) {
            Continuation::Whole => {
                partial.restart().await?;
                partial.set_validator(strong_etag(response.headers())).await?;
            }
            Continuation::Rest => {}
            Continuation::Nothing => return Ok(Ok(file_headers)),
            Continuation::Mismatch => {
                partial.restart().await?;
                return Ok(Err(Failure::transient("the file at the hub has changed")));
            }
        }
        let announced = response.content_length().map(|rest| rest.saturating_add(partial.written));
        check_size(remote, expected.or(announced).unwrap_or(0), total.done_bytes)?;
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) => return Ok(Err(network(error))),
            };
            check_size(remote, partial.written + chunk.len() as u64, total.done_bytes)?;
            partial.append(&chunk).await?;
            progress.step(Step::Downloading {
                file: &remote.path,
                done_bytes: total.done_bytes + partial.written,
                total_bytes: total.total_bytes,
            });
        }
        partial.file.flush().await.map_err(|e| DatasetError::disk("write", &partial.path, e))?;
        if expected.or(announced).is_some_and(|expected| partial.written < expected) {
            return Ok(Err(Failure::transient("the file ended early")));
        }
        Ok(Ok(file_headers))
    }

    /// Checks that length and checksum are what the hub announced.
    async fn verify(
        &self,
        partial: &PartialDownload,
        remote: &RemoteFile,
        file_headers: &FileHeaders,
    ) -> Result<Result<FileInfo, String>, DatasetError> {
        let copy =
            File::open(&partial.path).map_err(|error| DatasetError::disk("read", &partial.path, error))?;
        let (sha256, bytes) = hash(copy, &partial.path).await?;
        if let Some(expected) = file_headers.size.or(remote.bytes).filter(|expected| *expected != bytes) {
            return Ok(Err(format!("it has {bytes} bytes instead of {expected}")));
        }
        if let Some(expected) =
            file_headers.sha256().or_else(|| remote.sha256.clone()).filter(|e| *e != sha256)
        {
            return Ok(Err(format!("its SHA-256 is {sha256} instead of {expected}")));
        }
        Ok(Ok(FileInfo { name: remote.path.clone(), bytes, sha256 }))
    }

    /// Returns a download that an earlier attempt finished before its next step failed.
    async fn find_finished(
        &self,
        path: &Path,
        remote: &RemoteFile,
    ) -> Result<Option<DownloadedFile>, DatasetError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(DatasetError::disk("read", path, error)),
        };
        let copy = file.try_clone().map_err(|error| DatasetError::disk("read", path, error))?;
        let (sha256, bytes) = hash(copy, path).await?;
        let same_bytes = remote.bytes.is_none_or(|expected| expected == bytes);
        let same_content = remote.sha256.as_ref().is_none_or(|expected| *expected == sha256);
        if !same_bytes || !same_content {
            return Ok(None);
        }
        let info = FileInfo { name: remote.path.clone(), bytes, sha256 };
        Ok(Some(DownloadedFile { file, path: path.to_owned(), info }))
    }
}

impl PartialDownload {
    /// Opens the partial file next to `path`, or a separate one while another process has it
    /// locked.
    fn open(path: &Path) -> Result<Self, DatasetError> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut path = with_ending(path, "part");
        let mut file = open(&path)?;
        if !try_lock(&file, &path) {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            path = with_ending(&path, &format!("{}-{number}", std::process::id()));
            file = open(&path)?;
            file.set_len(0).map_err(|error| DatasetError::disk("write", &path, error))?;
        }
        let written =
            file.seek(SeekFrom::End(0)).map_err(|error| DatasetError::disk("read", &path, error))?;
        let mut validator = String::new();
        if let Ok(note) = File::open(with_ending(&path, "etag")) {
            // If the ETag can't be read, the download starts from the beginning.
            note.take(1_024).read_to_string(&mut validator).ok();
        }
        let validator = (!validator.is_empty()).then_some(validator);
        Ok(Self { file: tokio::fs::File::from_std(file), path, written, validator })
    }

    async fn append(&mut self, chunk: &[u8]) -> Result<(), DatasetError> {
        self.file.write_all(chunk).await.map_err(|error| DatasetError::disk("write", &self.path, error))?;
        self.written += chunk.len() as u64;
        Ok(())
    }

    async fn restart(&mut self) -> Result<(), DatasetError> {
        let failed = |error| DatasetError::disk("write", &self.path, error);
        self.file.flush().await.map_err(failed)?;
        self.file.set_len(0).await.map_err(failed)?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(failed)?;
        self.written = 0;
        self.set_validator(None).await
    }

    async fn set_validator(&mut self, validator: Option<String>) -> Result<(), DatasetError> {
        let note = with_ending(&self.path, "etag");
        match &validator {
            Some(etag) => {
                tokio::fs::write(&note, etag).await.map_err(|e| DatasetError::disk("write", &note, e))?
            }
            None => remove(&note),
        }
        self.validator = validator;
        Ok(())
    }

    /// Gives the file its final name. It may replace a file by another process, which has the same
    /// content.
    async fn finish(self, path: PathBuf, info: FileInfo) -> Result<DownloadedFile, DatasetError> {
        let mut file = self.file.into_std().await;
        let failed = |error| DatasetError::disk("write", &path, error);
        std::fs::rename(&self.path, &path).map_err(failed)?;
        remove(&with_ending(&self.path, "etag"));
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(DownloadedFile { file, path, info })
    }

    fn discard(self) {
        remove(&self.path);
        remove(&with_ending(&self.path, "etag"));
    }
}

fn open(path: &Path) -> Result<File, DatasetError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| DatasetError::disk("make", folder, error))?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| DatasetError::disk("write", path, error))
}

/// Locks the file. Returns true if no other process is writing it.
fn try_lock(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => still_has_name(file, path),
        Err(TryLockError::WouldBlock) => false,
        // On file systems without locks, the checksum has to suffice.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(%error, "A download cannot be locked");
            true
        }
    }
}

/// Returns true if the path still refers to this file: another process may just have renamed it
/// after finishing.
#[cfg(unix)]
fn still_has_name(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (own, named) = (file.metadata().map(identity), std::fs::metadata(path).map(identity));
    matches!((own, named), (Ok(own), Ok(named)) if own == named)
}

#[cfg(not(unix))]
fn still_has_name(_: &File, path: &Path) -> bool {
    path.exists()
}

enum Continuation {
    /// The response is the file from its start.
    Whole,
    /// The response is the missing rest.
    Rest,
    /// Nothing is missing.
    Nothing,
    /// The response doesn't fit the content so far.
    Mismatch,
}

fn continuation(response: &Response, written: u64, expected: Option<u64>) -> Continuation {
    match response.status() {
        StatusCode::PARTIAL_CONTENT if range_start(response.headers()) == Some(written) => Continuation::Rest,
        StatusCode::PARTIAL_CONTENT => Continuation::Mismatch,
        StatusCode::RANGE_NOT_SATISFIABLE if written > 0 && expected == Some(written) => {
            Continuation::Nothing
        }
        StatusCode::RANGE_NOT_SATISFIABLE => Continuation::Mismatch,
        _ => Continuation::Whole,
    }
}

/// Parses the first byte position of `bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn strong_etag(headers: &HeaderMap) -> Option<String> {
    text_header(headers, ETAG.as_str()).filter(|etag| etag.starts_with('"') && etag.len() < 1_000)
}

fn check_size(remote: &RemoteFile, bytes: u64, before: u64) -> Result<(), DatasetError> {
    if bytes > FILE_BYTES_MAX {
        return Err(DatasetError::TooLarge {
            what: format!("`{}`", remote.path),
            limit_bytes: FILE_BYTES_MAX,
        });
    }
    if before.saturating_add(bytes) > DATASET_BYTES_MAX {
        return Err(DatasetError::TooLarge {
            what: "the dataset".to_owned(),
            limit_bytes: DATASET_BYTES_MAX,
        });
    }
    Ok(())
}

/// Returns a safe file name: the paths in a repository aren't ours to trust.
fn local_name(path: &str) -> String {
    let digest = hex::encode(Sha256::digest(path));
    digest.get(..32).unwrap_or(&digest).to_owned()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Removes a file of the cache. A failure is only logged, since the file merely takes up space.
pub(crate) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A download could not be removed");
        }
        _ => {}
    }
}

/// Removes what an earlier attempt left of a download in `folder`.
pub(crate) fn remove_leftovers(folder: &Path, remote: &RemoteFile) {
    let path = folder.join(local_name(&remote.path));
    for left in [with_ending(&path, "part"), with_ending(&with_ending(&path, "part"), "etag"), path] {
        remove(&left);
    }
}

/// Returns the SHA-256 and the length of a file, and rewinds it.
pub(crate) async fn hash(mut file: File, path: &Path) -> Result<(String, u64), DatasetError> {
    let hashed = tokio::task::spawn_blocking(move || -> std::io::Result<(String, u64)> {
        file.seek(SeekFrom::Start(0))?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        let mut length = 0;
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            digest.update(buffer.get(..read).unwrap_or_default());
            length += read as u64;
        }
        file.seek(SeekFrom::Start(0))?;
        Ok((hex::encode(digest.finalize()), length))
    });
    let hashed = hashed.await.map_err(|error| DatasetError::Interrupted(error.to_string()))?;
    hashed.map_err(|error| DatasetError::disk("read", path, error))
}
