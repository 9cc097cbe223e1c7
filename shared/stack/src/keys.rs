//! Keys of an installation: signing keys for its archives, and the master key that protects callers' keys.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bench_signing::{KeyRing, RingConfig};
use bench_state::credentials::{KEY_BYTES, LocalKey};

use crate::SettingError;

/// Returns the folder of this installation's signing keys.
pub fn keys_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("keys")
}

/// Reads the signing keys from variables, or returns `None` if no variable is set.
///
/// # Errors
/// Fails if a variable contains no valid key.
pub fn key_ring_from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Option<KeyRing>, SettingError> {
    let (private, public) = (var("BENCH_SIGNING_PRIVATE_KEY"), var("BENCH_SIGNING_PUBLIC_KEY"));
    if private.is_none() && public.is_none() {
        return Ok(None);
    }
    let old = var("BENCH_SIGNING_OLD_PUBLIC_KEYS");
    let config = RingConfig {
        private_key: private.as_deref(),
        public_key: public.as_deref(),
        old_public_keys: old.as_deref(),
        valid_from: None,
    };
    KeyRing::from_config(&config).map(Some).map_err(SettingError::new)
}

/// Returns the keys from the environment if it has any, else those of the data directory.
pub(crate) fn key_ring(data_dir: &Path, var: impl Fn(&str) -> Option<String>) -> anyhow::Result<KeyRing> {
    if let Some(ring) = key_ring_from_vars(var)? {
        return Ok(ring);
    }
    let dir = keys_dir(data_dir);
    KeyRing::open(&dir, jiff::Timestamp::now())
        .with_context(|| format!("could not open the signing keys in {}", dir.display()))
}

/// Returns the master key, which protects callers' keys. Creates it on the first start, readable by its owner alone.
pub(crate) fn master_key(data_dir: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    let path = data_dir.join("master.key");
    let shown = path.display();
    if !path.exists() {
        // Written under another name first, so that an existing key file is always complete. The data directory's lock
        // excludes other writers.
        let key = LocalKey::generate()?;
        let new = data_dir.join("master.key.new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .with_context(|| format!("could not write {shown}"))?;
        file.write_all(&key)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("could not write {shown}"))?;
    }
    let mode = fs::metadata(&path).with_context(|| format!("could not read {shown}"))?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("{shown} can be read by others: run `chmod 600 {shown}`");
    }
    let key = fs::read(&path).with_context(|| format!("could not read {shown}"))?;
    key.try_into().map_err(|_| {
        anyhow::anyhow!("{shown} is damaged: remove it; keys of open runs must then be given again")
    })
}
