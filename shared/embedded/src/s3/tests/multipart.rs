use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumMode, CompletedMultipartUpload, CompletedPart};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use s3s::crypto::{Checksum as _, Md5, Sha256};

use super::*;

const PART: usize = 5 * 1024 * 1024;

async fn begin(client: &Client) -> String {
    let create =
        client.create_multipart_upload().bucket(BUCKET).key("big").content_type("text/x").metadata("m", "1");
    create.send().await.unwrap().upload_id.unwrap()
}

async fn part(client: &Client, id: &str, number: i32, content: Vec<u8>) -> CompletedPart {
    let put = client.upload_part().bucket(BUCKET).key("big").upload_id(id).part_number(number);
    let tag = put.body(ByteStream::from(content)).send().await.unwrap().e_tag;
    CompletedPart::builder().part_number(number).set_e_tag(tag).build()
}

fn list(parts: &[CompletedPart]) -> CompletedMultipartUpload {
    CompletedMultipartUpload::builder().set_parts(Some(parts.to_vec())).build()
}

async fn complete(client: &Client, id: &str, parts: &[CompletedPart]) -> (Option<String>, u16) {
    let complete = client.complete_multipart_upload().bucket(BUCKET).key("big").upload_id(id);
    failure(complete.multipart_upload(list(parts)).send().await)
}

#[tokio::test]
async fn parts_become_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let id = begin(&client).await;
    let (one, two, unused) = (bytes(PART, 1), bytes(PART + 3, 2), bytes(PART, 3));
    // Out of order, with one part uploaded twice and one left out.
    let second = part(&client, &id, 20, two.clone()).await;
    part(&client, &id, 3, unused.clone()).await;
    let first = part(&client, &id, 3, one.clone()).await;
    part(&client, &id, 7, unused).await;
    let last = part(&client, &id, 21, b"end".to_vec()).await;
    assert_eq!(content_files(dir.path()).len(), 4);
    assert_eq!(failure(client.get_object().bucket(BUCKET).key("big").send().await), code("NoSuchKey", 404));

    assert_eq!(complete(&client, &id, &[first, second, last]).await, (None, 200));
    let whole = [one.clone(), two.clone(), b"end".to_vec()].concat();
    let got = client.get_object().bucket(BUCKET).key("big").send().await.unwrap();
    let sums = [&one, &two, &b"end".to_vec()].map(|part| Md5::checksum(part)).concat();
    let etag = format!("\"{}-3\"", hex::encode(Md5::checksum(&sums)));
    assert_eq!(got.e_tag(), Some(etag.as_str()));
    assert_eq!((got.content_type(), got.metadata().unwrap()["m"].as_str()), (Some("text/x"), "1"));
    assert!(got.body.collect().await.unwrap().to_vec() == whole);
    // Across part boundaries.
    let range = format!("bytes={}-{}", PART - 2, 2 * PART + 4);
    let got = client.get_object().bucket(BUCKET).key("big").range(range).send().await.unwrap();
    assert!(got.body.collect().await.unwrap().to_vec() == whole[PART - 2..=2 * PART + 4]);
    assert_eq!(content_files(dir.path()).len(), 3);
    assert_eq!(complete(&client, &id, &[]).await, code("MalformedXML", 400));
    let again = complete_without_parts_of(&client, &id).await;
    assert_eq!(again, code("NoSuchUpload", 404));
}

async fn complete_without_parts_of(client: &Client, id: &str) -> (Option<String>, u16) {
    let put = client.upload_part().bucket(BUCKET).key("big").upload_id(id).part_number(1);
    failure(put.body(ByteStream::from_static(b"x")).send().await)
}

#[tokio::test]
async fn an_upload_that_was_not_completed_for_a_day_is_removed_when_the_store_opens() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new, kept) = {
        let (_store, client) = with_bucket(dir.path()).await;
        let (old, new) = (begin(&client).await, begin(&client).await);
        for id in [&old, &new] {
            part(&client, id, 1, bytes(PART, 1)).await;
        }
        let kept = part(&client, &new, 2, b"end".to_vec()).await;
        (old, new, kept)
    };
    assert_eq!(content_files(dir.path()).len(), 3);
    let index = rusqlite::Connection::open(dir.path().join("index.sqlite")).unwrap();
    let hour = 60 * 60 * 1_000;
    for (id, hours) in [(&old, 25), (&new, 23)] {
        let update = "UPDATE upload SET started_ms = started_ms - ?1 WHERE id = ?2";
        assert_eq!(index.execute(update, rusqlite::params![hours * hour, id]).unwrap(), 1);
    }
    drop(index);
    let store = open(dir.path()).await;
    let client = client(&store);
    assert_eq!(content_files(dir.path()).len(), 2);
    assert_eq!(complete(&client, &old, std::slice::from_ref(&kept)).await, code("NoSuchUpload", 404));
    assert_eq!(complete(&client, &new, &[kept]).await, (None, 200));
    let got = client.get_object().bucket(BUCKET).key("big").send().await.unwrap();
    assert_eq!(got.body.collect().await.unwrap().to_vec(), b"end");
}

#[tokio::test]
async fn wrong_lists_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let id = begin(&client).await;
    let small = part(&client, &id, 1, b"small".to_vec()).await;
    let last = part(&client, &id, 2, b"last".to_vec()).await;
    let never = CompletedPart::builder().part_number(3).e_tag(last.e_tag().unwrap()).build();
    let other = CompletedPart::builder().part_number(2).e_tag(small.e_tag().unwrap()).build();
    assert_eq!(complete(&client, &id, &[small.clone(), last.clone()]).await, code("EntityTooSmall", 400));
    assert_eq!(complete(&client, &id, &[last.clone(), small.clone()]).await, code("InvalidPartOrder", 400));
    assert_eq!(complete(&client, &id, &[small.clone(), small.clone()]).await, code("InvalidPartOrder", 400));
    assert_eq!(complete(&client, &id, std::slice::from_ref(&never)).await, code("InvalidPart", 400));
    assert_eq!(complete(&client, &id, &[other]).await, code("InvalidPart", 400));
    assert_eq!(complete(&client, "nonsense", std::slice::from_ref(&last)).await, code("NoSuchUpload", 404));
    for number in [0, 10_001] {
        let put =
            client.upload_part().bucket(BUCKET).key("big").upload_id(&id).part_number(number).send().await;
        assert_eq!(failure(put), code("InvalidArgument", 400));
    }
    // None of these requests ended the upload, and the last part may be small.
    client.put_object().bucket(BUCKET).key("big").send().await.unwrap();
    let conditional =
        client.complete_multipart_upload().bucket(BUCKET).key("big").upload_id(&id).if_none_match("*");
    let conditional = conditional.multipart_upload(list(std::slice::from_ref(&last))).send().await;
    assert_eq!(failure(conditional), code("PreconditionFailed", 412));
    assert_eq!(complete(&client, &id, &[last]).await, (None, 200));
}

#[tokio::test]
async fn aborting_removes_what_was_uploaded() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let ids = [begin(&client).await, begin(&client).await];
    part(&client, &ids[0], 1, bytes(10, 0)).await;
    for id in &ids {
        let abort = || client.abort_multipart_upload().bucket(BUCKET).key("big").upload_id(id).send();
        abort().await.unwrap();
        assert_eq!(failure(abort().await), code("NoSuchUpload", 404));
    }
    assert!(content_files(dir.path()).is_empty());
}

#[tokio::test]
async fn composite_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let create = client
        .create_multipart_upload()
        .bucket(BUCKET)
        .key("big")
        .checksum_algorithm(ChecksumAlgorithm::Sha256);
    let id = create.send().await.unwrap().upload_id.unwrap();
    let mut parts = Vec::new();
    let mut sums = Vec::new();
    for (number, content) in [(1, bytes(PART, 1)), (2, b"end".to_vec())] {
        sums.extend(Sha256::checksum(&content));
        let put = client.upload_part().bucket(BUCKET).key("big").upload_id(&id).part_number(number);
        let put =
            put.checksum_algorithm(ChecksumAlgorithm::Sha256).body(ByteStream::from(content)).send().await;
        let put = put.unwrap();
        parts.push(
            CompletedPart::builder()
                .part_number(number)
                .set_e_tag(put.e_tag)
                .set_checksum_sha256(put.checksum_sha256)
                .build(),
        );
    }
    let mut wrong = parts.clone();
    wrong[0].checksum_sha256 = wrong[1].checksum_sha256.clone();
    assert_eq!(complete(&client, &id, &wrong).await, code("InvalidPart", 400));
    assert_eq!(complete(&client, &id, &parts).await, (None, 200));
    let head = client
        .head_object()
        .bucket(BUCKET)
        .key("big")
        .checksum_mode(ChecksumMode::Enabled)
        .send()
        .await
        .unwrap();
    let expected = format!("{}-2", BASE64_STANDARD.encode(Sha256::checksum(&sums)));
    assert_eq!(head.checksum_sha256(), Some(expected.as_str()));
    assert_eq!(head.checksum_type().map(|kind| kind.as_str()), Some("COMPOSITE"));
    // A wrong part is rejected while it is received.
    let id = begin(&client).await;
    let put = client.upload_part().bucket(BUCKET).key("big").upload_id(&id).part_number(1);
    let put = put.body(ByteStream::from_static(b"x")).checksum_crc32("AAAAAA==").send().await;
    assert_eq!(failure(put), code("BadDigest", 400));
    assert_eq!(content_files(dir.path()).len(), 2);
}
