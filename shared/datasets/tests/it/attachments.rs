//! Files that jobs need in addition to the items.

use std::path::{Path, PathBuf};

use bench_datasets::{DatasetError, NoProgress, read_attachment};
use bench_domain::run::DatasetChoice;
use bench_items::{AttachmentSpec, DatasetSpec, DemoData, HubSource, Item, Layout, Row, RowError};
use sha2::{Digest, Sha256};

use crate::hub_server::{Fault, Repository, TestHub};
use crate::support::{Bench, COMMIT, OTHER_COMMIT, TEST};

const DEMO_TARGETS: &[u8] = b"\x89HDF demo";

static SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[HubSource { id: "org/coded", revision: None, items: &[TEST], support: &[] }],
    gate: None,
    license: "MIT",
    items: 0,
    demo: DemoData { items: "{\"q\":\"demo\"}\n", support: &[] },
};

const TARGETS: AttachmentSpec = AttachmentSpec {
    name: "targets",
    id: "someone/targets",
    revision: None,
    path: "files/test_data.h5",
    ending: ".h5",
    signature: b"",
    demo: DEMO_TARGETS,
};

/// Programs whose results are compared with values in a file of another dataset.
#[derive(Debug)]
struct Coded {
    name: &'static str,
}

const CODED: Coded = Coded { name: "coded" };

impl Layout for Coded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn version(&self) -> u32 {
        1
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }

    fn attachments(&self) -> &'static [AttachmentSpec] {
        match self.name {
            "signed" => &[AttachmentSpec { signature: b"\x89HDF", ..TARGETS }],
            _ => &[TARGETS],
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Longer than one part of an upload, and not a multiple of it.
fn large() -> Vec<u8> {
    (0..9_000_011_u32).map(|n| (n ^ (n >> 7)) as u8).collect()
}

async fn hub(targets: &[u8]) -> TestHub {
    let hub = TestHub::start().await;
    let rows = b"{\"q\":\"one\"}\n{\"q\":\"two\"}\n".to_vec();
    let repository = Repository {
        commit: COMMIT.into(),
        files: vec![("test.jsonl".into(), rows, false)],
        ..Repository::default()
    };
    hub.publish("org/coded", repository);
    hub.publish(
        "someone/targets",
        Repository {
            commit: OTHER_COMMIT.into(),
            files: vec![("files/test_data.h5".into(), targets.to_vec(), true)],
            ..Repository::default()
        },
    );
    hub
}

fn downloads_of_targets(hub: &TestHub) -> usize {
    hub.requests().iter().filter(|requests| requests.at == "store").count()
}

#[tokio::test]
async fn the_hubs_file_is_stored_once_and_read_in_pieces() {
    let (bench, bytes) = (Bench::new().await, large());
    let hub = hub(&bytes).await;
    hub.fail("test_data.h5", [Fault::Cut(5_000_000)]);
    let library = bench.library(&hub);
    let prepared = library.prepare(&CODED, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    let targets = &prepared.used.attachments["targets"];
    assert_eq!(targets.key, format!("datasets/files/{}", sha256(&bytes)));
    assert_eq!((targets.sha256.clone(), targets.bytes), (sha256(&bytes), bytes.len() as u64));
    let url = targets.url.as_deref().unwrap();
    let path = format!("/datasets/someone/targets/resolve/{OTHER_COMMIT}/files/test_data.h5");
    assert_eq!(url, format!("{}{path}", hub.url));
    assert_eq!(bench.blobs.get(&targets.key).await.unwrap().unwrap(), bytes);
    let requests: Vec<_> = hub.requests().into_iter().filter(|requests| requests.at == "store").collect();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!(requests[1].range.as_deref(), Some("bytes=5000000-"), "the rest only");
    assert!(bench.downloads().is_empty(), "{:?}", bench.downloads());

    for (offset, length) in
        [(0, 1), (8_388_600, 20), (9_000_000, 100), (9_000_011, 5), (20_000_000, 1), (3, 0)]
    {
        let got = read_attachment(&bench.blobs, targets, offset, length).await.unwrap();
        let from = usize::try_from(offset).unwrap().min(bytes.len());
        let until = usize::try_from(offset + length).unwrap().min(bytes.len());
        assert_eq!(got, bytes[from..until], "{offset} {length}");
    }
    assert!(read_attachment(&bench.blobs, targets, 0, u64::MAX).await.is_err());

    // Another benchmark shares the same file, which is removed only with the last of them.
    let other = Coded { name: "coded_other" };
    let again = library.prepare(&other, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(again.used.attachments, prepared.used.attachments);
    assert!(library.is_available(&again.used).await.unwrap());
    let listed = library.list_cached().await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|d| d.attachments["targets"] == targets.bytes && d.bytes > targets.bytes));
    assert_eq!(library.remove("coded", None).await.unwrap(), 1);
    assert!(library.is_available(&again.used).await.unwrap());
    assert_eq!(library.remove("coded_other", None).await.unwrap(), 1);
    assert!(bench.blobs.head(&targets.key).await.unwrap().is_none());
    assert!(!library.is_available(&again.used).await.unwrap());
    assert!(bench.keys().await.iter().all(|key| key.contains("/refs/")), "{:?}", bench.keys().await);
}

#[tokio::test]
async fn a_file_that_differs_from_the_hubs_metadata_is_refused() {
    let (bench, bytes) = (Bench::new().await, large());
    let hub = hub(&bytes).await;
    hub.fail("test_data.h5", [Fault::Altered, Fault::Altered]);
    let error = bench.library(&hub).prepare(&CODED, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::Checksum { .. }), "{error}");
    assert!(bench.keys().await.is_empty());
}

#[tokio::test]
async fn stored_files_are_not_requested_again() {
    let (bench, bytes) = (Bench::new().await, large());
    let hub = hub(&bytes).await;
    let library = bench.library(&hub);
    let first = library.prepare(&CODED, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(downloads_of_targets(&hub), 1);
    let second = library.prepare(&CODED, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!((downloads_of_targets(&hub), &second.used), (0, &first.used));
}

#[tokio::test]
async fn the_demo_items_have_a_file_of_their_own() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let prepared = library.prepare(&CODED, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    let targets = &prepared.used.attachments["targets"];
    assert_eq!((targets.sha256.clone(), &targets.url), (sha256(DEMO_TARGETS), &None));
    assert_eq!(read_attachment(&bench.blobs, targets, 1, 3).await.unwrap(), "HDF");
    assert!(prepared.index.files.iter().any(|file| file.name == "demo targets"));
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[tokio::test]
async fn local_rows_use_the_file_in_their_folder() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "rows.jsonl", "{\"q\":1}\n{\"q\":2}\n");
    let own = write(folder.path(), "Mine.H5", b"mine");
    let by_file = library.import_local(&CODED, &rows, &NoProgress).await.unwrap();
    let by_folder = library.import_local(&CODED, folder.path(), &NoProgress).await.unwrap();
    assert_eq!(by_file.used.attachments, by_folder.used.attachments);
    assert_eq!(by_file.used.revision, by_folder.used.revision, "it is the same content");
    assert_eq!(by_file.used.attachments.keys().collect::<Vec<_>>(), ["targets"]);
    let targets = &by_file.used.attachments["targets"];
    assert_eq!(read_attachment(&bench.blobs, targets, 0, 100).await.unwrap(), "mine");

    // Another content of the file makes another dataset.
    std::fs::write(own, b"changed").unwrap();
    let changed = library.import_local(&CODED, &rows, &NoProgress).await.unwrap();
    assert_ne!(changed.used.revision, by_file.used.revision);
    assert_ne!(changed.used.digest, by_file.used.digest);
}

#[tokio::test]
async fn rows_name_their_files() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let folder = tempfile::tempdir().unwrap();
    let named = "{\"q\":1,\"h5_file\":\"b.h5\"}\n{\"q\":2}\n{\"q\":3,\"h5_file\":\"a.h5\"}\n{\"q\":4,\"h5_file\":\"b.h5\"}\n";
    let rows = write(folder.path(), "rows.jsonl", named);
    for name in ["a.h5", "b.h5", "c.h5"] {
        write(folder.path(), name, name);
    }
    let prepared = library.import_local(&CODED, &rows, &NoProgress).await.unwrap();
    let attachments = &prepared.used.attachments;
    assert_eq!(attachments.keys().collect::<Vec<_>>(), ["a.h5", "b.h5", "targets"]);
    assert_eq!(attachments["targets"].key, attachments["b.h5"].key, "the one that was named first");
    assert_eq!(read_attachment(&bench.blobs, &attachments["a.h5"], 0, 9).await.unwrap(), "a.h5");
    let listed = library.list_cached().await.unwrap();
    assert!(listed[0].bytes < 3_000 && listed[0].attachments.len() == 3);

    let one = write(folder.path(), "one.jsonl", "{\"q\":1,\"h5_file\":\"c.h5\"}\n");
    let prepared = library.import_local(&CODED, &one, &NoProgress).await.unwrap();
    assert_eq!(prepared.used.attachments.keys().collect::<Vec<_>>(), ["targets"]);
}

#[tokio::test]
async fn a_missing_or_ambiguous_file_is_reported() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "rows.jsonl", "{\"q\":1}\n");
    let error = library.import_local(&CODED, &rows, &NoProgress).await.unwrap_err().to_string();
    assert!(error.contains("no .h5 file beside it") && error.contains("could not be reached"), "{error}");
    write(folder.path(), "a.h5", "a");
    write(folder.path(), "b.h5", "b");
    let error = library.import_local(&CODED, &rows, &NoProgress).await.unwrap_err().to_string();
    assert!(error.contains("more than one .h5 file") && error.contains("`h5_file`"), "{error}");
    for (bad, part) in [
        ("\"../a.h5\"", "row 2, column `h5_file`: it isn't the name of a file in the same folder"),
        ("7", "row 2, column `h5_file`"),
        ("\"gone.h5\"", "gone.h5: No such file"),
    ] {
        let rows = write(folder.path(), "bad.jsonl", format!("{{\"q\":1}}\n{{\"h5_file\":{bad}}}\n"));
        let error = library.import_local(&CODED, &rows, &NoProgress).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(bench.keys().await.is_empty(), "nothing is left behind");
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused() {
    let signed = Coded { name: "signed" };
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "rows.jsonl", "{\"q\":1}\n");
    // Next to the rows.
    let library = bench.library_without_hub().await;
    for (bad, part) in [
        (&b""[..], "t.h5: it is not a valid .h5 file: its first bytes differ"),
        (b"\x89HD", "t.h5: it is not a valid .h5 file"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "`git lfs pull`"),
    ] {
        write(folder.path(), "t.h5", bad);
        let error = library.import_local(&signed, &rows, &NoProgress).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // In place of the rows.
    let targets = write(folder.path(), "t.h5", b"\x89HDF rest");
    let error = library.import_local(&signed, &targets, &NoProgress).await.unwrap_err().to_string();
    assert!(error.contains("t.h5") && error.contains("a folder with both"), "{error}");
    assert!(error.contains("`h5_file`"), "{error}");
    assert!(bench.keys().await.is_empty(), "nothing is left behind");
    let imported = library.import_local(&signed, folder.path(), &NoProgress).await.unwrap();
    assert_eq!(imported.used.attachments["targets"].bytes, 9);
    // At the hub.
    let bench = Bench::new().await;
    let error = bench.library(&hub(b"<html>").await).prepare(&signed, &DatasetChoice::Hub, &NoProgress).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("files/test_data.h5") && error.contains("it is not a valid .h5 file"), "{error}");
}

#[tokio::test]
async fn rows_without_a_file_use_the_hubs_file() {
    let bench = Bench::new().await;
    let hub = hub(b"the hub's").await;
    let folder = tempfile::tempdir().unwrap();
    let rows = write(folder.path(), "rows.jsonl", "{\"q\":1}\n");
    let prepared = bench.library(&hub).import_local(&CODED, &rows, &NoProgress).await.unwrap();
    let targets = &prepared.used.attachments["targets"];
    assert_eq!(targets.sha256, sha256(b"the hub's"));
    assert!(targets.url.is_some());
}
