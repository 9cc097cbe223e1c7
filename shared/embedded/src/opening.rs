//! Opening the services of a data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::calls::Recorder;
use crate::connector::Services;
use crate::data_dir::{Credentials, DataDir};
use crate::dynamodb::DynamoDb;
use crate::faults::{Faults, Injector};
use crate::private::{private_database, private_folder};
use crate::s3;
use crate::small_services::SmallServices;
use crate::sqs::Sqs;
use crate::{Durability, EmbeddedError};

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
    /// True if the process will answer others on the data directory's socket.
    pub shares: bool,
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
            shares: false,
        }
    }

    /// Tells other processes that this one will answer them on the data directory's socket.
    #[must_use]
    pub fn shares(mut self, shares: bool) -> Self {
        self.shares = shares;
        self
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

/// Services that were just opened.
pub(crate) struct OpenedServices {
    pub(crate) services: Arc<Services>,
    pub(crate) epoch: u64,
    pub(crate) credentials: Credentials,
}

impl Services {
    /// Locks the data directory, counts the start and opens the services.
    pub(crate) fn open(options: EmbeddedOptions) -> Result<OpenedServices, EmbeddedError> {
        let dir = DataDir::open(&options.data_dir, options.shares)?;
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
        let services = Self::new(dynamodb, sqs, s3, small_services, dir, injector, options.recorder);
        Ok(OpenedServices { services: Arc::new(services), epoch, credentials })
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
