//! The AWS services and the Lambda host in one process.
//!
//! [`Embedded::open`] opens the services in one data directory and returns an [`aws_types::SdkConfig`] whose HTTP
//! client answers inside the process, without sockets and without a second storage layer. DynamoDB is `dynoxide` on a
//! SQLite file, SQS is a durable queue on SQLite, S3 is `s3s` with content files; of KMS, SNS and Secrets Manager only
//! the required actions exist. The code above uses the ordinary AWS SDK and can't tell the difference, but for the requests that every
//! sample makes: [`Embedded::connector_for`], [`Embedded::direct_tables_for`] and [`Embedded::queue_client`] serve them without HTTP
//! or without a signature.
//!
//! Invariants:
//! - One owner at a time: the data directory is locked. So messages and leases that were held when the last owner ended
//!   are known to be free when this one starts. Other processes use its services over a [`socket`].
//! - A successful response is sent after its effect is committed (and, with [`Durability::Full`], on the disk, except receives and
//!   deletes of messages).
//! - Service threads never run on the async runtime and never block it.

mod account;
mod calls;
mod connector;
mod data_dir;
mod durability;
mod dynamodb;
mod embedded;
mod error;
pub mod faults;
mod full_disk;
pub mod host;
pub mod http;
mod inspect;
mod json_digest;
mod opening;
mod private;
pub mod s3;
mod service_response;
mod service_thread;
mod small_services;
pub mod socket;
mod sqs;
mod table;

pub use account::{ACCOUNT_ID, ENDPOINT, HOST, REGION};
pub use calls::{Call, CompletedCall, Permission, Recorder, Service};
pub use data_dir::Credentials;
pub use durability::Durability;
pub use embedded::Embedded;
pub use error::EmbeddedError;
pub use faults::{FaultCounts, Faults};
pub use inspect::{DataDirState, inspect_data_dir};
pub use opening::EmbeddedOptions;
pub use private::secure_data_dir;
pub use small_services::{KMS_KEY_ID, PublishedMessage};
pub use sqs::GroupLimit;
pub use table::DirectTables;
