//! Errors of the store and their S3 equivalents.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use rusqlite::ErrorCode;
use s3s::{S3Error, S3ErrorCode, s3_error};

use super::clock::now_ms;

/// Minimum interval between two log messages about a full disk.
const FULL_LOG_INTERVAL_MS: i64 = 60_000;

/// Reason for which an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The bucket does not exist.
    #[error("the bucket does not exist")]
    NoSuchBucket,
    /// The bucket already exists.
    #[error("the bucket exists already")]
    BucketExists,
    /// The key does not exist.
    #[error("the key does not exist")]
    NoSuchKey,
    /// The upload does not exist, or was completed or aborted.
    #[error("the multipart upload does not exist")]
    NoSuchUpload,
    /// A condition of the request isn't met.
    #[error("a precondition does not hold")]
    PreconditionFailed,
    /// A listed part wasn't uploaded, or has another ETag or checksum.
    #[error("part {number} was not uploaded or differs")]
    InvalidPart {
        /// Number of the part.
        number: i32,
    },
    /// The listed parts are not in ascending order.
    #[error("the parts are not in ascending order")]
    InvalidPartOrder,
    /// A part other than the last is smaller than 5 MiB.
    #[error("part {number} has {size_bytes} bytes, too few for a part that is not the last")]
    EntityTooSmall {
        /// Number of the part.
        number: i32,
        /// Size of the part in bytes.
        size_bytes: u64,
    },
    /// A digest in the request doesn't match the content.
    #[error("the {algorithm} in the request doesn't match the content")]
    BadDigest {
        /// Name of the algorithm.
        algorithm: &'static str,
    },
    /// The disk or the database is full.
    #[error("the disk is full")]
    Full,
    /// Another process, or another `Store`, has opened the folder.
    #[error("the folder is in use by another store")]
    InUse,
    /// The folder was written by a program version with an unknown layout.
    #[error("the index has layout {found}, this program knows {known}")]
    Layout {
        /// Layout number of the index.
        found: i64,
        /// Layout number of this program.
        known: i64,
    },
    /// A row has invalid content.
    #[error("the index is damaged: {0}")]
    Damaged(&'static str),
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// A file operation failed.
    #[error("file operation failed")]
    Io(#[source] io::Error),
    /// The index failed.
    #[error("index operation failed")]
    Index(#[source] rusqlite::Error),
}

impl StoreError {
    /// Returns true for failures of the store itself rather than of the request. The transaction must be rolled back
    /// then.
    pub(super) fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Full
                | Self::InUse
                | Self::Layout { .. }
                | Self::Damaged(_)
                | Self::Closed
                | Self::Io(_)
                | Self::Index(_)
        )
    }
}

impl StoreError {
    fn log(&self) {
        static FULL: Throttle = Throttle(AtomicI64::new(i64::MIN));
        match self {
            // Log one message, not one for each of a thousand waiting uploads.
            Self::Full if FULL.allows(now_ms()) => {
                // The processes that use the store say it to people.
                tracing::info!(
                    "The disk that holds the objects is full: uploads fail until there is free space"
                );
            }
            Self::Full => {}
            fault if fault.is_fault() => {
                tracing::error!(error = fault as &dyn std::error::Error, "The object store failed");
            }
            _ => {}
        }
    }
}

/// Allows one event per [`FULL_LOG_INTERVAL_MS`].
struct Throttle(AtomicI64);

impl Throttle {
    fn allows(&self, now_ms: i64) -> bool {
        let last_ms = self.0.load(Ordering::Relaxed);
        now_ms.saturating_sub(last_ms) >= FULL_LOG_INTERVAL_MS
            && self.0.compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full
            }
            _ => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Index(error),
        }
    }
}

impl From<tokio::task::JoinError> for StoreError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Io(io::Error::other(error))
    }
}

impl From<StoreError> for S3Error {
    /// Converts the error for the caller. Faults of the store are logged here; the caller only gets their kind.
    fn from(error: StoreError) -> Self {
        error.log();
        match error {
            StoreError::NoSuchBucket => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
            StoreError::BucketExists => {
                s3_error!(BucketAlreadyOwnedByYou, "The bucket exists already and you own it.")
            }
            StoreError::NoSuchKey => s3_error!(NoSuchKey, "The specified key does not exist."),
            StoreError::NoSuchUpload => s3_error!(
                NoSuchUpload,
                "The specified upload does not exist: it may have been aborted or completed."
            ),
            StoreError::PreconditionFailed => {
                s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
            }
            StoreError::InvalidPart { number } => {
                s3_error!(InvalidPart, "Part {number} was not uploaded, or its ETag or checksum differs.")
            }
            StoreError::InvalidPartOrder => {
                s3_error!(InvalidPartOrder, "The list of parts was not in ascending order.")
            }
            StoreError::EntityTooSmall { number, size_bytes } => s3_error!(
                EntityTooSmall,
                "Part {number} has {size_bytes} bytes; a part that is not the last needs 5 MiB."
            ),
            StoreError::BadDigest { algorithm } => {
                s3_error!(BadDigest, "The {algorithm} you specified did not match the calculated one.")
            }
            // Not InternalError: clients retry that, and retries don't free disk space.
            StoreError::Full => {
                let code =
                    S3ErrorCode::from_bytes(b"InsufficientStorage").unwrap_or(S3ErrorCode::InternalError);
                let mut mapped = S3Error::with_message(code, "The disk that holds the objects is full.");
                mapped.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
                mapped
            }
            StoreError::Closed => s3_error!(ServiceUnavailable, "The store is being closed."),
            fault @ (StoreError::InUse
            | StoreError::Layout { .. }
            | StoreError::Damaged(_)
            | StoreError::Io(_)
            | StoreError::Index(_)) => s3_error!(fault, InternalError, "The store failed; its log says why."),
        }
    }
}

/// Creates a 304 response with the validators that HTTP requires (RFC 9110, 15.4.5).
pub(super) fn not_modified(etag: HeaderValue, last_modified: HeaderValue) -> S3Error {
    let mut error = s3_error!(NotModified, "Not Modified");
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, etag);
    headers.insert(header::LAST_MODIFIED, last_modified);
    error.set_headers(headers);
    error
}

/// Creates a 416 response with the actual size.
pub(super) fn invalid_range(size_bytes: u64) -> S3Error {
    let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size_bytes}")) {
        headers.insert(header::CONTENT_RANGE, value);
    }
    error.set_headers(headers);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_logged_once_a_minute() {
        let throttle = Throttle(AtomicI64::new(i64::MIN));
        let logged = [0, 1, 59_999, 60_000, 60_001, 130_000].map(|now_ms| throttle.allows(now_ms));
        assert_eq!(logged, [true, false, false, true, false, true]);
    }

    #[test]
    fn a_full_disk_is_not_retried() {
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let mapped = S3Error::from(StoreError::from(io::Error::from(full)));
            assert_eq!(mapped.code().as_str(), "InsufficientStorage");
            assert_eq!(mapped.status_code(), Some(StatusCode::INSUFFICIENT_STORAGE));
        }
        let other = S3Error::from(StoreError::from(io::Error::from(io::ErrorKind::PermissionDenied)));
        assert_eq!(other.code(), &S3ErrorCode::InternalError);
    }
}
