//! Opening and closing the services.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::SystemTimeSource;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;

use crate::EmbeddedError;
use crate::account::{ENDPOINT, REGION};
use crate::connector::{Connector, Services};
use crate::data_dir::{Credentials, read_credentials};
use crate::faults::FaultCounts;
use crate::host::QueueClient;
use crate::opening::{EmbeddedOptions, OpenedServices};
use crate::s3;
use crate::small_services::PublishedMessage;
use crate::socket::{Attached, AttachedConnector, SocketClient};
use crate::sqs::GroupLimit;
use crate::table::DirectTables;

/// Maximum number of attempts of a call, as for the deployed functions.
const ATTEMPTS_MAX: u32 = 6;

/// The services of one data directory. Clones share them.
///
/// They end, and the directory is unlocked, with [`Embedded::close`] or when the last clone and the last client made
/// from [`Embedded::sdk_config`] are dropped.
#[derive(Debug, Clone)]
pub struct Embedded {
    place: Place,
    epoch: u64,
    credentials: Credentials,
    data_dir: PathBuf,
}

/// Place of the services.
#[derive(Debug, Clone)]
enum Place {
    /// This process, which owns the data directory.
    Here(Arc<Services>),
    /// The process that owns the data directory.
    Attached(Arc<Attached>),
}

impl Embedded {
    /// Locks the data directory, counts the start and opens the services. Blocks while it loads the queues' file.
    ///
    /// # Errors
    /// Returns [`EmbeddedError::InUse`] if another process uses the directory, and other errors for problems with it.
    pub fn open(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let data_dir = options.data_dir.clone();
        let OpenedServices { services, epoch, credentials } = Services::open(options)?;
        Ok(Self { place: Place::Here(services), epoch, credentials, data_dir })
    }

    /// Uses the services of the process that owns the data directory, whose start count is `epoch`. When that process
    /// ends, calls go to the next owner; if there is none, this process opens the services with these options.
    ///
    /// # Errors
    /// Returns an error if the directory's keys can't be read.
    pub fn attach(options: EmbeddedOptions, client: SocketClient, epoch: u64) -> Result<Self, EmbeddedError> {
        let data_dir = options.data_dir.clone();
        let credentials = read_credentials(&data_dir)?;
        Ok(Self {
            place: Place::Attached(Arc::new(Attached::new(options, client))),
            epoch,
            credentials,
            data_dir,
        })
    }

    /// Returns true if another process owned the data directory when it was opened.
    pub fn is_attached(&self) -> bool {
        matches!(self.place, Place::Attached(_))
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

    /// Returns the connector of that function's clients, for simple requests to the bucket that are built without the SDK:
    /// this process needs no valid signature. They are recorded and fail like those of the SDK. `None` if another process
    /// owns the services, since it checks signatures.
    pub fn connector_for(&self, caller: &'static str) -> Option<SharedHttpConnector> {
        let services = Arc::clone(self.services()?);
        Some(SharedHttpConnector::new(Connector { services, caller: Some(caller) }))
    }

    /// Returns a client of that function for calls of tables that need no HTTP; `None` if another process owns the services.
    pub fn direct_tables_for(&self, caller: &'static str) -> Option<DirectTables> {
        let services = Arc::clone(self.services()?);
        Some(DirectTables { services, caller })
    }

    /// Returns a client of the queues of `sdk`, for a host in this process.
    pub fn queue_client(&self, sdk: aws_sdk_sqs::Client) -> QueueClient {
        match self.services() {
            Some(services) => QueueClient::direct(sdk, Arc::clone(services)),
            None => QueueClient::new(sdk),
        }
    }

    fn sdk_config_with_caller(&self, caller: Option<&'static str>) -> SdkConfig {
        let keys = aws_credential_types::Credentials::new(
            &self.credentials.access_key_id,
            &self.credentials.secret_access_key,
            None,
            None,
            "embedded",
        );
        let builder = SdkConfig::builder();
        let builder = match &self.place {
            Place::Here(services) => {
                builder.http_client(Connector { services: Arc::clone(services), caller })
            }
            Place::Attached(attached) => {
                builder.http_client(AttachedConnector { attached: Arc::clone(attached), caller })
            }
        };
        builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_url(ENDPOINT)
            .credentials_provider(SharedCredentialsProvider::new(keys))
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

    /// Tells other processes that this one doesn't answer them, since it has no socket.
    ///
    /// # Errors
    /// Returns an error if the lock's file can't be written.
    pub fn cannot_share(&self) -> Result<(), EmbeddedError> {
        self.services().map_or(Ok(()), |services| services.cannot_share())
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Returns the services; `None` if another process owns them.
    pub(crate) fn services(&self) -> Option<&Arc<Services>> {
        match &self.place {
            Place::Here(services) => Some(services),
            Place::Attached(_) => None,
        }
    }

    /// Returns S3 as a service for a listener; `None` after [`Embedded::close`], and if another process owns it.
    pub fn s3(&self) -> Option<s3::Endpoint> {
        self.services()?.s3_endpoint()
    }

    /// Stops the delivery of messages of these groups in all queues, until this process ends. The messages stay
    /// unchanged: they aren't counted as received, and `ApproximateNumberOfMessages` doesn't include them. Has no effect
    /// if another process owns the queues.
    ///
    /// # Errors
    /// Returns an error if the services are closed.
    pub async fn pause_groups(&self, groups: Vec<String>) -> Result<(), EmbeddedError> {
        let Some(services) = self.services() else { return Ok(()) };
        let paused = services.sqs.pause(groups).await;
        paused.map_err(|_| EmbeddedError::Failed { service: "SQS", reason: "it is closed".to_owned() })
    }

    /// Resumes the delivery of messages of a paused group. Delayed messages are delivered at once, since what they waited
    /// for may have happened while the group was paused. Has no effect on other groups, after [`Embedded::close`], and
    /// if another process owns the queues.
    pub fn resume_group(&self, group: impl Into<String>) {
        if let Some(services) = self.services() {
            // After the thread has ended, no messages are delivered anyway.
            let _ = services.sqs.resume(group.into());
        }
    }

    /// Stops or continues the delivery of all messages of all queues. The messages stay unchanged. Has no effect after
    /// [`Embedded::close`], and if another process owns the queues.
    pub fn halt_delivery(&self, halted: bool) {
        if let Some(services) = self.services() {
            // After the thread has ended, no messages are delivered anyway.
            let _ = services.sqs.halt(halted);
        }
    }

    /// Replaces all limits of message groups: in each queue, at most `in_flight_max` messages of the groups that share a
    /// limit are in flight. Has no effect after [`Embedded::close`], and if another process owns the queues.
    pub fn limit_groups(&self, limits: Vec<GroupLimit>) {
        if let Some(services) = self.services() {
            // After the thread has ended, no messages are delivered anyway.
            let _ = services.sqs.set_limits(limits);
        }
    }

    /// Returns the messages published to SNS topics since the start, oldest first, at most the last 1,000.
    pub fn published(&self) -> Vec<PublishedMessage> {
        self.services().map(|services| services.small_services.sns.published()).unwrap_or_default()
    }

    /// Returns the number of faults injected so far.
    pub fn fault_counts(&self) -> FaultCounts {
        self.services().map(|services| services.fault_counts()).unwrap_or_default()
    }

    /// Deletes DynamoDB items whose time to live has passed, which also happens every minute. Returns their number; 0 if
    /// another process owns the table.
    ///
    /// # Errors
    /// Returns an error if the services are closed or the database fails.
    pub async fn sweep_ttl(&self) -> Result<usize, EmbeddedError> {
        match self.services() {
            Some(services) => services.dynamodb.sweep().await,
            None => Ok(0),
        }
    }

    /// Finishes pending requests, closes the files and releases the directory, even if there are other clients; their
    /// later calls fail. Blocks until the service threads have ended.
    pub fn close(self) {
        match &self.place {
            Place::Here(services) => services.shut_down(),
            Place::Attached(attached) => attached.close(),
        }
    }
}
