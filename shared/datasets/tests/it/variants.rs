//! Protocols of one benchmark that use other rows or another revision of the same dataset.

use std::collections::BTreeMap;

use bench_datasets::{DatasetError, NoProgress};
use bench_domain::run::DatasetChoice;
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Row, RowError};
use serde_json::Value;

use crate::custom_layout::CustomLayout;
use crate::hub_server::{Repository, TestHub};
use crate::support::{Bench, COMMIT, OTHER_COMMIT, Quiz, TEST, VALIDATION, questions, repository};

#[tokio::test]
async fn variants_have_items_of_their_own() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    let no_law = CustomLayout { variant: "no-law", ..CustomLayout::PLAIN };
    for choice in [DatasetChoice::Hub, DatasetChoice::Demo] {
        let all = library.prepare(&CustomLayout::PLAIN, &choice, &NoProgress).await.unwrap();
        let some = library.prepare(&no_law, &choice, &NoProgress).await.unwrap();
        assert_ne!(all.used.data_key, some.used.data_key);
        assert_eq!(all.used.revision, some.used.revision);
        assert_eq!(library.prepare(&CustomLayout::PLAIN, &choice, &NoProgress).await.unwrap(), all);
        if choice == DatasetChoice::Hub {
            assert_eq!((all.index.items.len(), some.index.items.len()), (220, 110));
            assert_eq!(some.used.data_key, format!("datasets/quiz/v1-no-law/org--quiz/{COMMIT}/data.zst"));
            assert_eq!(some.index.rows_left_out, 110);
        }
        // Ids are the same in both variants, so that their results can be compared.
        assert!(some.index.items.iter().all(|item| all.index.items.iter().any(|other| other.id == item.id)));
    }
    let path = bench.folder.path().join("mine.parquet");
    std::fs::write(&path, questions(0, 10)).unwrap();
    let all = library.import_local(&CustomLayout::PLAIN, &path, &NoProgress).await.unwrap();
    let choice = DatasetChoice::Local { revision: all.used.revision.clone() };
    let error = library.prepare(&no_law, &choice, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotImported { .. }), "{error}");
    let some = library.import_local(&no_law, &path, &NoProgress).await.unwrap();
    let choice = DatasetChoice::Local { revision: some.used.revision.clone() };
    assert_eq!((all.index.items.len(), some.index.items.len()), (10, 5));
    assert_eq!(library.prepare(&no_law, &choice, &NoProgress).await.unwrap(), some);

    let listed = library.list_cached().await.unwrap();
    let mut variants: Vec<_> = listed.iter().map(|d| (d.source.as_str(), d.variant.as_str())).collect();
    variants.sort_unstable();
    let expected = [
        ("demo", ""),
        ("demo", "no-law"),
        ("hub", ""),
        ("hub", "no-law"),
        ("local", ""),
        ("local", "no-law"),
    ];
    assert_eq!(variants, expected);
    assert_eq!(library.remove("quiz", None).await.unwrap(), 6);
}

const fn pinned(commit: &'static str) -> [HubSource; 1] {
    [HubSource { id: "org/quiz", revision: Some(commit), items: &[TEST], support: &[VALIDATION] }]
}

static OLD_SOURCES: [HubSource; 1] = pinned(COMMIT);
static NEW_SOURCES: [HubSource; 1] = pinned(OTHER_COMMIT);
const DEMO: DemoData = DemoData { items: "{\"question\":\"?\",\"category\":\"x\"}\n", support: &[] };
static OLD: DatasetSpec =
    DatasetSpec { sources: &OLD_SOURCES, license: "MIT", demo: DEMO, ..DatasetSpec::DEFAULT };
static NEW: DatasetSpec =
    DatasetSpec { sources: &NEW_SOURCES, license: "MIT", demo: DEMO, ..DatasetSpec::DEFAULT };

#[tokio::test]
async fn each_protocol_has_the_revision_that_it_pins() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let (old, new) = (Quiz { spec: &OLD, version: 1 }, Quiz { spec: &NEW, version: 1 });
    let library = bench.library(&hub);
    hub.publish("org/quiz", repository());
    let first = library.prepare(&old, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(first.used.revision, COMMIT);
    // The other commit doesn't exist yet, and the first one isn't a substitute.
    let error = library.prepare(&new, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotFound { .. }), "{error}");
    let mut changed = Repository { commit: OTHER_COMMIT.to_owned(), ..repository() };
    changed.files[1].1 = questions(500, 3);
    hub.publish("org/quiz", changed);
    let second = library.prepare(&new, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!((second.used.revision.as_str(), second.index.items.len()), (OTHER_COMMIT, 123));

    // Without a hub each protocol uses its own revision; a third one finds nothing.
    let offline = bench.library_without_hub().await;
    assert_eq!(offline.prepare(&old, &DatasetChoice::Hub, &NoProgress).await.unwrap(), first);
    assert_eq!(offline.prepare(&new, &DatasetChoice::Hub, &NoProgress).await.unwrap(), second);
    let main = offline.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert!(main.used.is_demo(), "{:?}", main.used);
}

/// A quiz without law whose ids are numbers, either of its items or of the rows.
struct Numbers {
    of_items: bool,
}

impl Layout for Numbers {
    fn name(&self) -> &'static str {
        Quiz::OPEN.name()
    }

    fn spec(&self) -> &DatasetSpec {
        Quiz::OPEN.spec()
    }

    fn variant(&self) -> &'static str {
        if self.of_items { "of-items" } else { "of-rows" }
    }

    fn numbers_items(&self) -> bool {
        self.of_items
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        let is_law = row.get("category") == Some(&Value::from("law"));
        Ok((!is_law).then(|| Item::new(index.to_string(), None, row)))
    }

    fn support(&self, split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        Quiz::OPEN.support(split, rows)
    }
}

#[tokio::test]
async fn rows_that_are_left_out_may_have_no_number() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let library = bench.library(&hub);
    let mut ids = Vec::new();
    for of_items in [true, false] {
        let layout = Numbers { of_items };
        let prepared = library.prepare(&layout, &DatasetChoice::Hub, &NoProgress).await.unwrap();
        assert_eq!((prepared.index.items.len(), prepared.index.rows_left_out), (110, 110));
        ids.push(prepared.index.items.iter().map(|item| item.id.parse().unwrap()).collect::<Vec<u64>>());
    }
    assert_eq!(ids[0], (0..110).collect::<Vec<_>>());
    assert_eq!(ids[1].len(), 110);
    assert!(ids[1].last() >= Some(&218), "{:?}", ids[1]);
}
