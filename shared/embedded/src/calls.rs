//! Observers of AWS calls, for tests that compare the program's calls with its permissions.

use std::sync::Arc;

/// The service of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// DynamoDB; resources are table names.
    DynamoDb,
    /// SQS; resources are queue names.
    Sqs,
    /// S3; resources are bucket names.
    S3,
    /// KMS; resources are key ids.
    Kms,
    /// SNS; resources are topic names.
    Sns,
    /// Secrets Manager; resources are secret names.
    SecretsManager,
}

impl Service {
    /// Returns the prefix of the service's actions in policies.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::DynamoDb => "dynamodb",
            Self::Sqs => "sqs",
            Self::S3 => "s3",
            Self::Kms => "kms",
            Self::Sns => "sns",
            Self::SecretsManager => "secretsmanager",
        }
    }
}

/// A call before it is executed. A call that names several tables is reported once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The calling function, if its client comes from [`Embedded::sdk_config_for`].
    ///
    /// [`Embedded::sdk_config_for`]: crate::Embedded::sdk_config_for
    pub caller: Option<&'static str>,
    /// Service of the call.
    pub service: Service,
    /// The API action, such as `PutItem`.
    pub action: &'a str,
    /// Table, queue or bucket; `None` if the call has none.
    pub resource: Option<&'a str>,
}

/// A permission that a call requires, as named in a role's policy. One call may require several: a transaction requires
/// one for each kind of write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The calling function.
    pub caller: &'static str,
    /// Action, such as `dynamodb:PutItem`.
    pub action: String,
    /// Resource, as the last part of an ARN: `table/NAME`, `table/NAME/index/INDEX`, the name of a queue or bucket, or
    /// `BUCKET/KEY`.
    pub resource: String,
}

/// A completed call with the quantities that AWS counts. Reported once per call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompletedCall<'a> {
    /// The call. Its resource is the first one that the call names.
    pub call: Call<'a>,
    /// HTTP status of the response.
    pub status: u16,
    /// Size of the request's body in bytes.
    pub request_bytes: u64,
    /// Size of the response's body in bytes.
    pub response_bytes: u64,
    /// DynamoDB read units that AWS would charge, including indexes and transactions.
    pub read_units: f64,
    /// DynamoDB write units that AWS would charge. AWS charges for failed conditions too; here they count as writes of
    /// records of at most 1 KB.
    pub write_units: f64,
}

type OnCall = dyn Fn(&Call<'_>) + Send + Sync;
type OnCompletedCall = dyn Fn(&CompletedCall<'_>) + Send + Sync;

/// Receives each AWS call on the caller's task. Implementations must be quick and must not block.
#[derive(Clone)]
pub struct Recorder {
    call: Arc<OnCall>,
    permission: Arc<dyn Fn(Permission) + Send + Sync>,
    completed: Option<Arc<OnCompletedCall>>,
}

impl Recorder {
    /// Creates a recorder of calls.
    pub fn new(record: impl Fn(&Call<'_>) + Send + Sync + 'static) -> Self {
        Self { call: Arc::new(record), permission: Arc::new(drop), completed: None }
    }

    /// Creates a recorder of the permissions that functions require. Calls without a calling function are ignored.
    pub fn for_permissions(record: impl Fn(Permission) + Send + Sync + 'static) -> Self {
        Self { call: Arc::new(|_| {}), permission: Arc::new(record), completed: None }
    }

    /// Creates a recorder of completed calls.
    pub fn for_completed_calls(record: impl Fn(&CompletedCall<'_>) + Send + Sync + 'static) -> Self {
        Self { call: Arc::new(|_| {}), permission: Arc::new(drop), completed: Some(Arc::new(record)) }
    }

    /// Returns true if this recorder observes completed calls.
    pub(crate) fn observes_completed_calls(&self) -> bool {
        self.completed.is_some()
    }

    pub(crate) fn record(&self, call: &Call<'_>) {
        (self.call)(call);
    }

    pub(crate) fn record_permission(&self, permission: Permission) {
        (self.permission)(permission);
    }

    pub(crate) fn completed(&self, call: &CompletedCall<'_>) {
        if let Some(observe) = &self.completed {
            observe(call);
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}
