//! Pages of buckets and of keys, as the protocol shows them.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use s3s::dto::{self, ETag};
use s3s::{S3Result, s3_error};

use super::list::{ListFrom, ListQuery};
use super::store::{Store, system_time};

/// Keys on a page at most.
const KEYS_MAX: i32 = 1000;

/// Buckets on a page at most.
const BUCKETS_MAX: i32 = 10_000;

pub(super) async fn buckets(store: &Store, input: dto::ListBucketsInput) -> S3Result<dto::ListBucketsOutput> {
    let max = input.max_buckets.unwrap_or(BUCKETS_MAX).clamp(1, BUCKETS_MAX) as usize;
    let after = match &input.continuation_token {
        None => String::new(),
        Some(token) => String::from_utf8(decode_token(token)?).map_err(|_| bad_token())?,
    };
    let prefix = input.prefix.clone().unwrap_or_default();
    let mut rows = store.buckets(after, BUCKETS_MAX as usize).await?;
    rows.retain(|row| row.name.starts_with(&prefix));
    let more = rows.len() > max;
    rows.truncate(max);
    let token = rows.last().filter(|_| more).map(|row| encode_token(row.name.as_bytes()));
    let buckets = rows
        .into_iter()
        .map(|row| dto::Bucket {
            bucket_region: Some(row.region),
            creation_date: Some(system_time(row.created_ms).into()),
            name: Some(row.name),
        })
        .collect();
    Ok(dto::ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token: token,
        prefix: input.prefix,
        ..Default::default()
    })
}

pub(super) async fn objects(
    store: &Store,
    input: dto::ListObjectsV2Input,
) -> S3Result<dto::ListObjectsV2Output> {
    let max_keys = input.max_keys.unwrap_or(KEYS_MAX);
    if max_keys < 0 {
        return Err(s3_error!(InvalidArgument, "max-keys must not be negative"));
    }
    let max_keys = max_keys.min(KEYS_MAX);
    let from = match (&input.continuation_token, &input.start_after) {
        (Some(token), _) => ListFrom::Position(decode_token(token)?),
        (None, Some(key)) => ListFrom::After(key.clone()),
        (None, None) => ListFrom::Start,
    };
    let query = ListQuery {
        bucket: input.bucket.clone(),
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: input.delimiter.clone().filter(|delimiter| !delimiter.is_empty()),
        from,
        keys_max: max_keys as usize,
    };
    let page = store.list(query).await?;
    let url =
        input.encoding_type.as_ref().is_some_and(|encoding| encoding.as_str() == dto::EncodingType::URL);
    let key_text = |text: String| if url { percent_encode(&text) } else { text };
    let key_count = page.len() as i32;
    let contents = page
        .entries
        .into_iter()
        .map(|entry| dto::Object {
            e_tag: Some(ETag::Strong(entry.etag)),
            key: Some(key_text(entry.key)),
            last_modified: Some(system_time(entry.modified_ms).into()),
            size: i64::try_from(entry.size_bytes).ok(),
            storage_class: Some(dto::ObjectStorageClass::from_static(dto::ObjectStorageClass::STANDARD)),
            ..Default::default()
        })
        .collect();
    let common_prefixes = page
        .prefixes
        .into_iter()
        .map(|prefix| dto::CommonPrefix { prefix: Some(key_text(prefix)) })
        .collect();
    Ok(dto::ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(key_text(input.prefix.unwrap_or_default())),
        delimiter: input.delimiter.map(key_text),
        start_after: input.start_after.map(key_text),
        encoding_type: input.encoding_type,
        continuation_token: input.continuation_token,
        max_keys: Some(max_keys),
        key_count: Some(key_count),
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.map(|position| encode_token(&position)),
        contents: Some(contents),
        common_prefixes: Some(common_prefixes),
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

/// For keys that XML cannot carry (`encoding-type=url`).
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.push('%');
                encoded.push_str(&hex::encode_upper([byte]));
            }
        }
    }
    encoded
}
