//! What an export function works with.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bench_blobs::Blobs;
use bench_domain::BenchmarkName;
use bench_signing::{KeyError, KeyRing, Limits, SigningKey};
use bench_state::State;
use bench_web::attempts::Attempts;
use bench_web::{Access, SecretLimits};
use tokio::sync::{Mutex, Semaphore};

use crate::spool::Spools;

/// Answers up to this size are given in one piece. Lambda's own limit is 6 MiB.
pub const INLINE_BYTES_MAX_DEFAULT: u64 = 5 * 1024 * 1024;

/// The largest archive taken for verification where the path allows it.
pub const UPLOAD_BYTES_MAX_DEFAULT: u64 = 512 * 1024 * 1024;

/// How long a presigned address is good.
pub const PRESIGNED_VALID_DEFAULT: Duration = Duration::from_secs(300);

/// Archives that are verified at the same time; each takes a processor.
const VERIFICATIONS_MAX: usize = 2;

/// Bytes of archives that wait for their verification in temporary files.
const SPOOLED_BYTES_MAX_DEFAULT: u64 = 1024 * 1024 * 1024;

/// How long an archive waits until others are received.
const UPLOAD_WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// How exports are made and served.
#[derive(Debug, Clone)]
pub struct ExportsConfig {
    /// Version of the program, as exports name it.
    pub software_version: String,
    /// Commit that it was built from, when that is known.
    pub git_sha: Option<String>,
    /// Answers up to this many bytes are given in one piece. Without `streaming` this is counted as Lambda carries
    /// them: base64 for an archive, a JSON text for a table.
    pub inline_bytes_max: u64,
    /// Larger ones: passed through as they come (true), or by redirect to a presigned address (false).
    pub streaming: bool,
    /// Of those, the largest that is passed through; what is larger goes by redirect. A function URL passes
    /// 200 MB through, and those not fast.
    pub streamed_bytes_max: u64,
    /// How long a presigned address is good.
    pub presigned_valid: Duration,
    /// The largest archive taken for verification as a part of a request, in bytes.
    pub upload_bytes_max: u64,
    /// Bytes of all archives together that are in temporary files until they are verified.
    pub spooled_bytes_max: u64,
    /// How long an archive waits until others are received, before its caller is told to come again.
    pub upload_wait: Duration,
    /// Whether callers can reach the bucket, so that larger files may be sent to it by presigned addresses.
    pub direct_uploads: bool,
    /// How long a request waits for an export that is being built, before it is told to come again. `None`: until
    /// it is built.
    pub build_wait: Option<Duration>,
    /// What an archive may ask of the verifier.
    pub verify_limits: Limits,
    /// Benchmarks whose prompts and answers only owner and admin may have.
    pub gated: BTreeSet<BenchmarkName>,
    /// How callers are told apart.
    pub access: Access,
    /// Treatment of wrong admin secrets.
    pub secret_limits: SecretLimits,
}

impl ExportsConfig {
    /// Defaults for one machine: streaming, no gated benchmarks.
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
            verify_limits: Limits::default(),
            gated: BTreeSet::new(),
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
    /// One export at a time: memory stays flat, and who asks for the same one meanwhile finds it built.
    pub(crate) building: Mutex<()>,
    /// Archives on their way in.
    pub(crate) spools: Spools,
    pub(crate) verifying: Semaphore,
    /// Uploads that callers asked for, by address.
    pub(crate) uploads: Attempts,
}

/// What signs an archive.
pub(crate) struct Signing {
    pub(crate) key: SigningKey,
    /// When the key began to sign, if that is known.
    pub(crate) since: Option<jiff::Timestamp>,
}

impl Exports {
    /// A context. `keys` may be what is wrong with the configured keys: then there is no signed archive and no
    /// verification, and both say so; tables work all the same.
    pub fn new(state: State, blobs: Blobs, keys: Result<KeyRing, KeyError>, config: ExportsConfig) -> Self {
        let verifying = Semaphore::new(VERIFICATIONS_MAX);
        let keys = RwLock::new(keys.map(Arc::new));
        let spools = Spools::new(config.spooled_bytes_max, config.upload_wait);
        let (building, uploads) = (Mutex::new(()), Attempts::default());
        Self { state, blobs, keys, config, building, spools, verifying, uploads }
    }

    /// How exports are made and served.
    pub fn config(&self) -> &ExportsConfig {
        &self.config
    }

    /// The blob store that holds the built files.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The keys as they are now: a ring whose files were changed, as by `bench keys rotate`, is read anew.
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

    /// The key that signs now, and since when it does.
    pub(crate) fn signing_key(&self) -> Result<Signing, KeyError> {
        let ring = self.key_ring()?;
        let since = ring.current().and_then(|key| key.valid_from);
        Ok(Signing { key: ring.signing_key()?.clone(), since })
    }
}
