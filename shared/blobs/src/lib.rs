//! Storage of bodies, datasets, uploads and exports in S3.
//!
//! One bucket, one prefix per kind of object:
//!
//! | prefix | holds | written by |
//! | --- | --- | --- |
//! | `datasets/` | normalized datasets: one frame per item, and an index | planner, command line |
//! | `bodies/RUN/` | prompt and answer of each attempt of a sample; steps of agents in episodes | worker |
//! | `indexes/RUN/` | compact index of the samples of each benchmark, by generation of the run | finisher |
//! | `uploads/` | stored responses for `replay`; files from callers, until they are processed | command line, callers |
//! | `tasks/` | archives of uploaded terminal tasks, by content hash, and facts about them | API, command line |
//! | `exports/RUN/` | finished CSV and ZIP files, by version of the run | exports |
//!
//! All text is compressed with zstd, which the suffix `.zst` of the key shows; indexes with gzip, since browsers read them.

mod agent_records;
mod bodies;
mod error;
mod frames;
mod item_index;
mod presigned_put;
mod unsigned;
mod upload;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::RequestChecksumCalculation;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use agent_records::AgentRecords;
pub use bodies::{agent_key, bodies_prefix, body_key, exports_prefix, task_key};
pub use error::BlobError;
pub use frames::{compress, decompress};
pub use item_index::{
    COLUMNS, IndexOf, IndexRow, IndexWriter, PART_ROWS_MAX, indexes_prefix, unpack_index_part,
};
pub use presigned_put::{ExpectedContent, PresignedPut};
pub use upload::{Upload, UploadState};

use unsigned::UnsignedClient;

/// Maximum size of an object that is read at once, in bytes after decompression.
pub const OBJECT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Client of the bucket.
#[derive(Debug, Clone)]
pub struct Blobs {
    client: Client,
    /// Signs addresses for others. It differs from `client` only if they reach the bucket under another address.
    presigner: Client,
    bucket: String,
    /// Client for small objects of a bucket that trusts this process.
    unsigned: Option<UnsignedClient>,
}

/// Metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Key of the object.
    pub key: String,
    /// Length in bytes.
    pub length: u64,
}

impl Blobs {
    /// Creates a client of `bucket` with the given configuration.
    ///
    /// Checksums are computed only where S3 requires them, since the sample's record contains the SHA-256 of a body.
    pub fn new(config: &aws_types::SdkConfig, bucket: impl Into<String>) -> Self {
        let config = aws_sdk_s3::config::Builder::from(config)
            .force_path_style(true)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(aws_sdk_s3::config::ResponseChecksumValidation::WhenRequired)
            .build();
        let client = Client::from_conf(config);
        Self { presigner: client.clone(), client, bucket: bucket.into(), unsigned: None }
    }

    /// Signs addresses for others for `endpoint`, such as `http://127.0.0.1:9000`.
    #[must_use]
    pub fn with_presign_endpoint(mut self, endpoint: &str) -> Self {
        let config = self.client.config().to_builder().endpoint_url(endpoint).build();
        self.presigner = Client::from_conf(config);
        self
    }

    /// Reads and writes small objects by unsigned requests over `connector`. Only for buckets that trust this process: those of
    /// the embedded services.
    #[must_use]
    pub fn with_unsigned_requests(mut self, connector: SharedHttpConnector, endpoint: &str) -> Self {
        self.unsigned = Some(UnsignedClient::new(connector, endpoint, &self.bucket));
        self
    }

    /// Returns the name of the bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Creates the bucket if it doesn't exist. Used on the embedded stack; in AWS, the template creates the bucket.
    pub async fn ensure_bucket(&self) -> Result<(), BlobError> {
        if self.client.head_bucket().bucket(&self.bucket).send().await.is_ok() {
            return Ok(());
        }
        let created = self.client.create_bucket().bucket(&self.bucket).send().await;
        match created {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_bucket_already_owned_by_you()) => {
                Ok(())
            }
            Err(error) => Err(BlobError::sdk("create the bucket", &self.bucket, error)),
        }
    }

    /// Writes an object. Replaces an existing object with the same key.
    pub async fn put(&self, key: &str, body: Bytes, content_type: &str) -> Result<(), BlobError> {
        if let Some(client) = &self.unsigned
            && client.put(key, &body, content_type).await
        {
            return Ok(());
        }
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

    /// Writes an object unless the key exists. Returns true if it was written.
    pub async fn put_new(&self, key: &str, body: Bytes, content_type: &str) -> Result<bool, BlobError> {
        if let Some(client) = &self.unsigned
            && let Some(is_new) = client.put_new(key, &body, content_type).await
        {
            return Ok(is_new);
        }
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

    /// Reads a whole object of at most [`OBJECT_BYTES_MAX`]; `None` if it doesn't exist.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, BlobError> {
        if let Some(client) = &self.unsigned
            && let Some(found) = client.get(key).await
        {
            return Ok(found);
        }
        let response = match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(response) => response,
            Err(error) if error.as_service_error().is_some_and(|e| e.is_no_such_key()) => return Ok(None),
            Err(error) => return Err(BlobError::sdk("read", key, error)),
        };
        let length = response.content_length().unwrap_or(0);
        if usize::try_from(length).unwrap_or(usize::MAX) > OBJECT_BYTES_MAX {
            return Err(BlobError::TooLarge { key: key.to_owned(), limit_bytes: OBJECT_BYTES_MAX });
        }
        let body = response.body.collect().await.map_err(|error| BlobError::stream(key, error))?;
        Ok(Some(body.into_bytes()))
    }

    /// Reads `length` bytes of an object from `offset`. Fewer bytes are an error.
    pub async fn get_range(&self, key: &str, offset: u64, length: u64) -> Result<Bytes, BlobError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let body = self.get_block(key, offset, length).await?;
        if body.len() as u64 != length {
            return Err(BlobError::Damaged {
                key: key.to_owned(),
                problem: "it is shorter than expected".into(),
            });
        }
        Ok(body)
    }

    /// Reads at most `length` bytes of an object from `offset`: fewer, if the object ends before. An object that ends
    /// before `offset`, and a `length` of 0, are errors.
    pub async fn get_block(&self, key: &str, offset: u64, length: u64) -> Result<Bytes, BlobError> {
        let last = offset.saturating_add(length.saturating_sub(1));
        let response = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .range(format!("bytes={offset}-{last}"))
            .send()
            .await
            .map_err(|error| BlobError::sdk("read", key, error))?;
        let body = response.body.collect().await.map_err(|error| BlobError::stream(key, error))?;
        Ok(body.into_bytes())
    }

    /// Returns the length of an object and a stream of its bytes, for objects that don't fit into memory; `None` if it
    /// doesn't exist.
    pub async fn stream(&self, key: &str) -> Result<Option<(u64, ByteStream)>, BlobError> {
        match self.client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(response) => {
                let length = u64::try_from(response.content_length().unwrap_or(0)).unwrap_or(0);
                Ok(Some((length, response.body)))
            }
            Err(error) if error.as_service_error().is_some_and(|e| e.is_no_such_key()) => Ok(None),
            Err(error) => Err(BlobError::sdk("read", key, error)),
        }
    }

    /// Returns the metadata of an object; `None` if it doesn't exist.
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

    /// Deletes an object. A missing object isn't an error.
    pub async fn delete(&self, key: &str) -> Result<(), BlobError> {
        let deleted = self.client.delete_object().bucket(&self.bucket).key(key).send().await;
        deleted.map(drop).map_err(|error| BlobError::sdk("remove", key, error))
    }

    /// Lists objects whose key starts with `prefix`. Returns a page of at most 1,000, and the position of the next
    /// page.
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

    /// Deletes every object whose key starts with `prefix`. Safe to repeat.
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
                let problem = first.message().unwrap_or("the store gave no reason").to_owned();
                return Err(BlobError::Request { key: prefix.to_owned(), problem });
            }
        }
    }

    /// Starts an object that is written piece by piece; it isn't visible before it is finished.
    pub fn upload(&self, key: impl Into<String>, content_type: &'static str) -> Upload {
        Upload::new(self.client.clone(), self.bucket.clone(), key.into(), content_type)
    }

    /// Resumes an upload that another process started. If the store no longer has it, writing or finishing returns an
    /// error for which [`BlobError::is_upload_gone`] returns true.
    ///
    /// # Errors
    /// Returns an error if the state is invalid.
    pub fn resume_upload(
        &self,
        key: impl Into<String>,
        content_type: &'static str,
        state: UploadState,
    ) -> Result<Upload, BlobError> {
        self.upload(key, content_type).resume(state)
    }

    /// Returns an address at which anyone can download the object as `filename` while it is valid.
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

    /// Reads a value written by [`Blobs::put_json`]; `None` if it doesn't exist.
    pub async fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, BlobError> {
        let Some(body) = self.get(key).await? else { return Ok(None) };
        let damaged = |problem: String| BlobError::Damaged { key: key.to_owned(), problem };
        let text = decompress(&body, OBJECT_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
        serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
    }
}
