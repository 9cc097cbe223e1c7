//! Presigned addresses at which others may store one object of known length and content.

use std::time::Duration;

use aws_sdk_s3::presigning::PresigningConfig;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::{BlobError, Blobs};

/// Content that will be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedContent {
    /// Length in bytes.
    pub length: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
}

/// A presigned request. It stores the object if it is sent with exactly these headers and the content as body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresignedPut {
    /// Address to send the request to.
    pub url: String,
    /// Signed headers. The store refuses the request if they are missing or differ.
    pub headers: Vec<(String, String)>,
}

impl Blobs {
    /// Returns a request that lets anyone store `content` under `key` while it is valid. The store refuses content
    /// of another length or SHA-256.
    pub async fn presign_put(
        &self,
        key: &str,
        content: &ExpectedContent,
        valid: Duration,
    ) -> Result<PresignedPut, BlobError> {
        let presigning =
            PresigningConfig::expires_in(valid).map_err(|error| BlobError::request(key, error))?;
        let length = i64::try_from(content.length).map_err(|error| BlobError::request(key, error))?;
        let signed = self
            .presigner
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_length(length)
            .checksum_sha256(STANDARD.encode(content.sha256))
            .presigned(presigning)
            .await
            .map_err(|error| BlobError::sdk("sign an address for", key, error))?;
        let headers = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(PresignedPut { url: signed.uri().to_owned(), headers })
    }
}
