//! The data directory: lock, credentials and start counter.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::EmbeddedError;
use crate::private::{private_file, secure_data_dir};

pub(crate) const LOCK_FILE: &str = "lock";
const CREDENTIALS_FILE: &str = "credentials.json";
const EPOCH_FILE: &str = "epoch";
/// Maximum size of the small files in this directory, in bytes.
const SMALL_FILE_BYTES_MAX: u64 = 4096;

/// The AWS credentials of one data directory: random, generated once, never sent anywhere. They
/// sign presigned S3 URLs, so they are as private as the data.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// Access key id, 20 characters.
    pub access_key_id: String,
    /// Secret access key, 64 characters.
    pub secret_access_key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl Credentials {
    fn random() -> Self {
        let id: [u8; 8] = rand::random();
        let secret: [u8; 32] = rand::random();
        Self {
            access_key_id: format!("AKIA{}", hex::encode_upper(id)),
            secret_access_key: hex::encode(secret),
        }
    }
}

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// Kept open for its lock only.
    _lock: File,
    credentials: Credentials,
    epoch: u64,
}

impl DataDir {
    /// Creates the directory if necessary, removes the access of others, locks it and counts this
    /// start.
    pub(crate) fn open(path: &Path) -> Result<Self, EmbeddedError> {
        secure_data_dir(path)?;
        for name in [LOCK_FILE, CREDENTIALS_FILE, EPOCH_FILE] {
            private_file(&path.join(name))?;
        }
        let lock = lock(path)?;
        let credentials = load_or_make_credentials(path)?;
        let epoch = count_start(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock, credentials, epoch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }
}

fn lock(dir: &Path) -> Result<File, EmbeddedError> {
    let path = dir.join(LOCK_FILE);
    let mut file = private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
        .open(&path)
        .map_err(|source| EmbeddedError::file("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(EmbeddedError::InUse { dir: dir.to_owned(), pid: read_pid(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(EmbeddedError::file("lock", &path, source)),
    }
    // Only used in the error message of other processes; the lock itself belongs to the operating
    // system.
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|source| EmbeddedError::file("write", &path, source))?;
    Ok(file)
}

pub(crate) fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn load_or_make_credentials(dir: &Path) -> Result<Credentials, EmbeddedError> {
    let path = dir.join(CREDENTIALS_FILE);
    if let Some(text) = read_small(&path)? {
        return serde_json::from_str(&text)
            .map_err(|error| EmbeddedError::Damaged { path, reason: format!("not credentials ({error})") });
    }
    let credentials = Credentials::random();
    let text = serde_json::to_vec(&credentials)
        .map_err(|error| EmbeddedError::Damaged { path: path.clone(), reason: error.to_string() })?;
    write_durably(&path, &text)?;
    Ok(credentials)
}

fn count_start(dir: &Path) -> Result<u64, EmbeddedError> {
    let path = dir.join(EPOCH_FILE);
    let last: u64 = match read_small(&path)? {
        None => 0,
        Some(text) => text.trim().parse().map_err(|_| EmbeddedError::Damaged {
            path: path.clone(),
            reason: "it does not hold a start count".to_owned(),
        })?,
    };
    let epoch = last.checked_add(1).ok_or_else(|| EmbeddedError::Damaged {
        path: path.clone(),
        reason: "its count is used up".to_owned(),
    })?;
    write_durably(&path, format!("{epoch}\n").as_bytes())?;
    Ok(epoch)
}

fn read_small(path: &Path) -> Result<Option<String>, EmbeddedError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(EmbeddedError::file("read", path, source)),
    };
    let mut text = String::new();
    file.take(SMALL_FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|source| EmbeddedError::file("read", path, source))?;
    Ok(Some(text))
}

/// Replaces a small private file atomically: after a crash, it is either the old or the new one.
fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), EmbeddedError> {
    let new = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        match path.parent() {
            Some(dir) => sync_dir(dir),
            None => Ok(()),
        }
    };
    write().map_err(|source| EmbeddedError::file("write", path, source))
}

/// Makes the names in a directory durable. Windows has no such call and doesn't need it.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_starts_and_keeps_credentials() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        let first = DataDir::open(&dir).unwrap();
        assert_eq!(first.epoch(), 1);
        let secret = first.credentials().secret_access_key.clone();
        assert_eq!(secret.len(), 64);
        drop(first);
        let second = DataDir::open(&dir).unwrap();
        assert_eq!(second.epoch(), 2);
        assert_eq!(second.credentials().secret_access_key, secret);
        assert!(!format!("{:?}", second.credentials()).contains(&secret));
    }

    #[test]
    fn a_second_process_gets_the_pid_of_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let _first = DataDir::open(temp.path()).unwrap();
        let error = DataDir::open(temp.path()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, EmbeddedError::InUse { pid: Some(pid), .. } if pid == std::process::id()));
        assert!(text.contains(&temp.path().display().to_string()), "{text}");
    }

    #[test]
    fn a_refused_start_is_not_counted() {
        let temp = tempfile::tempdir().unwrap();
        let first = DataDir::open(temp.path()).unwrap();
        DataDir::open(temp.path()).unwrap_err();
        drop(first);
        assert_eq!(DataDir::open(temp.path()).unwrap().epoch(), 2);
    }

    #[test]
    fn a_damaged_count_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join(EPOCH_FILE), "many").unwrap();
        assert!(matches!(DataDir::open(temp.path()), Err(EmbeddedError::Damaged { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let _held = DataDir::open(&dir).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join(CREDENTIALS_FILE)), 0o600);
        assert_eq!(mode(&dir.join(EPOCH_FILE)), 0o600);
    }
}
