//! Object operations, between the protocol layer and the store.

use std::ops::Range;

use http::HeaderValue;
use s3s::dto::{self, ETag, ETagCondition, StreamingBlob, Timestamp};
use s3s::{Body, S3Request, S3Result, TrailingHeaders, s3_error};

use super::INLINE_BYTES_MAX;
use super::attrs::{Algorithm, Attrs, Checksums, http_date};
use super::clock::system_time;
use super::error::{StoreError, invalid_range, not_modified};
use super::read::{ContentBody, ObjectMeta};
use super::receive::{DeclaredBody, ReceivedBody, receive};
use super::store::{NewObject, Store, WriteCondition};

/// Content type of objects without one, as on AWS.
pub(super) const CONTENT_TYPE_DEFAULT: &str = "binary/octet-stream";

/// Maximum size of an object's metadata, names and values, in bytes, as on AWS.
pub(super) const METADATA_BYTES_MAX: usize = 2048;

/// Result of storing an object.
pub(super) struct StoredObject {
    pub(super) etag: String,
    pub(super) checksums: Checksums,
}

/// Conditions of a read.
#[derive(Default)]
pub(super) struct ReadConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

/// An object for a response.
pub(super) struct ObjectResponse {
    pub(super) meta: ObjectMeta,
    pub(super) range: Range<u64>,
    /// True if the request asked for a range.
    pub(super) partial: bool,
    /// True if the request asked for checksums and they match the content of the response.
    pub(super) with_checksums: bool,
}

impl ObjectMeta {
    /// Whole seconds: HTTP has no fractions, and conditions are compared with the time that was
    /// sent.
    pub(super) fn last_modified(&self) -> Timestamp {
        system_time(self.modified_ms - self.modified_ms.rem_euclid(1000)).into()
    }

    pub(super) fn last_modified_header(&self) -> S3Result<HeaderValue> {
        http_date(&self.last_modified())
            .and_then(|date| HeaderValue::try_from(date).ok())
            .ok_or_else(|| s3_error!(InternalError, "The object's time has no HTTP form"))
    }

    fn etag_header(&self) -> S3Result<HeaderValue> {
        ETag::Strong(self.etag.clone()).to_http_header().map_err(|error| s3_error!(error, InternalError))
    }
}

impl ReadConditions {
    /// Checks the conditions. A tag condition overrides the date condition next to it (RFC 9110,
    /// 13.2.2).
    pub(super) fn check(&self, meta: &ObjectMeta) -> S3Result<()> {
        let last_modified = meta.last_modified();
        match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) if !is_tag(condition, &meta.etag) => {
                return Err(StoreError::PreconditionFailed.into());
            }
            (None, Some(since)) if last_modified > *since => {
                return Err(StoreError::PreconditionFailed.into());
            }
            _ => {}
        }
        let unchanged = match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) => is_tag(condition, &meta.etag),
            (None, Some(since)) => last_modified <= *since,
            (None, None) => false,
        };
        if unchanged {
            return Err(not_modified(meta.etag_header()?, meta.last_modified_header()?));
        }
        Ok(())
    }
}

fn is_tag(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(tag) => tag.value() == etag,
    }
}

/// Returns the condition of a write. As on AWS, If-None-Match only supports `*`.
pub(super) fn write_condition(
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
) -> S3Result<WriteCondition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(WriteCondition::Always),
        (None, Some(ETagCondition::Any)) => Ok(WriteCondition::Absent),
        (Some(ETagCondition::Any), None) => Ok(WriteCondition::Present(None)),
        (Some(ETagCondition::ETag(tag)), None) => Ok(WriteCondition::Present(Some(tag.into_value()))),
        _ => Err(s3_error!(NotImplemented, "Of If-None-Match only * is supported, and not beside If-Match.")),
    }
}

pub(super) fn check_metadata(attrs: &Attrs) -> S3Result<()> {
    let bytes: usize = attrs.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > METADATA_BYTES_MAX {
        return Err(s3_error!(MetadataTooLarge, "Your metadata headers exceed 2 KB."));
    }
    Ok(())
}

/// Commits a received body under a key.
pub(super) async fn put_received(
    store: &Store,
    bucket: String,
    key: String,
    condition: WriteCondition,
    mut attrs: Attrs,
    received: ReceivedBody,
) -> S3Result<StoredObject> {
    check_metadata(&attrs)?;
    let etag = hex::encode(received.md5);
    let checksums = received.checksums;
    attrs.checksums = checksums.clone();
    let object =
        NewObject { size_bytes: received.size_bytes, etag: etag.clone(), attrs, payload: received.payload };
    store.put(bucket, key, condition, object).await?;
    Ok(StoredObject { etag, checksums })
}

pub(super) async fn put(store: &Store, req: S3Request<dto::PutObjectInput>) -> S3Result<StoredObject> {
    let trailers = req.trailing_headers;
    let mut input = req.input;
    refuse_customer_key(input.sse_customer_algorithm.is_some())?;
    if input.write_offset_bytes.is_some() {
        return Err(s3_error!(NotImplemented, "Appending to objects is not supported."));
    }
    let condition = write_condition(input.if_match.take(), input.if_none_match.take())?;
    // Check the bucket before receiving a large body; for a small one, the commit checks it.
    let is_small = |length| usize::try_from(length).is_ok_and(|length| length <= INLINE_BYTES_MAX);
    if !input.content_length.is_some_and(is_small) {
        store.bucket(&input.bucket)?;
    }
    let declared = DeclaredBody {
        length: input.content_length,
        md5: input.content_md5.take(),
        checksums: Checksums {
            crc32: input.checksum_crc32.take(),
            crc32c: input.checksum_crc32c.take(),
            crc64nvme: input.checksum_crc64nvme.take(),
            sha1: input.checksum_sha1.take(),
            sha256: input.checksum_sha256.take(),
        },
        algorithm: algorithm(input.checksum_algorithm.as_ref())?,
        trailers,
    };
    let received = receive(&store.inner.files, input.body.take(), &declared, Some(INLINE_BYTES_MAX)).await?;
    let attrs = Attrs {
        content_type: input.content_type,
        cache_control: input.cache_control,
        content_disposition: input.content_disposition,
        content_encoding: Attrs::object_encoding(input.content_encoding),
        content_language: input.content_language,
        expires: input.expires.as_ref().and_then(http_date),
        metadata: input.metadata.unwrap_or_default().into_iter().collect(),
        ..Attrs::default()
    };
    put_received(store, input.bucket, input.key, condition, attrs, received).await
}

/// Resolves a range for an object. Returns 416 if the range contains none of its bytes.
fn resolve(range: Option<&dto::Range>, size_bytes: u64) -> S3Result<(Range<u64>, bool)> {
    match range {
        None => Ok((0..size_bytes, false)),
        Some(range) => {
            let resolved = range.check(size_bytes).map_err(|_| invalid_range(size_bytes))?;
            if resolved.is_empty() {
                return Err(invalid_range(size_bytes));
            }
            Ok((resolved, true))
        }
    }
}

fn answer(
    meta: ObjectMeta,
    conditions: &ReadConditions,
    range: Option<&dto::Range>,
    checksum_mode: bool,
) -> S3Result<ObjectResponse> {
    conditions.check(&meta)?;
    let (range, partial) = resolve(range, meta.size_bytes)?;
    Ok(ObjectResponse { meta, range, partial, with_checksums: checksum_mode && !partial })
}

pub(super) fn head(
    store: &Store,
    bucket: &str,
    key: &str,
    conditions: &ReadConditions,
    range: Option<&dto::Range>,
    checksum_mode: bool,
) -> S3Result<ObjectResponse> {
    answer(store.head(bucket, key)?, conditions, range, checksum_mode)
}

pub(super) fn get(
    store: &Store,
    bucket: &str,
    key: &str,
    conditions: &ReadConditions,
    range: Option<&dto::Range>,
    checksum_mode: bool,
) -> S3Result<(ObjectResponse, ContentBody)> {
    let (meta, content) = store.get(bucket, key)?;
    let answer = answer(meta, conditions, range, checksum_mode)?;
    let body = content.into_body(answer.range.clone());
    Ok((answer, body))
}

impl ObjectResponse {
    pub(super) fn length(&self) -> i64 {
        i64::try_from(self.range.end - self.range.start).unwrap_or(i64::MAX)
    }

    pub(super) fn content_range(&self) -> Option<String> {
        self.partial.then(|| {
            let last = self.range.end.saturating_sub(1);
            format!("bytes {}-{last}/{}", self.range.start, self.meta.size_bytes)
        })
    }

    pub(super) fn content_type(&self) -> String {
        self.meta.attrs.content_type.clone().unwrap_or_else(|| CONTENT_TYPE_DEFAULT.to_owned())
    }

    pub(super) fn checksums(&self) -> Checksums {
        if self.with_checksums { self.meta.attrs.checksums.clone() } else { Checksums::default() }
    }

    pub(super) fn checksum_type(&self) -> Option<&'static str> {
        (self.with_checksums && !self.meta.attrs.checksums.is_empty())
            .then(|| checksum_type(self.meta.attrs.composite))
    }
}

pub(super) fn checksum_type(composite: bool) -> &'static str {
    if composite { dto::ChecksumType::COMPOSITE } else { dto::ChecksumType::FULL_OBJECT }
}

impl ContentBody {
    pub(super) fn into_blob(self) -> StreamingBlob {
        match self {
            Self::Bytes(bytes) => StreamingBlob::from(Body::from(bytes)),
            Self::Stream(stream) => StreamingBlob::new(stream),
        }
    }
}

pub(super) fn algorithm(name: Option<&dto::ChecksumAlgorithm>) -> S3Result<Option<Algorithm>> {
    name.map(|name| {
        Algorithm::from_name(name.as_str())
            .ok_or_else(|| s3_error!(InvalidRequest, "The checksum algorithm is not known."))
    })
    .transpose()
}

/// Checks the version id. Objects have a single version, which S3 calls `null`.
pub(super) fn check_version(version_id: Option<&str>) -> S3Result<()> {
    match version_id {
        None | Some("null") => Ok(()),
        Some(_) => Err(s3_error!(NoSuchVersion, "The specified version does not exist.")),
    }
}

pub(super) fn refuse_customer_key(given: bool) -> S3Result<()> {
    if given {
        Err(s3_error!(NotImplemented, "Encryption with customer keys is not supported."))
    } else {
        Ok(())
    }
}

/// Returns the declared properties of a part, including trailing headers.
pub(super) fn declared_part(
    input: &mut dto::UploadPartInput,
    trailers: Option<TrailingHeaders>,
) -> S3Result<DeclaredBody> {
    Ok(DeclaredBody {
        length: input.content_length,
        md5: input.content_md5.take(),
        checksums: Checksums {
            crc32: input.checksum_crc32.take(),
            crc32c: input.checksum_crc32c.take(),
            crc64nvme: input.checksum_crc64nvme.take(),
            sha1: input.checksum_sha1.take(),
            sha256: input.checksum_sha256.take(),
        },
        algorithm: algorithm(input.checksum_algorithm.as_ref())?,
        trailers,
    })
}
