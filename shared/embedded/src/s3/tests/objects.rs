use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    BucketLocationConstraint, ChecksumAlgorithm, ChecksumMode, CreateBucketConfiguration, Delete,
    EncodingType, ObjectIdentifier,
};
use proptest::prelude::*;

use super::super::{INLINE_BYTES_MAX, Store};
use super::*;

async fn body(client: &Client, key: &str) -> Vec<u8> {
    let got = client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
    got.body.collect().await.unwrap().to_vec()
}

#[tokio::test]
async fn an_object_comes_back_as_it_was_put() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    for len in [0, 1, 2048, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 3_000_000] {
        let content = bytes(len, 7);
        let key = format!("size/{len}");
        let put = client
            .put_object()
            .bucket(BUCKET)
            .key(&key)
            .body(ByteStream::from(content.clone()))
            .content_type("application/json")
            .cache_control("no-store")
            .content_language("en")
            .content_disposition("attachment; filename=x.json")
            .metadata("attempt", "3")
            .metadata("Mixed-Case", "Grüße")
            .send()
            .await
            .unwrap();
        let got = client.get_object().bucket(BUCKET).key(&key).send().await.unwrap();
        assert_eq!(got.e_tag, put.e_tag);
        assert_eq!(got.content_length, Some(len as i64));
        assert_eq!(got.content_type(), Some("application/json"));
        assert_eq!(got.cache_control(), Some("no-store"));
        assert_eq!(got.content_language(), Some("en"));
        assert_eq!(got.content_disposition(), Some("attachment; filename=x.json"));
        let metadata = got.metadata().unwrap();
        assert_eq!(metadata["attempt"], "3");
        // The SDK returns an encoded word (RFC 2047) unchanged.
        assert_eq!(metadata["mixed-case"], "=?UTF-8?B?R3LDvMOfZQ==?=");
        assert_eq!(got.body.collect().await.unwrap().to_vec(), content);
        let head = client.head_object().bucket(BUCKET).key(&key).send().await.unwrap();
        assert_eq!((head.e_tag, head.content_length), (put.e_tag, Some(len as i64)));
        assert_eq!(head.metadata.unwrap()["attempt"], "3");
    }
    assert_eq!(content_files(dir.path()).len(), 2);
}

// The MD5 of the empty object is from RFC 1321.
#[tokio::test]
async fn the_etag_is_the_md5() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let put = client.put_object().bucket(BUCKET).key("empty").send().await.unwrap();
    assert_eq!(put.e_tag(), Some("\"d41d8cd98f00b204e9800998ecf8427e\""));
    let put =
        client.put_object().bucket(BUCKET).key("abc").body(ByteStream::from_static(b"abc")).send().await;
    assert_eq!(put.unwrap().e_tag(), Some("\"900150983cd24fb0d6963f7d28e17f72\""));
}

#[tokio::test]
async fn any_key_works() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let keys = [
        "dir".to_owned(),
        "dir/".to_owned(),
        "dir/x".to_owned(),
        "../up/./here//twice".to_owned(),
        "sp ace+plus%25&?=#ä€😀".to_owned(),
        "k".repeat(1024),
        "ä".repeat(512),
    ];
    for key in &keys {
        let put =
            client.put_object().bucket(BUCKET).key(key).body(ByteStream::from(key.clone().into_bytes()));
        put.send().await.unwrap();
    }
    for key in &keys {
        assert_eq!(body(&client, key).await, key.as_bytes());
    }
    let listed = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    let mut listed: Vec<_> =
        listed.contents().iter().map(|object| object.key().unwrap().to_owned()).collect();
    let mut expected = keys.to_vec();
    expected.sort();
    assert_eq!(listed, expected);
    listed.dedup();
    assert_eq!(listed.len(), keys.len());
    let long = client.put_object().bucket(BUCKET).key("k".repeat(1025)).send().await;
    assert_eq!(failure(long), code("KeyTooLongError", 400));
}

#[tokio::test]
async fn ranges() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    for len in [1000, INLINE_BYTES_MAX + 600_000] {
        let content = bytes(len, 1);
        let put = client.put_object().bucket(BUCKET).key("r").body(ByteStream::from(content.clone()));
        put.send().await.unwrap();
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-19", 10..20),
            ("bytes=900-", 900..len),
            ("bytes=-7", len - 7..len),
            ("bytes=-99999999", 0..len),
            ("bytes=5-99999999", 5..len),
        ] {
            let got = client.get_object().bucket(BUCKET).key("r").range(range).send().await.unwrap();
            let last = expected.end - 1;
            assert_eq!(got.content_range(), Some(format!("bytes {}-{last}/{len}", expected.start).as_str()));
            assert_eq!(got.content_length, Some(expected.len() as i64));
            assert_eq!(got.body.collect().await.unwrap().to_vec(), content[expected], "{range}");
        }
        for range in [format!("bytes={len}-"), "bytes=-0".to_owned()] {
            let got = client.get_object().bucket(BUCKET).key("r").range(range).send().await;
            assert_eq!(failure(got), code("InvalidRange", 416));
        }
    }
    client.put_object().bucket(BUCKET).key("none").send().await.unwrap();
    let got = client.get_object().bucket(BUCKET).key("none").range("bytes=-5").send().await;
    assert_eq!(failure(got), code("InvalidRange", 416));
}

#[tokio::test]
async fn checksums_are_verified_and_returned() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let abc = || ByteStream::from_static(b"abc");
    for len in [3, INLINE_BYTES_MAX + 1] {
        for algorithm in ChecksumAlgorithm::values() {
            let put = client.put_object().bucket(BUCKET).key("sum").body(ByteStream::from(bytes(len, 2)));
            // S3 uploads don't support MD5 and the newest algorithms.
            let Some(algorithm) = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]
                .into_iter()
                .find(|name| name == algorithm)
                .map(ChecksumAlgorithm::from)
            else {
                continue;
            };
            put.checksum_algorithm(algorithm.clone()).send().await.unwrap();
            let get = client.get_object().bucket(BUCKET).key("sum").checksum_mode(ChecksumMode::Enabled);
            let got = get.send().await.unwrap();
            assert_eq!(got.checksum_type().map(|kind| kind.as_str()), Some("FULL_OBJECT"));
            // The SDK also verifies it while it reads.
            assert_eq!(got.body.collect().await.unwrap().to_vec(), bytes(len, 2), "{algorithm:?}");
        }
    }
    let put = client
        .put_object()
        .bucket(BUCKET)
        .key("bad")
        .body(abc())
        .checksum_sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_eq!(failure(put.send().await), code("BadDigest", 400));
    let put = client.put_object().bucket(BUCKET).key("bad").body(abc()).checksum_crc32("AAAAAA==");
    assert_eq!(failure(put.send().await), code("BadDigest", 400));
    let put =
        client.put_object().bucket(BUCKET).key("bad").body(abc()).content_md5("1B2M2Y8AsgTpgAmY7PhCfg==");
    assert_eq!(failure(put.send().await), code("BadDigest", 400));
    let put = client.put_object().bucket(BUCKET).key("bad").body(abc()).content_md5("nonsense");
    assert_eq!(failure(put.send().await), code("InvalidDigest", 400));
    assert_eq!(failure(client.get_object().bucket(BUCKET).key("bad").send().await), code("NoSuchKey", 404));
    let put =
        client.put_object().bucket(BUCKET).key("good").body(abc()).content_md5("kAFQmDzST7DWlj99KOF/cg==");
    put.send().await.unwrap();
    // SHA-256 of "abc", FIPS 180-2, appendix B.1.
    let put = client
        .put_object()
        .bucket(BUCKET)
        .key("good")
        .body(abc())
        .checksum_sha256("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    put.send().await.unwrap();
}

/// For a body of unknown length, the SDK uses chunked framing with a trailing checksum.
#[tokio::test]
async fn a_streamed_body_with_a_trailing_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let file = dir.path().join("upload");
    for len in [100, INLINE_BYTES_MAX * 20] {
        std::fs::write(&file, bytes(len, 9)).unwrap();
        let frames = http_body_util::Full::new(::bytes::Bytes::from(bytes(len, 9)));
        let stream = ByteStream::from_body_1_x(frames);
        let put = client.put_object().bucket(BUCKET).key("streamed").content_length(len as i64).body(stream);
        put.send().await.unwrap();
        assert_eq!(body(&client, "streamed").await, bytes(len, 9));
        let head = client.head_object().bucket(BUCKET).key("streamed").checksum_mode(ChecksumMode::Enabled);
        let head = head.send().await.unwrap();
        assert!(head.checksum_crc32().is_some());
        // The framing isn't a property of the object.
        assert_eq!(head.content_encoding(), None);
    }
}

#[tokio::test]
async fn missing_things_have_their_error_codes() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let got = client.get_object().bucket(BUCKET).key("no").send().await.unwrap_err();
    assert!(got.into_service_error().is_no_such_key());
    let head = client.head_object().bucket(BUCKET).key("no").send().await;
    assert!(
        matches!(head, Err(SdkError::ServiceError(error)) if matches!(error.err(), HeadObjectError::NotFound(_)))
    );
    let bucket = client.head_bucket().bucket("no-such-bucket").send().await.unwrap_err();
    assert!(bucket.into_service_error().is_not_found());
    let put = client.put_object().bucket("no-such-bucket").key("k").send().await;
    assert_eq!(failure(put), code("NoSuchBucket", 404));
    let got = client.get_object().bucket("no-such-bucket").key("k").send().await;
    assert_eq!(failure(got), code("NoSuchBucket", 404));
    let list = client.list_objects_v2().bucket("no-such-bucket").send().await.unwrap_err();
    assert!(list.into_service_error().is_no_such_bucket());
    // Deleting a missing key isn't an error.
    client.delete_object().bucket(BUCKET).key("no").send().await.unwrap();
}

#[tokio::test]
async fn buckets() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let again = client.create_bucket().bucket(BUCKET).send().await.unwrap_err();
    assert!(again.into_service_error().is_bucket_already_owned_by_you());
    let configuration =
        CreateBucketConfiguration::builder().location_constraint(BucketLocationConstraint::EuWest1).build();
    let create = client.create_bucket().bucket("another").create_bucket_configuration(configuration);
    create.send().await.unwrap();
    let head = client.head_bucket().bucket("another").send().await.unwrap();
    assert_eq!(head.bucket_region(), Some("eu-west-1"));
    client.head_bucket().bucket(BUCKET).send().await.unwrap();
    let missing = client.head_bucket().bucket("missing").send().await.unwrap_err();
    assert!(missing.into_service_error().is_not_found());
}

/// Operations that the program doesn't call are rejected instead of half implemented.
#[tokio::test]
async fn unsupported_operations_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    client.put_object().bucket(BUCKET).key("a/b").send().await.unwrap();
    let refused = code("NotImplemented", 501);
    assert_eq!(failure(client.list_buckets().send().await), refused);
    assert_eq!(failure(client.delete_bucket().bucket(BUCKET).send().await), refused);
    assert_eq!(failure(client.get_bucket_location().bucket(BUCKET).send().await), refused);
    let copy = client.copy_object().bucket(BUCKET).key("c").copy_source(format!("{BUCKET}/a/b"));
    assert_eq!(failure(copy.send().await), refused);
    let parts = client.list_parts().bucket(BUCKET).key("a/b").upload_id("x");
    assert_eq!(failure(parts.send().await), refused);
    assert_eq!(failure(client.list_multipart_uploads().bucket(BUCKET).send().await), refused);
    let list = || client.list_objects_v2().bucket(BUCKET);
    assert_eq!(failure(list().delimiter("/").send().await), refused);
    assert_eq!(failure(list().start_after("a").send().await), refused);
    assert_eq!(failure(list().encoding_type(EncodingType::Url).send().await), refused);
    let left = list().send().await.unwrap();
    assert_eq!(left.contents().len(), 1);
}

#[tokio::test]
async fn deleting_many() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    for index in 0..5 {
        let big = ByteStream::from(bytes(INLINE_BYTES_MAX + 1, index));
        client.put_object().bucket(BUCKET).key(format!("k{index}")).body(big).send().await.unwrap();
    }
    assert_eq!(content_files(dir.path()).len(), 5);
    let ids = ["k0", "k2", "k2", "missing"].map(|key| ObjectIdentifier::builder().key(key).build().unwrap());
    let delete = Delete::builder().set_objects(Some(ids.to_vec())).build().unwrap();
    let done = client.delete_objects().bucket(BUCKET).delete(delete).send().await.unwrap();
    assert_eq!(done.deleted().len(), 4);
    assert!(done.errors().is_empty());
    let left = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    let left: Vec<_> = left.contents().iter().map(|object| object.key().unwrap()).collect();
    assert_eq!(left, ["k1", "k3", "k4"]);
    assert_eq!(content_files(dir.path()).len(), 3);
}

#[tokio::test]
async fn metadata_has_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let put = client.put_object().bucket(BUCKET).key("k").metadata("a", "x".repeat(2048)).send().await;
    assert_eq!(failure(put), code("MetadataTooLarge", 400));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Any range of any stored content is returned correctly.
    #[test]
    fn any_range_of_any_size(len in 1_usize..400_000, a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let (store, client): (Store, Client) = with_bucket(dir.path()).await;
            let content = bytes(len, 5);
            client.put_object().bucket(BUCKET).key("k").body(ByteStream::from(content.clone())).send().await.unwrap();
            let (a, b) = (a.index(len), b.index(len));
            let (from, to) = (a.min(b), a.max(b));
            for client in [client, fast_client(&store)] {
                let got = client.get_object().bucket(BUCKET).key("k").range(format!("bytes={from}-{to}"));
                let got = got.send().await.unwrap().body.collect().await.unwrap().to_vec();
                assert_eq!(got, content[from..=to]);
            }
        });
    }
}
