//! Objects that are written piece by piece with constant memory.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::BlobError;

/// Size of a part: the minimum that S3 allows. It allows at most 10,000 parts, so an object has at most 48 GiB.
const PART_BYTES: usize = 5 * 1024 * 1024;

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
    buffer: Vec<u8>,
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
        Self { client, bucket, key, content_type, buffer: Vec::new(), multipart: None, length: 0 }
    }

    /// Appends bytes, and uploads each part once it is full.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let mut left = bytes;
        // Buffer at most one part, regardless of the length of `bytes`.
        while !left.is_empty() {
            // A state saved by an earlier version, whose parts were larger, may have more than a part.
            let room = PART_BYTES.saturating_sub(self.buffer.len());
            let (now, later) = left.split_at(room.min(left.len()));
            self.reserve(now.len());
            self.buffer.extend_from_slice(now);
            self.length += now.len() as u64;
            left = later;
            if self.buffer.len() >= PART_BYTES {
                let part = std::mem::take(&mut self.buffer);
                self.send_part(part).await?;
            }
        }
        Ok(())
    }

    /// Makes room for more bytes of the part. A vector that grows by itself would double once more than a part needs, and the
    /// parts after the first one are likely to be whole.
    fn reserve(&mut self, additional: usize) {
        let needed = self.buffer.len() + additional;
        if needed > self.buffer.capacity() {
            let likely = if self.multipart.is_some() { PART_BYTES } else { 2 * self.buffer.capacity() };
            let capacity = likely.clamp(needed, needed.max(PART_BYTES));
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
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
        self.buffer = tail;
        self.multipart = state.id.map(|id| Multipart { id, parts });
        self.length = state.length;
        Ok(self)
    }

    /// Completes the object, which makes it visible, and returns its length in bytes. An upload that can't be completed is aborted.
    pub async fn finish(mut self) -> Result<u64, BlobError> {
        match self.complete().await {
            Ok(()) => Ok(self.length),
            Err(error) => {
                // The first error says what is wrong.
                let _ = self.abort().await;
                Err(error)
            }
        }
    }

    async fn complete(&mut self) -> Result<(), BlobError> {
        if self.multipart.is_none() {
            let body = Bytes::from(std::mem::take(&mut self.buffer));
            let put = self.client.put_object().bucket(&self.bucket).key(&self.key);
            let put = put.content_type(self.content_type).body(ByteStream::from(body));
            return put.send().await.map(drop).map_err(|error| BlobError::sdk("write", &self.key, error));
        }
        if !self.buffer.is_empty() {
            let part = std::mem::take(&mut self.buffer);
            self.send_part(part).await?;
        }
        let Some(multipart) = &self.multipart else { return Ok(()) };
        let parts = CompletedMultipartUpload::builder().set_parts(Some(multipart.parts.clone())).build();
        let complete = self.client.complete_multipart_upload().bucket(&self.bucket).key(&self.key);
        let completed = complete.upload_id(&multipart.id).multipart_upload(parts).send().await;
        completed.map(drop).map_err(|error| BlobError::sdk("complete", &self.key, error))
    }

    /// Aborts the upload and removes its parts.
    pub async fn abort(self) -> Result<(), BlobError> {
        let Some(multipart) = self.multipart else { return Ok(()) };
        let abort = self.client.abort_multipart_upload().bucket(&self.bucket).key(&self.key);
        let aborted = abort.upload_id(multipart.id).send().await;
        aborted.map(drop).map_err(|error| BlobError::sdk("abort", &self.key, error))
    }

    async fn send_part(&mut self, part: Vec<u8>) -> Result<(), BlobError> {
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
            .body(ByteStream::from(part))
            .send()
            .await
            .map_err(|error| BlobError::sdk("write part of", &self.key, error))?;
        let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag).build();
        multipart.parts.push(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use bench_embedded::{Durability, Embedded, EmbeddedOptions};

    use super::{BASE64, PART_BYTES, UploadState};
    use crate::Blobs;

    #[tokio::test]
    async fn parts_have_the_same_size_however_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let blobs = Blobs::new(&embedded.sdk_config(), "uploads");
        blobs.ensure_bucket().await.unwrap();
        let bytes: Vec<u8> = (0..2 * PART_BYTES + 1_000).map(|at| (at % 251) as u8).collect();
        for piece in [1_000, 700_001, bytes.len()] {
            let mut upload = blobs.upload("object", "text/plain");
            for piece in bytes.chunks(piece) {
                upload.write(piece).await.unwrap();
                assert!(upload.buffer.capacity() <= PART_BYTES);
            }
            assert_eq!(upload.state().etags.len(), 2);
            assert_eq!(upload.finish().await.unwrap(), bytes.len() as u64);
            assert!(blobs.get("object").await.unwrap().is_some_and(|stored| stored == bytes), "{piece}");
        }
        // As saved when parts had 8 MiB.
        let (tail, rest) = bytes.split_at(PART_BYTES + 100_000);
        let state =
            UploadState { id: None, etags: Vec::new(), tail: BASE64.encode(tail), length: tail.len() as u64 };
        let mut upload = blobs.upload("resumed", "text/plain").resume(state).unwrap();
        upload.write(rest).await.unwrap();
        assert_eq!(upload.finish().await.unwrap(), bytes.len() as u64);
        assert!(blobs.get("resumed").await.unwrap().is_some_and(|stored| stored == bytes));
    }
}
