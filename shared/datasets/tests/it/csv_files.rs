//! Rows of CSV files.

use bench_datasets::{DatasetError, NoProgress};
use bench_domain::run::DatasetChoice;
use bench_items::{Part, PartFile};
use serde_json::{Value, json};

use crate::custom_layout::CustomLayout;
use crate::hub_server::{Repository, TestHub};
use crate::support::{Bench, COMMIT, Quiz};

const ITEMS: &str =
    "\u{feff},question,category,note\r\n0,\"What, \"\"exactly\"\"?\nTwo lines\",math,\r\n1, 7 ,law,x\r\n";
const EXAMPLES: &str = "question,category\none,math\ntwo,law\n";

fn repository(items: &str, examples: &str, card: Value) -> Repository {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec(), false);
    let files = vec![file("Quiz_Dataset.csv", items), file("Quiz_Examples.csv", examples)];
    Repository { commit: COMMIT.into(), files, card, ..Repository::default() }
}

fn rows(items: &[bench_items::Item]) -> Vec<Value> {
    items.iter().map(|item| Value::Object(item.row.clone())).collect()
}

#[tokio::test]
async fn files_that_the_card_names() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    let card = json!({"configs": [{"config_name": "default", "data_files": [
        {"split": "test", "path": "Quiz_Dataset.csv"}, {"split": "validation", "path": "Quiz_Examples.csv"},
    ]}]});
    hub.publish("org/quiz", repository(ITEMS, EXAMPLES, card));
    let prepared = bench.library(&hub).prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(
        rows(&bench.items(&prepared).await),
        [
            json!({"Unnamed: 0": "0", "question": "What, \"exactly\"?\nTwo lines", "category": "math", "note": null}),
            json!({"Unnamed: 0": "1", "question": " 7 ", "category": "law", "note": "x"}),
        ]
    );
    assert_eq!(prepared.index.support.keys().collect::<Vec<_>>(), ["law", "math"]);
}

#[tokio::test]
async fn files_that_the_layout_names() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository(ITEMS, EXAMPLES, Value::Null));
    // Neither the card nor file names show the split.
    let library = bench.library(&hub);
    let error = library.prepare(&Quiz::OPEN, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotFound { .. }), "{error}");
    let part = |split| Part { config: "default", split };
    static FILES: [PartFile; 2] = [
        PartFile { part: Part { config: "default", split: "test" }, path: "Quiz_Dataset.csv" },
        PartFile { part: Part { config: "default", split: "validation" }, path: "Quiz_Examples.csv" },
    ];
    assert_eq!((FILES[0].part, FILES[1].part), (part("test"), part("validation")));
    let named = CustomLayout { files: &FILES, ..CustomLayout::PLAIN };
    let prepared = library.prepare(&named, &DatasetChoice::Hub, &NoProgress).await.unwrap();
    assert_eq!(prepared.index.items.len(), 2);
    assert_eq!(prepared.index.files[0].name, "Quiz_Dataset.csv");

    static GONE: [PartFile; 1] =
        [PartFile { part: Part { config: "default", split: "test" }, path: "gone.csv" }];
    let gone = CustomLayout { files: &GONE, variant: "gone", ..CustomLayout::PLAIN };
    let error = library.prepare(&gone, &DatasetChoice::Hub, &NoProgress).await.unwrap_err();
    assert!(error.to_string().contains(&format!("{COMMIT} has no file gone.csv")), "{error}");
}

#[tokio::test]
async fn a_local_file() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let path = bench.folder.path().join("Mine.CSV");
    std::fs::write(&path, ITEMS).unwrap();
    let prepared = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    assert_eq!(prepared.index.items.len(), 2);
    for (text, problem) in [
        ("question\nx\n", "Mine.CSV, row 1, column `category`: there is no text in it"),
        (
            "question,category\nx,math\ny\n",
            "Mine.CSV, row 2, column `category`: the row has 1 values, the header 2",
        ),
        (
            "question,category\nx,\"math\n",
            "Mine.CSV, row 1: a quote that opens a value in it is never closed",
        ),
        ("question,category\n", "Mine.CSV: it has no items"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
}
