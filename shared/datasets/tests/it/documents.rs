//! Documents from an archive next to the items.

use bench_datasets::{DatasetError, NoProgress, PreparedDataset, SupportCache, load_support};
use bench_domain::run::DatasetChoice;
use bench_items::{DatasetSpec, DemoData, HubSource, document_text};
use serde_json::{Value, json};

use crate::custom_layout::{CustomLayout, archive, pinned};
use crate::hub_server::{Repository, TestHub};
use crate::support::{Bench, COMMIT, OTHER_COMMIT, Quiz, SOURCES, TEST, questions};

static READ_SOURCES: [HubSource; 1] =
    [HubSource { id: "org/quiz", revision: None, items: &[TEST], support: &[] }];
static READ_DEMO: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &READ_SOURCES,
    gate: None,
    license: "MIT",
    items: 0,
    demo: DemoData {
        items: "{\"question\":\"2+2?\",\"category\":\"math\"}\n",
        support: &[("documents", "{\"path\":\"demo/one.txt\",\"text\":\"A demo.\"}\n")],
    },
};

/// Questions about the documents of an archive with this content.
fn reading(content: &[u8]) -> CustomLayout {
    let quiz = Quiz { spec: &READ_DEMO, version: 1 };
    CustomLayout { quiz, documents: Some(pinned(content)), ..CustomLayout::PLAIN }
}

fn bundle() -> Vec<u8> {
    archive(&[
        ("lcr/Legal/set_1/One file.txt", b"Text of one.\r\n"),
        ("lcr/Legal/set_1/one file.txt", b"another"),
        ("lcr/Legal/set_2/latin.txt", b"caf\xe9"),
        ("lcr/Legal/set_2/\u{fc}.txt", b""),
    ])
}

fn repository(commit: &str, count: usize, content: &[u8]) -> Repository {
    let file = |name: &str, bytes: Vec<u8>, large| (name.to_owned(), bytes, large);
    let files =
        vec![file("test.parquet", questions(0, count), true), file("texts/all.zip", content.to_vec(), true)];
    Repository { commit: commit.into(), files, ..Repository::default() }
}

async fn prepare(
    bench: &Bench,
    hub: &TestHub,
    layout: &CustomLayout,
) -> Result<PreparedDataset, DatasetError> {
    bench.library(hub).prepare(layout, &DatasetChoice::Hub, &NoProgress).await
}

async fn value(bench: &Bench, prepared: &PreparedDataset, name: &str) -> Option<Value> {
    load_support(&bench.blobs, &prepared.used, name).await.unwrap()
}

fn zip_requests(hub: &TestHub) -> usize {
    hub.requests().iter().filter(|requests| requests.at == "store" && requests.path.ends_with(".zip")).count()
}

#[tokio::test]
async fn documents_are_support_values() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let content = bundle();
    let layout = reading(&content);
    hub.publish("org/quiz", repository(COMMIT, 3, &content));
    let prepared = prepare(&bench, &hub, &layout).await.unwrap();
    assert_eq!(prepared.used.documents.as_deref(), Some(pinned(&content).sha256));
    assert_eq!(prepared.index.files[1].name, "texts/all.zip");
    let one = value(&bench, &prepared, "Legal/set_1/One file.txt").await.unwrap();
    assert_eq!(document_text(&one), Ok("Text of one.\r\n"));
    assert_eq!(value(&bench, &prepared, "Legal/set_1/one file.txt").await, Some(json!("another")));
    assert_eq!(value(&bench, &prepared, "Legal/set_1/ONE FILE.txt").await, None);
    assert_eq!(value(&bench, &prepared, "lcr/Legal/set_1/One file.txt").await, None);
    assert_eq!(document_text(&Value::Null), Err("it is not among the dataset's documents".into()));
    assert_eq!(value(&bench, &prepared, "Legal/set_2/u\u{308}.txt").await, Some(json!("")));
    let latin = value(&bench, &prepared, "Legal/set_2/latin.txt").await.unwrap();
    assert_eq!(document_text(&latin), Err("it is not text: byte 3 of it is not UTF-8".into()));
    assert_eq!(bench.downloads(), Vec::<String>::new());

    // Another revision with the same archive has the same documents, without another download.
    assert_eq!(zip_requests(&hub), 1);
    hub.publish("org/quiz", repository(OTHER_COMMIT, 4, &content));
    let other = prepare(&bench, &hub, &layout).await.unwrap();
    assert_eq!((other.index.items.len(), other.used.documents.clone()), (4, prepared.used.documents.clone()));
    assert_ne!(other.used.digest, prepared.used.digest);
    assert_eq!(zip_requests(&hub), 0);
    assert_eq!(value(&bench, &other, "Legal/set_1/one file.txt").await, Some(json!("another")));

    // They are removed with the last dataset that uses them.
    let library = bench.library(&hub);
    let listed = library.list_cached().await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|dataset| dataset.bytes > prepared.index.data_bytes));
    assert_eq!(library.remove("quiz", Some(&COMMIT[..4])).await.unwrap(), 1);
    assert_eq!(value(&bench, &other, "Legal/set_1/one file.txt").await, Some(json!("another")));
    assert_eq!(library.remove("quiz", None).await.unwrap(), 1);
    assert_eq!(value(&bench, &other, "Legal/set_1/one file.txt").await, None);
    assert!(bench.keys().await.iter().all(|key| key.contains("/refs/")), "{:?}", bench.keys().await);
}

#[tokio::test]
async fn an_archive_that_is_not_the_pinned_one_is_refused() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let content = bundle();
    hub.publish("org/quiz", repository(COMMIT, 3, &archive(&[("lcr/x.txt", b"other")])));
    let error = prepare(&bench, &hub, &reading(&content)).await.unwrap_err();
    assert!(
        matches!(&error, DatasetError::Checksum { file, .. } if file == "org/quiz/texts/all.zip"),
        "{error}"
    );
    let mut without = repository(COMMIT, 3, &content);
    without.files.pop();
    hub.publish("org/quiz", without);
    let error = prepare(&bench, &hub, &reading(&content)).await.unwrap_err();
    assert!(error.to_string().contains("has no file texts/all.zip"), "{error}");
    assert_eq!((bench.keys().await, bench.downloads()), (vec![], vec![]));
}

#[tokio::test]
async fn invalid_archives_are_reported_and_leave_nothing_visible() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let good = bundle();
    let broken = {
        let mut bytes = good.clone();
        bytes[70] ^= 0x20;
        bytes
    };
    for (content, problem) in [
        (b"not a zip".to_vec(), "org/quiz/texts/all.zip: it is not a ZIP archive"),
        (good[..good.len() - 40].to_vec(), "org/quiz/texts/all.zip: it is not a ZIP archive"),
        (broken, "org/quiz/texts/all.zip: member `Legal/set_1/One file.txt`: "),
        (archive(&[("other/x.txt", b"x")]), "org/quiz/texts/all.zip: it has no member under `lcr/`"),
    ] {
        hub.publish("org/quiz", repository(COMMIT, 3, &content));
        let error = prepare(&bench, &hub, &reading(&content)).await.unwrap_err();
        assert!(error.to_string().starts_with(problem), "{error}");
        let library = bench.library(&hub);
        assert_eq!(library.list_cached().await.unwrap(), []);
    }
}

#[tokio::test]
async fn documents_of_the_demo_and_of_local_files() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let content = bundle();
    let layout = reading(&content);
    let library = bench.library_without_hub().await;
    let demo = library.prepare(&layout, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    assert_eq!(value(&bench, &demo, "demo/one.txt").await, Some(json!("A demo.")));
    assert_eq!(demo.used.documents, None);

    // A file without documents uses those that the layout pins, if they are available.
    let file = bench.folder.path().join("mine.csv");
    std::fs::write(&file, "question,category\nwhich?,math\n").unwrap();
    let without = library.import_local(&layout, &file, &NoProgress).await.unwrap();
    assert!(
        without.used.note.as_deref().unwrap().starts_with("documents: demo, since"),
        "{:?}",
        without.used
    );
    assert_eq!(value(&bench, &without, "demo/one.txt").await, Some(json!("A demo.")));
    hub.publish("org/quiz", repository(COMMIT, 3, &content));
    let with = bench.library(&hub).import_local(&layout, &file, &NoProgress).await.unwrap();
    assert_eq!(
        (with.used.note.clone(), with.used.documents.as_deref()),
        (None, Some(pinned(&content).sha256))
    );
    assert_eq!(value(&bench, &with, "Legal/set_1/one file.txt").await, Some(json!("another")));
    assert_ne!(with.used.revision, without.used.revision);
    // They are stored by now, so no hub is needed.
    assert_eq!(library.import_local(&layout, &file, &NoProgress).await.unwrap(), with);

    // Rows among the items, and an archive in the folder.
    let lines = "{\"question\":\"a\",\"category\":\"law\"}\n{\"path\":\"x/y.txt\",\"text\":\"inline\"}\n";
    let file = bench.folder.path().join("both.jsonl");
    std::fs::write(&file, lines).unwrap();
    let inline = library.import_local(&layout, &file, &NoProgress).await.unwrap();
    assert_eq!((value(&bench, &inline, "x/y.txt").await, inline.used.note), (Some(json!("inline")), None));
    let folder = bench.folder.path().join("set");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("test.csv"), "question,category\nwhich?,math\n").unwrap();
    std::fs::write(folder.join("docs.zip"), archive(&[("lcr/own.txt", b"own")])).unwrap();
    let own = library.import_local(&layout, &folder, &NoProgress).await.unwrap();
    assert_eq!((value(&bench, &own, "own.txt").await, own.used.note.clone()), (Some(json!("own")), None));
    std::fs::write(folder.join("more.ZIP"), b"x").unwrap();
    let error = library.import_local(&layout, &folder, &NoProgress).await.unwrap_err();
    assert!(error.to_string().contains("more than one ZIP archive"), "{error}");
}

#[tokio::test]
async fn a_cache_of_support_values_is_bounded() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let texts: Vec<(String, Vec<u8>)> =
        (0..6).map(|n| (format!("lcr/{n}.txt"), format!("{n}").repeat(10_000).into_bytes())).collect();
    let members: Vec<(&str, &[u8])> =
        texts.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
    let content = archive(&members);
    hub.publish("org/quiz", repository(COMMIT, 1, &content));
    let prepared = prepare(&bench, &hub, &reading(&content)).await.unwrap();
    let cache = SupportCache::new(25_000);
    let get = async |name: &str| cache.get(&bench.blobs, &prepared.used, name).await.unwrap();
    let first = get("0.txt").await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &get("0.txt").await.unwrap()));
    assert_eq!(get("none.txt").await, None);
    for name in ["1.txt", "2.txt", "3.txt"] {
        assert!(get(name).await.is_some());
    }
    // Only the last two fit; an evicted value is loaded again and is the same.
    let again = get("0.txt").await.unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &again));
    assert_eq!(first, again);
    assert!(std::sync::Arc::ptr_eq(&get("3.txt").await.unwrap(), &get("3.txt").await.unwrap()));
    // A value larger than the cache is returned all the same.
    let small = SupportCache::new(10);
    assert_eq!(small.get(&bench.blobs, &prepared.used, "5.txt").await.unwrap(), get("5.txt").await);
    // Concurrent requests load each value once.
    let (a, b) = tokio::join!(get("4.txt"), get("4.txt"));
    assert!(std::sync::Arc::ptr_eq(&a.unwrap(), &b.unwrap()));
    assert_eq!(SOURCES.len(), 2);
}
