//! Downloads with interruptions and errors.

use bench_datasets::{DatasetError, NoProgress};
use bench_domain::run::DatasetChoice;

use crate::hub_server::{Fault, RecordedRequest, TestHub};
use crate::support::{Bench, Quiz, RecordedProgress, repository};

const FILE: &str = "data/test-00000-of-00002.parquet";

fn requests_for_file(requests: Vec<RecordedRequest>, at: &str) -> Vec<RecordedRequest> {
    requests.into_iter().filter(|request| request.at == at && request.path.ends_with(FILE)).collect()
}

#[tokio::test]
async fn a_cut_connection_is_resumed() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail(FILE, [Fault::Cut(1_000), Fault::Cut(500)]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(bench.items(&prepared).await.len(), 220);
    let ranges: Vec<_> = requests_for_file(hub.requests(), "store")
        .into_iter()
        .map(|a| (a.range, a.if_range.is_some()))
        .collect();
    let expected =
        [(None, false), (Some("bytes=1000-".to_owned()), true), (Some("bytes=1500-".to_owned()), true)];
    assert_eq!(ranges, expected);
}

#[tokio::test]
async fn without_an_etag_a_download_starts_again() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.no_etags();
    hub.fail(FILE, [Fault::Cut(1_000)]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(bench.items(&prepared).await.len(), 220);
    assert!(requests_for_file(hub.requests(), "store").iter().all(|request| request.range.is_none()));
}

#[tokio::test]
async fn a_later_process_resumes_a_download() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    // Some data arrives, then none until the hub counts as unreachable.
    hub.fail(FILE, [Fault::Cut(1_000)].into_iter().chain((0..6).map(|_| Fault::Status(500, vec![]))));
    let demo = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(demo.used.is_demo());
    hub.requests();
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(bench.items(&prepared).await.len(), 220);
    let ranges: Vec<_> =
        requests_for_file(hub.requests(), "store").into_iter().map(|request| request.range).collect();
    assert_eq!(ranges, [Some("bytes=1000-".to_owned())]);
}

#[tokio::test]
async fn a_finished_file_is_not_downloaded_again() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let last = "data/test-00001";
    hub.fail(last, (0..6).map(|_| Fault::Status(500, vec![])));
    assert!(
        bench
            .library(&hub)
            .prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress)
            .await
            .unwrap()
            .used
            .is_demo()
    );
    assert_eq!(bench.downloads().len(), 3, "{:?}", bench.downloads());
    hub.requests();
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.index.items.len(), 220);
    assert!(requests_for_file(hub.requests(), "hub").is_empty());
    assert_eq!(bench.downloads(), Vec::<String>::new());
}

#[tokio::test]
async fn a_wrong_checksum_is_an_error() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail(FILE, [Fault::Altered, Fault::Altered]);
    let error = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(&error, DatasetError::Checksum { file, .. } if file == FILE), "{error}");
    assert_eq!(bench.keys().await, Vec::<String>::new());

    // A single mismatch is repaired by downloading again.
    hub.fail(FILE, [Fault::Altered]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(bench.items(&prepared).await.len(), 220);
}

#[tokio::test]
async fn a_rate_limit_is_waited_for() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail("revision", [Fault::Status(429, vec![("retry-after", "0")]), Fault::Status(503, vec![])]);
    hub.fail(FILE, [Fault::Status(429, vec![("retry-after", "0.002")])]);
    let steps = RecordedProgress::default();
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &steps).await.unwrap();
    assert_eq!(prepared.index.items.len(), 220);
    let steps = steps.0.into_inner().unwrap();
    let waits: Vec<_> = steps.iter().filter(|step| step.starts_with("Waiting")).collect();
    assert_eq!(waits.len(), 3, "{waits:?}");
    assert!(waits[2].contains("2ms") && waits[2].contains("429"), "{}", waits[2]);
}

#[tokio::test]
async fn a_requested_wait_beyond_the_limit_fails() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    hub.fail("revision", [Fault::Status(429, vec![("retry-after", "86400")])]);
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    assert!(prepared.used.note.unwrap().contains("asks to wait 86400 s"));
}
