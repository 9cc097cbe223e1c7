//! Preparation of datasets from the hub.

use bench_datasets::{DatasetError, Library, NoProgress, load_support};
use bench_domain::run::DatasetChoice;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hub_server::{Repository, TestHub};
use crate::support::{Bench, COMMIT, OTHER_COMMIT, Quiz, RecordedProgress, questions, repository, token};

#[tokio::test]
async fn items_and_support_come_from_the_hub() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library_with(&hub, token);
    let steps = RecordedProgress::default();
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &steps).await.unwrap();

    assert_eq!(prepared.used.id, "org/quiz");
    assert_eq!(prepared.used.revision, COMMIT);
    assert_eq!(prepared.used.source, "hub");
    assert_eq!(prepared.used.note, None);
    assert_eq!(prepared.used.data_key, format!("datasets/quiz/v1/org--quiz/{COMMIT}/data.zst"));
    let names: Vec<&str> = prepared.index.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "data/test-00000-of-00002.parquet",
            "data/test-00001-of-00002.parquet",
            "data/validation-00000-of-00001.parquet",
        ]
    );
    assert_eq!(prepared.index.files[0].sha256, hex::encode(Sha256::digest(questions(0, 120))));

    let items = bench.items(&prepared).await;
    assert_eq!(items.len(), 220);
    for (number, item) in items.iter().enumerate() {
        assert_eq!(item.id, number.to_string());
        assert_eq!(item.row["number"], number);
        assert_eq!(item.row["options"], json!([number.to_string(), (number + 1).to_string()]));
    }
    let math = load_support(&bench.blobs, &prepared.used, "math").await.unwrap().unwrap();
    assert_eq!(math.as_array().unwrap().len(), 2);
    assert_eq!(math[1]["question"], "What is 1002?");
    assert_eq!(load_support(&bench.blobs, &prepared.used, "art").await.unwrap(), None);

    // The digest can be computed from the loaded items.
    let mut digest = Sha256::new();
    for item in &items {
        digest.update(serde_json::to_string(item).unwrap() + "\n");
    }
    for name in ["law", "math"] {
        let value = load_support(&bench.blobs, &prepared.used, name).await.unwrap().unwrap();
        digest.update(format!("{name}\t{value}\n"));
    }
    assert_eq!(prepared.used.digest, hex::encode(digest.finalize()));

    // The token was sent to the hub only, and large files came from elsewhere.
    let requests = hub.requests();
    assert!(requests.iter().any(|requests| requests.at == "store"));
    for requests in requests {
        let expected = (requests.at == "hub").then(|| "Bearer hf_secret".to_owned());
        assert_eq!(requests.authorization, expected, "{}", requests.path);
    }
    let steps = steps.0.into_inner().unwrap();
    for kind in ["Resolving", "Downloading", "Normalizing { items: 220 }"] {
        assert!(steps.iter().any(|step| step.starts_with(kind)), "{kind}");
    }
    assert_eq!(bench.downloads(), Vec::<String>::new());
}

#[tokio::test]
async fn a_revision_is_downloaded_once() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let first = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    hub.requests();
    let again = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(first, again);
    let requests: Vec<_> = hub.requests().into_iter().map(|requests| requests.path).collect();
    assert_eq!(requests, ["/api/datasets/org/quiz/revision/main"]);

    // Another layout version makes its own items.
    let newer = Quiz { version: 2, ..Quiz::OPEN };
    let newer = bench.library(&hub).prepare(&newer, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_ne!(newer.used.data_key, first.used.data_key);
    assert_eq!(newer.used.digest, first.used.digest);
}

#[tokio::test]
async fn a_new_commit_is_a_new_revision() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    let old = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    let mut changed = repository();
    changed.commit = OTHER_COMMIT.to_owned();
    changed.files[1].1 = questions(500, 3);
    hub.publish("org/quiz", changed);
    let new = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!((new.used.revision.as_str(), new.index.items.len()), (OTHER_COMMIT, 123));
    assert_eq!(bench.items(&old).await.len(), 220);

    // A pinned commit that is in the store needs no hub.
    hub.requests();
    let pinned = bench.library_with(&hub, |config| {
        config.revisions.insert("quiz".into(), COMMIT.into());
    });
    let pinned = pinned.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(pinned, old);
    assert_eq!(hub.requests(), []);
}

#[tokio::test]
async fn the_next_source_is_tried() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz-mirror", repository());
    let library = bench.library(&hub);
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.used.id, "org/quiz-mirror");

    // A repository without the split is skipped too.
    let mut other = repository();
    other.files.retain(|(name, ..)| !name.contains("validation"));
    hub.publish("org/quiz", other);
    let prepared = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.used.id, "org/quiz-mirror");
}

#[tokio::test]
async fn no_source_has_it() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let error = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("org/quiz-mirror: "), "{error}");
    assert_eq!(bench.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn json_lines_named_by_the_card() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let line = |text: &str| format!("{{\"question\":\"{text}\",\"category\":\"law\"}}\n").into_bytes();
    let card = json!({"configs": [{"config_name": "default", "data_files": [
        {"split": "test", "path": "questions/*.jsonl"}, {"split": "validation", "path": ["examples.jsonl"]},
    ]}]});
    let files = vec![
        ("questions/b.jsonl".to_owned(), line("second"), false),
        ("questions/a.jsonl".to_owned(), line("first"), false),
        ("examples.jsonl".to_owned(), line("example"), false),
    ];
    hub.publish("org/quiz", Repository { commit: COMMIT.into(), files, card, ..Repository::default() });
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    let questions: Vec<Value> =
        bench.items(&prepared).await.into_iter().map(|i| i.row["question"].clone()).collect();
    assert_eq!(questions, ["first", "second"]);
}

#[tokio::test]
async fn converted_files_of_the_hub_are_used() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let address =
        |split: &str| vec![format!("https://huggingface.co/datasets/org/quiz/resolve/x/{split}.bin")];
    let splits = [("test".to_owned(), address("t")), ("validation".to_owned(), address("v"))];
    let files = vec![
        ("test.xlsx".to_owned(), b"question,category".to_vec(), false),
        ("t.bin".to_owned(), questions(0, 3), true),
        ("v.bin".to_owned(), questions(5, 1), true),
    ];
    let converted = [("default".to_owned(), splits.into())].into();
    hub.publish("org/quiz", Repository { commit: COMMIT.into(), files, converted, ..Repository::default() });
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(bench.items(&prepared).await.len(), 3);
    assert_eq!(prepared.index.files[0].name, "converted/default/test/0.parquet");
}

#[tokio::test]
async fn a_pinned_commit_outside_main_is_not_converted() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library_with(&hub, |config| {
        config.revisions.insert("quiz".into(), "v9".into());
    });
    let error = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(error.to_string().contains("RevisionNotFound"), "{error}");
}

#[tokio::test]
async fn a_broken_file_is_reported_and_leaves_nothing() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let mut broken = repository();
    let bytes = &mut broken.files[2].1;
    let middle = bytes.len() / 3;
    bytes[middle..middle + 200].fill(0xff);
    hub.publish("org/quiz", broken);
    let error = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    let DatasetError::Content(content) = error else { panic!("{error}") };
    assert_eq!(content.file, "org/quiz/data/test-00000-of-00002.parquet");
    assert!(content.row.is_some() && content.column.is_some(), "{content}");
    assert_eq!(bench.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_invalid_row_is_reported() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let mut odd = repository();
    odd.files.push(("data/test-00000-of-00002.jsonl".into(), b"{}".to_vec(), false));
    odd.files.retain(|(name, ..)| !name.starts_with("data/test") || name.ends_with("jsonl"));
    hub.publish("org/quiz", odd);
    let error = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    let expected =
        "org/quiz/data/test-00000-of-00002.jsonl, row 1, column `category`: there is no text in it";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_kill_half_way_leaves_nothing_visible() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    let first = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    // The state after a kill before the last write.
    let index = first.used.data_key.replace("data.zst", "index.json.zst");
    bench.blobs.delete(&index).await.unwrap();
    assert_eq!(library.list_cached().await.unwrap(), []);
    let again = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn the_future_is_send() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    let task = async move { library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await };
    assert_eq!(tokio::spawn(task).await.unwrap().unwrap().index.items.len(), 220);
}

#[tokio::test]
async fn concurrent_calls_are_safe() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let libraries: Vec<Library> = (0..4).map(|_| bench.library(&hub)).collect();
    let prepared = libraries.iter().map(|l| l.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress));
    let prepared = futures_util::future::join_all(prepared).await;
    let first = prepared[0].as_ref().unwrap();
    for prepared in &prepared {
        assert_eq!(prepared.as_ref().unwrap(), first);
    }
    assert_eq!(bench.items(first).await.len(), 220);
    assert_eq!(bench.downloads(), Vec::<String>::new());
}
