//! The S3 operations, as an implementation of the protocol layer's trait.

use async_trait::async_trait;
use s3s::dto::{self, ETag};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use super::objects::{
    self, ReadConditions, check_version, checksum_type, refuse_customer_key, write_condition,
};
use super::store::Store;
use super::uploads::UploadRef;
use super::{multipart, pages};

/// Maximum number of keys in one DeleteObjects request.
const KEYS_MAX: usize = 1000;

const REGION_DEFAULT: &str = "us-east-1";

/// The operations of the protocol layer on a store.
#[derive(Debug, Clone)]
pub(super) struct Operations {
    pub(super) store: Store,
}

#[async_trait]
impl S3 for Operations {
    async fn create_bucket(
        &self,
        req: S3Request<dto::CreateBucketInput>,
    ) -> S3Result<S3Response<dto::CreateBucketOutput>> {
        let region = req
            .input
            .create_bucket_configuration
            .and_then(|configuration| configuration.location_constraint)
            .map_or_else(|| REGION_DEFAULT.to_owned(), |constraint| constraint.as_str().to_owned());
        let location = Some(format!("/{}", req.input.bucket));
        self.store.create_bucket(req.input.bucket, region).await?;
        Ok(S3Response::new(dto::CreateBucketOutput { location }))
    }

    async fn head_bucket(
        &self,
        req: S3Request<dto::HeadBucketInput>,
    ) -> S3Result<S3Response<dto::HeadBucketOutput>> {
        let bucket = self.store.bucket(&req.input.bucket)?;
        Ok(S3Response::new(dto::HeadBucketOutput {
            bucket_region: Some(bucket.region),
            ..Default::default()
        }))
    }

    async fn put_object(
        &self,
        req: S3Request<dto::PutObjectInput>,
    ) -> S3Result<S3Response<dto::PutObjectOutput>> {
        let stored = objects::put(&self.store, req).await?;
        let kind =
            (!stored.checksums.is_empty()).then(|| dto::ChecksumType::from_static(checksum_type(false)));
        let sums = stored.checksums;
        Ok(S3Response::new(dto::PutObjectOutput {
            e_tag: Some(ETag::Strong(stored.etag)),
            checksum_type: kind,
            checksum_crc32: sums.crc32,
            checksum_crc32c: sums.crc32c,
            checksum_crc64nvme: sums.crc64nvme,
            checksum_sha1: sums.sha1,
            checksum_sha256: sums.sha256,
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        req: S3Request<dto::GetObjectInput>,
    ) -> S3Result<S3Response<dto::GetObjectOutput>> {
        let input = req.input;
        refuse_customer_key(input.sse_customer_algorithm.is_some())?;
        refuse_part_number(input.part_number)?;
        check_version(input.version_id.as_deref())?;
        let conditions = ReadConditions {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            if_modified_since: input.if_modified_since,
            if_unmodified_since: input.if_unmodified_since,
        };
        let checksum_mode = is_enabled(input.checksum_mode.as_ref());
        let (answer, body) = objects::get(
            &self.store,
            &input.bucket,
            &input.key,
            &conditions,
            input.range.as_ref(),
            checksum_mode,
        )?;
        let sums = answer.checksums();
        Ok(S3Response::new(dto::GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            body: Some(body.into_blob()),
            checksum_type: answer.checksum_type().map(dto::ChecksumType::from_static),
            checksum_crc32: sums.crc32,
            checksum_crc32c: sums.crc32c,
            checksum_crc64nvme: sums.crc64nvme,
            checksum_sha1: sums.sha1,
            checksum_sha256: sums.sha256,
            content_length: Some(answer.length()),
            content_range: answer.content_range(),
            content_type: Some(answer.content_type()),
            e_tag: Some(ETag::Strong(answer.meta.etag.clone())),
            expires: answer.meta.attrs.expires_timestamp(),
            last_modified: Some(answer.meta.last_modified()),
            metadata: answer.meta.attrs.metadata_map(),
            cache_control: answer.meta.attrs.cache_control,
            content_disposition: answer.meta.attrs.content_disposition,
            content_encoding: answer.meta.attrs.content_encoding,
            content_language: answer.meta.attrs.content_language,
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        req: S3Request<dto::HeadObjectInput>,
    ) -> S3Result<S3Response<dto::HeadObjectOutput>> {
        let input = req.input;
        refuse_customer_key(input.sse_customer_algorithm.is_some())?;
        refuse_part_number(input.part_number)?;
        check_version(input.version_id.as_deref())?;
        let conditions = ReadConditions {
            if_match: input.if_match,
            if_none_match: input.if_none_match,
            if_modified_since: input.if_modified_since,
            if_unmodified_since: input.if_unmodified_since,
        };
        let checksum_mode = is_enabled(input.checksum_mode.as_ref());
        let answer = objects::head(
            &self.store,
            &input.bucket,
            &input.key,
            &conditions,
            input.range.as_ref(),
            checksum_mode,
        )?;
        let sums = answer.checksums();
        let status = if answer.partial { http::StatusCode::PARTIAL_CONTENT } else { http::StatusCode::OK };
        Ok(S3Response::with_status(
            dto::HeadObjectOutput {
                accept_ranges: Some("bytes".to_owned()),
                checksum_type: answer.checksum_type().map(dto::ChecksumType::from_static),
                checksum_crc32: sums.crc32,
                checksum_crc32c: sums.crc32c,
                checksum_crc64nvme: sums.crc64nvme,
                checksum_sha1: sums.sha1,
                checksum_sha256: sums.sha256,
                content_length: Some(answer.length()),
                content_range: answer.content_range(),
                content_type: Some(answer.content_type()),
                e_tag: Some(ETag::Strong(answer.meta.etag.clone())),
                expires: answer.meta.attrs.expires_timestamp(),
                last_modified: Some(answer.meta.last_modified()),
                metadata: answer.meta.attrs.metadata_map(),
                cache_control: answer.meta.attrs.cache_control,
                content_disposition: answer.meta.attrs.content_disposition,
                content_encoding: answer.meta.attrs.content_encoding,
                content_language: answer.meta.attrs.content_language,
                ..Default::default()
            },
            status,
        ))
    }

    async fn delete_object(
        &self,
        req: S3Request<dto::DeleteObjectInput>,
    ) -> S3Result<S3Response<dto::DeleteObjectOutput>> {
        let input = req.input;
        check_version(input.version_id.as_deref())?;
        if input.if_match_size.is_some() || input.if_match_last_modified_time.is_some() {
            return Err(s3_error!(NotImplemented, "Of conditional deletes only If-Match is supported."));
        }
        let if_match =
            if input.if_match.is_some() { Some(write_condition(input.if_match, None)?) } else { None };
        self.store.delete(input.bucket, vec![input.key], if_match).await?;
        Ok(S3Response::new(dto::DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        req: S3Request<dto::DeleteObjectsInput>,
    ) -> S3Result<S3Response<dto::DeleteObjectsOutput>> {
        let objects = req.input.delete.objects;
        if objects.is_empty() || objects.len() > KEYS_MAX {
            return Err(s3_error!(MalformedXML, "Between 1 and 1000 keys can be deleted at once."));
        }
        if objects.iter().any(|object| object.e_tag.is_some() || object.size.is_some()) {
            return Err(s3_error!(
                NotImplemented,
                "Conditions on deleting several objects are not supported."
            ));
        }
        for object in &objects {
            check_version(object.version_id.as_deref())?;
        }
        let keys: Vec<String> = objects.into_iter().map(|object| object.key).collect();
        self.store.delete(req.input.bucket, keys.clone(), None).await?;
        let quiet = req.input.delete.quiet.unwrap_or(false);
        let deleted = (!quiet).then(|| {
            keys.into_iter().map(|key| dto::DeletedObject { key: Some(key), ..Default::default() }).collect()
        });
        Ok(S3Response::new(dto::DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<dto::ListObjectsV2Input>,
    ) -> S3Result<S3Response<dto::ListObjectsV2Output>> {
        Ok(S3Response::new(pages::objects(&self.store, req.input).await?))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<dto::CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<dto::CreateMultipartUploadOutput>> {
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let checksum_algorithm = req.input.checksum_algorithm.clone();
        let id = multipart::create(&self.store, req.input).await?;
        Ok(S3Response::new(dto::CreateMultipartUploadOutput {
            bucket: Some(bucket),
            key: Some(key),
            upload_id: Some(id),
            checksum_algorithm,
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        req: S3Request<dto::UploadPartInput>,
    ) -> S3Result<S3Response<dto::UploadPartOutput>> {
        let stored = multipart::upload_part(&self.store, req).await?;
        let sums = stored.checksums;
        Ok(S3Response::new(dto::UploadPartOutput {
            e_tag: Some(ETag::Strong(stored.etag)),
            checksum_crc32: sums.crc32,
            checksum_crc32c: sums.crc32c,
            checksum_crc64nvme: sums.crc64nvme,
            checksum_sha1: sums.sha1,
            checksum_sha256: sums.sha256,
            ..Default::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<dto::CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<dto::CompleteMultipartUploadOutput>> {
        Ok(S3Response::new(multipart::complete(&self.store, req.input).await?))
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<dto::AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<dto::AbortMultipartUploadOutput>> {
        let upload = UploadRef { bucket: req.input.bucket, key: req.input.key, id: req.input.upload_id };
        self.store.abort_upload(upload).await?;
        Ok(S3Response::new(dto::AbortMultipartUploadOutput::default()))
    }
}

fn is_enabled(mode: Option<&dto::ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == dto::ChecksumMode::ENABLED)
}

fn refuse_part_number(number: Option<i32>) -> S3Result<()> {
    match number {
        None => Ok(()),
        Some(_) => Err(s3_error!(NotImplemented, "Reading by part number is not supported.")),
    }
}
