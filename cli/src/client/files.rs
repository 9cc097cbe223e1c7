//! File uploads: small files within a request, larger ones directly to the server's file store.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context;
use bench_domain::Code;
use bench_exports::VERIFY_BYTES_MAX;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};

use super::{Client, Payload, Transport};
use crate::exit::Problem;
use crate::progress::FileProgress;
use crate::refusal::Refusal;

const VERIFY: &str = "/api/exports/verify";
/// Maximum size of a file within a request. API Gateway accepts 6 MB, and base64 takes up a third of that.
const IN_REQUEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum size of a file within a request to a server that doesn't offer uploads.
const FALLBACK_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PIECE_BYTES: usize = 256 * 1024;
/// Separator between the parts of a form. If the file contains it, another one is used.
const BOUNDARY: &str = "bench-runner-part";

/// Upload address from a server.
#[derive(Debug, Deserialize)]
struct Upload {
    upload_id: String,
    url: String,
    headers: BTreeMap<String, String>,
}

impl Client {
    /// Asks the server to verify an archive.
    pub(crate) async fn verify(&self, path: &Path) -> anyhow::Result<Value> {
        let shown = path.display();
        let mut file = File::open(path).await.with_context(|| format!("could not read `{shown}`"))?;
        let metadata = file.metadata().await.with_context(|| format!("could not read `{shown}`"))?;
        if !metadata.is_file() {
            return Err(Problem::failure(format!("`{shown}` is not a file")).into());
        }
        let length = metadata.len();
        if length <= IN_REQUEST_BYTES_MAX {
            return self.verify_in_request(file, length).await;
        }
        let sha256 = digest(&mut file).await.with_context(|| format!("could not read `{shown}`"))?;
        let order = json!({ "purpose": "verify", "bytes": length, "sha256": sha256 });
        let upload: Upload = match self.post("/api/uploads", Some(&order)).await {
            Ok(upload) => upload,
            Err(error) => return self.without_uploads(error, file, length).await,
        };
        let headers = upload_headers(&upload.headers)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = FileProgress::new(name, length);
        let pieces = progress.clone();
        let sent = match &self.transport {
            Transport::Remote(remote) => {
                remote.put_file(&upload.url, headers, file, move |bytes| pieces.add(bytes)).await
            }
            Transport::InProcess(_) => Err(Problem::failure("only a server accepts uploads").into()),
        };
        progress.finish();
        sent?;
        self.post(VERIFY, Some(&json!({ "upload_id": upload.upload_id }))).await
    }

    /// Falls back to sending the file within the request if the server doesn't offer uploads.
    async fn without_uploads(&self, error: anyhow::Error, file: File, length: u64) -> anyhow::Result<Value> {
        let Some(refused) = error.downcast_ref::<Refusal>() else { return Err(error) };
        match refused.code() {
            Some(Code::UploadsNotOffered | Code::RouteNotFound | Code::MethodNotAllowed)
                if length <= FALLBACK_BYTES_MAX =>
            {
                self.verify_in_request(file, length).await
            }
            _ if refused.is_unauthorized() => Err(Problem::failure(format!(
                "uploading an archive of more than {IN_REQUEST_BYTES_MAX} bytes needs a key: {refused}"
            ))
            .hint("set BENCH_API_KEY, or verify on this machine with --here")
            .into()),
            Some(Code::BodyTooLarge) => Err(Problem::failure(format!("{refused}"))
                .hint(format!(
                    "verify archives of more than {VERIFY_BYTES_MAX} bytes on this machine with --here"
                ))
                .into()),
            _ => Err(error),
        }
    }

    async fn verify_in_request(&self, mut file: File, length: u64) -> anyhow::Result<Value> {
        file.rewind().await?;
        let (boundary, body) = form(&mut file, length).await?;
        let content_type = format!("multipart/form-data; boundary={boundary}");
        self.request(Method::POST, VERIFY, Payload::Bytes { content_type, bytes: body.into() }).await
    }
}

/// Reads the headers of an upload that a server asked for.
pub(super) fn upload_headers(given: &BTreeMap<String, String>) -> anyhow::Result<HeaderMap> {
    const INVALID: &str = "the server sent an invalid header for the upload";
    let header = |(name, value): (&String, &String)| {
        anyhow::Ok((
            name.parse::<HeaderName>().context(INVALID)?,
            HeaderValue::from_str(value).context(INVALID)?,
        ))
    };
    given.iter().map(header).collect()
}

/// Reads a file into a form, and returns the form with its boundary. The file is read to its place in the form, since
/// copies of large files take memory.
pub(super) async fn form(file: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<(String, Vec<u8>)> {
    let head = |boundary: &str| {
        format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"archive.zip\"\r\n\
             content-type: application/zip\r\n\r\n"
        )
    };
    let usual = head(BOUNDARY);
    let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + usual.len() + 64);
    body.extend_from_slice(usual.as_bytes());
    file.read_to_end(&mut body).await?;
    let boundary = boundary(body.get(usual.len()..).unwrap_or_default());
    if boundary != BOUNDARY {
        body.splice(..usual.len(), head(&boundary).into_bytes());
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Ok((boundary, body))
}

/// Returns a boundary that doesn't occur in the content.
fn boundary(content: &[u8]) -> String {
    let has = |boundary: &str| content.windows(boundary.len()).any(|part| part == boundary.as_bytes());
    let mut boundary = BOUNDARY.to_owned();
    let mut number = 0_u32;
    while has(&boundary) {
        number += 1;
        boundary = format!("{BOUNDARY}-{number}-{}", hex::encode(Sha256::digest(number.to_be_bytes())));
        boundary.truncate(70);
    }
    boundary
}

async fn digest(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece).await?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else { break };
        hash.update(read);
    }
    file.rewind().await?;
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_not_in_the_content() {
        assert_eq!(boundary(b"PK"), BOUNDARY);
        let odd = boundary(format!("x{BOUNDARY}y").as_bytes());
        assert!(odd != BOUNDARY && odd.len() <= 70);
    }

    #[tokio::test]
    async fn a_form_has_the_file_between_its_boundaries() {
        for content in ["PK", "bench-runner-part in the file"] {
            let (boundary, body) = form(&mut content.as_bytes(), content.len() as u64).await.unwrap();
            let body = String::from_utf8(body).unwrap();
            assert!(!content.contains(&boundary), "{boundary}");
            let rest = body.strip_prefix(&format!("--{boundary}\r\n")).unwrap();
            let (_, rest) = rest.split_once("\r\n\r\n").unwrap();
            assert_eq!(rest, format!("{content}\r\n--{boundary}--\r\n"));
        }
    }
}
