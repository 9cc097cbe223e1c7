//! Datasets whose files don't fit on disk or into memory together.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bench_datasets::{Library, NoProgress, PreparedDataset};
use bench_domain::run::DatasetChoice;
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, PartFile, Row, RowError};
use serde_json::{Value, json};

use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, COMMIT, TEST};

const ROWS: usize = 8;
const FILES: [&str; 3] = ["one.jsonl", "two.jsonl", "three.jsonl"];
const PROGRESS: &str =
    "datasets/large/v1/org--large/0123456789abcdef0123456789abcdef01234567/progress.json.zst";

static SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[HubSource { id: "org/large", revision: None, items: &[TEST], support: &[] }],
    gate: None,
    license: "MIT",
    items: 0,
    demo: DemoData { items: "{\"id\":\"demo\"}\n", support: &[] },
};

/// Items with tests of many kilobytes, in files whose order the layout defines.
#[derive(Debug)]
struct Large;

impl Layout for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn version(&self) -> u32 {
        1
    }

    fn files(&self) -> &'static [PartFile] {
        static NAMED: [PartFile; 3] = [
            PartFile { part: TEST, path: FILES[0] },
            PartFile { part: TEST, path: FILES[1] },
            PartFile { part: TEST, path: FILES[2] },
        ];
        &NAMED
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        if row.get("skip").is_some() {
            return Ok(None);
        }
        let id = row.get("id").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
        Ok(Some(Item::new(id, Some("group".into()), row)))
    }
}

/// Returns text that doesn't compress well.
fn incompressible_text(seed: usize, bytes: usize) -> String {
    static NOISE: LazyLock<String> = LazyLock::new(|| {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'A' + ((state >> 40) % 26) as u8 + ((state >> 50) % 2) as u8 * 32)
        };
        std::iter::repeat_with(next).take(1_000_000).collect()
    });
    NOISE[seed * 1_000..][..bytes].to_owned()
}

fn rows(file: usize, row_bytes: usize) -> Vec<u8> {
    let mut text = String::new();
    for row in 0..ROWS {
        let number = file * ROWS + row;
        let row = match row {
            3 => json!({ "skip": true }),
            _ => json!({ "id": format!("p{number}"), "tests": incompressible_text(number, row_bytes) }),
        };
        text.push_str(&format!("{row}\n"));
    }
    text.into_bytes()
}

fn publish(hub: &TestHub, row_bytes: usize) {
    let files = FILES.iter().enumerate().map(|(n, name)| ((*name).to_owned(), rows(n, row_bytes), true));
    hub.publish(
        "org/large",
        Repository { commit: COMMIT.into(), files: files.collect(), ..Repository::default() },
    );
}

/// A library that keeps only the file on disk that is being read.
fn library(bench: &Bench, hub: &TestHub) -> Library {
    bench.library_with(hub, |config| config.kept_bytes_max = 1)
}

async fn prepare(library: &Library) -> PreparedDataset {
    library.prepare(&Large, &DatasetChoice::Hub, &NoProgress).await.unwrap()
}

fn downloaded_files(hub: &TestHub) -> Vec<String> {
    let requests = hub.requests().into_iter().filter(|request| request.at == "store");
    requests.filter_map(|request| request.path.rsplit('/').next().map(str::to_owned)).collect()
}

/// Makes the dataset without interruption, in a library that keeps all files until the end.
async fn prepare_without_interruption(row_bytes: usize) -> PreparedDataset {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    publish(&hub, row_bytes);
    let prepared = prepare(&bench.library(&hub)).await;
    assert!(!bench.keys().await.iter().any(|key| key == PROGRESS), "there was nothing to note");
    assert!(bench.downloads().is_empty());
    prepared
}

/// Stops in the middle of the last file.
async fn stop_after_two_files(bench: &Bench, hub: &TestHub) {
    hub.fail("three.jsonl", (0..6).map(|_| Fault::Status(500, vec![])));
    assert!(prepare(&library(bench, hub)).await.used.is_demo());
    assert_eq!(downloaded_files(hub), ["one.jsonl", "two.jsonl"]);
    let left = bench.downloads();
    assert!(left.iter().all(|path| path.ends_with(".part")), "what is stored is removed from disk: {left:?}");
}

#[tokio::test]
async fn a_file_is_removed_when_its_rows_are_stored_and_not_requested_again() {
    for row_bytes in [100, 900_000] {
        let whole = prepare_without_interruption(row_bytes).await;
        assert_eq!((whole.index.items.len(), whole.index.rows_left_out), (21, 3));
        let (bench, hub) = (Bench::new().await, TestHub::start().await);
        publish(&hub, row_bytes);
        stop_after_two_files(&bench, &hub).await;
        let prepared = prepare(&library(&bench, &hub)).await;
        assert_eq!(downloaded_files(&hub), ["three.jsonl"]);
        assert_eq!(prepared.index, whole.index, "as if it had been made in one go");
        let items = bench.items(&prepared).await;
        assert_eq!(items[8].row["tests"], json!(incompressible_text(9, row_bytes)));
        assert!(bench.downloads().is_empty(), "{:?}", bench.downloads());
        let left: Option<Value> = bench.blobs.get_json(PROGRESS).await.unwrap();
        assert_eq!(left, Some(Value::Null), "it is finished");
        let library = library(&bench, &hub);
        assert_eq!(library.list_cached().await.unwrap().len(), 2, "with the demo rows");
        assert_eq!(library.remove("large", None).await.unwrap(), 2);
        assert!(bench.keys().await.iter().all(|key| key.contains("/refs/")));
    }
}

#[tokio::test]
async fn an_unusable_checkpoint_starts_over() {
    type Change = fn(&mut Value);
    // Only large objects have parts.
    let changes: [(usize, Change); 6] = [
        (900_000, |noted| noted["writer"]["upload"]["id"] = "0".repeat(32).into()),
        (900_000, |noted| noted["writer"]["upload"]["etags"][0] = "\"0123\"".into()),
        (100, |noted| noted["writer"]["upload"]["tail"] = "?".into()),
        (100, |noted| noted["writer"]["digest"] = "00".into()),
        (100, |noted| noted["files"][1]["name"] = "other.jsonl".into()),
        (100, |noted| noted["program"] = "another".into()),
    ];
    let wholes = [
        (900_000, prepare_without_interruption(900_000).await),
        (100, prepare_without_interruption(100).await),
    ];
    for (number, (row_bytes, change)) in changes.into_iter().enumerate() {
        let (bench, hub) = (Bench::new().await, TestHub::start().await);
        publish(&hub, row_bytes);
        stop_after_two_files(&bench, &hub).await;
        let mut noted: Value = bench.blobs.get_json(PROGRESS).await.unwrap().unwrap();
        assert_eq!((&noted["rows"], &noted["rows_left_out"]), (&json!(16), &json!(2)));
        assert_eq!(noted["writer"]["upload"]["id"].is_string(), row_bytes > 100);
        change(&mut noted);
        bench.blobs.put_json(PROGRESS, &noted).await.unwrap();
        let prepared = prepare(&library(&bench, &hub)).await;
        let whole = wholes.iter().find(|(bytes, _)| *bytes == row_bytes).map(|(_, whole)| &whole.index);
        assert_eq!(Some(&prepared.index), whole, "{number}");
        let downloaded: BTreeSet<String> = downloaded_files(&hub).into_iter().collect();
        assert_eq!(downloaded, FILES.map(str::to_owned).into(), "{number}");
    }
}

#[tokio::test]
async fn a_damaged_checkpoint_is_ignored() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    publish(&hub, 100);
    stop_after_two_files(&bench, &hub).await;
    bench.blobs.put(PROGRESS, "no frame".into(), "application/zstd").await.unwrap();
    assert_eq!(prepare(&library(&bench, &hub)).await.index.items.len(), 21);
    assert_eq!(downloaded_files(&hub), FILES);
}

#[tokio::test]
async fn concurrent_processes_make_the_same_dataset() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    publish(&hub, 100);
    stop_after_two_files(&bench, &hub).await;
    let (a, b) = (library(&bench, &hub), library(&bench, &hub));
    let (a, b) = tokio::join!(prepare(&a), prepare(&b));
    assert_eq!((a.index.digest, a.index.items), (b.index.digest.clone(), b.index.items.clone()));
    assert_eq!(bench.items(&b).await.len(), 21);
}

#[tokio::test]
async fn duplicate_ids_are_reported_across_files() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    publish(&hub, 100);
    stop_after_two_files(&bench, &hub).await;
    let files = [rows(0, 100), rows(1, 100), b"{\"id\":\"new\"}\n{\"id\":\"p9\"}\n".to_vec()];
    let files = FILES.iter().zip(files).map(|(name, rows)| ((*name).to_owned(), rows, true));
    hub.publish(
        "org/large",
        Repository { commit: COMMIT.into(), files: files.collect(), ..Repository::default() },
    );
    let error = library(&bench, &hub).prepare(&Large, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("three.jsonl, row 2: its item id `p9` is that of an earlier row"), "{error}");
}
