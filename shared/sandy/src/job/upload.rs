//! Uploads a job's files to its sandbox.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{FileContent, JobFile, JobSpec, StoredFile};
use sha2::{Digest, Sha256};

use super::command::{FETCH, PLACE, UNPACK};
use super::status::words;
use super::{FileSource, JobError, JobName, check};
use crate::Sandy;

/// Size of one piece before base64, in bytes. Must match the number in `unpack.py`.
const PIECE_BYTES: u64 = 1 << 20;
/// Maximum number of rounds that send missing or damaged pieces again.
const ROUNDS_MAX: u32 = 3;
/// Maximum size of a stored file that is sent through the sandbox host, in bytes.
const SENT_BYTES_MAX: u64 = 64 << 20;
/// Time limit of a download in seconds, plus one second per megabyte.
const DOWNLOAD_S: u64 = 600;
const DOWNLOAD_BYTES_PER_S: u64 = 1_000_000;

/// Progress of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadProgress {
    /// All files are in place, or the job was started before.
    Ready,
    /// More must be sent, or the sandbox is downloading: repeat the call to continue. If `is_downloading`, wait a few
    /// seconds first.
    Underway {
        /// True if the caller can only wait.
        is_downloading: bool,
    },
}

/// Result of sending one content.
enum SendResult {
    Ready,
    Started,
    Underway,
}

/// Uploads the script and the files of a job into its folder. Doesn't send again what is already there, and changes
/// nothing once the job has started. Returns after about [`crate::Timing::upload_step`].
///
/// A stored file is linked if the sandbox host has it, sent if it has at most 64 MiB, and otherwise downloaded by the
/// sandbox.
pub async fn upload(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    source: &dyn FileSource,
) -> Result<UploadProgress, JobError> {
    check(spec)?;
    let mut upload = Upload { sandy, sandbox, job, began: Instant::now(), has_sent: false };
    let stored: Vec<(&str, &StoredFile)> = spec.files.iter().filter_map(stored_file).collect();
    let states = match stored.is_empty() {
        true => Some(Vec::new()),
        false => upload.states(&stored).await?,
    };
    let Some(states) = states else { return Ok(UploadProgress::Ready) };
    let (mut is_downloading, mut is_sending) = (false, false);
    for ((path, file), state) in stored.into_iter().zip(states) {
        match state {
            FileState::Ready => {}
            FileState::Downloading => is_downloading = true,
            FileState::Failed(reason) => return Err(JobError::Download { path: path.to_owned(), reason }),
            FileState::Absent if file.bytes <= SENT_BYTES_MAX => {
                let content = Content::Stored { path, file, source };
                match upload.send(&content).await? {
                    SendResult::Ready => {}
                    SendResult::Started => return Ok(UploadProgress::Ready),
                    SendResult::Underway => is_sending = true,
                }
            }
            FileState::Absent => {
                upload.fetch(path, file).await?;
                is_downloading = true;
            }
        }
    }
    let bundle = bundle(spec);
    let sha256 = hex::encode(Sha256::digest(&bundle));
    match upload.send(&Content::Bundle { bytes: &bundle, sha256: &sha256 }).await? {
        SendResult::Ready => {}
        SendResult::Started => return Ok(UploadProgress::Ready),
        SendResult::Underway => is_sending = true,
    }
    match is_sending || is_downloading {
        true => Ok(UploadProgress::Underway { is_downloading: !is_sending }),
        false => Ok(UploadProgress::Ready),
    }
}

fn stored_file(file: &JobFile) -> Option<(&str, &StoredFile)> {
    match &file.content {
        FileContent::Stored(stored) => Some((&file.path, stored)),
        FileContent::Bytes(_) => None,
    }
}

/// Bundles the script and the files given as bytes: their number, a line with length and path for each, then the bytes.
pub(super) fn bundle(spec: &JobSpec) -> Vec<u8> {
    let files = spec.files.iter().filter_map(|file| match &file.content {
        FileContent::Bytes(bytes) => Some((file.path.as_str(), bytes.as_slice())),
        FileContent::Stored(_) => None,
    });
    let files: Vec<_> = files.chain([("script.sh", spec.script.as_bytes())]).collect();
    let mut bundle = format!("{}\n", files.len()).into_bytes();
    for (path, bytes) in &files {
        bundle.extend_from_slice(format!("{} {path}\n", bytes.len()).as_bytes());
    }
    for (_, bytes) in files {
        bundle.extend_from_slice(bytes);
    }
    bundle
}

/// Content that is sent in pieces.
enum Content<'a> {
    Bundle { bytes: &'a [u8], sha256: &'a str },
    Stored { path: &'a str, file: &'a StoredFile, source: &'a dyn FileSource },
}

impl Content<'_> {
    /// Path of the content; `-` for a bundle.
    fn path(&self) -> &str {
        match self {
            Self::Bundle { .. } => "-",
            Self::Stored { path, .. } => path,
        }
    }

    fn sha256(&self) -> &str {
        match self {
            Self::Bundle { sha256, .. } => sha256,
            Self::Stored { file, .. } => &file.sha256,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Bundle { bytes, .. } => bytes.len() as u64,
            Self::Stored { file, .. } => file.bytes,
        }
    }

    /// Encodes a piece: its checksum, and its bytes in base64.
    async fn piece(&self, index: u64) -> Result<String, JobError> {
        let offset = index * PIECE_BYTES;
        let length = PIECE_BYTES.min(self.bytes() - offset);
        match self {
            Self::Bundle { bytes, .. } => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = bytes.get(from..).unwrap_or_default();
                Ok(encode(rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(rest)))
            }
            Self::Stored { path, file, source } => {
                let path = (*path).to_owned();
                match source.read(file, offset, length).await {
                    Ok(bytes) if bytes.len() as u64 == length => Ok(encode(&bytes)),
                    Ok(_) => Err(JobError::Checksum { path }),
                    Err(source) => Err(JobError::Source { path, source }),
                }
            }
        }
    }
}

fn encode(bytes: &[u8]) -> String {
    format!("{} {}\n", hex::encode(Sha256::digest(bytes)), STANDARD.encode(bytes))
}

/// State of a stored file in the sandbox.
enum FileState {
    Ready,
    Absent,
    Downloading,
    Failed(String),
}

struct Upload<'a> {
    sandy: &'a Sandy,
    sandbox: &'a str,
    job: &'a JobName,
    began: Instant,
    /// True if this call has sent something. Each call sends at least one piece, however slow the host is.
    has_sent: bool,
}

impl Upload<'_> {
    /// Returns the state of each stored file; `None` if the job was started.
    async fn states(&self, stored: &[(&str, &StoredFile)]) -> Result<Option<Vec<FileState>>, JobError> {
        let lengths: Vec<String> = stored.iter().map(|(_, file)| file.bytes.to_string()).collect();
        let mut arguments = vec![self.job.as_str()];
        for ((path, file), length) in stored.iter().zip(&lengths) {
            arguments.extend([*path, file.sha256.as_str(), length]);
        }
        let lines = PLACE.run(self.sandy, self.sandbox, &arguments).await?;
        if words(&lines) == ["started"] {
            return Ok(None);
        }
        let state = |(index, line): (usize, &Vec<String>)| {
            let (number, state) = line.split_first()?;
            let state: Vec<&str> = state.iter().map(String::as_str).collect();
            (*number == index.to_string()).then_some(())?;
            match state.as_slice() {
                ["ready"] => Some(FileState::Ready),
                ["absent"] => Some(FileState::Absent),
                ["getting", _] => Some(FileState::Downloading),
                ["refused", why] => {
                    Some(FileState::Failed(crate::error::single_line(&why.replace('_', " "), 200)))
                }
                _ => None,
            }
        };
        let states: Option<Vec<FileState>> = lines.iter().enumerate().map(state).collect();
        match states {
            Some(states) if states.len() == stored.len() => Ok(Some(states)),
            _ => Err(PLACE.unexpected_answer()),
        }
    }

    /// Sends the missing pieces of a content, and has the sandbox put it in place.
    async fn send(&mut self, content: &Content<'_>) -> Result<SendResult, JobError> {
        let count = content.bytes().div_ceil(PIECE_BYTES);
        // A single piece is sent without asking first.
        let mut missing: Vec<u64> = if count == 1 { vec![0] } else { Vec::new() };
        let length = content.bytes().to_string();
        let arguments = [self.job.as_str(), content.path(), content.sha256(), &length];
        for _ in 0..=ROUNDS_MAX {
            for index in missing {
                if self.has_sent && self.began.elapsed() > self.sandy.timing.upload_step {
                    return Ok(SendResult::Underway);
                }
                let name = format!(".bench-up-{}-{index}", content.sha256().get(..32).unwrap_or_default());
                self.sandy.write_file(self.sandbox, &name, &content.piece(index).await?).await?;
                self.has_sent = true;
            }
            let lines = UNPACK.run_long(self.sandy, self.sandbox, &arguments).await?;
            match words(&lines).as_slice() {
                ["ready"] => return Ok(SendResult::Ready),
                ["started"] => return Ok(SendResult::Started),
                ["wrong"] => return Err(JobError::Checksum { path: content.path().to_owned() }),
                ["missing", indexes @ ..] => {
                    let indexes =
                        indexes.iter().map(|index| index.parse().ok().filter(|index| *index < count));
                    missing = indexes.collect::<Option<_>>().ok_or_else(|| UNPACK.unexpected_answer())?;
                }
                _ => return Err(UNPACK.unexpected_answer()),
            }
        }
        Err(JobError::Failed { step: UNPACK.step, reason: "the pieces arrived damaged".to_owned() })
    }

    /// Makes the sandbox download a file in the background.
    async fn fetch(&self, path: &str, file: &StoredFile) -> Result<(), JobError> {
        let (bytes, bytes_max) = (file.bytes, SENT_BYTES_MAX);
        let Some(url) = &file.url else {
            return Err(JobError::TooLarge { path: path.to_owned(), bytes, bytes_max });
        };
        let length = bytes.to_string();
        let limit = (DOWNLOAD_S + bytes / DOWNLOAD_BYTES_PER_S).to_string();
        let wait = self.sandy.timing.repeat_wait.as_millis().to_string();
        let arguments = [self.job.as_str(), path, &file.sha256, &length, url, &limit, &wait];
        let lines = FETCH.run(self.sandy, self.sandbox, &arguments).await?;
        match words(&lines).as_slice() {
            ["getting"] => Ok(()),
            _ => Err(FETCH.unexpected_answer()),
        }
    }
}
