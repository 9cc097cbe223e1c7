//! Objects that are written piece by piece with constant memory.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use crate::BlobError;

/// Size of a part. S3 requires at least 5 MiB per part and at most 10,000 parts, so this size allows 78 GiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// State of an [`Upload`] for resuming it. Bytes that were written later must be written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadState {
    /// Id of the multipart upload; `None` before the first part.
    id: Option<String>,
    /// ETags of the uploaded parts.
    etags: Vec<Option<String>>,
    /// Bytes that haven't been uploaded yet, in base64: less than a part.
    tail: String,
    length: u64,
}

/// An object that is being written. It isn't visible before [`Upload::finish`]. A small object is a single PUT.
#[derive(Debug)]
pub struct Upload {
    client: Client,
    bucket: String,
    key: String,
    content_type: &'static str,
    buffer: BytesMut,
    multipart: Option<Multipart>,
    length: u64,
}

#[derive(Debug)]
struct Multipart {
    id: String,
    parts: Vec<CompletedPart>,
}

impl Upload {
    pub(crate) fn new(client: Client, bucket: String, key: String, content_type: &'static str) -> Self {
        Self { client, bucket, key, content_type, buffer: BytesMut::new(), multipart: None, length: 0 }
    }

    /// Appends bytes, and uploads each part once it is full.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let mut left = bytes;
        // Buffer at most one part, regardless of the length of `bytes`.
        while !left.is_empty() {
            let (now, later) = left.split_at((PART_BYTES - self.buffer.len()).min(left.len()));
            self.buffer.extend_from_slice(now);
            self.length += now.len() as u64;
            left = later;
            if self.buffer.len() >= PART_BYTES {
                let part = self.buffer.split_to(PART_BYTES);
                self.send_part(part).await?;
            }
        }
        Ok(())
    }

    /// Returns the state, so that another process can resume the upload.
    pub fn state(&self) -> UploadState {
        let multipart = self.multipart.as_ref();
        let parts = multipart.map(|multipart| multipart.parts.as_slice()).unwrap_or_default();
        UploadState {
            id: multipart.map(|multipart| multipart.id.clone()),
            etags: parts.iter().map(|part| part.e_tag.clone()).collect(),
            tail: BASE64.encode(&self.buffer),
            length: self.length,
        }
    }

    /// Resumes from a saved [`Upload::state`].
    pub(crate) fn resume(mut self, state: UploadState) -> Result<Self, BlobError> {
        let tail = BASE64.decode(&state.tail).map_err(|error| BlobError::request(&self.key, error))?;
        let numbered = (1..).zip(state.etags);
        let parts = numbered
            .map(|(number, etag)| CompletedPart::builder().part_number(number).set_e_tag(etag).build())
            .collect();
        self.buffer = BytesMut::from(tail.as_slice());
        self.multipart = state.id.map(|id| Multipart { id, parts });
        self.length = state.length;
        Ok(self)
    }

    /// Completes the object, which makes it visible, and returns its length in bytes.
    pub async fn finish(mut self) -> Result<u64, BlobError> {
        if self.multipart.is_none() {
            let body = std::mem::take(&mut self.buffer).freeze();
            let put = self.client.put_object().bucket(&self.bucket).key(&self.key);
            let put = put.content_type(self.content_type).body(ByteStream::from(body));
            put.send().await.map_err(|error| BlobError::sdk("write", &self.key, error))?;
            return Ok(self.length);
        }
        if !self.buffer.is_empty() {
            let part = std::mem::take(&mut self.buffer);
            self.send_part(part).await?;
        }
        if let Some(multipart) = self.multipart.take() {
            let parts = CompletedMultipartUpload::builder().set_parts(Some(multipart.parts)).build();
            self.client
                .complete_multipart_upload()
                .bucket(&self.bucket)
                .key(&self.key)
                .upload_id(multipart.id)
                .multipart_upload(parts)
                .send()
                .await
                .map_err(|error| BlobError::sdk("complete", &self.key, error))?;
        }
        Ok(self.length)
    }

    /// Aborts the upload and removes its parts.
    pub async fn abort(self) -> Result<(), BlobError> {
        let Some(multipart) = self.multipart else { return Ok(()) };
        let abort = self.client.abort_multipart_upload().bucket(&self.bucket).key(&self.key);
        let aborted = abort.upload_id(multipart.id).send().await;
        aborted.map(drop).map_err(|error| BlobError::sdk("abort", &self.key, error))
    }

    async fn send_part(&mut self, part: BytesMut) -> Result<(), BlobError> {
        let multipart = match &mut self.multipart {
            Some(multipart) => multipart,
            none => {
                let create = self.client.create_multipart_upload().bucket(&self.bucket).key(&self.key);
                let created = create.content_type(self.content_type).send().await;
                let created = created.map_err(|error| BlobError::sdk("start", &self.key, error))?;
                let id = created
                    .upload_id
                    .ok_or_else(|| BlobError::request(&self.key, "the response has no upload id"))?;
                none.insert(Multipart { id, parts: Vec::new() })
            }
        };
        let number = i32::try_from(multipart.parts.len() + 1).unwrap_or(i32::MAX);
        let sent = self
            .client
            .upload_part()
            .bucket(&self.bucket)
            .key(&self.key)
            .upload_id(&multipart.id)
            .part_number(number)
            .body(ByteStream::from(part.freeze()))
            .send()
            .await
            .map_err(|error| BlobError::sdk("write part of", &self.key, error))?;
        let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag).build();
        multipart.parts.push(part);
        Ok(())
    }
}
