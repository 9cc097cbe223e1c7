use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_s3::primitives::ByteStream;

use super::super::INLINE_BYTES_MAX;
use super::*;

/// Returns content that identifies its version: all bytes are the same.
fn version(version: u8, small: bool) -> Vec<u8> {
    let len = if small { 100 } else { INLINE_BYTES_MAX * 10 };
    vec![version; len + usize::from(version)]
}

fn is_whole(content: &[u8]) -> bool {
    content.first().is_some_and(|&first| content == version(first, content.len() < INLINE_BYTES_MAX))
}

/// A reader gets one whole version while others are written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_whole_versions() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    client
        .put_object()
        .bucket(BUCKET)
        .key("k")
        .body(ByteStream::from(version(0, false)))
        .send()
        .await
        .unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = [client.clone(), fast_client(&store)]
        .into_iter()
        .map(|client| {
            let done = done.clone();
            tokio::spawn(async move {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) || reads == 0 {
                    let got = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
                    assert!(is_whole(&got.body.collect().await.unwrap().to_vec()));
                    reads += 1;
                }
            })
        })
        .collect();
    let writers = (0..2_u8).map(|writer| {
        let client = client.clone();
        async move {
            for round in 0..20_u8 {
                let content = version(writer * 100 + round, (round + writer).is_multiple_of(3));
                client
                    .put_object()
                    .bucket(BUCKET)
                    .key("k")
                    .body(ByteStream::from(content))
                    .send()
                    .await
                    .unwrap();
            }
        }
    });
    futures_util::future::join_all(writers).await;
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    // Of the forty versions, only the last one is left.
    let last = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
    let large = last.content_length().unwrap() as usize > INLINE_BYTES_MAX;
    drop(last);
    assert_eq!(content_files(dir.path()).len(), usize::from(large));
}

/// A reader that has started continues after the object is overwritten and deleted.
#[tokio::test]
async fn a_started_read_completes() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, client) = with_bucket(dir.path()).await;
    let put =
        |content: Vec<u8>| client.put_object().bucket(BUCKET).key("k").body(ByteStream::from(content)).send();
    put(version(1, false)).await.unwrap();
    let mut begun = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
    let first = begun.body.next().await.unwrap().unwrap();
    let untouched = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
    put(version(2, false)).await.unwrap();
    client.delete_object().bucket(BUCKET).key("k").send().await.unwrap();
    let mut all = first.to_vec();
    while let Some(chunk) = begun.body.next().await {
        all.extend(chunk.unwrap());
    }
    assert!(all == version(1, false));
    assert!(untouched.body.collect().await.unwrap().to_vec() == version(1, false));
    drop(begun);
    assert!(content_files(dir.path()).is_empty());
}

/// Many writers share commits, and none is affected by another's failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers() {
    let dir = tempfile::tempdir().unwrap();
    let (store, client) = with_bucket(dir.path()).await;
    let fast_path = fast_client(&store);
    let puts = (0..500_usize).map(|index| {
        let client = if index.is_multiple_of(2) { fast_path.clone() } else { client.clone() };
        async move {
            let bucket = if index % 10 == 9 { "no-such-bucket" } else { BUCKET };
            let put = client.put_object().bucket(bucket).key(format!("k{index:03}"));
            put.body(ByteStream::from(bytes(index, 1))).send().await.is_ok()
        }
    });
    let done = futures_util::future::join_all(puts).await;
    for (index, ok) in done.into_iter().enumerate() {
        assert_eq!(ok, index % 10 != 9);
        if ok {
            let got = fast_path.get_object().bucket(BUCKET).key(format!("k{index:03}")).send().await.unwrap();
            assert_eq!(got.body.collect().await.unwrap().to_vec(), bytes(index, 1));
        }
    }
}
