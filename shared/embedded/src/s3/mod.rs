//! S3 in the process: the protocol by `s3s`, the storage our own.
//!
//! # Where the bytes are
//!
//! A store is one folder. `index.sqlite` (WAL) has the buckets, objects and uploads, and the
//! content of every object of at most [`INLINE_BYTES_MAX`] bytes. Larger content is in immutable files below
//! `content/`, named at random; an object is a list of them, one for each part it was uploaded in.
//! Keys never become file names, so any key of 1,024 bytes works and `dir` may stand beside `dir/x`.
//!
//! # What holds after a crash
//!
//! A content file is complete in its place (and on the disk, when the store is `full`) before the row that
//! names it is committed, and a row is gone before its file is removed. A crash therefore leaves at most files
//! that no row names; opening the store removes them.
//!
//! # Who writes
//!
//! One thread writes the index. It commits what has queued up (at most 256 changes) in one transaction, so a
//! hundred concurrent uploads share one commit. Readers have connections of their own and never wait for it.
//! A reader that has begun keeps the content it found: the files of an overwritten object stay until the last
//! reader lets go.
//!
//! # What is deliberately absent
//!
//! Operations that this program does not call: deleting and listing buckets, copying objects, listing parts and uploads,
//! and keys by delimiter; they are answered `NotImplemented`. Versions, tags, lifecycle, policies, ACLs and replication. Headers about ACLs, tags, storage class and
//! server-side encryption with service keys are accepted and ignored, because a single machine has no use for
//! them; encryption with customer keys is refused, because ignoring that would be a lie.

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

pub(crate) use bodies::body_of;
pub use endpoint::{Endpoint, Listening, service};
pub use error::StoreError;
pub use store::Store;

/// Objects of at most this many bytes live in the index, larger ones in files.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;

/// The largest body of one PutObject or UploadPart, in bytes, as on AWS.
pub const BODY_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024;

/// The smallest part of a multipart upload other than its last one, in bytes, as on AWS.
pub const PART_BYTES_MIN: u64 = 5 * 1024 * 1024;
