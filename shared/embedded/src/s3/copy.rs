//! CopyObject: rows are copied, files are linked.

use s3s::dto::{self, CopySource, Timestamp};
use s3s::{S3Result, s3_error};
use tokio::task::spawn_blocking;

use super::attrs::{Algorithm, Attrs, Checksums, http_date};
use super::digest::Digests;
use super::error::StoreError;
use super::objects::{ReadConditions, Stored, algorithm, check_metadata, check_version, refuse_customer_key};
use super::receive::Payload;
use super::store::{Content, NewObject, Store, WriteCondition, system_time};
use super::stream::read_all;

pub(super) async fn copy(store: &Store, input: dto::CopyObjectInput) -> S3Result<(Stored, Timestamp)> {
    refuse_customer_key(input.sse_customer_algorithm.is_some())?;
    refuse_customer_key(input.copy_source_sse_customer_algorithm.is_some())?;
    let CopySource::Bucket { bucket: source_bucket, key: source_key, version_id } = &input.copy_source else {
        return Err(s3_error!(NotImplemented, "Only buckets can be copied from."));
    };
    check_version(version_id.as_deref())?;
    let replace = input
        .metadata_directive
        .as_ref()
        .is_some_and(|directive| directive.as_str() == dto::MetadataDirective::REPLACE);
    if !replace && **source_bucket == *input.bucket && **source_key == *input.key {
        return Err(s3_error!(InvalidRequest, "An object can be copied to itself only with other metadata."));
    }
    store.bucket(&input.bucket)?;
    let (meta, content) = store.get(source_bucket, source_key)?;
    let conditions = ReadConditions {
        if_match: input.copy_source_if_match,
        if_none_match: input.copy_source_if_none_match,
        if_modified_since: input.copy_source_if_modified_since,
        if_unmodified_since: input.copy_source_if_unmodified_since,
    };
    conditions.check(&meta).map_err(|error| {
        // There is no "not modified" for a copy.
        if error.code() == &s3s::S3ErrorCode::NotModified {
            StoreError::PreconditionFailed.into()
        } else {
            error
        }
    })?;
    let mut attrs = if replace {
        Attrs {
            content_type: input.content_type,
            cache_control: input.cache_control,
            content_disposition: input.content_disposition,
            content_encoding: Attrs::object_encoding(input.content_encoding),
            content_language: input.content_language,
            expires: input.expires.as_ref().and_then(http_date),
            metadata: input.metadata.unwrap_or_default().into_iter().collect(),
            ..Attrs::default()
        }
    } else {
        meta.attrs.clone()
    };
    check_metadata(&attrs)?;
    let wanted = algorithm(input.checksum_algorithm.as_ref())?;
    // A copy is one piece: of an object in parts, ETag and checksums are computed anew.
    let rehash = meta.attrs.composite || meta.etag.contains('-') || wanted.is_some();
    let source_sums = meta.attrs.checksums.clone();
    let (payload, rehashed) = duplicate(store, content, rehash.then_some((wanted, source_sums))).await?;
    let etag = match rehashed {
        Some((etag, checksums)) => {
            attrs.checksums = checksums;
            etag
        }
        None => {
            attrs.checksums = meta.attrs.checksums;
            meta.etag
        }
    };
    attrs.composite = false;
    let checksums = attrs.checksums.clone();
    let object = NewObject { size_bytes: meta.size_bytes, etag: etag.clone(), attrs, payload };
    let modified_ms = store.put(input.bucket, input.key, WriteCondition::Always, object).await?;
    Ok((Stored { etag, checksums }, system_time(modified_ms).into()))
}

/// The same content once more: files are linked, not copied.
async fn duplicate(
    store: &Store,
    content: Content,
    rehash: Option<(Option<Algorithm>, Checksums)>,
) -> Result<(Payload, Option<(String, Checksums)>), StoreError> {
    let store = store.clone();
    spawn_blocking(move || {
        let mut digests = rehash.map(|(wanted, sums)| {
            Digests::new(|algorithm| wanted == Some(algorithm) || sums.get(algorithm).is_some())
        });
        let payload = match content {
            Content::Inline(bytes) => {
                if let Some(digests) = &mut digests {
                    digests.update(&bytes);
                }
                Payload::Inline(bytes)
            }
            Content::Files { segments, pin } => {
                let mut links = Vec::with_capacity(segments.len());
                for segment in &segments {
                    if let Some(digests) = &mut digests {
                        read_all(&segment.path, |bytes| digests.update(bytes))?;
                    }
                    links.push(store.inner.files.link(&segment.path, segment.size_bytes)?.into());
                }
                drop(pin);
                Payload::Files(links)
            }
        };
        let hashed = digests.map(|digests| {
            let (md5, checksums) = digests.finish();
            (hex::encode(md5), checksums)
        });
        Ok((payload, hashed))
    })
    .await?
}
