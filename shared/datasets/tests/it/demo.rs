//! Demo rows.

use bench_datasets::{NoProgress, load_support};
use bench_domain::run::DatasetChoice;
use serde_json::json;

use crate::hub_server::{Fault, TestHub};
use crate::support::{Bench, COMMIT, Quiz, repository};

#[tokio::test]
async fn demo_rows_on_request() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let library = bench.library(&hub);
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    assert_eq!(prepared.used.note, None);
    assert_eq!(prepared.used.revision.len(), 64);
    assert_eq!(bench.items(&prepared).await[1].row["question"], "3+3?");
    let math = load_support(&bench.blobs, &prepared.used, "math").await.unwrap();
    assert_eq!(math, Some(json!([{"question": "1+1?", "category": "math"}])));
    assert_eq!(library.prepare(&Quiz::OPEN, &DatasetChoice::Demo, &NoProgress).await.unwrap(), prepared);
    assert_eq!(hub.requests(), []);
}

#[tokio::test]
async fn without_a_hub_the_note_names_the_demo_data() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    let note = prepared.used.note.unwrap();
    assert!(note.starts_with("demo data was used: the hub at http://127.0.0.1:"), "{note}");
    assert_eq!(note, format!("demo data was used: {}", prepared.demo_reason.unwrap()));
    assert!(note.contains("no connection"), "{note}");
    // The recorded choice doesn't match the stored data.
    let asked_for = library.prepare(&Quiz::OPEN, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    assert_eq!(asked_for.used.note, None);
}

#[tokio::test]
async fn cached_datasets_come_before_demo_rows() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let online = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();

    let offline = bench.library_with(&hub, |config| config.offline = true);
    hub.requests();
    for library in [bench.library_without_hub().await, offline] {
        let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
        assert_eq!(prepared.index, online.index);
        let note = prepared.used.note.unwrap();
        assert!(
            note.starts_with(&format!("revision {COMMIT} was cached earlier and used: the hub at")),
            "{note}"
        );
    }
    assert_eq!(hub.requests(), []);
}

#[tokio::test]
async fn too_many_errors_make_the_hub_unreachable() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.fail("revision", (0..100).map(|_| Fault::Status(500, vec![])));
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    assert!(prepared.used.note.unwrap().contains("500"));
    assert!(hub.requests().len() < 10);
}
