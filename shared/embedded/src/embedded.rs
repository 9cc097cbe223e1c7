//! Opening and closing the services.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::SystemTimeSource;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;

use crate::account::{ENDPOINT, REGION};
use crate::calls::Recorder;
use crate::connector::{Connector, Services};
use crate::data_dir::{Credentials, DataDir};
use crate::dynamodb::DynamoDb;
use crate::faults::{FaultCounts, Faults, Injector};
use crate::private::{private_database, private_folder};
use crate::s3;
use crate::small_services::{PublishedMessage, SmallServices};
use crate::sqs::Sqs;
use crate::{Durability, EmbeddedError};

/// Maximum number of attempts of a call, as for the deployed functions.
const ATTEMPTS_MAX: u32 = 6;

/// Options for opening the services.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddedOptions {
    /// Data directory: readable by the user only, and created if it doesn't exist.
    pub data_dir: PathBuf,
    /// Events that an acknowledged write survives.
    pub durability: Durability,
    /// Faults to inject between the program and the services.
    pub faults: Option<Faults>,
    /// Observer of every call.
    pub recorder: Option<Recorder>,
    /// Secrets in Secrets Manager, by name.
    pub secrets: BTreeMap<String, String>,
}

impl EmbeddedOptions {
    /// Creates options with full durability, no faults and no observer.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Full,
            faults: None,
            recorder: None,
            secrets: BTreeMap::new(),
        }
    }

    /// Sets the durability of acknowledged writes.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Injects faults.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Adds a secret to Secrets Manager.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Observes calls.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }
}

/// The services of one data directory. Clones share them.
///
/// They end, and the directory is unlocked, with [`Embedded::close`] or when the last clone and the last client made
/// from [`Embedded::sdk_config`] are dropped.
#[derive(Debug, Clone)]
pub struct Embedded {
    services: Arc<Services>,
    epoch: u64,
    credentials: Credentials,
    data_dir: PathBuf,
}

impl Embedded {
    /// Locks the data directory, counts the start and opens the services. Blocks while it loads the queues' file.
    ///
    /// # Errors
    /// Returns [`EmbeddedError::InUse`] if another process uses the directory, and other errors for problems with it.
    pub fn open(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let dir = DataDir::open(&options.data_dir)?;
        let (epoch, credentials) = (dir.epoch(), dir.credentials().clone());
        let database = |name| {
            let path = dir.path().join(name);
            private_database(&path).map(|()| path)
        };
        let dynamodb = DynamoDb::open(&database("dynamodb.sqlite")?, options.durability)?;
        let sqs = Sqs::open(&database("sqs.sqlite")?, options.durability)?;
        let s3 = open_s3(&dir.path().join("s3"), options.durability, &credentials)?;
        let injector = options.faults.map(Injector::new);
        let small_services = SmallServices::new(credentials.secret_access_key.as_bytes(), options.secrets);
        let services = Services::new(dynamodb, sqs, s3, small_services, dir, injector, options.recorder);
        Ok(Self { services: Arc::new(services), epoch, credentials, data_dir: options.data_dir })
    }

    /// Returns the configuration for SDK clients. S3 clients also need `force_path_style(true)`.
    ///
    /// Retries are configured as in the deployed functions, so that injected throttling has the same effects as on AWS.
    pub fn sdk_config(&self) -> SdkConfig {
        self.sdk_config_with_caller(None)
    }

    /// Returns the configuration for one function, which recorders then see as the caller.
    pub fn sdk_config_for(&self, caller: &'static str) -> SdkConfig {
        self.sdk_config_with_caller(Some(caller))
    }

    fn sdk_config_with_caller(&self, caller: Option<&'static str>) -> SdkConfig {
        let keys = aws_credential_types::Credentials::new(
            &self.credentials.access_key_id,
            &self.credentials.secret_access_key,
            None,
            None,
            "embedded",
        );
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_url(ENDPOINT)
            .credentials_provider(SharedCredentialsProvider::new(keys))
            .http_client(Connector { services: Arc::clone(&self.services), caller })
            .sleep_impl(TokioSleep::new())
            .time_source(SystemTimeSource::new())
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX))
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build()
    }

    /// Returns the number of times that this data directory has been opened, including this one. Anything marked with a
    /// smaller number belonged to a process that has ended.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the keys that the services accept, for a listener that serves presigned S3 URLs.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Returns S3 as a service for a listener; `None` after [`Embedded::close`].
    pub fn s3(&self) -> Option<s3::Endpoint> {
        self.services.s3_endpoint()
    }

    /// Stops the delivery of messages of these groups in all queues, until this process ends. The messages stay
    /// unchanged: they aren't counted as received, and `ApproximateNumberOfMessages` doesn't include them.
    ///
    /// # Errors
    /// Returns an error if the services are closed.
    pub async fn pause_groups(&self, groups: Vec<String>) -> Result<(), EmbeddedError> {
        let paused = self.services.sqs.pause(groups).await;
        paused.map_err(|_| EmbeddedError::Failed { service: "SQS", reason: "it is closed".to_owned() })
    }

    /// Resumes the delivery of messages of a paused group. Has no effect on other groups, and after
    /// [`Embedded::close`].
    pub fn resume_group(&self, group: impl Into<String>) {
        // After the thread has ended, no messages are delivered anyway.
        let _ = self.services.sqs.resume(group.into());
    }

    /// Returns the messages published to SNS topics since the start, oldest first, at most the last 1,000.
    pub fn published(&self) -> Vec<PublishedMessage> {
        self.services.small_services.sns.published()
    }

    /// Returns the number of faults injected so far.
    pub fn fault_counts(&self) -> FaultCounts {
        self.services.fault_counts()
    }

    /// Deletes DynamoDB items whose time to live has passed, which also happens every minute. Returns their number.
    ///
    /// # Errors
    /// Returns an error if the services are closed or the database fails.
    pub async fn sweep_ttl(&self) -> Result<usize, EmbeddedError> {
        self.services.dynamodb.sweep().await
    }

    /// Finishes pending requests, closes the files and releases the directory, even if there are other clients; their
    /// later calls fail. Blocks until the service threads have ended.
    pub fn close(self) {
        self.services.shut_down();
    }
}

fn open_s3(
    dir: &Path,
    durability: Durability,
    credentials: &Credentials,
) -> Result<s3::Endpoint, EmbeddedError> {
    private_folder(dir)?;
    private_database(&dir.join("index.sqlite"))?;
    let store = s3::Store::open(dir, durability == Durability::Full).map_err(|error| match error {
        s3::StoreError::Full => EmbeddedError::DiskFull { path: dir.to_owned() },
        error => EmbeddedError::Store { service: "S3", path: dir.to_owned(), reason: error.to_string() },
    })?;
    Ok(s3::Endpoint::new(store, &credentials.access_key_id, &credentials.secret_access_key))
}
