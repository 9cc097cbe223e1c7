//! Bodies, datasets, uploads and exports in S3.
//!
//! One bucket, one prefix per kind of object:
//!
//! | prefix | holds | written by |
//! | --- | --- | --- |
//! | `datasets/` | normalised datasets: one frame per item, and an index | planner, command line |
//! | `bodies/RUN/` | prompt and answer of each attempt of a sample | worker |
//! | `uploads/` | stored responses for `replay`; files that callers sent, until they are looked at | command line, callers |
//! | `exports/RUN/` | finished CSV and ZIP files, by version of the run | exports |
//!
//! Everything that is text is compressed with zstd; the key's ending says so (`.zst`).

mod bodies;
mod error;
mod frames;
mod presigned_put;
mod upload;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::RequestChecksumCalculation;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use bodies::{bodies_prefix, body_key, exports_prefix};
pub use error::BlobError;
pub use frames::{compress, decompress};
pub use presigned_put::{Content, PresignedPut};
pub use upload::{Upload, UploadState};

/// Upper bound of one object that is read whole, in bytes after decompression.
pub const OBJECT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The bucket, and how to reach it.
#[derive(Debug, Clone)]
pub struct Blobs {
    client: Client,
    /// Signs addresses for others; another client only where they reach the bucket under another address.
    presigner: Client,
    bucket: String,
}

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// The object's key.
    pub key: String,
    /// Its length in bytes.
    pub length: u64,
}

impl Blobs {
    /// A client of `bucket` with the given configuration.
    ///
    /// Checksums are computed only where S3 requires them: bodies carry their own SHA-256 in the
    /// sample's record.
    pub fn new(config: &aws_types::SdkConfig, bucket: impl Into<String>) -> Self {
        let config = aws_sdk_s3::config::Builder::from(config)
            .force_path_style(true)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(aws_sdk_s3::config::ResponseChecksumValidation::WhenRequired)
            .build();
        let client = Client::from_conf(config);
        Self { presigner: client.clone(), client, bucket: bucket.into() }
    }

    /// The same, with addresses for others signed for `endpoint`, such as `http://127.0.0.1:9000`.
    #[must_use]
    pub fn presigned_at(mut self, endpoint: &str) -> Self {
        let config = self.client.config().to_builder().endpoint_url(endpoint).build();
        self.presigner = Client::from_conf(config);
        self
    }

    /// The bucket's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Makes the bucket if it is not there. For the embedded stack; deployed, the template makes it.
    pub async fn ensure_bucket(&self) -> Result<(), BlobError> {
        if self.client.head_bucket().bucket(&self.bucket).send().await.is_ok() {
            return Ok(());
        }
        let made = self.client.create_bucket().bucket(&self.bucket).send().await;
        match made {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_bucket_already_owned_by_you()) => {
                Ok(())
            }
            Err(error) => Err(BlobError::sdk("create the bucket", &self.bucket, error)),
        }
    }

    /// Writes an object; an older one under the same key is replaced.
    pub async fn put(&self, key: &str, body: Bytes, content_type: &str) -> Result<(), BlobError> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .body(ByteStream::from(body))
            .send()
            .await
            .map(drop)
            .map_err(|error| BlobError::sdk("write", key, error))
    }

    /// Writes an object unless there is one already; tells whether it was written.
    pub async fn put_new(&self, key: &str, body: Bytes, content_type: &str) -> Result<bool, BlobError> {
        let put = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .if_none_match("*")
            .body(ByteStream::from(body));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if error.raw_response().is_some_and(|r| r.status().as_u16() == 412) => Ok(false),
            Err(error) => Err(BlobError::sdk("write", key, error)),
        }
    }

    /// A whole object, `None` when there is none. At most [`OBJECT_BYTES_MAX`].
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, BlobError> {
        let got = match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(got) => got,
            Err(error) if error.as_service_error().is_some_and(|e| e.is_no_such_key()) => return Ok(None),
            Err(error) => return Err(BlobError::sdk("read", key, error)),
        };
        let length = got.content_length().unwrap_or(0);
        if usize::try_from(length).unwrap_or(usize::MAX) > OBJECT_BYTES_MAX {
            return Err(BlobError::TooLarge { key: key.to_owned(), limit_bytes: OBJECT_BYTES_MAX });
        }
        let body = got.body.collect().await.map_err(|error| BlobError::stream(key, error))?;
        Ok(Some(body.into_bytes()))
    }

    /// `length` bytes of an object from `offset`. Fewer bytes are an error.
    pub async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Bytes, BlobError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let last = offset.saturating_add(length - 1);
        let got = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .range(format!("bytes={offset}-{last}"))
            .send()
            .await
            .map_err(|error| BlobError::sdk("read", key, error))?;
        let body = got.body.collect().await.map_err(|error| BlobError::stream(key, error))?.into_bytes();
        if body.len() as u64 != length {
            return Err(BlobError::Damaged {
                key: key.to_owned(),
                problem: "it is shorter than its index says".into(),
            });
        }
        Ok(body)
    }

    /// An object's bytes as they arrive, for what is too large to be held.
    pub async fn stream(&self, key: &str) -> Result<Option<(u64, ByteStream)>, BlobError> {
        match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(got) => {
                let length = u64::try_from(got.content_length().unwrap_or(0)).unwrap_or(0);
                Ok(Some((length, got.body)))
            }
            Err(error) if error.as_service_error().is_some_and(|e| e.is_no_such_key()) => Ok(None),
            Err(error) => Err(BlobError::sdk("read", key, error)),
        }
    }

    /// What is known of an object, `None` when there is none.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, BlobError> {
        match self.client.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(head) => {
                let length = u64::try_from(head.content_length().unwrap_or(0)).unwrap_or(0);
                Ok(Some(ObjectInfo { key: key.to_owned(), length }))
            }
            Err(error) if error.as_service_error().is_some_and(|e| e.is_not_found()) => Ok(None),
            Err(error) => Err(BlobError::sdk("look for", key, error)),
        }
    }

    /// Removes an object; none there is no error.
    pub async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let deleted = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        deleted.map(drop).map_err(|error| BlobError::sdk("remove", key, error))
    }

    /// Objects whose key starts with `prefix`, a page of at most 1,000: the page and where the next one starts.
    pub async fn list(
        &self,
        prefix: &str,
        from: Option<String>,
    ) -> Result<(Vec<ObjectInfo>, Option<String>), BlobError> {
        let page = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_continuation_token(from)
            .send()
            .await
            .map_err(|error| BlobError::sdk("list", prefix, error))?;
        let next = page.next_continuation_token().map(str::to_owned);
        let objects = page.contents.unwrap_or_default().into_iter().filter_map(|object| {
            let length = u64::try_from(object.size().unwrap_or(0)).unwrap_or(0);
            object.key.map(|key| ObjectInfo { key, length })
        });
        Ok((objects.collect(), next))
    }

    /// Removes every object whose key starts with `prefix`. Safe to repeat.
    pub async fn delete_prefix(&self, prefix: &str) -> Result<(), BlobError> {
        loop {
            let (objects, _) = self.list(prefix, None).await?;
            if objects.is_empty() {
                return Ok(());
            }
            let ids: Vec<_> = objects
                .into_iter()
                .filter_map(|object| ObjectIdentifier::builder().key(object.key).build().ok())
                .collect();
            let delete =
                Delete::builder().set_objects(Some(ids)).quiet(true).build().map_err(|error| {
                    BlobError::Request { key: prefix.to_owned(), problem: error.to_string() }
                })?;
            let answer = self
                .client
                .delete_objects()
                .bucket(&self.bucket)
                .delete(delete)
                .send()
                .await
                .map_err(|error| BlobError::sdk("remove", prefix, error))?;
            if let Some(first) = answer.errors().first() {
                let problem = first.message().unwrap_or("the store did not say why").to_owned();
                return Err(BlobError::Request { key: prefix.to_owned(), problem });
            }
        }
    }

    /// Starts an object that is written piece by piece; nothing is seen of it before it is finished.
    pub fn upload(&self, key: impl Into<String>, content_type: &'static str) -> Upload {
        Upload::new(self.client.clone(), self.bucket.clone(), key.into(), content_type)
    }

    /// Goes on with an object that another process began. Where the store has forgotten it, writing or finishing ends
    /// in an error of which [`BlobError::is_upload_gone`] is true.
    ///
    /// # Errors
    /// When the state is none.
    pub fn resume_upload(
        &self,
        key: impl Into<String>,
        content_type: &'static str,
        state: UploadState,
    ) -> Result<Upload, BlobError> {
        self.upload(key, content_type).resumed(state)
    }

    /// An address under which anybody can download the object for a while, as `filename`.
    pub async fn presign_get(&self, key: &str, filename: &str, valid: Duration) -> Result<String, BlobError> {
        let request = |problem: String| BlobError::Request { key: key.to_owned(), problem };
        let presigning = PresigningConfig::expires_in(valid).map_err(|error| request(error.to_string()))?;
        let signed = self
            .presigner
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .response_content_disposition(format!("attachment; filename=\"{filename}\""))
            .presigned(presigning)
            .await
            .map_err(|error| BlobError::sdk("sign an address for", key, error))?;
        Ok(signed.uri().to_owned())
    }

    /// Writes a value as compressed JSON.
    pub async fn put_json<T: Serialize + Sync>(&self, key: &str, value: &T) -> Result<(), BlobError> {
        let request = |problem: String| BlobError::Request { key: key.to_owned(), problem };
        let text = serde_json::to_vec(value).map_err(|error| request(error.to_string()))?;
        let body = compress(&text).map_err(|error| request(error.to_string()))?;
        self.put(key, body.into(), "application/zstd").await
    }

    /// Reads what [`Blobs::put_json`] wrote.
    pub async fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, BlobError> {
        let Some(body) = self.get(key).await? else { return Ok(None) };
        let damaged = |problem: String| BlobError::Damaged { key: key.to_owned(), problem };
        let text = decompress(&body, OBJECT_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
        serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
    }
}
