//! Files in columns of items.

use bench_datasets::{NoProgress, load_item_file};
use bench_domain::run::DatasetChoice;
use bench_items::{DatasetSpec, DemoData, HubSource, Item, ItemFile, Layout, Row, RowError};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::hub_server::{Repository, TestHub};
use crate::parquet_files::{Column, parquet};
use crate::support::{Bench, COMMIT, TEST};

static SOURCES: [HubSource; 1] = [HubSource { id: "org/folders", items: &[TEST], ..HubSource::DEFAULT }];
static SPEC: DatasetSpec = DatasetSpec {
    sources: &SOURCES,
    license: "MIT",
    demo: DemoData {
        items: "{\"name\":\"a\",\"archive\":\"YWJj\"}\n{\"name\":\"b\",\"archive\":\"?\"}\n",
        support: &[],
    },
    ..DatasetSpec::DEFAULT
};

/// Rows with a name and an archive.
struct Folders;

impl Layout for Folders {
    fn name(&self) -> &'static str {
        "folders"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn file_columns(&self) -> &'static [&'static str] {
        &["archive"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        assert!(!row["archive"].is_object(), "files are stored after the conversion");
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

fn file(item: &Item) -> Option<ItemFile> {
    serde_json::from_value(item.row["archive"].clone()).unwrap()
}

#[tokio::test]
async fn files_are_objects_and_go_with_their_dataset() {
    let large: Vec<u8> = (0..6_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let contents = [Some(b"\x1f\x8b small".to_vec()), None, Some(large), Some(Vec::new())];
    let names = (0..contents.len()).map(|at| Some(format!("task-{at}"))).collect();
    let rows = [Column::Text("name", names), Column::Bytes("archive", contents.to_vec())];
    let content = parquet(&rows, 2, parquet::basic::Compression::SNAPPY);
    let hub = TestHub::start().await;
    let files = vec![("data/test-00000-of-00001.parquet".to_owned(), content, true)];
    hub.publish("org/folders", Repository { commit: COMMIT.to_owned(), files, ..Repository::default() });
    let bench = Bench::new().await;
    let library = bench.library(&hub);
    let prepared = library.prepare(&Folders, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.used.source, "hub");
    let items = bench.items(&prepared).await;
    for (item, content) in items.iter().zip(&contents) {
        let found = file(item);
        assert_eq!(
            found.as_ref().map(|file| file.bytes),
            content.as_ref().map(|content| content.len() as u64)
        );
        let (Some(found), Some(content)) = (found, content) else { continue };
        assert_eq!(found.sha256, hex::encode(Sha256::digest(content)));
        let stored = load_item_file(&bench.blobs, &prepared.used, &found).await.unwrap().unwrap();
        assert_eq!(stored, *content);
        assert!(prepared.index.data_bytes < 10_000, "items have their files");
    }
    library.remove("folders", None).await.unwrap();
    let left = bench.keys().await;
    assert!(!left.iter().any(|key| key.contains("/files/") || key.contains("/data.zst")), "{left:?}");
}

#[tokio::test]
async fn rows_of_text_have_files_in_base64() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let prepared = library.prepare(&Folders, &DatasetChoice::Demo, &NoProgress).await.unwrap();
    let items = bench.items(&prepared).await;
    let found = file(&items[0]).unwrap();
    let stored = load_item_file(&bench.blobs, &prepared.used, &found).await.unwrap();
    assert_eq!(stored.as_deref(), Some(b"abc".as_slice()));
    assert_eq!(items[1].row["archive"], Value::Null);
    let gone = ItemFile { sha256: "0".repeat(64), bytes: 1 };
    assert_eq!(load_item_file(&bench.blobs, &prepared.used, &gone).await.unwrap(), None);
}
