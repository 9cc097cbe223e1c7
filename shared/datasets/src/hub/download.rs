//! Download of one file, resumed where it broke.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap};
use reqwest::{Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::{Failure, Hub, Linked, Patience, RemoteFile, network, text_header};
use crate::error::DatasetError;
use crate::index::FileFact;
use crate::progress::{Progress, Step};

/// Upper bound of one file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Upper bound of all files of a dataset.
const DATASET_BYTES_MAX: u64 = 48 * 1024 * 1024 * 1024;
/// How often a file is downloaded anew when its checksum is wrong.
const WRONG_CHECKSUMS_MAX: u32 = 2;

/// A file that was downloaded and checked.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) fact: FileFact,
}

/// How far the download of a dataset is.
#[derive(Debug)]
pub(crate) struct Total {
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: Option<u64>,
}

/// The file in the making, which only one downloader writes at a time.
struct Partial {
    file: tokio::fs::File,
    path: PathBuf,
    written: u64,
    /// Strong etag of what is in it, without which nothing can be appended safely.
    validator: Option<String>,
}

impl Hub {
    /// Downloads a file into `folder`, or finds it there.
    pub(crate) async fn download(
        &self,
        dataset: &str,
        folder: &Path,
        remote: &RemoteFile,
        total: &mut Total,
        progress: &dyn Progress,
    ) -> Result<Fetched, DatasetError> {
        check_size(remote, remote.bytes.unwrap_or(0), total.done_bytes)?;
        let path = folder.join(local_name(&remote.path));
        if let Some(found) = self.found(&path, remote).await? {
            total.done_bytes += found.fact.bytes;
            return Ok(found);
        }
        let mut partial = Partial::open(&path)?;
        let mut patience = Patience::default();
        let mut wrong = 0;
        let fact = loop {
            let before = partial.written;
            let tried = self.attempt(dataset, remote, &mut partial, total, progress).await?;
            let linked = match tried {
                Ok(linked) => linked,
                Err(failure) => {
                    if partial.written > before {
                        patience.progressed();
                    }
                    patience.after(self, failure, progress).await?;
                    continue;
                }
            };
            partial.file.sync_data().await.map_err(|e| DatasetError::disk("write", &partial.path, e))?;
            match self.verify(&partial, remote, &linked).await? {
                Ok(fact) => break fact,
                Err(problem) => {
                    wrong += 1;
                    partial.restart().await?;
                    if wrong >= WRONG_CHECKSUMS_MAX {
                        partial.discard();
                        return Err(DatasetError::Checksum { file: remote.path.clone(), problem });
                    }
                }
            }
        };
        total.done_bytes += fact.bytes;
        partial.finish(path, fact).await
    }

    /// One request. The inner error may pass, the outer one does not.
    async fn attempt(
        &self,
        dataset: &str,
        remote: &RemoteFile,
        partial: &mut Partial,
        total: &Total,
        progress: &dyn Progress,
    ) -> Result<Result<Linked, Failure>, DatasetError> {
        if partial.written > 0 && partial.validator.is_none() {
            partial.restart().await?;
        }
        let validator = partial.validator.clone();
        let range = validator.as_deref().filter(|_| partial.written > 0).map(|v| (partial.written, v));
        let (mut response, linked) = match self.get(dataset, remote.url.clone(), range).await {
            Ok(got) => got,
            Err(Failure::Lasting(error)) => return Err(error),
            Err(failure) => return Ok(Err(failure)),
        };
        let expected = linked.size.or(remote.bytes);
        match continuation(&response, partial.written, expected) {
            Continuation::Whole => {
                partial.restart().await?;
                partial.remember(strong_etag(response.headers())).await?;
            }
            Continuation::Rest => {}
            Continuation::Nothing => return Ok(Ok(linked)),
            Continuation::Mismatch => {
                partial.restart().await?;
                return Ok(Err(Failure::passing("the file at the hub is another one than before")));
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
            return Ok(Err(Failure::passing("the file ended early")));
        }
        Ok(Ok(linked))
    }

    /// Whether length and checksum are what the hub said.
    async fn verify(
        &self,
        partial: &Partial,
        remote: &RemoteFile,
        linked: &Linked,
    ) -> Result<Result<FileFact, String>, DatasetError> {
        let copy =
            File::open(&partial.path).map_err(|error| DatasetError::disk("read", &partial.path, error))?;
        let (sha256, bytes) = hash(copy, &partial.path).await?;
        if let Some(expected) = linked.size.or(remote.bytes).filter(|expected| *expected != bytes) {
            return Ok(Err(format!("it has {bytes} bytes instead of {expected}")));
        }
        if let Some(expected) = linked.sha256().or_else(|| remote.sha256.clone()).filter(|e| *e != sha256) {
            return Ok(Err(format!("its SHA-256 is {sha256} instead of {expected}")));
        }
        Ok(Ok(FileFact { name: remote.path.clone(), bytes, sha256 }))
    }

    /// A download that was finished by an earlier try whose next step failed.
    async fn found(&self, path: &Path, remote: &RemoteFile) -> Result<Option<Fetched>, DatasetError> {
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
        let fact = FileFact { name: remote.path.clone(), bytes, sha256 };
        Ok(Some(Fetched { file, path: path.to_owned(), fact }))
    }
}

impl Partial {
    /// Opens the partial file beside `path`, or one of our own while another process has that.
    fn open(path: &Path) -> Result<Self, DatasetError> {
        static OWN: AtomicU64 = AtomicU64::new(0);
        let mut path = with_ending(path, "part");
        let mut file = open(&path)?;
        if !is_ours(&file, &path) {
            let number = OWN.fetch_add(1, Ordering::Relaxed);
            path = with_ending(&path, &format!("{}-{number}", std::process::id()));
            file = open(&path)?;
            file.set_len(0).map_err(|error| DatasetError::disk("write", &path, error))?;
        }
        let written =
            file.seek(SeekFrom::End(0)).map_err(|error| DatasetError::disk("read", &path, error))?;
        let mut validator = String::new();
        if let Ok(note) = File::open(with_ending(&path, "etag")) {
            // An etag that cannot be read means a download from the start.
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
        self.remember(None).await
    }

    async fn remember(&mut self, validator: Option<String>) -> Result<(), DatasetError> {
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

    /// Gives the file its final name; whoever did so before had the same content.
    async fn finish(self, path: PathBuf, fact: FileFact) -> Result<Fetched, DatasetError> {
        let mut file = self.file.into_std().await;
        let failed = |error| DatasetError::disk("write", &path, error);
        std::fs::rename(&self.path, &path).map_err(failed)?;
        remove(&with_ending(&self.path, "etag"));
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Fetched { file, path, fact })
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

/// Whether nobody else writes the file, which is locked by this.
fn is_ours(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => is_still_there(file, path),
        Err(TryLockError::WouldBlock) => false,
        // Where there are no locks the checksum has to do.
        Err(TryLockError::Error(error)) => {
            tracing::debug!(%error, "A download cannot be locked");
            true
        }
    }
}

/// Whether the file has kept its name: another process may just have finished it.
#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (own, named) = (file.metadata().map(identity), std::fs::metadata(path).map(identity));
    matches!((own, named), (Ok(own), Ok(named)) if own == named)
}

#[cfg(not(unix))]
fn is_still_there(_: &File, path: &Path) -> bool {
    path.exists()
}

enum Continuation {
    /// The answer is the file from its start.
    Whole,
    /// The answer is what was missing.
    Rest,
    /// Nothing was missing.
    Nothing,
    /// The answer does not fit what is there.
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

/// The first byte of `bytes 5-9/10`.
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

/// A name of our own: paths in a repository are chosen by others.
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

/// Removes a file of the cache; one that stays costs space only.
pub(crate) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A download could not be removed");
        }
        _ => {}
    }
}

/// Removes a file that was downloaded into `folder` by an earlier try.
pub(crate) fn remove_download(folder: &Path, remote: &RemoteFile) {
    let path = folder.join(local_name(&remote.path));
    for left in [with_ending(&path, "part"), with_ending(&with_ending(&path, "part"), "etag"), path] {
        remove(&left);
    }
}

/// SHA-256 and length of a file, which stands at its start afterwards.
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
