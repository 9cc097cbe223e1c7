//! Receives bodies with their digests: small ones into memory, large ones into a content file.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::StatusCode;
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders, s3_error};
use tokio::task::spawn_blocking;

use super::BODY_BYTES_MAX;
use super::attrs::{Algorithm, Checksums};
use super::digest::{Digests, MD5_BYTES, verify};
use super::error::StoreError;
use super::files::{FileWriter, Files, NewFile};

/// Number of bytes that are collected before they are hashed and written.
const FLUSH_BYTES: usize = 1024 * 1024;

/// Received content that no row refers to yet.
#[derive(Debug)]
pub(super) enum Payload {
    Inline(Bytes),
    Files(Vec<Arc<NewFile>>),
}

impl Payload {
    /// Returns the number of files; 0 for content in the index.
    pub(super) fn segments(&self) -> i64 {
        match self {
            Self::Inline(_) => 0,
            Self::Files(files) => files.len() as i64,
        }
    }
}

/// Properties of the body that the request declares.
#[derive(Default)]
pub(super) struct DeclaredBody {
    pub(super) length: Option<i64>,
    pub(super) md5: Option<String>,
    pub(super) checksums: Checksums,
    pub(super) algorithm: Option<Algorithm>,
    pub(super) trailers: Option<TrailingHeaders>,
}

/// A complete body that matches its declaration.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    pub(super) size_bytes: u64,
    pub(super) md5: [u8; MD5_BYTES],
    pub(super) checksums: Checksums,
    pub(super) payload: Payload,
}

impl DeclaredBody {
    fn digests(&self) -> Digests {
        Digests::new(|algorithm| self.algorithm == Some(algorithm) || self.checksums.get(algorithm).is_some())
    }

    fn expected_md5(&self) -> S3Result<Option<[u8; MD5_BYTES]>> {
        let Some(text) = &self.md5 else { return Ok(None) };
        let invalid = || s3_error!(InvalidDigest, "The Content-MD5 you specified is not valid.");
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| invalid())?;
        Ok(Some(bytes.try_into().map_err(|_| invalid())?))
    }

    /// Returns the declared checksums, including those in trailing headers.
    fn expected_checksums(&self) -> Checksums {
        let mut expected = self.checksums.clone();
        if let Some(trailers) = &self.trailers {
            trailers.read(|headers| {
                for algorithm in Algorithm::ALL {
                    if let Some(value) = headers.get(algorithm.header()).and_then(|value| value.to_str().ok())
                    {
                        expected.set(algorithm, value.to_owned());
                    }
                }
            });
        }
        expected
    }

    fn check(
        &self,
        expected_md5: Option<[u8; MD5_BYTES]>,
        size_bytes: u64,
        digests: Digests,
        payload: Payload,
    ) -> S3Result<ReceivedBody> {
        if self.length.is_some_and(|length| u64::try_from(length) != Ok(size_bytes)) {
            return Err(s3_error!(IncompleteBody, "The body is not as long as Content-Length says."));
        }
        let (md5, checksums) = digests.finish();
        if expected_md5.is_some_and(|expected| expected != md5) {
            return Err(StoreError::BadDigest { algorithm: "Content-MD5" }.into());
        }
        verify(&self.expected_checksums(), &checksums)?;
        Ok(ReceivedBody { size_bytes, md5, checksums, payload })
    }
}

/// Checks a small body that is already in memory.
pub(super) fn receive_bytes(body: Bytes, declared: &DeclaredBody) -> S3Result<ReceivedBody> {
    let expected_md5 = declared.expected_md5()?;
    let mut digests = declared.digests();
    digests.update(&body);
    declared.check(expected_md5, body.len() as u64, digests, Payload::Inline(body))
}

/// Reads `body` to its end. Content above `inline_bytes_max` is written to a content file while it arrives; with
/// `None`, all content is.
pub(super) async fn receive(
    files: &Arc<Files>,
    body: Option<StreamingBlob>,
    declared: &DeclaredBody,
    inline_bytes_max: Option<usize>,
) -> S3Result<ReceivedBody> {
    let expected_md5 = declared.expected_md5()?;
    if declared.length.is_some_and(|length| u64::try_from(length).is_ok_and(|length| length > BODY_BYTES_MAX))
    {
        return Err(too_large());
    }
    let mut target = match inline_bytes_max {
        Some(_) => None,
        None => Some(begin(files, declared.digests()).await?),
    };
    let mut gathered: Vec<Bytes> = Vec::new();
    let mut gathered_bytes = 0;
    let mut size_bytes = 0_u64;
    if let Some(mut body) = body {
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| body_error(&error))?;
            size_bytes += chunk.len() as u64;
            if size_bytes > BODY_BYTES_MAX {
                return Err(too_large());
            }
            gathered_bytes += chunk.len();
            gathered.push(chunk);
            let limit = if target.is_some() { FLUSH_BYTES } else { inline_bytes_max.unwrap_or(0) };
            if gathered_bytes > limit {
                let writer = match target.take() {
                    Some(writer) => writer,
                    None => begin(files, declared.digests()).await?,
                };
                target = Some(flush(writer, std::mem::take(&mut gathered)).await?);
                gathered_bytes = 0;
            }
        }
    }
    let Some(writer) = target else {
        let mut digests = declared.digests();
        let bytes = concat(gathered);
        digests.update(&bytes);
        return declared.check(expected_md5, size_bytes, digests, Payload::Inline(bytes));
    };
    let (file, digests) = spawn_blocking(move || {
        let mut writer = writer;
        writer.write(&gathered)?;
        writer.finish()
    })
    .await
    .map_err(StoreError::from)??;
    declared.check(expected_md5, size_bytes, digests, Payload::Files(vec![Arc::new(file)]))
}

async fn begin(files: &Arc<Files>, digests: Digests) -> Result<FileWriter, StoreError> {
    let files = files.clone();
    spawn_blocking(move || files.begin(digests)).await?
}

async fn flush(mut writer: FileWriter, chunks: Vec<Bytes>) -> Result<FileWriter, StoreError> {
    spawn_blocking(move || writer.write(&chunks).map(|()| writer)).await?
}

fn concat(mut chunks: Vec<Bytes>) -> Bytes {
    if chunks.len() <= 1 {
        return chunks.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    for chunk in &chunks {
        all.extend_from_slice(chunk);
    }
    all.freeze()
}

fn too_large() -> S3Error {
    s3_error!(EntityTooLarge, "Your proposed upload exceeds the maximum allowed size")
}

/// Converts an error of the body. The protocol layer checks the signed payload hash while the body is read, but its
/// error type is private; only the text identifies the error.
fn body_error(error: &StdError) -> S3Error {
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let code = S3ErrorCode::from_bytes(b"XAmzContentSHA256Mismatch").unwrap_or(S3ErrorCode::BadDigest);
        let mut mismatch = S3Error::with_message(
            code,
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
        mismatch.set_status_code(StatusCode::BAD_REQUEST);
        mismatch
    } else if text.contains("SignatureMismatch") {
        s3_error!(SignatureDoesNotMatch, "The signature of a chunk does not match.")
    } else {
        s3_error!(IncompleteBody, "The body ended early or could not be read: {text}")
    }
}
