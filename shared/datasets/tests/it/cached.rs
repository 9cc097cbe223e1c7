//! Listing and removal of stored datasets.

use bench_datasets::{DatasetError, NoProgress, load_item};
use bench_domain::run::DatasetChoice;

use crate::hub_server::TestHub;
use crate::support::{Bench, COMMIT, Quiz, repository};

#[tokio::test]
async fn datasets_are_listed_and_removed() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    assert_eq!(library.list_cached().await.unwrap(), []);
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    library.prepare(&Quiz::OPEN, &DatasetChoice::Demo, &NoProgress).await.unwrap();

    let listed = library.list_cached().await.unwrap();
    let short: Vec<_> = listed.iter().map(|d| (d.benchmark.as_str(), d.source.as_str(), d.items)).collect();
    assert_eq!(short, [("quiz", "demo", 2), ("quiz", "hub", 220)]);
    assert_eq!(listed[1].revision, COMMIT);
    assert!(listed[1].bytes > prepared.index.data_bytes);

    assert_eq!(library.remove("qui", None).await.unwrap(), 0);
    assert_eq!(library.remove("quiz", Some("ffff")).await.unwrap(), 0);
    assert_eq!(library.remove("quiz", Some(&COMMIT[..8])).await.unwrap(), 1);
    assert_eq!(library.list_cached().await.unwrap().len(), 1);
    let entry = &prepared.index.items[0];
    assert!(load_item(&bench.blobs, &prepared.used.data_key, entry.offset, entry.length).await.is_err());
    assert_eq!(library.remove("quiz", None).await.unwrap(), 1);

    // It can be downloaded again.
    let again = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(again, prepared);
}

#[tokio::test]
async fn an_invalid_frame_is_an_error() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    let (key, entry) = (&prepared.used.data_key, &prepared.index.items[0]);
    for (offset, length) in [(1, entry.length), (0, entry.length - 1), (0, 1 << 40), (0, 0)] {
        let error = load_item(&bench.blobs, key, offset, length).await.unwrap_err();
        assert!(matches!(error, DatasetError::Blob(_)), "{offset} {length}: {error}");
    }
}
