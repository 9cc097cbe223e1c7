//! Fixtures for all tests of this crate: a blob store, a layout, rows.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig, PreparedDataset, Progress, Step, Token, load_item};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_items::{DatasetSpec, DemoData, Gate, HubSource, Item, Layout, Part, Row, RowError};
use parquet::basic::Compression;
use serde_json::Value;
use tempfile::TempDir;

use crate::hub_server::{Repository, TestHub};
use crate::parquet_files::{Column, parquet};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const OTHER_COMMIT: &str = "89abcdef0123456789abcdef0123456789abcdef";
pub(crate) const TEST: Part = Part { config: "default", split: "test" };
pub(crate) const VALIDATION: Part = Part { config: "default", split: "validation" };

pub(crate) static SOURCES: [HubSource; 2] = [
    HubSource { id: "org/quiz", revision: None, items: &[TEST], support: &[VALIDATION] },
    HubSource { id: "org/quiz-mirror", revision: None, items: &[TEST], support: &[VALIDATION] },
];

const DEMO: DemoData = DemoData {
    items: "{\"question\":\"2+2?\",\"category\":\"math\"}\n{\"question\":\"3+3?\",\"category\":\"math\"}\n",
    support: &[("validation", "{\"question\":\"1+1?\",\"category\":\"math\"}\n")],
};

static OPEN: DatasetSpec =
    DatasetSpec { sources: &SOURCES, license: "MIT", demo: DEMO, ..DatasetSpec::DEFAULT };
static GATED: DatasetSpec = DatasetSpec {
    sources: &SOURCES,
    gate: Some(Gate { terms_url: "https://hub.test/org/quiz" }),
    license: "MIT",
    demo: DEMO,
    ..DatasetSpec::DEFAULT
};

/// Questions with a category. The validation rows of the category are its few-shot examples.
#[derive(Debug)]
pub(crate) struct Quiz {
    pub(crate) spec: &'static DatasetSpec,
    pub(crate) version: u32,
}

impl Quiz {
    pub(crate) const OPEN: Self = Self { spec: &OPEN, version: 1 };
    pub(crate) const GATED: Self = Self { spec: &GATED, version: 1 };
}

fn category(row: &Row) -> Result<String, RowError> {
    let category = row.get("category").and_then(Value::as_str).map(str::to_owned);
    category.ok_or_else(|| RowError::column("category", "there is no text in it"))
}

impl Layout for Quiz {
    fn name(&self) -> &'static str {
        "quiz"
    }

    fn spec(&self) -> &DatasetSpec {
        self.spec
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["own"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        let group = Some(category(&row)?);
        if row.get("question") == Some(&Value::from("")) {
            return Ok(None);
        }
        let id = row.get("id").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
        Ok(Some(Item::new(id, group, row)))
    }

    fn support(&self, split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        assert_eq!(split, "validation");
        let mut examples: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in rows {
            examples.entry(category(&row)?).or_default().push(row.into());
        }
        Ok(examples.into_iter().map(|(name, rows)| (name, rows.into())).collect())
    }

    fn is_support(&self, row: &Row) -> bool {
        row.get("split") == Some(&Value::from("validation"))
    }
}

/// A blob store and a download folder for one test.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) blobs: Blobs,
    _embedded: Embedded,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(folder.path().join("data")).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let blobs = Blobs::new(&embedded.sdk_config(), "bench");
        blobs.ensure_bucket().await.unwrap();
        Self { folder, blobs, _embedded: embedded }
    }

    pub(crate) fn config(&self, hub_url: &str) -> LibraryConfig {
        LibraryConfig {
            hub_url: hub_url.to_owned(),
            backoff: Duration::ZERO,
            ..LibraryConfig::new(self.folder.path().join("cache"))
        }
    }

    pub(crate) fn library(&self, hub: &TestHub) -> Library {
        self.library_with(hub, |_| {})
    }

    pub(crate) fn library_with(&self, hub: &TestHub, change: impl FnOnce(&mut LibraryConfig)) -> Library {
        let mut config = self.config(&hub.url);
        change(&mut config);
        Library::new(self.blobs.clone(), config)
    }

    /// A library whose hub doesn't respond.
    pub(crate) async fn library_without_hub(&self) -> Library {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        Library::new(self.blobs.clone(), self.config(&url))
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        self.blobs.list("", None).await.unwrap().0.into_iter().map(|object| object.key).collect()
    }

    pub(crate) async fn items(&self, prepared: &PreparedDataset) -> Vec<Item> {
        let mut items = Vec::new();
        for entry in &prepared.index.items {
            let item =
                load_item(&self.blobs, &prepared.used.data_key, entry.offset, entry.length).await.unwrap();
            assert_eq!((&item.id, &item.group), (&entry.id, &entry.group));
            items.push(item);
        }
        items
    }

    /// Files left in the download folder.
    pub(crate) fn downloads(&self) -> Vec<String> {
        fn walk(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { walk(&path, found) } else { found.push(path.display().to_string()) }
            }
        }
        let mut found = Vec::new();
        walk(&self.folder.path().join("cache"), &mut found);
        found
    }
}

pub(crate) fn token(config: &mut LibraryConfig) {
    config.token = Token::new("hf_secret");
}

/// Records the progress that it receives.
#[derive(Debug, Default)]
pub(crate) struct RecordedProgress(pub(crate) Mutex<Vec<String>>);

impl Progress for RecordedProgress {
    fn step(&self, step: Step<'_>) {
        self.0.lock().unwrap().push(format!("{step:?}"));
    }
}

/// Parquet with `count` questions from number `from`, alternating between math and law.
pub(crate) fn questions(from: usize, count: usize) -> Vec<u8> {
    let numbers = || from..from + count;
    parquet(
        &[
            Column::Int("number", numbers().map(|n| Some(i64::try_from(n).unwrap())).collect()),
            Column::Text("question", numbers().map(|n| Some(format!("What is {n}?"))).collect()),
            Column::Text(
                "category",
                numbers().map(|n| Some(if n % 2 == 0 { "math" } else { "law" }.to_owned())).collect(),
            ),
            Column::Texts(
                "options",
                numbers().map(|n| Some(vec![n.to_string(), (n + 1).to_string()])).collect(),
            ),
        ],
        50,
        Compression::SNAPPY,
    )
}

/// A repository of 220 questions in two files and 4 few-shot examples. Large files are in the
/// storage.
pub(crate) fn repository() -> Repository {
    let file = |name: &str, bytes, large| (name.to_owned(), bytes, large);
    Repository {
        commit: COMMIT.to_owned(),
        files: vec![
            file("README.md", b"# Quiz".to_vec(), false),
            file("data/test-00001-of-00002.parquet", questions(120, 100), true),
            file("data/test-00000-of-00002.parquet", questions(0, 120), true),
            file("data/validation-00000-of-00001.parquet", questions(1_000, 4), false),
        ],
        ..Repository::default()
    }
}
