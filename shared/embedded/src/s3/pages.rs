//! Pages of keys in the form of the protocol.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use s3s::dto::{self, ETag};
use s3s::{S3Result, s3_error};

use super::clock::system_time;
use super::list::ListQuery;
use super::store::Store;

/// Maximum number of keys on a page.
const KEYS_MAX: i32 = 1000;

pub(super) async fn objects(
    store: &Store,
    input: dto::ListObjectsV2Input,
) -> S3Result<dto::ListObjectsV2Output> {
    let max_keys = input.max_keys.unwrap_or(KEYS_MAX);
    if max_keys < 0 {
        return Err(s3_error!(InvalidArgument, "max-keys must not be negative"));
    }
    if input.delimiter.is_some() || input.start_after.is_some() || input.encoding_type.is_some() {
        return Err(s3_error!(NotImplemented, "Keys are listed by prefix only, as they are."));
    }
    let max_keys = max_keys.min(KEYS_MAX);
    let query = ListQuery {
        bucket: input.bucket.clone(),
        prefix: input.prefix.clone().unwrap_or_default(),
        from: input.continuation_token.as_deref().map(decode_token).transpose()?,
        keys_max: max_keys as usize,
    };
    let page = store.list(query).await?;
    let key_count = page.entries.len() as i32;
    let contents = page
        .entries
        .into_iter()
        .map(|entry| dto::Object {
            e_tag: Some(ETag::Strong(entry.etag)),
            key: Some(entry.key),
            last_modified: Some(system_time(entry.modified_ms).into()),
            size: i64::try_from(entry.size_bytes).ok(),
            storage_class: Some(dto::ObjectStorageClass::from_static(dto::ObjectStorageClass::STANDARD)),
            ..Default::default()
        })
        .collect();
    Ok(dto::ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(input.prefix.unwrap_or_default()),
        continuation_token: input.continuation_token,
        max_keys: Some(max_keys),
        key_count: Some(key_count),
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|position| encode_token(&position)),
        contents: Some(contents),
        ..Default::default()
    })
}

fn encode_token(position: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(position)
}

fn decode_token(token: &str) -> S3Result<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| bad_token())
}

fn bad_token() -> s3s::S3Error {
    s3_error!(InvalidArgument, "The continuation token provided is incorrect")
}
