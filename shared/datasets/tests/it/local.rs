//! Local files.

use std::path::PathBuf;

use bench_datasets::{DatasetError, Library, NoProgress, PreparedDataset, load_support};
use bench_domain::run::DatasetChoice;
use serde_json::{Value, json};

use crate::hub_server::TestHub;
use crate::support::{Bench, Quiz, questions, repository};

impl Bench {
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn line(question: &str, more: &str) -> String {
    format!("{{\"question\":\"{question}\",\"category\":\"math\"{more}}}\n")
}

async fn import_again(library: &Library, prepared: &PreparedDataset) -> PreparedDataset {
    let choice = DatasetChoice::Local { revision: prepared.used.revision.clone() };
    library.prepare(&Quiz::OPEN, &choice, &NoProgress).await.unwrap()
}

#[tokio::test]
async fn a_file_with_its_own_worked_examples() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let example = ",\"split\":\"validation\"";
    let text = [line("one", ""), line("example", example), "\n".into(), line("two", "")].concat();
    let path = bench.file("mine.jsonl", text);
    let prepared = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    assert_eq!((prepared.used.id.as_str(), prepared.used.source.as_str()), ("mine.jsonl", "local"));
    assert_eq!(prepared.used.note, None);
    let items = bench.items(&prepared).await;
    let items: Vec<_> = items.iter().map(|item| (item.id.as_str(), &item.row["question"])).collect();
    assert_eq!(items, [("0", &Value::from("one")), ("1", &Value::from("two"))]);
    let examples = load_support(&bench.blobs, &prepared.used, "math").await.unwrap().unwrap();
    assert_eq!(examples[0]["question"], "example");
    assert_eq!(import_again(&library, &prepared).await, prepared);
    // The same content has the same revision, regardless of its file name.
    let copy = bench.file("copy.jsonl", std::fs::read(&path).unwrap());
    assert_eq!(library.import_local(&Quiz::OPEN, &copy, &NoProgress).await.unwrap().used, prepared.used);
}

#[tokio::test]
async fn an_index_of_an_older_program_gets_the_datasets_own_ids() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let example = ",\"split\":\"validation\"";
    let text = [
        line("example", example),
        line("one", ",\"own\":70"),
        line("two", ""),
        line("three", ",\"own\":\"0\""),
    ];
    let path = bench.file("mine.jsonl", text.concat());
    let prepared = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    let ids = |prepared: &PreparedDataset| -> Vec<Option<String>> {
        prepared.index.items.iter().map(|entry| entry.source_id.clone()).collect()
    };
    assert_eq!(ids(&prepared), [Some("70".to_owned()), None, Some("0".to_owned())]);

    let (objects, _) = bench.blobs.list("datasets/quiz/", None).await.unwrap();
    let key =
        objects.into_iter().map(|object| object.key).find(|key| key.ends_with("/index.json.zst")).unwrap();
    let written: Value = bench.blobs.get_json(&key).await.unwrap().unwrap();
    let mut old = written.clone();
    assert_eq!(old.as_object_mut().unwrap().remove("has_source_ids"), Some(json!(true)));
    for entry in old["items"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("source_id");
    }
    bench.blobs.put_json(&key, &old).await.unwrap();
    // The file isn't needed for this, and nothing else changes, least of all the digest.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(import_again(&library, &prepared).await, prepared);
    assert_eq!(bench.blobs.get_json::<Value>(&key).await.unwrap(), Some(written));

    // Items that can't be read have no ids that could be trusted.
    bench.blobs.put_json(&key, &old).await.unwrap();
    let broken = vec![0_u8; usize::try_from(prepared.index.data_bytes).unwrap()];
    bench.blobs.put(&prepared.used.data_key, broken.into(), "application/zstd").await.unwrap();
    let choice = DatasetChoice::Local { revision: prepared.used.revision.clone() };
    let error = library.prepare(&Quiz::OPEN, &choice, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotImported { .. }), "{error}");
}

#[tokio::test]
async fn a_folder_with_files_by_split() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    bench.file("set/test-00000-of-00002.parquet", questions(0, 70));
    bench.file("set/test-00001-of-00002.parquet", questions(70, 30));
    bench.file("set/train.jsonl", line("not wanted", ""));
    bench.file("set/dev.json", format!("[{}]", line("example", "").trim()));
    bench.file("set/README.md", "# Mine");
    let path = bench.folder.path().join("set");
    let prepared = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    let items = bench.items(&prepared).await;
    assert_eq!(items.len(), 100);
    assert_eq!(items[99].row["number"], 99);
    assert_eq!(prepared.used.id, "set");
    assert_eq!(prepared.used.note, None);
    assert_eq!(prepared.index.support.keys().collect::<Vec<_>>(), ["math"]);
}

#[tokio::test]
async fn missing_examples_are_replaced_by_demo_ones_with_a_note() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let path = bench.file("mine.parquet", questions(0, 5));
    let prepared = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    let note = prepared.used.note.clone().unwrap();
    assert!(note.starts_with("worked examples: demo"), "{note}");
    assert_eq!(prepared.index.items.len(), 5);
    let examples = load_support(&bench.blobs, &prepared.used, "math").await.unwrap().unwrap();
    assert_eq!(examples[0]["question"], "1+1?");
    assert_eq!(import_again(&library, &prepared).await, prepared);
}

#[tokio::test]
async fn worked_examples_of_the_hub_are_borrowed() {
    let (bench, hub) = (Bench::new().await, TestHub::start().await);
    hub.publish("org/quiz", repository());
    let path = bench.file("mine.json", format!("[{}]", line("one", "").trim()));
    let without =
        bench.library_without_hub().await.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    let with = bench.library(&hub).import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    assert_eq!(with.used.note, None);
    let examples = load_support(&bench.blobs, &with.used, "law").await.unwrap().unwrap();
    assert_eq!(examples[0]["question"], "What is 1001?");
    // Other examples make other prompts, so the revision differs.
    assert_ne!(with.used.revision, without.used.revision);
    // The cached dataset is used without a hub.
    let cached =
        bench.library_without_hub().await.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap();
    assert_eq!(cached, with);
}

#[tokio::test]
async fn errors_are_located_and_leave_nothing() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let good = line("one", "");
    for (name, content, expected) in [
        (
            "a.jsonl",
            format!("{good}{{\"question\":\"two\"}}\n"),
            "a.jsonl, row 2, column `category`: there is no text in it",
        ),
        ("b.jsonl", format!("{good}{{\"question\"\n"), "b.jsonl, row 2: it is not JSON: "),
        ("c.json", format!("[{}, 5]", good.trim()), "c.json, row 2: expected an object as row, found 5"),
        ("d.jsonl", String::new(), "d.jsonl: it has no items"),
        (
            "e.jsonl",
            line("one", ",\"id\":\"x\"") + &line("two", ",\"id\":\"x\""),
            "e.jsonl, row 2: its item id `x` is that of row 1 already",
        ),
        ("f.parquet", "PAR1 and nothing else".to_owned(), "f.parquet: "),
        ("g.txt", "question,category\n1,2\n".to_owned(), "g.txt, row 1: it is not JSON: "),
        ("h.jsonl", line("", ""), "h.jsonl: it has no items"),
    ] {
        let path = bench.file(name, content);
        let error = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(matches!(error, DatasetError::Content(_)));
    }
    let left = library.list_cached().await.unwrap();
    assert_eq!(left, []);
    assert_eq!(bench.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn paths_without_a_dataset_are_errors() {
    let bench = Bench::new().await;
    let library = bench.library_without_hub().await;
    let empty = bench.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    bench.file("only/validation.jsonl", line("example", ""));
    for path in [empty, bench.folder.path().join("only"), bench.folder.path().join("none.jsonl")] {
        let error = library.import_local(&Quiz::OPEN, &path, &NoProgress).await.unwrap_err();
        assert!(matches!(error, DatasetError::Path { .. }), "{error}");
    }
    let choice = DatasetChoice::Local { revision: "../../x".into() };
    let error = library.prepare(&Quiz::OPEN, &choice, &NoProgress).await.unwrap_err();
    assert!(matches!(error, DatasetError::NotImported { .. }), "{error}");
}
