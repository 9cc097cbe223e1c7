//! The store of tasks over the embedded services.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::sync::Arc;

use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig};
use bench_domain::run::{DatasetChoice, Owner};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_items::{DatasetSpec, Item, Layout, Row, RowError};
use bench_state::State;
use bench_tasks::{
    TaskError, TaskLimits, TaskReference, TaskStore, TaskUpload, UploadedArchive, find_task, item_id,
};
use zip::write::SimpleFileOptions;

/// Layout of the rows of tasks, as the benchmark reads them.
struct Rows;

impl Layout for Rows {
    fn name(&self) -> &'static str {
        "terminal_tasks"
    }

    fn spec(&self) -> &DatasetSpec {
        &DatasetSpec::DEFAULT
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["task"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

struct System {
    store: TaskStore,
    _embedded: Embedded,
    _folder: tempfile::TempDir,
}

impl System {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(folder.path().join("data")).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let config = embedded.sdk_config();
        let state = State::new(&config, "bench", embedded.epoch());
        state.ensure_table().await.unwrap();
        let blobs = Blobs::new(&config, "bench");
        blobs.ensure_bucket().await.unwrap();
        let library = Library::new(blobs.clone(), LibraryConfig::new(folder.path().join("downloads")));
        let store = TaskStore::new(state, blobs, Arc::new(library), TaskLimits::default());
        Self { store, _embedded: embedded, _folder: folder }
    }
}

/// Returns an archive of a task whose instruction is `text`.
fn archive(folder: &str, text: &str, level: i64) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_level(Some(level));
    for (path, content) in [
        ("task.toml", ""),
        ("instruction.md", text),
        ("environment/Dockerfile", "FROM debian:12\n"),
        ("tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("solution/solve.sh", "true\n"),
    ] {
        zip.start_file(format!("{folder}{path}"), options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn upload(name: &str) -> TaskUpload {
    TaskUpload {
        name: name.to_owned(),
        file_name: "../../evil.zip".to_owned(),
        model: "openai/gpt-5".to_owned(),
        agent: "oracle".to_owned(),
        harness: "harbor".to_owned(),
        num_runs: 3,
        unlisted: false,
        owner: Owner::Local,
    }
}

#[tokio::test]
async fn content_is_stored_once_and_removed_with_its_last_task() {
    let System { store, .. } = &System::start().await;
    let (first_zip, other_zip) = (
        archive("fix-it/", "Fix it. ".repeat(500).as_str(), 1),
        archive("fix-it/", "Fix it. ".repeat(500).as_str(), 9),
    );
    assert_ne!(first_zip, other_zip);
    let add = async |zip: &[u8], name: &str| {
        store.add(UploadedArchive::from_bytes(zip).unwrap(), upload(name)).await.unwrap()
    };
    let (one, checked) = add(&first_zip, "one").await;
    let (two, _) = add(&other_zip, "two").await;
    assert_eq!((one.facts.content_hash.as_str(), one.id), (two.facts.content_hash.as_str(), two.id - 1));
    assert_eq!(checked.name.as_deref(), Some("fix-it"));
    assert!(checked.has_solution && checked.files == 5 && checked.format == "harbor");
    let key = bench_blobs::task_key(&one.facts.content_hash);
    let stored = store.blobs.get(&key).await.unwrap().unwrap();
    assert_eq!(stored, first_zip, "the first upload is kept");
    let listed: Vec<u64> = store.list().await.unwrap().iter().map(|task| task.id).collect();
    assert_eq!(listed, [two.id, one.id]);

    // The dataset has one row for both, and the size of the stored archive.
    let tasks = [two.clone(), one.clone()];
    let revision = store.dataset(&tasks, &Rows).await.unwrap();
    assert_eq!(store.dataset(&tasks[1..], &Rows).await.unwrap(), revision);
    let prepared = store.library.prepare(&Rows, &revision, &bench_datasets::NoProgress).await.unwrap();
    assert_eq!(prepared.index.items.len(), 1);
    let entry = &prepared.index.items[0];
    let item = store.library.item(&prepared.index, entry.offset, entry.length).await.unwrap();
    assert_eq!(item.row["task"], item_id(&one));
    assert!(item_id(&one).starts_with("fix-it@"));
    assert_eq!(item.row["archive_bytes"], first_zip.len());
    assert_eq!(item.row["content_hash"], one.facts.content_hash);
    assert!(item.row["instruction"].as_str().unwrap().starts_with("Fix it."));

    for (task, is_left) in [(&one, true), (&two, false)] {
        store.state.hide_task(task.id).await.unwrap();
        store.remove(task).await.unwrap();
        assert_eq!(store.blobs.head(&key).await.unwrap().is_some(), is_left);
    }
    let missing = store.dataset(&tasks, &Rows).await.unwrap_err();
    assert!(matches!(missing, TaskError::ArchiveMissing(_)), "{missing}");
    add(&other_zip, "three").await;
    assert_eq!(store.blobs.get(&key).await.unwrap().unwrap(), other_zip);
}

#[tokio::test]
async fn equal_sets_of_tasks_have_equal_revisions() {
    let System { store, .. } = &System::start().await;
    let mut tasks = Vec::new();
    for name in ["b", "a", "c"] {
        let zip = archive("", &format!("Do {name}."), 6);
        tasks.push(store.add(UploadedArchive::from_bytes(&zip).unwrap(), upload(name)).await.unwrap().0);
    }
    let one = store.dataset(&tasks, &Rows).await.unwrap();
    tasks.reverse();
    assert_eq!(store.dataset(&tasks, &Rows).await.unwrap(), one);
    assert!(matches!(&one, DatasetChoice::Local { revision } if revision.len() == 64));
    let fewer = store.dataset(&tasks[1..], &Rows).await.unwrap();
    assert_ne!(fewer, one);
    let found = |text: &str| find_task(&tasks, &TaskReference::parse(text).unwrap()).map(|task| task.id);
    assert_eq!(found(&tasks[1].id.to_string()), Some(tasks[1].id));
    assert_eq!(found(&tasks[1].facts.content_hash), Some(tasks[1].id));
    assert_eq!(found(&item_id(&tasks[1])), Some(tasks[1].id));
    assert_eq!(found("a@0123456789ab"), None);
}

#[tokio::test]
async fn a_refused_archive_leaves_nothing() {
    let System { store, .. } = &System::start().await;
    for zip in [b"PK".to_vec(), archive("a/", "", 6)] {
        let refused = store.add(UploadedArchive::from_bytes(&zip).unwrap(), upload("x")).await.unwrap_err();
        assert!(matches!(refused, TaskError::Refused(_)), "{refused}");
    }
    assert!(store.list().await.unwrap().is_empty());
    assert!(store.blobs.list("tasks/", None).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn an_archive_that_expands_too_much_is_refused_with_the_limit() {
    let System { store, .. } = &System::start().await;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    zip.start_file("task.toml", options).unwrap();
    let block: Vec<u8> =
        (0..1_u32 << 18).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()).collect();
    for file in 0..61 {
        zip.start_file(format!("environment/{file}.bin"), options).unwrap();
        zip.write_all(&block).unwrap();
    }
    let zip = zip.finish().unwrap().into_inner();
    let refused = store.check(UploadedArchive::from_bytes(&zip).unwrap()).await.unwrap_err().to_string();
    assert!(refused.contains("62914560 bytes"), "{refused}");
}

#[test]
fn every_admission_code_is_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let documented = read("docs/codes.md");
    let mut codes = 0;
    for part in ["archive", "format", "content", "compose"] {
        let source = read(&format!("shared/terminal-tasks/src/refusal/{part}.rs"));
        for code in source.lines().filter_map(|line| line.trim().split_once("=> \"")?.1.strip_suffix("\",")) {
            assert!(documented.contains(&format!("| {part} | `{code}` | ")), "docs/codes.md lacks `{code}`");
            codes += 1;
        }
    }
    assert_eq!(codes, 42);
}
