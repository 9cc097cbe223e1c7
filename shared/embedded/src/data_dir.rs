//! The data directory: lock, credentials and start counter.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
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
    lock: File,
    credentials: Credentials,
    epoch: u64,
}

impl DataDir {
    /// Creates the directory if necessary, removes the access of others, locks it and counts this
    /// start.
    ///
    /// `shares` tells other processes that this one will answer them on its socket.
    pub(crate) fn open(path: &Path, shares: bool) -> Result<Self, EmbeddedError> {
        secure_data_dir(path)?;
        #[cfg(unix)]
        check_user(path, rustix::process::geteuid().as_raw())?;
        for name in [LOCK_FILE, CREDENTIALS_FILE, EPOCH_FILE] {
            private_file(&path.join(name))?;
        }
        let lock = lock(path, shares)?;
        let credentials = load_or_make_credentials(path)?;
        let epoch = count_start(path)?;
        Ok(Self { path: path.to_owned(), lock, credentials, epoch })
    }

    /// Tells other processes that this one has no socket.
    pub(crate) fn cannot_share(&self) -> Result<(), EmbeddedError> {
        write_holder(&self.lock, false)
            .map_err(|source| EmbeddedError::file("write", &self.path.join(LOCK_FILE), source))
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

impl Drop for DataDir {
    fn drop(&mut self) {
        // Closing the file isn't enough while a process that is being started has a copy of its descriptor.
        let _ = self.lock.unlock();
    }
}

/// Refuses a data directory that another user has used, or a new one that belongs to another user: files of several users in
/// it would lock each other out.
#[cfg(unix)]
fn check_user(dir: &Path, user: u32) -> Result<(), EmbeddedError> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::metadata(dir.join(EPOCH_FILE)).or_else(|_| fs::metadata(dir));
    match metadata.map(|metadata| metadata.uid()) {
        Ok(owner) if owner != user => Err(EmbeddedError::OtherUser { dir: dir.to_owned(), owner, user }),
        // Opening the files reports a directory that can't be read.
        _ => Ok(()),
    }
}

fn lock(dir: &Path, shares: bool) -> Result<File, EmbeddedError> {
    let path = dir.join(LOCK_FILE);
    let mut file = private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
        .open(&path)
        .map_err(|source| EmbeddedError::file("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let Holder { pid, shares } = Holder::read(&mut file);
            return Err(EmbeddedError::InUse { dir: dir.to_owned(), pid, shares });
        }
        Err(TryLockError::Error(source)) => return Err(EmbeddedError::file("lock", &path, source)),
    }
    write_holder(&file, shares).map_err(|source| EmbeddedError::file("write", &path, source))?;
    Ok(file)
}

/// Word in the lock file of a process that answers others on its socket, or will soon.
const SHARED: &str = "shared";

/// Describes this process in its lock file. The lock itself belongs to the operating system.
fn write_holder(mut file: &File, shares: bool) -> io::Result<()> {
    let shared = if shares { SHARED } else { "" };
    let text = format!("{} {shared}\n", std::process::id());
    // The old text is replaced in place, since others may read the file at any moment.
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

/// The process that holds the lock, as its file describes it.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    /// Process id, if it could be read.
    pub(crate) pid: Option<u32>,
    /// True if it answers other processes on its socket, or will soon.
    pub(crate) shares: bool,
}

impl Holder {
    pub(crate) fn read(file: &mut File) -> Self {
        let mut text = String::new();
        if file.take(64).read_to_string(&mut text).is_err() {
            return Self::default();
        }
        let mut words = text.split_whitespace();
        Self { pid: words.next().and_then(|pid| pid.parse().ok()), shares: words.next() == Some(SHARED) }
    }
}

/// Reads the credentials of a data directory that another process owns.
pub(crate) fn read_credentials(dir: &Path) -> Result<Credentials, EmbeddedError> {
    stored_credentials(dir)?.ok_or_else(|| EmbeddedError::Damaged {
        path: dir.join(CREDENTIALS_FILE),
        reason: "it is missing".to_owned(),
    })
}

fn stored_credentials(dir: &Path) -> Result<Option<Credentials>, EmbeddedError> {
    let path = dir.join(CREDENTIALS_FILE);
    let Some(text) = read_small(&path)? else { return Ok(None) };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| EmbeddedError::Damaged { path, reason: format!("not credentials ({error})") })
}

fn load_or_make_credentials(dir: &Path) -> Result<Credentials, EmbeddedError> {
    let path = dir.join(CREDENTIALS_FILE);
    if let Some(credentials) = stored_credentials(dir)? {
        return Ok(credentials);
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
    let text = format!("{epoch}\n");
    match write_durably(&path, text.as_bytes()) {
        // Commands that only read must work on a full disk. The old file has room for a count with as many digits.
        Err(EmbeddedError::DiskFull { .. }) if last > 0 => {
            overwrite(&path, text.as_bytes())
                .map_err(|source| EmbeddedError::file("write", &path, source))?;
        }
        written => written?,
    }
    Ok(epoch)
}

/// Overwrites the beginning of a small file in place, which takes no more space.
fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
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
    write().map_err(|source| {
        // Of a file that didn't fit, at most a part is there. The name may not exist.
        let _ = fs::remove_file(&new);
        EmbeddedError::file("write", path, source)
    })
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
        let first = DataDir::open(&dir, false).unwrap();
        assert_eq!(first.epoch(), 1);
        let secret = first.credentials().secret_access_key.clone();
        assert_eq!(secret.len(), 64);
        drop(first);
        let second = DataDir::open(&dir, false).unwrap();
        assert_eq!(second.epoch(), 2);
        assert_eq!(second.credentials().secret_access_key, secret);
        assert!(!format!("{:?}", second.credentials()).contains(&secret));
    }

    #[test]
    fn a_copy_of_the_descriptor_in_a_starting_process_does_not_keep_the_lock() {
        let temp = tempfile::tempdir().unwrap();
        let first = DataDir::open(temp.path(), false).unwrap();
        let _copy = first.lock.try_clone().unwrap();
        drop(first);
        DataDir::open(temp.path(), false).unwrap();
    }

    #[test]
    fn a_second_process_gets_the_pid_of_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let _first = DataDir::open(temp.path(), false).unwrap();
        let error = DataDir::open(temp.path(), false).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, EmbeddedError::InUse { pid: Some(pid), shares: false, .. } if pid == std::process::id())
        );
        assert!(text.contains(&temp.path().display().to_string()), "{text}");
    }

    #[test]
    fn a_refused_start_is_not_counted() {
        let temp = tempfile::tempdir().unwrap();
        let first = DataDir::open(temp.path(), false).unwrap();
        DataDir::open(temp.path(), false).unwrap_err();
        drop(first);
        assert_eq!(DataDir::open(temp.path(), false).unwrap().epoch(), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_start_is_counted_on_a_full_disk() {
        let temp = tempfile::tempdir().unwrap();
        for epoch in 1..12 {
            // Writes to this device fail as on a full disk.
            if epoch > 1 {
                std::os::unix::fs::symlink("/dev/full", temp.path().join("epoch.new")).unwrap();
            }
            assert_eq!(DataDir::open(temp.path(), false).unwrap().epoch(), epoch);
        }
    }

    #[cfg(unix)]
    #[test]
    fn another_users_directory_is_refused_new_or_used() {
        let temp = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        for _ in 0..2 {
            check_user(temp.path(), user).unwrap();
            let error = check_user(temp.path(), user + 1).unwrap_err();
            assert!(matches!(error, EmbeddedError::OtherUser { owner, .. } if owner == user), "{error}");
            fs::write(temp.path().join(EPOCH_FILE), "1").unwrap();
        }
    }

    #[test]
    fn a_damaged_count_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join(EPOCH_FILE), "many").unwrap();
        assert!(matches!(DataDir::open(temp.path(), false), Err(EmbeddedError::Damaged { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let _held = DataDir::open(&dir, false).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join(CREDENTIALS_FILE)), 0o600);
        assert_eq!(mode(&dir.join(EPOCH_FILE)), 0o600);
    }
}
