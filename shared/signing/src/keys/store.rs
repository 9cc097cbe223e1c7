//! The files of a key ring: `signing-key.pem` (mode 0600) and `keys.json`. Changes are made under a lock by renaming a
//! complete file into place, so that readers never see a partial file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{DistrustedKey, KeyError, PinnedKey, PublicKey, RingKey, SigningKey};

const PRIVATE_KEY_FILE: &str = "signing-key.pem";
const RING_FILE: &str = "keys.json";
const LOCK_FILE: &str = ".lock";
const RING_VERSION: u32 = 1;

/// Maximum size of a file that is read, in bytes. A larger file isn't one of ours.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Errors of a key ring on disk.
#[derive(Debug, thiserror::Error)]
pub enum KeyRingError {
    /// A file or the directory can't be read or written.
    #[error("cannot {action} {path}")]
    File {
        /// Operation that failed, as a verb.
        action: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Other users of the machine can read the private key.
    #[error("the private key {path} is readable by other users of this machine: run `chmod 600 {path}`")]
    Exposed {
        /// The key file.
        path: PathBuf,
    },
    /// The key file contains no private key.
    #[error("{path} contains no Ed25519 private key in PKCS#8 (PEM) or base64")]
    PrivateKey {
        /// The key file.
        path: PathBuf,
    },
    /// The list of public keys can't be parsed.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The list file.
        path: PathBuf,
        /// Description of the problem.
        what: String,
    },
    /// The list was written by a newer version of the program.
    #[error("{path} has version {version}, which this program does not know")]
    Version {
        /// Path of the list.
        path: PathBuf,
        /// Version of the list.
        version: u32,
    },
    /// The ring comes from the configuration and has no files.
    #[error("the keys come from the environment: change them there")]
    NotStored,
    /// The label of a pinned key can't be displayed.
    #[error("the label of a pinned key must have 1 to {chars_max} characters and no control characters")]
    Label {
        /// Maximum length of a label, in characters.
        chars_max: usize,
    },
    /// The private key has been distrusted.
    #[error("the private key {path} is distrusted: run `bench keys rotate` to make a new one")]
    Distrusted {
        /// The key file.
        path: PathBuf,
    },
    /// Only own keys can be distrusted; foreign ones are unpinned.
    #[error("this key is not one that this installation signed with")]
    NotOwn,
    /// A distrusted key can't be trusted again by pinning it.
    #[error("this key was distrusted, since someone else may have it: it can't be pinned")]
    PinDistrusted,
    /// The ring has the maximum number of keys.
    #[error("the key ring is full: it holds at most {keys_max} keys")]
    Full {
        /// Maximum number of keys.
        keys_max: usize,
    },
    /// A new key could not be created.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Content of `keys.json`. Exactly one key has no end time: the current one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRing {
    version: u32,
    pub(super) keys: Vec<RingKey>,
    pub(super) pinned: Vec<PinnedKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) distrusted: Vec<DistrustedKey>,
}

impl StoredRing {
    pub(super) fn distrusts(&self, public_key: PublicKey) -> bool {
        self.distrusted.iter().any(|key| key.public_key == public_key)
    }
}

/// Identifies a version of the files: each change replaces a file by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp([Option<(Option<SystemTime>, u64, u64)>; 2]);

impl FileStamp {
    /// Reads the current state of the files of a ring.
    pub(super) fn read(directory: &Path) -> Self {
        Self([PRIVATE_KEY_FILE, RING_FILE].map(|name| {
            let metadata = fs::metadata(directory.join(name)).ok()?;
            Some((metadata.modified().ok(), metadata.len(), inode(&metadata)))
        }))
    }
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &fs::Metadata) -> u64 {
    0
}

/// The directory of a ring, locked against other processes until dropped.
pub(super) struct Store {
    pub(super) directory: PathBuf,
    _lock: File,
}

impl Store {
    /// Creates the directory if necessary and waits for its lock.
    pub(super) fn lock(directory: &Path) -> Result<Self, KeyRingError> {
        make_private_directory(directory).map_err(failed("create", directory))?;
        let path = directory.join(LOCK_FILE);
        let lock =
            private_options().create(true).truncate(false).open(&path).map_err(failed("open", &path))?;
        lock.lock().map_err(failed("lock", &path))?;
        Ok(Self { directory: directory.to_owned(), _lock: lock })
    }

    /// Reads the list of public keys. This needs no lock, since the list is only replaced as a whole.
    pub(super) fn read_without_lock(directory: &Path) -> Result<StoredRing, KeyRingError> {
        let path = directory.join(RING_FILE);
        let Some(text) = read_text(&path)? else {
            return Ok(StoredRing { version: RING_VERSION, ..StoredRing::default() });
        };
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged =
            |error: serde_json::Error| KeyRingError::Damaged { path: path.clone(), what: error.to_string() };
        let Versioned { version } = serde_json::from_str(&text).map_err(damaged)?;
        if version != RING_VERSION {
            return Err(KeyRingError::Version { path, version });
        }
        let ring: StoredRing = serde_json::from_str(&text).map_err(damaged)?;
        if ring.keys.iter().filter(|key| key.valid_until.is_none()).count() > 1 {
            return Err(KeyRingError::Damaged { path, what: "more than one key has no end time".to_owned() });
        }
        Ok(ring)
    }

    pub(super) fn read_ring(&self) -> Result<StoredRing, KeyRingError> {
        Self::read_without_lock(&self.directory)
    }

    pub(super) fn write_ring(&self, ring: &StoredRing) -> Result<(), KeyRingError> {
        let path = self.directory.join(RING_FILE);
        let mut text = serde_json::to_string_pretty(ring)
            .map_err(|error| KeyRingError::Damaged { path: path.clone(), what: error.to_string() })?;
        text.push('\n');
        self.replace(RING_FILE, text.as_bytes())
    }

    /// Reads the private key; `None` if the file doesn't exist.
    pub(super) fn read_private_key(&self) -> Result<Option<SigningKey>, KeyRingError> {
        let path = self.directory.join(PRIVATE_KEY_FILE);
        check_permissions(&path)?;
        let Some(text) = read_text(&path)? else { return Ok(None) };
        SigningKey::parse(&text).map(Some).map_err(|_| KeyRingError::PrivateKey { path })
    }

    /// Returns the error for a distrusted private key.
    pub(super) fn distrusted(&self) -> KeyRingError {
        KeyRingError::Distrusted { path: self.directory.join(PRIVATE_KEY_FILE) }
    }

    pub(super) fn write_private_key(&self, key: &SigningKey) -> Result<(), KeyRingError> {
        self.replace(PRIVATE_KEY_FILE, key.to_pem()?.as_bytes())
    }

    /// Replaces the file `name` by a complete new file that only its owner can read.
    fn replace(&self, name: &str, content: &[u8]) -> Result<(), KeyRingError> {
        let path = self.directory.join(name);
        let draft = self.directory.join(format!(".{name}.new"));
        // A killed process may have left a draft. The lock ensures that no process is writing it now.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &draft)(error));
            }
            _ => {}
        }
        let mut file = private_options().create_new(true).open(&draft).map_err(failed("create", &draft))?;
        file.write_all(content).and_then(|()| file.sync_all()).map_err(failed("write", &draft))?;
        fs::rename(&draft, &path).map_err(failed("replace", &path))?;
        sync_directory(&self.directory).map_err(failed("write", &self.directory))
    }
}

fn failed(action: &'static str, path: &Path) -> impl Fn(io::Error) -> KeyRingError + use<> {
    let path = path.to_owned();
    move |source| KeyRingError::File { action, path: path.clone(), source }
}

fn read_text(path: &Path) -> Result<Option<String>, KeyRingError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed("read", path))?;
    Ok(Some(text))
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    restrict_permissions(directory)
}

/// Removes access for other users, also from a directory that existed before: it contains only keys.
#[cfg(unix)]
fn restrict_permissions(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = fs::metadata(directory)?.permissions();
    if permissions.mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict_permissions(_directory: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn check_permissions(path: &Path) -> Result<(), KeyRingError> {
    use std::os::unix::fs::PermissionsExt as _;
    match fs::metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            Err(KeyRingError::Exposed { path: path.to_owned() })
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Other systems use access lists that are inherited from the user's own folder.
#[cfg(not(unix))]
fn check_permissions(_path: &Path) -> Result<(), KeyRingError> {
    Ok(())
}

/// Makes a rename durable.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
