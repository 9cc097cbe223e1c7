//! Multipart operations, between the protocol layer and the store.

use s3s::dto::{self, ETag};
use s3s::{S3Request, S3Result, s3_error};

use super::attrs::{Attrs, Checksums, http_date};
use super::objects::{
    StoredObject, algorithm, check_metadata, declared_part, refuse_customer_key, write_condition,
};
use super::receive::receive;
use super::store::Store;
use super::uploads::{ListedPart, UploadRef};

/// Highest part number; the lowest is 1.
const PART_NUMBER_MAX: i32 = 10_000;

pub(super) async fn create(store: &Store, input: dto::CreateMultipartUploadInput) -> S3Result<String> {
    refuse_customer_key(input.sse_customer_algorithm.is_some())?;
    if input.checksum_type.as_ref().is_some_and(|kind| kind.as_str() == dto::ChecksumType::FULL_OBJECT) {
        return Err(s3_error!(NotImplemented, "Uploads in parts have composite checksums only."));
    }
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
    check_metadata(&attrs)?;
    let algorithm = algorithm(input.checksum_algorithm.as_ref())?;
    Ok(store.create_upload(input.bucket, input.key, attrs, algorithm).await?)
}

pub(super) async fn upload_part(
    store: &Store,
    req: S3Request<dto::UploadPartInput>,
) -> S3Result<StoredObject> {
    let mut input = req.input;
    refuse_customer_key(input.sse_customer_algorithm.is_some())?;
    if !(1..=PART_NUMBER_MAX).contains(&input.part_number) {
        return Err(s3_error!(
            InvalidArgument,
            "Part number must be an integer between 1 and 10000, inclusive"
        ));
    }
    let mut declared = declared_part(&mut input, req.trailing_headers)?;
    let upload = UploadRef { bucket: input.bucket, key: input.key, id: input.upload_id };
    let promised = store.check_upload(&upload)?;
    declared.algorithm = declared.algorithm.or(promised);
    let part = receive(&store.inner.files, input.body.take(), &declared, None).await?;
    let stored = StoredObject { etag: hex::encode(part.md5), checksums: part.checksums.clone() };
    store.put_part(upload, input.part_number, part).await?;
    Ok(stored)
}

pub(super) async fn complete(
    store: &Store,
    input: dto::CompleteMultipartUploadInput,
) -> S3Result<dto::CompleteMultipartUploadOutput> {
    let listed = input.multipart_upload.and_then(|list| list.parts).unwrap_or_default();
    if listed.is_empty() {
        return Err(s3_error!(MalformedXML, "The list of parts is empty."));
    }
    let listed = listed.into_iter().map(listed_part).collect::<S3Result<Vec<_>>>()?;
    let condition = write_condition(input.if_match, input.if_none_match)?;
    let expected_bytes = input.mpu_object_size.and_then(|size| u64::try_from(size).ok());
    let upload = UploadRef { bucket: input.bucket.clone(), key: input.key.clone(), id: input.upload_id };
    let completed = store.complete_upload(upload, listed, condition, expected_bytes).await?;
    let sums = completed.checksums;
    Ok(dto::CompleteMultipartUploadOutput {
        checksum_type: composite_type(&sums),
        checksum_crc32: sums.crc32,
        checksum_crc32c: sums.crc32c,
        checksum_crc64nvme: sums.crc64nvme,
        checksum_sha1: sums.sha1,
        checksum_sha256: sums.sha256,
        e_tag: Some(ETag::Strong(completed.etag)),
        location: Some(format!("/{}/{}", input.bucket, input.key)),
        bucket: Some(input.bucket),
        key: Some(input.key),
        ..dto::CompleteMultipartUploadOutput::default()
    })
}

fn composite_type(sums: &Checksums) -> Option<dto::ChecksumType> {
    (!sums.is_empty()).then(|| dto::ChecksumType::from_static(dto::ChecksumType::COMPOSITE))
}

fn listed_part(part: dto::CompletedPart) -> S3Result<ListedPart> {
    let malformed = || s3_error!(MalformedXML, "A part needs a number and an ETag.");
    Ok(ListedPart {
        number: part.part_number.ok_or_else(malformed)?,
        etag: part.e_tag.ok_or_else(malformed)?.into_value(),
        checksums: Checksums {
            crc32: part.checksum_crc32,
            crc32c: part.checksum_crc32c,
            crc64nvme: part.checksum_crc64nvme,
            sha1: part.checksum_sha1,
            sha256: part.checksum_sha256,
        },
    })
}
