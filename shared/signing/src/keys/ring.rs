//! The key ring: the key that signs, the keys that signed before, and foreign keys that the user trusts.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::store::{KeyRingError, Stamp, Store, StoredRing};
use super::{
    KeyDocumentEntry, KeyError, KeyRole, KeyStatus, KeysDocument, PublicKey, SigningKey, TrustedKey,
};
use crate::time::{after_rollout, whole_seconds};

/// Keys that a ring holds at most: own, pinned and distrusted ones together.
const RING_KEYS_MAX: usize = 1000;

/// The longest name of a pinned key, in characters.
const LABEL_CHARS_MAX: usize = 100;

/// A key that this installation signs or signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingKey {
    /// The key.
    pub public_key: PublicKey,
    /// When it began to sign, if known.
    pub valid_from: Option<Timestamp>,
    /// When it stopped, if it did and that is known.
    pub valid_until: Option<Timestamp>,
}

/// A foreign key that the user trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedKey {
    /// The key.
    pub public_key: PublicKey,
    /// The user's name for it.
    pub label: String,
    /// Since when it is trusted.
    pub pinned_at: Timestamp,
}

/// A key that this installation signed with and that isn't trusted any more, since somebody else may have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistrustedKey {
    /// The key.
    pub public_key: PublicKey,
    /// Since when it isn't trusted.
    pub distrusted_at: Timestamp,
}

/// What the environment says about keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingConfig<'a> {
    /// `BENCH_SIGNING_PRIVATE_KEY`.
    pub private_key: Option<&'a str>,
    /// `BENCH_SIGNING_PUBLIC_KEY`. Alone it makes a ring that verifies and cannot sign.
    pub public_key: Option<&'a str>,
    /// `BENCH_SIGNING_OLD_PUBLIC_KEYS`: entries separated by commas or white space, each base64 of a public key,
    /// optionally followed by `@FROM/UNTIL` (RFC 3339 times; either may be left out).
    pub old_public_keys: Option<&'a str>,
    /// When the current key began to sign. Without it, that was when the last old key stopped, if that is known.
    pub valid_from: Option<Timestamp>,
}

/// Keys to sign and to verify with.
#[derive(Debug)]
pub struct KeyRing {
    signing: Option<SigningKey>,
    current: Option<RingKey>,
    retired: Vec<RingKey>,
    pinned: Vec<PinnedKey>,
    distrusted: Vec<DistrustedKey>,
    directory: Option<PathBuf>,
    /// The files as they were read.
    stamp: Option<Stamp>,
}

impl KeyRing {
    /// Opens the ring in `directory`. On first use the directory and a private key are made there; of several
    /// processes that start at once, one makes the key and all get the same. A key file that was replaced by
    /// hand becomes the current key, and the one before it is retired.
    ///
    /// # Errors
    /// [`KeyRingError`] when files cannot be read or written, are damaged, the private key is exposed to others, or it is
    /// one that was distrusted.
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
        if settle(&mut stored, signing.public_key(), now) {
            store.write_ring(&stored)?;
        }
        Ok(Self::from_store(directory, Some(signing), stored))
    }

    /// Reads the public part of the ring in `directory`, for verification. Nothing is created, and the private key
    /// is not touched; a directory that does not exist is an empty ring.
    ///
    /// # Errors
    /// [`KeyRingError`] when the file cannot be read or is damaged.
    pub fn read(directory: &Path) -> Result<Self, KeyRingError> {
        Ok(Self::from_store(directory, None, Store::peek(directory)?))
    }

    /// Makes a ring from configured values, without files. It cannot be rotated, and nothing can be pinned in it.
    ///
    /// # Errors
    /// [`KeyError`] for the first value that is wrong; [`KeyError::NotConfigured`] without any key.
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
        let stamp = Some(Stamp::of(directory));
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

    /// The ring as it is in its directory now, if its files were changed since they were read: by another process
    /// that rotated or pinned, or by hand. `None` when they were not, and for a ring without files.
    ///
    /// # Errors
    /// Those of [`KeyRing::open`]; this ring still works as it was.
    pub fn reopened(&self, now: Timestamp) -> Result<Option<Self>, KeyRingError> {
        match &self.directory {
            Some(directory) if self.stamp != Some(Stamp::of(directory)) => {
                Self::open(directory, now).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The key to sign with.
    ///
    /// # Errors
    /// [`KeyError::NotConfigured`] when the ring has only public keys.
    pub fn signing_key(&self) -> Result<&SigningKey, KeyError> {
        self.signing.as_ref().ok_or(KeyError::NotConfigured)
    }

    /// The public key in use now; none in an empty ring.
    #[must_use]
    pub fn current(&self) -> Option<&RingKey> {
        self.current.as_ref()
    }

    /// Keys used before, the latest first.
    #[must_use]
    pub fn retired(&self) -> &[RingKey] {
        &self.retired
    }

    /// Foreign keys that the user trusts, in the order of pinning.
    #[must_use]
    pub fn pinned(&self) -> &[PinnedKey] {
        &self.pinned
    }

    /// Own keys that aren't trusted any more, in the order in which that was decided.
    #[must_use]
    pub fn distrusted(&self) -> &[DistrustedKey] {
        &self.distrusted
    }

    /// Everything that verification accepts: current, retired, pinned.
    #[must_use]
    pub fn trusted_keys(&self) -> Vec<TrustedKey> {
        let own = |key: &RingKey, role| TrustedKey {
            public_key: key.public_key,
            role,
            label: None,
            valid_from: key.valid_from,
            // Who changes a stored secret can't change running processes at the same moment. A ring in a directory is
            // read anew before each signature.
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

    /// Everything that verification should know: the trusted keys, and those that it refuses by name.
    #[must_use]
    pub fn known_keys(&self) -> Vec<TrustedKey> {
        let distrusted = self.distrusted.iter().map(|key| TrustedKey {
            role: KeyRole::Distrusted,
            valid_until: Some(key.distrusted_at),
            ..TrustedKey::given(key.public_key)
        });
        // A key that is pinned although it was distrusted stays distrusted: the first of a name is the one that counts.
        distrusted.chain(self.trusted_keys()).collect()
    }

    /// The public list of own keys. Pinned keys are the user's private matter and not in it.
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

    /// Makes a new private key and retires the present one, whose private half is gone after that. A process
    /// that still holds the old ring goes on signing with the retired key until it opens the ring again;
    /// what it signs verifies.
    ///
    /// # Errors
    /// [`KeyRingError`]; the ring then still works with one of the two keys.
    pub fn rotate(&mut self, now: Timestamp) -> Result<PublicKey, KeyRingError> {
        let directory = self.directory()?;
        let store = Store::lock(&directory)?;
        let mut stored = store.read_ring()?;
        if let Some(present) = store.read_private_key()?
            && !stored.distrusts(present.public_key())
        {
            settle(&mut stored, present.public_key(), now);
        }
        room_for_one(&stored)?;
        let signing = SigningKey::generate()?;
        settle(&mut stored, signing.public_key(), now);
        // The key file decides which key is current. If this process ends between the two writes, the next
        // `open` finds the old key there, makes it current again and retires the new one, which never signed.
        store.write_ring(&stored)?;
        store.write_private_key(&signing)?;
        let public_key = signing.public_key();
        *self = Self::from_store(&directory, Some(signing), stored);
        Ok(public_key)
    }

    /// Stops trusting one of the own keys, since somebody else may have its private half: what it signed isn't valid any
    /// more, whenever that was. If it is the current key, a new one is made first.
    ///
    /// # Errors
    /// [`KeyRingError`]; the key is then trusted as before. [`KeyRingError::NotOwn`] for any other key.
    pub fn distrust(&mut self, public_key: PublicKey, now: Timestamp) -> Result<(), KeyRingError> {
        let directory = self.directory()?;
        let store = Store::lock(&directory)?;
        let mut stored = store.read_ring()?;
        let present = store.read_private_key()?.filter(|key| !stored.distrusts(key.public_key()));
        if let Some(present) = &present {
            settle(&mut stored, present.public_key(), now);
        }
        if stored.keys.iter().all(|key| key.public_key != public_key) {
            return Err(KeyRingError::NotOwn);
        }
        let signing = match present {
            Some(present) if present.public_key() != public_key => present,
            _ => {
                room_for_one(&stored)?;
                // The new private key comes first. If this process ends before the list is written, the next `open`
                // retires the old key, and nothing signs with it any more.
                let signing = SigningKey::generate()?;
                store.write_private_key(&signing)?;
                settle(&mut stored, signing.public_key(), now);
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
    /// [`KeyRingError`] when the label is empty, long or has control characters, the key was distrusted, or files cannot
    /// be written.
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
                    room_for_one(stored)?;
                    stored.pinned.push(PinnedKey { public_key, label, pinned_at: now });
                }
            }
            Ok(())
        })
    }

    /// Stops trusting the pinned key with this fingerprint. Says whether there was one.
    ///
    /// # Errors
    /// [`KeyRingError`] when files cannot be read or written.
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

    /// Changes the stored ring as it is now, not as this process read it.
    fn change(
        &mut self,
        change: impl FnOnce(&mut StoredRing) -> Result<(), KeyRingError>,
    ) -> Result<(), KeyRingError> {
        let store = Store::lock(&self.directory()?)?;
        let before = Some(Stamp::of(&store.directory));
        let mut stored = store.read_ring()?;
        change(&mut stored)?;
        store.write_ring(&stored)?;
        // Another process may have rotated meanwhile: then the files differ from this ring all the same.
        if self.stamp == before {
            self.stamp = Some(Stamp::of(&store.directory));
        }
        self.pinned = stored.pinned;
        Ok(())
    }

    fn directory(&self) -> Result<PathBuf, KeyRingError> {
        self.directory.clone().ok_or(KeyRingError::NotStored)
    }
}

/// Makes `current` the only key without an end. Nothing is removed: what any of the keys signed must verify.
/// Says whether something changed.
fn settle(stored: &mut StoredRing, current: PublicKey, now: Timestamp) -> bool {
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

fn room_for_one(stored: &StoredRing) -> Result<(), KeyRingError> {
    if stored.keys.len() + stored.pinned.len() + stored.distrusted.len() >= RING_KEYS_MAX {
        return Err(KeyRingError::Full { keys_max: RING_KEYS_MAX });
    }
    Ok(())
}

fn sort_latest_first(keys: &mut [RingKey]) {
    keys.sort_by_key(|key| std::cmp::Reverse((key.valid_until, key.valid_from)));
}

/// Reads `KEY` or `KEY@FROM/UNTIL`.
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
