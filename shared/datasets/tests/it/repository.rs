//! Datasets from files of a repository with pinned digests.

use bench_datasets::{DatasetError, NoProgress};
use bench_domain::run::DatasetChoice;
use bench_items::{DatasetSpec, DemoData, Item, Layout, PinnedFile, RepositorySource, Row, RowError};

use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, COMMIT};

const WANTED: &str = "[\"b\",\"a\"]\n";
const ALL: &str = "[{\"name\":\"a\"},{\"name\":\"c\"},{\"name\":\"b\"}]\n";

static SPEC: DatasetSpec = DatasetSpec {
    repository: Some(RepositorySource {
        repository: "authors/calls",
        revision: COMMIT,
        files: &[
            PinnedFile {
                path: "data/wanted.json",
                sha256: "ad3a12409aeab00857792400db0f1b78d46e5740c0284745141339ff4ca77066",
            },
            PinnedFile {
                path: "data/all.json",
                sha256: "ef8b77225fec283c97a379e40313a30236c22a36368125fda8c96ac8679963dc",
            },
        ],
    }),
    license: "MIT",
    demo: DemoData { items: "{\"name\":\"demo\"}\n", support: &[] },
    ..DatasetSpec::DEFAULT
};

/// Items that one file names, in the order of another.
struct Calls;

impl Layout for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn repository_rows(&self, files: &[String]) -> Result<Vec<Row>, RowError> {
        let [wanted, all] = files else { unreachable!("two files are named") };
        let wanted: Vec<String> = serde_json::from_str(wanted).unwrap();
        let all: Vec<Row> = serde_json::from_str(all).unwrap();
        let rows = all.into_iter().filter(|row| wanted.iter().any(|name| row["name"] == name.as_str()));
        Ok(rows.collect())
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

async fn origin(all: &str) -> TestHub {
    let hub = TestHub::start().await;
    let files = [("data/wanted.json", WANTED), ("data/all.json", all)];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec(), false));
    let repository = Repository { commit: COMMIT.to_owned(), files: files.to_vec(), ..Repository::default() };
    hub.publish("github:authors/calls", repository);
    hub
}

#[tokio::test]
async fn files_are_downloaded_once_and_without_the_token() {
    let (bench, hub) = (Bench::new().await, origin(ALL).await);
    let library = bench.library_with(&hub, |config| {
        config.github_raw_url.clone_from(&hub.url);
        config.token = bench_datasets::Token::new("hf_secret");
    });
    hub.fail("all.json", [Fault::Status(503, Vec::new())]);
    let prepared = library.prepare(&Calls, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    let requests = hub.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let path = |name: &str| format!("/authors/calls/{COMMIT}/data/{name}.json");
    assert_eq!(paths, [path("wanted"), path("all"), path("all")]);
    assert!(requests.iter().all(|request| request.authorization.is_none()), "{requests:?}");
    let used = &prepared.used;
    assert_eq!(
        (used.id.as_str(), used.source.as_str(), used.revision.as_str()),
        ("authors/calls", "hub", COMMIT)
    );
    assert_eq!((prepared.demo_reason, &used.note), (None, &None));
    let mut names = Vec::new();
    for entry in &prepared.index.items {
        let item = library.item(&prepared.index, entry.offset, entry.length).await.unwrap();
        names.push(item.row["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(names, ["a", "b"]);
    let files: Vec<_> = prepared.index.files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    assert_eq!(files, [("data/wanted.json", 10), ("data/all.json", ALL.len() as u64)]);
    // Stored items need no network.
    let offline = bench.library_without_hub().await;
    let again = offline.prepare(&Calls, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(again.used, prepared.used);
    assert_eq!(hub.requests().len(), 0);
}

#[tokio::test]
async fn changed_files_are_refused() {
    let (bench, hub) = (Bench::new().await, origin("[{\"name\":\"a\"}]\n").await);
    let library = bench.library_with(&hub, |config| config.github_raw_url.clone_from(&hub.url));
    let error = library.prepare(&Calls, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::Checksum { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("authors/calls") && text.contains("data/all.json"), "{text}");
    assert!(!bench.keys().await.iter().any(|key| key.contains("calls")));
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let library = bench.library_with(&hub, |config| config.github_raw_url.clone_from(&hub.url));
    let error = library.prepare(&Calls, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("data/wanted.json"), "{error}");
}

#[tokio::test]
async fn demo_data_replace_an_origin_that_is_out_of_reach() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let prepared = library.prepare(&Calls, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(prepared.used.is_demo());
    assert!(prepared.demo_reason.unwrap().contains("nothing of the dataset was cached"));
}
