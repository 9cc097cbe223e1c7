//! The key ring: the current signing key, earlier ones, and foreign keys that the user trusts.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::store::{FileStamp, KeyRingError, Store, StoredRing};
use super::{
    KeyDocumentEntry, KeyError, KeyRole, KeyStatus, KeysDocument, PublicKey, SigningKey, TrustedKey,
};
use crate::time::{after_rollout, whole_seconds};

/// Maximum number of keys in a ring: own, pinned and distrusted ones together.
const RING_KEYS_MAX: usize = 1000;

/// Maximum length of a pinned key's label, in characters.
const LABEL_CHARS_MAX: usize = 100;

/// A key that this installation signs with or has signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingKey {
    /// The key.
    pub public_key: PublicKey,
    /// Time at which it began to sign, if known.
    pub valid_from: Option<Timestamp>,
    /// Time at which it stopped signing, if it did and the time is known.
    pub valid_until: Option<Timestamp>,
}

/// A foreign key that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedKey {
    /// The key.
    pub public_key: PublicKey,
    /// Label chosen by the user.
    pub label: String,
    /// Time at which it was pinned.
    pub pinned_at: Timestamp,
}

/// A key of this installation that is no longer trusted, since someone else may have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistrustedKey {
    /// The key.
    pub public_key: PublicKey,
    /// Time since when it isn't trusted.
    pub distrusted_at: Timestamp,
}

/// Keys as configured in the environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingConfig<'a> {
    /// `BENCH_SIGNING_PRIVATE_KEY`.
    pub private_key: Option<&'a str>,
    /// `BENCH_SIGNING_PUBLIC_KEY`. Without a private key, the ring can verify but not sign.
    pub public_key: Option<&'a str>,
    /// `BENCH_SIGNING_OLD_PUBLIC_KEYS`: entries separated by commas or white space, each base64 of a public key,
    /// optionally followed by `@FROM/UNTIL` (RFC 3339 times; either may be left out).
    pub old_public_keys: Option<&'a str>,
    /// Time at which the current key began to sign. Defaults to the time at which the last old key stopped, if known.
    pub valid_from: Option<Timestamp>,
}

/// Keys for signing and verification.
#[derive(Debug)]
pub struct KeyRing {
    signing: Option<SigningKey>,
    current: Option<RingKey>,
    retired: Vec<RingKey>,
    pinned: Vec<PinnedKey>,
    distrusted: Vec<DistrustedKey>,
    directory: Option<PathBuf>,
    /// State of the files when they were read.
    stamp: Option<FileStamp>,
}

impl KeyRing {
    /// Opens the ring in `directory`. On first use, creates the directory and a private key. If several processes start
    /// at once, one of them creates the key and all use it. A key file that was replaced by hand becomes the current
    /// key, and the previous key is retired.
    ///
    /// # Errors
    /// Returns [`KeyRingError`] if files can't be read or written or are damaged, or if the private key is readable by
    /// other users or distrusted.
    pub fn open(directory: &Path, now: Timestamp) -> Result<Self, KeyRingError> {
        let store = Store::lock(directory)?;
        let signing = match store.read_private_key()? {
            Some(key) => key,
            None => {
                let key = SigningKey::generate()?;
                store.write_private_key(&key)?;
                key
            }
        };
        let mut stored = store.read_ring()?;
        if stored.distrusts(signing.public_key()) {
            return Err(store.distrusted());
        }
        if set_current(&mut stored, signing.public_key(), now) {
            store.write_ring(&stored)?;
        }
        Ok(Self::from_store(directory, Some(signing), stored))
    }

    /// Reads the public part of the ring in `directory`, for verification. Creates nothing and doesn't read the private
    /// key; a directory that doesn't exist is an empty ring.
    ///
    /// # Errors
    /// Returns [`KeyRingError`] if the file can't be read or is damaged.
    pub fn read(directory: &Path) -> Result<Self, KeyRingError> {
        Ok(Self::from_store(directory, None, Store::read_without_lock(directory)?))
    }

    /// Creates a ring from configured values, without files. It can't be rotated, and no keys can be pinned in it.
    ///
    /// # Errors
    /// Returns [`KeyError`] for the first invalid value; [`KeyError::NotConfigured`] without any key.
    pub fn from_config(config: &RingConfig<'_>) -> Result<Self, KeyError> {
        let given = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
        let (signing, public_key) = if given(config.private_key) || !given(config.public_key) {
            let signing = SigningKey::from_config(config.private_key, config.public_key)?;
            let public_key = signing.public_key();
            (Some(signing), public_key)
        } else {
            (None, PublicKey::parse(config.public_key.unwrap_or_default())?)
        };
        let mut retired: Vec<RingKey> = Vec::new();
        let entries =
            config.old_public_keys.unwrap_or_default().split(|c: char| c == ',' || c.is_whitespace());
        for (index, entry) in entries.filter(|entry| !entry.is_empty()).enumerate() {
            let key = parse_old_key(entry).ok_or(KeyError::InvalidOldKey { position: index + 1 })?;
            if key.public_key != public_key && retired.iter().all(|other| other.public_key != key.public_key)
            {
                retired.push(key);
            }
        }
        sort_latest_first(&mut retired);
        let valid_from = config.valid_from.or_else(|| retired.iter().filter_map(|key| key.valid_until).max());
        let current = Some(RingKey { public_key, valid_from, valid_until: None });
        let (pinned, distrusted) = (Vec::new(), Vec::new());
        Ok(Self { signing, current, retired, pinned, distrusted, directory: None, stamp: None })
    }

    fn from_store(directory: &Path, signing: Option<SigningKey>, stored: StoredRing) -> Self {
        let (mut current, mut retired): (Vec<_>, Vec<_>) =
            stored.keys.into_iter().partition(|key| key.valid_until.is_none());
        sort_latest_first(&mut retired);
        let current = current.pop();
        let stamp = Some(FileStamp::read(directory));
        Self {
            signing,
            current,
            retired,
            pinned: stored.pinned,
            distrusted: stored.distrusted,
            directory: Some(directory.to_owned()),
            stamp,
        }
    }

    /// Reloads the ring if its files have changed since they were read, because another process rotated or pinned a
    /// key, or by hand. Returns `None` if they haven't, and for a ring without files.
    ///
    /// # Errors
    /// Same as [`KeyRing::open`]; this ring stays usable.
    pub fn reload_if_changed(&self, now: Timestamp) -> Result<Option<Self>, KeyRingError> {
        match &self.directory {
            Some(directory) if self.stamp != Some(FileStamp::read(directory)) => {
                Self::open(directory, now).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the key to sign with.
    ///
    /// # Errors
    /// Returns [`KeyError::NotConfigured`] if the ring has only public keys.
    pub fn signing_key(&self) -> Result<&SigningKey, KeyError> {
        self.signing.as_ref().ok_or(KeyError::NotConfigured)
    }

    /// Returns the current public key; `None` in an empty ring.
    #[must_use]
    pub fn current(&self) -> Option<&RingKey> {
        self.current.as_ref()
    }

    /// Returns earlier keys, latest first.
    #[must_use]
    pub fn retired(&self) -> &[RingKey] {
        &self.retired
    }

    /// Returns the foreign keys that the user trusts, in the order of pinning.
    #[must_use]
    pub fn pinned(&self) -> &[PinnedKey] {
        &self.pinned
    }

    /// Returns the own keys that are no longer trusted, in the order of distrusting them.
    #[must_use]
    pub fn distrusted(&self) -> &[DistrustedKey] {
        &self.distrusted
    }

    /// Returns all keys that verification accepts: current, retired and pinned ones.
    #[must_use]
    pub fn trusted_keys(&self) -> Vec<TrustedKey> {
        let own = |key: &RingKey, role| TrustedKey {
            public_key: key.public_key,
            role,
            label: None,
            valid_from: key.valid_from,
            // Processes with the old secret keep running for a while after it was replaced. A ring in a directory is
            // reloaded before each signature instead.
            valid_until: match self.directory {
                Some(_) => key.valid_until,
                None => key.valid_until.map(after_rollout),
            },
        };
        let current = self.current.iter().map(|key| own(key, KeyRole::Current));
        let retired = self.retired.iter().map(|key| own(key, KeyRole::Retired));
        let pinned = self.pinned.iter().map(|key| TrustedKey {
            role: KeyRole::Pinned,
            label: Some(key.label.clone()),
            ..TrustedKey::given(key.public_key)
        });
        current.chain(retired).chain(pinned).collect()
    }

    /// Returns all keys that verification needs: the trusted keys, and the distrusted ones, which it reports as such.
    #[must_use]
    pub fn known_keys(&self) -> Vec<TrustedKey> {
        let distrusted = self.distrusted.iter().map(|key| TrustedKey {
            role: KeyRole::Distrusted,
            valid_until: Some(key.distrusted_at),
            ..TrustedKey::given(key.public_key)
        });
        // A key that is both pinned and distrusted stays distrusted, since the first match applies.
        distrusted.chain(self.trusted_keys()).collect()
    }

    /// Returns the public list of own keys. It doesn't contain pinned keys, which are private to the user.
    #[must_use]
    pub fn document(&self) -> KeysDocument {
        let entry = |key: &RingKey, status| KeyDocumentEntry {
            key_id: key.public_key.fingerprint(),
            algorithm: crate::SIGNATURE_ALGORITHM.to_owned(),
            public_key: key.public_key,
            valid_from: key.valid_from.map(whole_seconds),
            valid_until: key.valid_until.map(whole_seconds),
            status,
        };
        let current = self.current.iter().map(|key| entry(key, KeyStatus::Current));
        let retired = self.retired.iter().map(|key| entry(key, KeyStatus::Retired));
        KeysDocument { keys: current.chain(retired).collect() }
    }

    /// Creates a new private key and retires the current one, whose private half is deleted. A process that still has
    /// the old ring signs with the retired key until it opens the ring again; its signatures stay valid.
    ///
    /// # Errors
    /// Returns [`KeyRingError`]; the ring then still works with one of the two keys.
    pub fn rotate(&mut self, now: Timestamp) -> Result<PublicKey, KeyRingError> {
        let directory = self.directory()?;
        let store = Store::lock(&directory)?;
        let mut stored = store.read_ring()?;
        if let Some(present) = store.read_private_key()?
            && !stored.distrusts(present.public_key())
        {
            set_current(&mut stored, present.public_key(), now);
        }
        check_capacity(&stored)?;
        let signing = SigningKey::generate()?;
        set_current(&mut stored, signing.public_key(), now);
        // The key file determines the current key. If this process ends between the two writes, the next `open` finds
        // the old key, makes it current again and retires the new one, which never signed.
        store.write_ring(&stored)?;
        store.write_private_key(&signing)?;
        let public_key = signing.public_key();
        *self = Self::from_store(&directory, Some(signing), stored);
        Ok(public_key)
    }

    /// Distrusts one of the own keys, since someone else may have its private half: none of its signatures are valid
    /// any more, whatever their date. If it is the current key, a new one is created first.
    ///
    /// # Errors
    /// Returns [`KeyRingError`], and the key stays trusted; [`KeyRingError::NotOwn`] for any other key.
    pub fn distrust(&mut self, public_key: PublicKey, now: Timestamp) -> Result<(), KeyRingError> {
        let directory = self.directory()?;
        let store = Store::lock(&directory)?;
        let mut stored = store.read_ring()?;
        let present = store.read_private_key()?.filter(|key| !stored.distrusts(key.public_key()));
        if let Some(present) = &present {
            set_current(&mut stored, present.public_key(), now);
        }
        if stored.keys.iter().all(|key| key.public_key != public_key) {
            return Err(KeyRingError::NotOwn);
        }
        let signing = match present {
            Some(present) if present.public_key() != public_key => present,
            _ => {
                check_capacity(&stored)?;
                // Write the new private key first. If this process ends before the list is written, the next `open`
                // retires the old key, which then signs no more archives.
                let signing = SigningKey::generate()?;
                store.write_private_key(&signing)?;
                set_current(&mut stored, signing.public_key(), now);
                signing
            }
        };
        stored.keys.retain(|key| key.public_key != public_key);
        stored.distrusted.push(DistrustedKey { public_key, distrusted_at: now });
        store.write_ring(&stored)?;
        *self = Self::from_store(&directory, Some(signing), stored);
        Ok(())
    }

    /// Trusts a foreign key. Pinning it again changes its label.
    ///
    /// # Errors
    /// Returns [`KeyRingError`] if the label is empty, too long or has control characters, if the key was distrusted,
    /// or if files can't be written.
    pub fn pin(&mut self, public_key: PublicKey, label: &str, now: Timestamp) -> Result<(), KeyRingError> {
        let label = label.trim().to_owned();
        if label.is_empty() || label.chars().count() > LABEL_CHARS_MAX || label.chars().any(char::is_control)
        {
            return Err(KeyRingError::Label { chars_max: LABEL_CHARS_MAX });
        }
        self.change(|stored| {
            if stored.distrusts(public_key) {
                return Err(KeyRingError::PinDistrusted);
            }
            match stored.pinned.iter_mut().find(|pin| pin.public_key == public_key) {
                Some(pin) => pin.label = label,
                None => {
                    check_capacity(stored)?;
                    stored.pinned.push(PinnedKey { public_key, label, pinned_at: now });
                }
            }
            Ok(())
        })
    }

    /// Stops trusting the pinned key with this fingerprint. Returns true if there was one.
    ///
    /// # Errors
    /// Returns [`KeyRingError`] if files can't be read or written.
    pub fn unpin(&mut self, fingerprint: &str) -> Result<bool, KeyRingError> {
        let mut found = false;
        self.change(|stored| {
            stored.pinned.retain(|pin| {
                let matches = pin.public_key.fingerprint() == fingerprint;
                found |= matches;
                !matches
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// Changes the stored ring in its current state, not as this process last read it.
    fn change(
        &mut self,
        change: impl FnOnce(&mut StoredRing) -> Result<(), KeyRingError>,
    ) -> Result<(), KeyRingError> {
        let store = Store::lock(&self.directory()?)?;
        let before = Some(FileStamp::read(&store.directory));
        let mut stored = store.read_ring()?;
        change(&mut stored)?;
        store.write_ring(&stored)?;
        // If another process rotated the key meanwhile, keep the old stamp, so that the ring is still reloaded.
        if self.stamp == before {
            self.stamp = Some(FileStamp::read(&store.directory));
        }
        self.pinned = stored.pinned;
        Ok(())
    }

    fn directory(&self) -> Result<PathBuf, KeyRingError> {
        self.directory.clone().ok_or(KeyRingError::NotStored)
    }
}

/// Makes `current` the only key without an end time. Keeps all keys, since their signatures must stay valid. Returns
/// true if anything changed.
fn set_current(stored: &mut StoredRing, current: PublicKey, now: Timestamp) -> bool {
    let before = stored.keys.clone();
    for key in &mut stored.keys {
        if key.public_key == current {
            key.valid_until = None;
        } else {
            key.valid_until.get_or_insert(now);
        }
    }
    if stored.keys.iter().all(|key| key.public_key != current) {
        stored.keys.push(RingKey { public_key: current, valid_from: Some(now), valid_until: None });
    }
    stored.keys != before
}

fn check_capacity(stored: &StoredRing) -> Result<(), KeyRingError> {
    if stored.keys.len() + stored.pinned.len() + stored.distrusted.len() >= RING_KEYS_MAX {
        return Err(KeyRingError::Full { keys_max: RING_KEYS_MAX });
    }
    Ok(())
}

fn sort_latest_first(keys: &mut [RingKey]) {
    keys.sort_by_key(|key| std::cmp::Reverse((key.valid_until, key.valid_from)));
}

/// Parses `KEY` or `KEY@FROM/UNTIL`.
fn parse_old_key(entry: &str) -> Option<RingKey> {
    let (key, times) = match entry.split_once('@') {
        Some((key, times)) => (key, Some(times.split_once('/')?)),
        None => (entry, None),
    };
    let time = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let (from, until) = times.unwrap_or_default();
    Some(RingKey {
        public_key: PublicKey::parse(key).ok()?,
        valid_from: time(from)?,
        valid_until: time(until)?,
    })
}
