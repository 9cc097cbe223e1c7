//! How a stack is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aws_types::SdkConfig;
use bench_datasets::{NoProgress, Progress};
use bench_embedded::{Durability, Faults, Recorder};
use bench_queue::QueueSettings;
use bench_state::Scope;
use bench_state::credentials::KeyWrapper;

/// Samples worked on at once unless said otherwise.
pub const CONCURRENCY_DEFAULT: usize = 16;
/// Upper bound of samples worked on at once.
pub const CONCURRENCY_MAX: usize = 2_000;

/// A setting that can't be used, in one sentence that names its variable.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

impl SettingError {
    pub(crate) fn new(sentence: impl ToString) -> Self {
        Self(sentence.to_string())
    }
}

/// Makes a key wrapper from the configuration of AWS clients.
pub type KeyWrapperFor = Arc<dyn Fn(&SdkConfig) -> Arc<dyn KeyWrapper> + Send + Sync>;

/// How a stack is opened.
pub struct StackOptions {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Faults to inject; for tests.
    pub faults: Option<Faults>,
    /// Observer of every call to the services; for tests.
    pub recorder: Option<Recorder>,
    /// Secrets that Secrets Manager holds, by name; for functions that run in processes of their own.
    pub secrets: BTreeMap<String, String>,
    /// Samples worked on at once.
    pub concurrency: usize,
    /// Hears of dataset downloads.
    pub progress: Arc<dyn Progress>,
    /// Bound to loopback: whoever sits at this machine needs no key.
    pub local: bool,
    /// The runs that it works on. The others of the data directory stay as they are: not asked, not paid for.
    pub scope: Scope,
    /// When a message that failed comes again the first time; shorter for tests.
    pub again: Duration,
    /// Lets programs on this machine reach the bucket, on a free loopback port: presigned addresses work there.
    pub s3_listener: bool,
    /// Program that the built-in sandbox host runs as its helper; this program itself where it is not said. For tests,
    /// whose own program is no `bench`.
    pub sandbox_helper: Option<PathBuf>,
    /// Protects callers' keys in place of the data directory's master key, for clients with the given configuration. For
    /// tests, which use KMS as deployed functions do.
    pub key_wrapper: Option<KeyWrapperFor>,
    /// Variables of the environment, as every function reads them.
    pub vars: BTreeMap<String, String>,
}

impl StackOptions {
    /// The defaults, with the variables of this process.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Full,
            faults: None,
            recorder: None,
            secrets: BTreeMap::new(),
            concurrency: CONCURRENCY_DEFAULT,
            progress: Arc::new(NoProgress),
            local: true,
            scope: Scope::Server,
            again: QueueSettings::default().retry_delay,
            s3_listener: false,
            sandbox_helper: None,
            key_wrapper: None,
            vars: std::env::vars().collect(),
        }
    }
}
