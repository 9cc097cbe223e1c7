//! Fetches files from containers.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::ResultFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exec::is_container;
use super::put::is_container_path;
use crate::bundle::unbundle;
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Maximum that [`FetchFiles::bytes_max`] may be.
const BYTES_LIMIT: u64 = 40 << 20;
const FETCHED: &str = "fetched.b64";
/// Number of bytes of a shortened log that are kept, besides the line in its middle.
pub const SHORTENED_LOG_BYTES: u64 = 2 << 20;

/// Fetches the regular files at or below a path of a container. Symbolic links aren't followed: they are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchFiles {
    /// Id of the container.
    pub container: String,
    /// Absolute path of a file or folder.
    pub path: String,
    /// Maximum number of files.
    pub files_max: u32,
    /// Maximum size of one file, in bytes; larger ones are skipped.
    pub file_bytes_max: u64,
    /// Maximum size of all files together, in bytes, at most 40 MiB; the rest is dropped.
    pub bytes_max: u64,
    /// Files below the path that are fetched however many others there are, if they are at most 4 MiB.
    pub first: Vec<String>,
    /// Keeps the beginning and the end of texts and logs (`.txt`, `.log`, `.pane`) that are too large, together 2 MiB, instead of
    /// skipping them.
    pub shortens_logs: bool,
    /// Time limit.
    pub time_limit: Duration,
}

impl FetchFiles {
    /// Creates a request for up to 1,000 files of up to 4 MiB each and 16 MiB together, within 60 s.
    pub fn new(container: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            container: container.into(),
            path: path.into(),
            files_max: 1_000,
            file_bytes_max: 4 << 20,
            bytes_max: 16 << 20,
            first: Vec::new(),
            shortens_logs: false,
            time_limit: Duration::from_secs(60),
        }
    }
}

/// A fetched file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    /// Path below the fetched folder, without `..`; empty if the fetched path itself is a file.
    pub path: String,
    /// True if it may be executed by its owner.
    pub is_executable: bool,
    /// Content.
    pub bytes: Vec<u8>,
    /// Number of bytes that were left out in the middle, where a line says so.
    pub omitted: u64,
}

/// Reason for which a file was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// A link, device or pipe, or a name that isn't valid. Also a folder in place of one of [`FetchFiles::first`].
    NotAFile,
    /// The file is larger than the limit of one.
    TooLong,
}

/// A skipped file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    /// Path below the fetched folder; untrusted.
    pub path: String,
    /// Reason.
    pub why: SkipReason,
    /// Size of a file that is too long.
    pub bytes: Option<u64>,
}

/// Result of [`FetchFiles`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchedFiles {
    /// The files.
    pub files: Vec<FetchedFile>,
    /// Files that were skipped.
    pub skipped: Vec<SkippedFile>,
    /// True if a limit on all files was reached, and there may be more.
    pub is_cut: bool,
}

impl FetchedFiles {
    /// Returns the content of a file by its path.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.iter().find(|file| file.path == path).map(|file| file.bytes.as_slice())
    }
}

#[derive(Deserialize)]
struct Done {
    found: bool,
    skipped: Vec<SkippedFile>,
    /// Absent in results of earlier versions.
    #[serde(default)]
    shortened: Vec<Shortened>,
    cut: bool,
}

#[derive(Deserialize)]
struct Shortened {
    path: String,
    omitted: u64,
}

impl Program for FetchFiles {
    fn program(&self) -> &'static str {
        program::FETCH
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        if !is_container(&self.container) || !is_container_path(&self.path) {
            return Err(EnvironmentError::Invalid("the container or the path is not a valid one".to_owned()));
        }
        Ok(json!({
            "project": environment.name, "container": self.container, "path": self.path, "files_max": self.files_max,
            "file_bytes_max": self.file_bytes_max, "bytes_max": self.bytes_max.min(BYTES_LIMIT),
            "first": self.first, "shortens_logs": self.shortens_logs,
            "limit_s": self.time_limit.as_secs().max(1),
        }))
    }

    fn time_limit(&self) -> Duration {
        self.time_limit
    }

    fn results(&self) -> Vec<ResultFile> {
        vec![ResultFile { path: FETCHED.to_owned(), bytes_max: 64 << 20 }]
    }
}

impl Operation for FetchFiles {
    /// `None` if there is nothing at the path.
    type Output = Option<FetchedFiles>;

    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<Self::Output, EnvironmentError> {
        let done: Done = result.parse(done)?;
        if !done.found {
            return Ok(None);
        }
        let bundle = STANDARD.decode(result.text(FETCHED)?).map_err(|_| result.unexpected())?;
        let files = unbundle(&bundle).ok_or_else(|| result.unexpected())?;
        let omitted =
            |path: &str| done.shortened.iter().find(|file| file.path == path).map_or(0, |file| file.omitted);
        let files = files.into_iter().map(|file| FetchedFile {
            omitted: omitted(&file.path),
            path: file.path,
            is_executable: file.mode & 0o100 != 0,
            bytes: file.bytes,
        });
        let files = files.collect();
        Ok(Some(FetchedFiles { files, skipped: done.skipped, is_cut: done.cut }))
    }
}
