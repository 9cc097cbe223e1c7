//! S3 in the process: the protocol by `s3s`, with our own storage.
//!
//! # Storage
//!
//! A store is one folder. `index.sqlite` (in WAL mode) contains the buckets, objects and uploads, and the content of
//! objects of at most [`INLINE_BYTES_MAX`] bytes. Larger content is in immutable files with random names in `content/`;
//! an object refers to a list of them, one for each uploaded part. Keys never become file names, so any key of up to
//! 1,024 bytes works, and `dir` and `dir/x` can both exist.
//!
//! # Crash safety
//!
//! A content file is complete in its final place (and on the disk, if the store is `full`) before the row that refers
//! to it is committed, and a row is deleted before its file. So a crash leaves at most files without a row, which are
//! removed when the store is opened.
//!
//! # Concurrency
//!
//! One thread writes the index. It commits queued changes (at most 256) in one transaction, so a hundred concurrent
//! uploads share one commit. Readers have their own connections and never wait for it. A reader keeps the content that
//! it started with: the files of an overwritten object stay until its last reader is done.
//!
//! # Deliberately absent
//!
//! Operations that this program doesn't call return `NotImplemented`: deleting and listing buckets, copying objects,
//! listing parts and uploads, and listing keys by delimiter. Versions, tags, lifecycle, policies, ACLs and replication
//! don't exist. Headers about ACLs, tags, storage class and server-side encryption with service keys are accepted and
//! ignored, since they have no purpose on a single machine. Encryption with customer keys is rejected, since ignoring
//! it would be misleading.

mod attrs;
mod bodies;
mod clock;
mod digest;
mod endpoint;
mod error;
pub mod fast;
mod files;
mod list;
mod multipart;
mod objects;
mod pages;
mod read;
mod receive;
mod schema;
mod service;
mod store;
mod stream;
mod uploads;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use bodies::convert_body;
pub use endpoint::{Endpoint, ListenerEndpoint, service};
pub use error::StoreError;
pub use store::Store;

/// Maximum size of an object that is stored in the index, in bytes; larger ones are stored in files.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Maximum size of a body of PutObject or UploadPart, in bytes, as on AWS.
pub const BODY_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024;

/// Minimum size of a part of a multipart upload, except the last one, in bytes, as on AWS.
pub const PART_BYTES_MIN: u64 = 5 * 1024 * 1024;
