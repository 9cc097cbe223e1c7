use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};

use super::super::{INLINE_BYTES_MAX, Store, StoreError};
use super::*;

/// Folder for the child process of [`a_killed_process_loses_nothing_it_acknowledged`].
const CHILD_DIR: &str = "BENCH_S3_CHILD_DIR";

async fn get(client: &Client, key: &str) -> Vec<u8> {
    let got = client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
    got.body.collect().await.unwrap().to_vec()
}

#[tokio::test]
async fn all_data_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    for full in [false, true] {
        let path = dir.path().join(full.to_string());
        let store = Store::open(&path, full).unwrap();
        let client = super::client(&store);
        client.create_bucket().bucket(BUCKET).send().await.unwrap();
        for len in [2000, INLINE_BYTES_MAX + 1] {
            let put =
                client.put_object().bucket(BUCKET).key(len.to_string()).body(ByteStream::from(bytes(len, 3)));
            put.metadata("a", "b").send().await.unwrap();
        }
        let upload = client.create_multipart_upload().bucket(BUCKET).key("parts").send().await.unwrap();
        let id = upload.upload_id().unwrap();
        let part = client.upload_part().bucket(BUCKET).key("parts").upload_id(id).part_number(1);
        let tag = part.body(ByteStream::from_static(b"part")).send().await.unwrap().e_tag;
        drop((client, store));

        let store = Store::open(&path, full).unwrap();
        let client = super::client(&store);
        for len in [2000, INLINE_BYTES_MAX + 1] {
            assert_eq!(get(&client, &len.to_string()).await, bytes(len, 3));
        }
        // An open upload can be continued.
        let listed = CompletedPart::builder().part_number(1).set_e_tag(tag).build();
        let listed = CompletedMultipartUpload::builder().parts(listed).build();
        let complete = client.complete_multipart_upload().bucket(BUCKET).key("parts").upload_id(id);
        complete.multipart_upload(listed).send().await.unwrap();
        assert_eq!(get(&client, "parts").await, b"part");
    }
}

#[tokio::test]
async fn two_stores_do_not_share_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), false).unwrap();
    assert!(matches!(Store::open(dir.path(), false), Err(StoreError::InUse)));
    drop(store);
    Store::open(dir.path(), false).unwrap();
}

#[tokio::test]
async fn another_layout_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path(), false).unwrap());
    let conn = rusqlite::Connection::open(dir.path().join("index.sqlite")).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    assert!(matches!(Store::open(dir.path(), false), Err(StoreError::Layout { found: 99, known: 1 })));
}

/// A crash between file and row leaves a file without a row; a crash during receiving leaves a partial file.
#[tokio::test]
async fn orphans_are_swept_and_named_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let put =
        client.put_object().bucket(BUCKET).key("k").body(ByteStream::from(bytes(INLINE_BYTES_MAX + 1, 1)));
    put.send().await.unwrap();
    let named = content_files(dir.path());
    drop((client, store));
    let shard = dir.path().join("content").join("ff");
    fs::create_dir_all(&shard).unwrap();
    fs::write(shard.join("ff00000000000000000000000000000f"), b"orphan").unwrap();
    fs::write(dir.path().join("incoming").join("half"), b"half").unwrap();

    let store = open(dir.path()).await;
    assert_eq!(content_files(dir.path()), named);
    assert_eq!(fs::read_dir(dir.path().join("incoming")).unwrap().count(), 0);
    assert_eq!(get(&super::client(&store), "k").await, bytes(INLINE_BYTES_MAX + 1, 1));
}

/// The file is complete in its place before the row refers to it: if the row fails, neither is left.
#[tokio::test]
async fn a_refused_upload_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let put =
        || client.put_object().bucket(BUCKET).key("k").body(ByteStream::from(bytes(INLINE_BYTES_MAX + 1, 1)));
    put().send().await.unwrap();
    let before = content_files(dir.path());
    assert_eq!(failure(put().if_none_match("*").send().await), code("PreconditionFailed", 412));
    assert_eq!(failure(put().checksum_crc32("AAAAAA==").send().await), code("BadDigest", 400));
    assert_eq!(content_files(dir.path()), before);
    assert_eq!(fs::read_dir(dir.path().join("incoming")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::open_with(dir.path(), false, |conn| Ok(conn.pragma_update(None, "max_page_count", 60)?))
            .unwrap();
    let client = super::client(&store);
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    let put = |key: usize| {
        let put = client.put_object().bucket(BUCKET).key(format!("k{key}"));
        put.body(ByteStream::from(bytes(20_000, key as u8))).send()
    };
    let results = futures_util::future::join_all((0..64).map(put)).await;
    let mut stored = Vec::new();
    for (key, result) in results.into_iter().enumerate() {
        match failure(result) {
            (None, _) => stored.push(key),
            refused => assert_eq!(refused, code("InsufficientStorage", 507)),
        }
    }
    assert!(!stored.is_empty() && stored.len() < 64);
    for key in &stored {
        assert_eq!(get(&client, &format!("k{key}")).await, bytes(20_000, *key as u8));
    }
    // With free space, writes succeed again.
    for key in &stored {
        client.delete_object().bucket(BUCKET).key(format!("k{key}")).send().await.unwrap();
    }
    put(99).await.unwrap();
    // A full disk under a content file is the same error.
    let full = StoreError::from(std::io::Error::from(std::io::ErrorKind::StorageFull));
    assert!(matches!(full, StoreError::Full));
}

/// Writes until it is killed. Does nothing unless the test below starts it.
#[tokio::test]
async fn child_writes_until_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let dir = std::path::PathBuf::from(dir);
    let store = Store::open(dir.join("store"), false).unwrap();
    let client = super::client(&store);
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    let writers = (0..8_usize).map(|writer| {
        let (client, dir) = (client.clone(), dir.clone());
        async move {
            for round in 0_usize.. {
                let len = if round.is_multiple_of(3) { INLINE_BYTES_MAX + 1 + writer } else { 500 + writer };
                let key = format!("{writer}/{}", round % 7);
                let put = client
                    .put_object()
                    .bucket(BUCKET)
                    .key(&key)
                    .body(ByteStream::from(bytes(len, round as u8)));
                put.send().await.unwrap();
                // Acknowledged: reported to the parent by a file, which survives a kill. It is renamed into place,
                // since a kill during a write would leave an empty file.
                let (half, ack) = (dir.join(format!("half-{writer}")), dir.join(format!("ack-{writer}")));
                fs::write(&half, round.to_string()).unwrap();
                fs::rename(half, ack).unwrap();
            }
        }
    });
    futures_util::future::join_all(writers).await;
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("{}::child_writes_until_killed", module_path!().split_once("::").unwrap().1),
        ])
        .args(["--nocapture"])
        .env(CHILD_DIR, dir.path())
        .spawn()
        .unwrap();
    let acknowledged = |writer: usize| {
        let text = fs::read_to_string(dir.path().join(format!("ack-{writer}"))).ok()?;
        text.parse::<usize>().ok()
    };
    let patience = Instant::now();
    while !(0..8).all(|writer| acknowledged(writer).is_some_and(|round| round >= 12)) {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        assert!(patience.elapsed() < Duration::from_secs(120), "the child does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let path = dir.path().join("store");
        let store = Store::open(&path, false).unwrap();
        let client = super::client(&store);
        let mut files = 0;
        for writer in 0..8_usize {
            let last = acknowledged(writer).unwrap();
            for slot in 0..7 {
                // The newest acknowledged round of this slot, or the one in progress.
                let newest = last - (last + 7 - slot) % 7;
                let got = get(&client, &format!("{writer}/{slot}")).await;
                let expected = |round: usize| {
                    let len =
                        if round.is_multiple_of(3) { INLINE_BYTES_MAX + 1 + writer } else { 500 + writer };
                    bytes(len, round as u8)
                };
                assert!(
                    got == expected(newest) || (newest + 7 == last + 1 && got == expected(newest + 7)),
                    "writer {writer}, slot {slot}: not what was acknowledged"
                );
                files += usize::from(got.len() > INLINE_BYTES_MAX);
            }
        }
        assert_eq!(content_files(&path).len(), files);
    });
}
