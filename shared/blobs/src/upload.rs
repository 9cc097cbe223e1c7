//! Objects written piece by piece, with flat memory.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use crate::BlobError;

/// Bytes of a part: S3 asks for 5 MiB at least and 10,000 parts at most, so this carries 78 GiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// How far an [`Upload`] is. What was written since it was taken is written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadState {
    /// The store's id of it; `None` while nothing was sent.
    id: Option<String>,
    /// Those of the parts that were sent.
    etags: Vec<Option<String>>,
    /// What was not sent yet, base64: less than a part.
    tail: String,
    length: u64,
}

/// An object in the making. Nothing is seen of it before [`Upload::finish`]; a small one is a single PUT.
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

    /// Appends bytes; sends whole parts as they fill.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let mut left = bytes;
        // Never more than a part is held, however much is written at once.
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

    /// How far it is, for another process that may have to go on with it.
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

    /// Goes on where [`Upload::state`] was taken.
    pub(crate) fn resumed(mut self, state: UploadState) -> Result<Self, BlobError> {
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

    /// Makes the object visible; returns its length in bytes.
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

    /// Gives up: what was sent is removed.
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
                    .ok_or_else(|| BlobError::request(&self.key, "no upload id came back"))?;
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
