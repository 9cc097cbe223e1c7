//! Context of the export function.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bench_blobs::Blobs;
use bench_report::{FontError, Fonts};
use bench_signing::{KeyError, KeyRing, Limits, SigningKey};
use bench_state::State;
use bench_web::attempts::Attempts;
use bench_web::{Access, SecretLimits};
use tokio::sync::{Mutex, Semaphore};

use crate::spool::Spools;

/// Default maximum size of a response that is sent in one piece. Lambda's own limit is 6 MiB.
pub const INLINE_BYTES_MAX_DEFAULT: u64 = 5 * 1024 * 1024;

/// Default maximum size of an archive that is verified as part of a request.
pub const UPLOAD_BYTES_MAX_DEFAULT: u64 = 512 * 1024 * 1024;

/// Default validity of a presigned address.
pub const PRESIGNED_VALID_DEFAULT: Duration = Duration::from_secs(300);

/// Maximum number of concurrent verifications; each occupies a processor.
const VERIFICATIONS_MAX: usize = 2;

/// Default limit on the bytes of archives in temporary files that wait for their verification.
const SPOOLED_BYTES_MAX_DEFAULT: u64 = 1024 * 1024 * 1024;

/// Default time that an archive waits for a free slot.
const UPLOAD_WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// Settings of exports.
#[derive(Debug, Clone)]
pub struct ExportsConfig {
    /// Version of the program, as written into exports.
    pub software_version: String,
    /// Commit of the build, if known.
    pub git_sha: Option<String>,
    /// Maximum size of a response that is sent in one piece, in bytes. Without `streaming`, the size is
    /// counted as Lambda carries it: base64 for an archive, a JSON text for a table.
    pub inline_bytes_max: u64,
    /// If true, larger files are streamed; if false, the response redirects to a presigned address.
    pub streaming: bool,
    /// Maximum size of a streamed file, in bytes; larger ones are redirected. A function URL streams at most
    /// 200 MB, and slowly.
    pub streamed_bytes_max: u64,
    /// Validity of a presigned address.
    pub presigned_valid: Duration,
    /// Maximum size of an archive that is verified as part of a request, in bytes.
    pub upload_bytes_max: u64,
    /// Limit on the bytes of all archives in temporary files until they are verified.
    pub spooled_bytes_max: u64,
    /// Time that an archive waits for a free slot before its caller is asked to retry.
    pub upload_wait: Duration,
    /// True if callers can reach the bucket, so that larger files can be sent there through presigned addresses.
    pub direct_uploads: bool,
    /// Time that a request waits for an export that is being built, before the caller is asked to retry.
    /// `None` waits until it is built.
    pub build_wait: Option<Duration>,
    /// Address of the page that verifies archives, for reports; `None` if this server's address isn't known.
    pub verify_url: Option<String>,
    /// Place of the fonts of reports.
    pub fonts: FontSource,
    /// Limits on the archives that the verifier accepts.
    pub verify_limits: Limits,
    /// Identifies callers.
    pub access: Access,
    /// Delays and limits for wrong admin secrets.
    pub secret_limits: SecretLimits,
}

/// Place of the fonts of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FontSource {
    /// Files in a folder.
    Folder(PathBuf),
    /// Parts of the program.
    #[cfg(feature = "embedded-fonts")]
    Embedded,
}

impl Default for FontSource {
    /// Returns the fonts in the program if it has some, else the folder where Lambda puts those of the layer.
    fn default() -> Self {
        #[cfg(feature = "embedded-fonts")]
        return Self::Embedded;
        #[cfg(not(feature = "embedded-fonts"))]
        Self::Folder(PathBuf::from("/opt/fonts"))
    }
}

impl FontSource {
    fn read(&self) -> Result<Fonts, FontError> {
        match self {
            Self::Folder(folder) => Fonts::read(|name| std::fs::read(folder.join(name)).map(Cow::Owned)),
            #[cfg(feature = "embedded-fonts")]
            Self::Embedded => Fonts::embedded(),
        }
    }
}

impl ExportsConfig {
    /// Sets the address of the page that verifies archives, below the public address of the server (`FRONTEND_URL`).
    #[must_use]
    pub fn with_public_address(mut self, address: Option<&str>) -> Self {
        let address = address.map(|address| address.trim().trim_end_matches('/'));
        let is_web = |address: &&str| address.starts_with("https://") || address.starts_with("http://");
        self.verify_url = address.filter(is_web).map(|address| format!("{address}/verify"));
        self
    }

    /// Creates the settings for one machine: streaming.
    pub fn new(software_version: impl Into<String>, access: Access) -> Self {
        Self {
            software_version: software_version.into(),
            git_sha: None,
            inline_bytes_max: INLINE_BYTES_MAX_DEFAULT,
            streaming: true,
            streamed_bytes_max: u64::MAX,
            presigned_valid: PRESIGNED_VALID_DEFAULT,
            upload_bytes_max: UPLOAD_BYTES_MAX_DEFAULT,
            spooled_bytes_max: SPOOLED_BYTES_MAX_DEFAULT,
            upload_wait: UPLOAD_WAIT_DEFAULT,
            direct_uploads: false,
            build_wait: None,
            verify_url: None,
            fonts: FontSource::default(),
            verify_limits: Limits::default(),
            access,
            secret_limits: SecretLimits::default(),
        }
    }
}

/// State, blobs, keys and settings of exports.
#[derive(Debug)]
pub struct Exports {
    pub(crate) state: State,
    pub(crate) blobs: Blobs,
    keys: RwLock<Result<Arc<KeyRing>, KeyError>>,
    pub(crate) config: ExportsConfig,
    /// Serializes builds: memory stays flat, and a concurrent request for the same export finds it built.
    pub(crate) building: Mutex<()>,
    /// Archives that are being received.
    pub(crate) spools: Spools,
    pub(crate) verifying: Semaphore,
    /// Fonts of reports, once one was rendered.
    fonts: OnceLock<Arc<Fonts>>,
    /// Requested uploads, counted by the caller's address.
    pub(crate) uploads: Attempts,
}

/// A key that signs archives.
pub(crate) struct Signing {
    pub(crate) key: SigningKey,
    /// Start of the key's validity, if known.
    pub(crate) since: Option<jiff::Timestamp>,
}

impl Exports {
    /// Creates the context. If `keys` is an error, signed archives and verification fail with it; tables still work.
    pub fn new(state: State, blobs: Blobs, keys: Result<KeyRing, KeyError>, config: ExportsConfig) -> Self {
        let verifying = Semaphore::new(VERIFICATIONS_MAX);
        let keys = RwLock::new(keys.map(Arc::new));
        let spools = Spools::new(config.spooled_bytes_max, config.upload_wait);
        let (building, uploads) = (Mutex::new(()), Attempts::default());
        let fonts = OnceLock::new();
        Self { state, blobs, keys, config, building, spools, verifying, fonts, uploads }
    }

    /// Returns the settings.
    pub fn config(&self) -> &ExportsConfig {
        &self.config
    }

    /// Returns the blob store that holds the built files.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the fonts of reports. Reads them the first time, which takes some milliseconds.
    pub(crate) fn fonts(&self) -> Result<Arc<Fonts>, FontError> {
        if let Some(fonts) = self.fonts.get() {
            return Ok(Arc::clone(fonts));
        }
        let fonts = Arc::new(self.config.fonts.read()?);
        Ok(Arc::clone(self.fonts.get_or_init(|| fonts)))
    }

    /// Returns the current keys. Reloads a key ring whose files were changed, as by `bench keys rotate`.
    pub(crate) fn key_ring(&self) -> Result<Arc<KeyRing>, KeyError> {
        let ring = self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        match ring.reload_if_changed(jiff::Timestamp::now()) {
            Ok(None) => Ok(ring),
            Ok(Some(fresh)) => {
                let fresh = Arc::new(fresh);
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Ok(Arc::clone(&fresh));
                tracing::info!("The signing keys were changed and are read anew");
                Ok(fresh)
            }
            Err(error) => {
                tracing::warn!(%error, "The changed signing keys cannot be used, the earlier ones are: {error}");
                Ok(ring)
            }
        }
    }

    /// Returns the current signing key and the start of its validity.
    pub(crate) fn signing_key(&self) -> Result<Signing, KeyError> {
        let ring = self.key_ring()?;
        let since = ring.current().and_then(|key| key.valid_from);
        Ok(Signing { key: ring.signing_key()?.clone(), since })
    }
}
