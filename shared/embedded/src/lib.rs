//! The AWS services and the Lambda host in one process.
//!
//! [`Embedded::open`] opens the services on one data directory and hands out an
//! [`aws_types::SdkConfig`] whose HTTP client answers inside the process: no socket, no
//! second storage layer. DynamoDB is `dynoxide` on a SQLite file, SQS is a durable queue
//! on SQLite, S3 is `s3s` over blob files; KMS, SNS and Secrets Manager have what is needed of them. Everything above uses the ordinary AWS SDK and
//! cannot tell the difference.
//!
//! What holds here:
//! - One process at a time: the data directory is locked. So whatever was in flight when
//!   the last process ended is known to be in nobody's hands when this one starts.
//! - An answer that reports success is given after its effect is committed (and, with
//!   [`Durability::Full`], on the disk).
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
pub mod host;
pub mod http;
mod http_answer;
mod json_digest;
mod private;
pub mod s3;
mod service_thread;
mod small;
mod sqs;

pub use account::{ACCOUNT_ID, REGION};
pub use calls::{Answered, Call, Recorder, Right, Service};
pub use data_dir::Credentials;
pub use durability::Durability;
pub use embedded::{Embedded, EmbeddedOptions};
pub use error::EmbeddedError;
pub use faults::{FaultCounts, Faults};
pub use private::secure_data_dir;
pub use small::{KMS_KEY_ID, Published};
