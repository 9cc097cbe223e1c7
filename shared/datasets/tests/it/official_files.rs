//! Official files of single items: from their repository, a local folder or the demo into the blob store.

use std::collections::BTreeMap;
use std::fs;

use bench_blobs::Blobs;
use bench_datasets::{DatasetError, Library, NoProgress, PreparedDataset, load_official_files};
use bench_domain::run::DatasetChoice;
use bench_items::{
    DatasetSpec, DemoData, DemoFile, HubSource, Item, Layout, OfficialFile, OfficialFiles, Row, RowError,
};

use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, COMMIT, TEST};

static SOURCES: [HubSource; 1] = [HubSource { id: "org/jobs", items: &[TEST], ..HubSource::DEFAULT }];
static SPEC: DatasetSpec = DatasetSpec {
    sources: &SOURCES,
    license: "MIT",
    demo: DemoData { items: "{\"name\":\"demo\"}\n", support: &[] },
    ..DatasetSpec::DEFAULT
};
static OFFICIAL: OfficialFiles = OfficialFiles {
    repository: "authors/jobs",
    commit: COMMIT,
    files: &[
        OfficialFile { name: "run", path: "scripts/{id}/run.sh" },
        OfficialFile { name: "read", path: "scripts/{id}/read.py" },
    ],
    demo: &[
        DemoFile { id: "demo", name: "run", text: "demo run" },
        DemoFile { id: "demo", name: "read", text: "demo read" },
        DemoFile { id: "other", name: "run", text: "not this" },
    ],
};

/// Items with a name and programs of their own.
struct Jobs;

impl Layout for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["name"]
    }

    fn official_files(&self) -> Option<&'static OfficialFiles> {
        Some(&OFFICIAL)
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

/// Returns a hub with three items, of which two have programs.
async fn origins() -> TestHub {
    let hub = TestHub::start().await;
    let repository = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec(), false));
        Repository { commit: COMMIT.to_owned(), files: files.collect(), ..Repository::default() }
    };
    let rows = "{\"name\":\"a-1\"}\n{\"name\":\"b\"}\n{\"name\":\"../c\"}\n{\"name\":\"d\"}\n";
    hub.publish("org/jobs", repository(&[("data/test.jsonl", rows)]));
    hub.publish(
        "github:authors/jobs",
        repository(&[
            ("scripts/a-1/run.sh", "run a\r\n"),
            ("scripts/a-1/read.py", "read a"),
            ("scripts/b/run.sh", "run b"),
            ("scripts/b/read.py", "read b"),
            ("scripts/d/run.sh", "run d"),
        ]),
    );
    hub
}

fn library(bench: &Bench, hub: &TestHub) -> Library {
    bench.library_with(hub, |config| config.github_raw_url.clone_from(&hub.url))
}

async fn store(library: &Library, prepared: &PreparedDataset, ids: &[&str]) -> Result<(), DatasetError> {
    let chosen = prepared.index.items.iter().filter(|entry| ids.contains(&entry.id.as_str()));
    let chosen: Vec<_> = chosen.map(|entry| (entry.id.as_str(), entry.source_id.as_deref())).collect();
    library.store_official_files(&Jobs, &prepared.used, &chosen, &NoProgress).await
}

async fn load(blobs: &Blobs, prepared: &PreparedDataset, id: &str) -> Option<Vec<(String, String)>> {
    let files: Option<BTreeMap<_, _>> = load_official_files(blobs, &prepared.used, id).await.unwrap();
    files.map(|files| files.into_iter().collect())
}

fn files(run: &str, read: &str) -> Option<Vec<(String, String)>> {
    Some(vec![("read".to_owned(), read.to_owned()), ("run".to_owned(), run.to_owned())])
}

#[tokio::test]
async fn files_of_chosen_items_are_downloaded_once() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub);
    let prepared = library.prepare(&Jobs, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    hub.requests();
    hub.fail("run.sh", [Fault::Status(503, Vec::new())]);
    store(&library, &prepared, &["0"]).await.unwrap();
    assert_eq!(load(&bench.blobs, &prepared, "0").await, files("run a\r\n", "read a"));
    assert_eq!(load(&bench.blobs, &prepared, "1").await, None);
    let paths: Vec<String> = hub.requests().into_iter().map(|request| request.path).collect();
    let path = |name: &str| format!("/authors/jobs/{COMMIT}/scripts/a-1/{name}");
    assert_eq!(paths, [path("run.sh"), path("run.sh"), path("read.py")]);

    store(&library, &prepared, &["0", "1"]).await.unwrap();
    assert!(hub.requests().iter().all(|request| request.path.contains("/scripts/b/")));
    assert_eq!(load(&bench.blobs, &prepared, "1").await, files("run b", "read b"));
    // Without a network, stored files are enough.
    store(&bench.library_without_hub().await, &prepared, &["0", "1"]).await.unwrap();
    library.remove("jobs", None).await.unwrap();
    assert!(!bench.keys().await.iter().any(|key| key.contains("/official/")));
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let library = library(&bench, &hub);
    let prepared = library.prepare(&Jobs, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    for (item, part) in [("3", "scripts/d/read.py"), ("2", "`../c` can't be part of a path")] {
        let error = store(&library, &prepared, &[item]).await.unwrap_err().to_string();
        assert!(error.contains("authors/jobs") && error.contains(part), "{error}");
        assert_eq!(load(&bench.blobs, &prepared, item).await, None);
    }
    let offline = bench.library_without_hub().await;
    let error = store(&offline, &prepared, &["0"]).await.unwrap_err();
    assert!(matches!(error, DatasetError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("scripts/a-1/run.sh"), "{error}");
}

#[tokio::test]
async fn a_local_folder_brings_files_along() {
    let (bench, hub) = (Bench::new().await, origins().await);
    let folder = bench.folder.path().join("own");
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("items.jsonl", "{\"name\":\"a-1\"}\n{\"name\":\"b\"}\n");
    write("scripts/a-1/run.sh", "own run");
    write("scripts/a-1/read.py", "own read");
    write("scripts/b/run.sh", "half of the files");
    let library = library(&bench, &hub);
    let first = library.import_local(&Jobs, &folder, &NoProgress).await.unwrap();
    store(&library, &first, &["0", "1"]).await.unwrap();
    assert_eq!(load(&bench.blobs, &first, "0").await, files("own run", "own read"));
    assert_eq!(load(&bench.blobs, &first, "1").await, files("run b", "read b"), "those of their origin");
    // The same rows with other files are another revision, and a file beside them counts like their folder.
    write("scripts/a-1/run.sh", "changed");
    let second = library.import_local(&Jobs, &folder.join("items.jsonl"), &NoProgress).await.unwrap();
    assert_ne!(first.used.revision, second.used.revision);
    assert_eq!(load(&bench.blobs, &first, "0").await, files("own run", "own read"));
    assert_eq!(load(&bench.blobs, &second, "0").await, files("changed", "own read"));
    write("scripts/a-1/run.sh", "\u{0}");
    fs::write(folder.join("scripts/a-1/run.sh"), [0xff, 0xfe]).unwrap();
    let error = library.import_local(&Jobs, &folder, &NoProgress).await.unwrap_err().to_string();
    assert!(error.contains("run.sh") && error.contains("UTF-8"), "{error}");
}

#[tokio::test]
async fn demo_items_have_their_files_without_a_network() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let prepared = library.prepare(&Jobs, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    store(&library, &prepared, &["0"]).await.unwrap();
    assert_eq!(load(&bench.blobs, &prepared, "0").await, files("demo run", "demo read"));
}
