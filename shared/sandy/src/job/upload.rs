//! Putting a job's files into its sandbox.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{FileContent, JobFile, JobSpec, StoredFile};
use sha2::{Digest, Sha256};

use super::command::{FETCH, PLACE, UNPACK};
use super::run::words;
use super::{FileSource, JobError, JobName, check};
use crate::Sandy;

/// Bytes in one piece, before base64. The commands know the same number.
const PIECE_BYTES: u64 = 1 << 20;
/// How often pieces that do not arrive as they were sent are sent again.
const ROUNDS_MAX: u32 = 3;
/// Longest stored file that is sent through the sandbox host, in bytes.
const SENT_BYTES_MAX: u64 = 64 << 20;
/// What a download may take: this, and a second for each megabyte.
const DOWNLOAD_S: u64 = 600;
const DOWNLOAD_BYTES_PER_S: u64 = 1_000_000;

/// How far an upload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// All files are in their places, or the job was started before.
    Ready,
    /// More is to be sent, or the sandbox is downloading: the same call goes on from here. It takes a few seconds
    /// at least where `is_downloading`.
    Underway {
        /// Whether nothing can be done but wait.
        is_downloading: bool,
    },
}

/// What one content came to.
enum Sent {
    Ready,
    Started,
    Underway,
}

/// Puts the script and the files of a job into its folder. What is there already is not sent again; once the job has
/// begun nothing is changed. Goes on for about [`crate::Timing::upload_step`] at most.
///
/// A stored file is linked to where the sandbox host has it, else sent when it has at most 64 MiB, else downloaded by
/// the sandbox.
pub async fn upload(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    source: &dyn FileSource,
) -> Result<Uploaded, JobError> {
    check(spec)?;
    let mut upload = Upload { sandy, sandbox, job, began: Instant::now(), has_sent: false };
    let stored: Vec<(&str, &StoredFile)> = spec.files.iter().filter_map(stored).collect();
    let states = match stored.is_empty() {
        true => Some(Vec::new()),
        false => upload.states(&stored).await?,
    };
    let Some(states) = states else { return Ok(Uploaded::Ready) };
    let (mut is_downloading, mut is_sending) = (false, false);
    for ((path, file), state) in stored.into_iter().zip(states) {
        match state {
            Place::Ready => {}
            Place::Getting => is_downloading = true,
            Place::Refused(reason) => return Err(JobError::Download { path: path.to_owned(), reason }),
            Place::Absent if file.bytes <= SENT_BYTES_MAX => {
                let content = Content::Stored { path, file, source };
                match upload.send(&content).await? {
                    Sent::Ready => {}
                    Sent::Started => return Ok(Uploaded::Ready),
                    Sent::Underway => is_sending = true,
                }
            }
            Place::Absent => {
                upload.fetch(path, file).await?;
                is_downloading = true;
            }
        }
    }
    let bundle = bundle(spec);
    let sha256 = hex::encode(Sha256::digest(&bundle));
    match upload.send(&Content::Bundle { bytes: &bundle, sha256: &sha256 }).await? {
        Sent::Ready => {}
        Sent::Started => return Ok(Uploaded::Ready),
        Sent::Underway => is_sending = true,
    }
    match is_sending || is_downloading {
        true => Ok(Uploaded::Underway { is_downloading: !is_sending }),
        false => Ok(Uploaded::Ready),
    }
}

fn stored(file: &JobFile) -> Option<(&str, &StoredFile)> {
    match &file.content {
        FileContent::Stored(stored) => Some((&file.path, stored)),
        FileContent::Bytes(_) => None,
    }
}

/// The script and the files that are given as bytes: how many, their lengths and paths in lines, then the bytes.
fn bundle(spec: &JobSpec) -> Vec<u8> {
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

/// Something that is sent in pieces.
enum Content<'a> {
    Bundle { bytes: &'a [u8], sha256: &'a str },
    Stored { path: &'a str, file: &'a StoredFile, source: &'a dyn FileSource },
}

impl Content<'_> {
    /// Its place; `-` for the files of a bundle.
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

    /// The text of a piece: its checksum, and its bytes in base64.
    async fn piece(&self, index: u64) -> Result<String, JobError> {
        let offset = index * PIECE_BYTES;
        let length = PIECE_BYTES.min(self.bytes() - offset);
        match self {
            Self::Bundle { bytes, .. } => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = bytes.get(from..).unwrap_or_default();
                Ok(coded(rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(rest)))
            }
            Self::Stored { path, file, source } => {
                let path = (*path).to_owned();
                match source.read(file, offset, length).await {
                    Ok(bytes) if bytes.len() as u64 == length => Ok(coded(&bytes)),
                    Ok(_) => Err(JobError::Checksum { path }),
                    Err(source) => Err(JobError::Source { path, source }),
                }
            }
        }
    }
}

fn coded(bytes: &[u8]) -> String {
    format!("{} {}\n", hex::encode(Sha256::digest(bytes)), STANDARD.encode(bytes))
}

/// Where a stored file stands in the sandbox.
enum Place {
    Ready,
    Absent,
    Getting,
    Refused(String),
}

struct Upload<'a> {
    sandy: &'a Sandy,
    sandbox: &'a str,
    job: &'a JobName,
    began: Instant,
    /// Whether this call got further: each does, however slow all is.
    has_sent: bool,
}

impl Upload<'_> {
    /// Where each stored file stands; `None` when the job was started.
    async fn states(&self, stored: &[(&str, &StoredFile)]) -> Result<Option<Vec<Place>>, JobError> {
        let lengths: Vec<String> = stored.iter().map(|(_, file)| file.bytes.to_string()).collect();
        let mut asked = vec![self.job.as_str()];
        for ((path, file), length) in stored.iter().zip(&lengths) {
            asked.extend([*path, file.sha256.as_str(), length]);
        }
        let lines = PLACE.run(self.sandy, self.sandbox, &asked).await?;
        if words(&lines) == ["started"] {
            return Ok(None);
        }
        let state = |(index, line): (usize, &Vec<String>)| {
            let (number, state) = line.split_first()?;
            let state: Vec<&str> = state.iter().map(String::as_str).collect();
            (*number == index.to_string()).then_some(())?;
            match state.as_slice() {
                ["ready"] => Some(Place::Ready),
                ["absent"] => Some(Place::Absent),
                ["getting", _] => Some(Place::Getting),
                ["refused", why] => Some(Place::Refused(crate::error::shown(&why.replace('_', " "), 200))),
                _ => None,
            }
        };
        let states: Option<Vec<Place>> = lines.iter().enumerate().map(state).collect();
        match states {
            Some(states) if states.len() == stored.len() => Ok(Some(states)),
            _ => Err(PLACE.garbled()),
        }
    }

    /// Sends what is missing of a content, and has it put in its place.
    async fn send(&mut self, content: &Content<'_>) -> Result<Sent, JobError> {
        let count = content.bytes().div_ceil(PIECE_BYTES);
        // A single piece is sent without asking whether it is there.
        let mut missing: Vec<u64> = if count == 1 { vec![0] } else { Vec::new() };
        let length = content.bytes().to_string();
        let asked = [self.job.as_str(), content.path(), content.sha256(), &length];
        for _ in 0..=ROUNDS_MAX {
            for index in missing {
                if self.has_sent && self.began.elapsed() > self.sandy.timing.upload_step {
                    return Ok(Sent::Underway);
                }
                let name = format!(".bench-up-{}-{index}", content.sha256().get(..32).unwrap_or_default());
                self.sandy.write_file(self.sandbox, &name, &content.piece(index).await?).await?;
                self.has_sent = true;
            }
            let lines = UNPACK.run_long(self.sandy, self.sandbox, &asked).await?;
            match words(&lines).as_slice() {
                ["ready"] => return Ok(Sent::Ready),
                ["started"] => return Ok(Sent::Started),
                ["wrong"] => return Err(JobError::Checksum { path: content.path().to_owned() }),
                ["missing", indexes @ ..] => {
                    let indexes =
                        indexes.iter().map(|index| index.parse().ok().filter(|index| *index < count));
                    missing = indexes.collect::<Option<_>>().ok_or_else(|| UNPACK.garbled())?;
                }
                _ => return Err(UNPACK.garbled()),
            }
        }
        Err(JobError::Failed {
            step: UNPACK.step,
            reason: "the pieces did not arrive as they were sent".to_owned(),
        })
    }

    /// Has the sandbox download a file in the background.
    async fn fetch(&self, path: &str, file: &StoredFile) -> Result<(), JobError> {
        let (bytes, bytes_max) = (file.bytes, SENT_BYTES_MAX);
        let Some(url) = &file.url else {
            return Err(JobError::TooLarge { path: path.to_owned(), bytes, bytes_max });
        };
        let length = bytes.to_string();
        let limit = (DOWNLOAD_S + bytes / DOWNLOAD_BYTES_PER_S).to_string();
        let wait = self.sandy.timing.repeat_wait.as_millis().to_string();
        let asked = [self.job.as_str(), path, &file.sha256, &length, url, &limit, &wait];
        let lines = FETCH.run(self.sandy, self.sandbox, &asked).await?;
        match words(&lines).as_slice() {
            ["getting"] => Ok(()),
            _ => Err(FETCH.garbled()),
        }
    }
}
