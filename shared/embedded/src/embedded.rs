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
use crate::small::{Published, Small};
use crate::sqs::Sqs;
use crate::{Durability, EmbeddedError};

/// How often a call is sent at most, as deployed.
const TRIES_MAX: u32 = 6;

/// How to open the services.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmbeddedOptions {
    /// Where everything is kept: readable by the user alone, created if it does not exist.
    pub data_dir: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Faults to inject between the program and the services.
    pub faults: Option<Faults>,
    /// Observer of every call.
    pub recorder: Option<Recorder>,
    /// What Secrets Manager has, by name.
    pub secrets: BTreeMap<String, String>,
}

impl EmbeddedOptions {
    /// Full durability, no faults, no observer.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            durability: Durability::Full,
            faults: None,
            recorder: None,
            secrets: BTreeMap::new(),
        }
    }

    /// Sets what an acknowledged write survives.
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

    /// Lets Secrets Manager have a secret.
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
/// They end, and the directory's lock goes, with [`Embedded::close`] or with the last of all
/// clones and of all clients made from [`Embedded::sdk_config`].
#[derive(Debug, Clone)]
pub struct Embedded {
    services: Arc<Services>,
    epoch: u64,
    credentials: Credentials,
    data_dir: PathBuf,
}

impl Embedded {
    /// Locks the data directory, counts the start and opens the services. Blocks for as long as
    /// it takes to read the queue's file.
    ///
    /// # Errors
    /// [`EmbeddedError::InUse`] if another process has the directory, else what is wrong with it.
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
        let small = Small::new(credentials.secret_access_key.as_bytes(), options.secrets);
        let services = Services::new(dynamodb, sqs, s3, small, dir, injector, options.recorder);
        Ok(Self { services: Arc::new(services), epoch, credentials, data_dir: options.data_dir })
    }

    /// The configuration for SDK clients. S3 clients need `force_path_style(true)` on top.
    ///
    /// Retries are those of the deployed functions, so that injected throttling is met as on AWS.
    pub fn sdk_config(&self) -> SdkConfig {
        self.sdk_config_of(None)
    }

    /// The same for one function: a recorder hears that the call is its.
    pub fn sdk_config_for(&self, caller: &'static str) -> SdkConfig {
        self.sdk_config_of(Some(caller))
    }

    fn sdk_config_of(&self, caller: Option<&'static str>) -> SdkConfig {
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
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES_MAX))
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build()
    }

    /// How many times this data directory has been opened, this time included. Anything marked
    /// with a smaller number was held by a process that has ended.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The keys that the services accept, for a listener that serves presigned S3 URLs.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Where everything is kept.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// S3 as a service for a listener. `None` after [`Embedded::close`].
    pub fn s3(&self) -> Option<s3::Endpoint> {
        self.services.s3_endpoint()
    }

    /// Lets no queue hand out messages of these message groups from now on, for as long as this process lives. Their
    /// messages stay as they are: they are not counted as received, and `ApproximateNumberOfMessages` leaves them out.
    ///
    /// # Errors
    /// When the services are closed.
    pub async fn pause_groups(&self, groups: Vec<String>) -> Result<(), EmbeddedError> {
        let paused = self.services.sqs.pause(groups).await;
        paused.map_err(|_| EmbeddedError::Failed { service: "SQS", reason: "it is closed".to_owned() })
    }

    /// Lets the queues hand out messages of a paused group again. Without effect on any other group, and after
    /// [`Embedded::close`].
    pub fn resume_group(&self, group: impl Into<String>) {
        // Nothing is handed out any more once the thread has ended.
        let _ = self.services.sqs.resume(group.into());
    }

    /// What was published to SNS topics since the start, oldest first; the last 1,000.
    pub fn published(&self) -> Vec<Published> {
        self.services.small.sns.published()
    }

    /// How many faults were injected so far.
    pub fn fault_counts(&self) -> FaultCounts {
        self.services.fault_counts()
    }

    /// Deletes DynamoDB items whose time to live has passed; this also happens every minute.
    /// Returns how many.
    ///
    /// # Errors
    /// When the services are closed or the database fails.
    pub async fn sweep_ttl(&self) -> Result<usize, EmbeddedError> {
        self.services.dynamodb.sweep().await
    }

    /// Finishes what was asked, closes the files and releases the directory, whoever still has
    /// a client; later calls fail. Blocks until the service threads have ended.
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
