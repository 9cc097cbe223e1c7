//! Options for opening a stack.

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

/// Receiver of the note that the owner of a data directory is starting or ending: its process id, if known.
pub type OnWait = Arc<dyn Fn(Option<u32>) + Send + Sync>;

/// Default number of samples to work on at once.
pub const CONCURRENCY_DEFAULT: usize = 16;
/// Maximum number of samples to work on at once.
pub const CONCURRENCY_MAX: usize = 2_000;

/// An unusable setting, described in one sentence that names its variable.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(String);

impl SettingError {
    pub(crate) fn new(sentence: impl ToString) -> Self {
        Self(sentence.to_string())
    }
}

/// Creates a key wrapper from the configuration of AWS clients.
pub type KeyWrapperFactory = Arc<dyn Fn(&SdkConfig) -> Arc<dyn KeyWrapper> + Send + Sync>;

/// Options for opening a stack.
pub struct StackOptions {
    /// Data directory.
    pub data_dir: PathBuf,
    /// Durability of acknowledged writes.
    pub durability: Durability,
    /// Faults to inject, for tests.
    pub faults: Option<Faults>,
    /// Observer of every call to the services, for tests.
    pub recorder: Option<Recorder>,
    /// Secrets in Secrets Manager, by name, for functions that run in processes of their own.
    pub secrets: BTreeMap<String, String>,
    /// Number of samples to work on at once.
    pub concurrency: usize,
    /// If false, each sample is committed alone and counted in one of several shards, as by deployed functions. For
    /// measurements.
    pub groups_commits: bool,
    /// Receiver of progress events of dataset downloads.
    pub progress: Arc<dyn Progress>,
    /// True if the server listens on loopback, so that users of this machine need no key.
    pub local: bool,
    /// Runs to work on. Other runs of the data directory stay as they are and cause no calls or costs.
    pub scope: Scope,
    /// Command that the user started, which other processes name in messages, such as `bench serve`.
    pub command: String,
    /// If true, the stack listens on the data directory's socket, and uses the services of another process that owns the
    /// directory. If false, opening a directory that is in use fails.
    pub shares: bool,
    /// Receives a note if another process owns the directory and is only starting or ending. Without it, such a wait ends
    /// with an error after a few seconds.
    pub on_wait: Option<OnWait>,
    /// True if the process is going to start the stack, so that others may order runs from it.
    pub works: bool,
    /// Delay before the first redelivery of a failed message; shorter in tests.
    pub retry_delay: Duration,
    /// If true, programs on this machine can reach the bucket on a free loopback port, where presigned addresses work.
    pub s3_listener: bool,
    /// Program that the built-in sandbox host runs as its helper; by default this program itself. For tests, whose own
    /// program isn't `bench`.
    pub sandbox_helper: Option<PathBuf>,
    /// Creates a wrapper that protects callers' keys instead of the data directory's master key, from the configuration
    /// of AWS clients. For tests, which use KMS as deployed functions do.
    pub key_wrapper: Option<KeyWrapperFactory>,
    /// Environment variables, which all functions read from here.
    pub vars: BTreeMap<String, String>,
}

impl StackOptions {
    /// Returns the defaults, with the variables of this process.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Full,
            faults: None,
            recorder: None,
            secrets: BTreeMap::new(),
            concurrency: CONCURRENCY_DEFAULT,
            groups_commits: true,
            progress: Arc::new(NoProgress),
            local: true,
            scope: Scope::Server,
            command: "bench".to_owned(),
            shares: false,
            on_wait: None,
            works: false,
            retry_delay: QueueSettings::default().retry_delay,
            s3_listener: false,
            sandbox_helper: None,
            key_wrapper: None,
            vars: std::env::vars().collect(),
        }
    }
}
