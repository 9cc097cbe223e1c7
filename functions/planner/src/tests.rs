use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bench_benchmarks::{Facts, Grading, ItemProblem, Material, TemplateSource, Templates};
use bench_blobs::Blobs;
use bench_datasets::{
    DatasetSpec, DemoData, Item, Layout, LibraryConfig, Row, RowError, TemplateOrigin, TemplatePart,
    TemplateSpec, load_templates,
};
use bench_domain::{Answer, Prompt};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};

use super::*;

const FILE: &str = "ASK = 'Say it: {question}'\n";
const OFFICIAL: &str = "Say it: {question}";

/// Asks in the official words where they can be had.
struct Sayings;

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[],
    gate: None,
    licence: "MIT",
    items: 0,
    demo: DemoData { items: "{\"question\":\"Why?\"}\n", support: &[] },
};

impl Layout for Sayings {
    fn name(&self) -> &'static str {
        "sayings"
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        &[TemplateSpec {
            name: "ask",
            origin: TemplateOrigin::GitHub { repository: "a/b", commit: "c0ffee", path: "ask.py" },
            part: TemplatePart::PythonConstant("ASK"),
            sha256: None,
        }]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

impl Benchmark for Sayings {
    fn facts(&self) -> &'static Facts {
        bench_benchmarks::find("mmlu_pro").unwrap().facts()
    }

    fn template(&self, templates: &Templates) -> Template {
        match templates.get("ask") {
            Some(text) => Template { source: TemplateSource::Official, digest: text.clone() },
            None => Template { source: TemplateSource::Own, digest: "own".to_owned() },
        }
    }

    fn prompt(&self, _: &Item, _: &Material) -> Result<Prompt, ItemProblem> {
        Err(ItemProblem::Content("nobody is asked here".to_owned()))
    }

    fn expected(&self, _: &Item) -> String {
        String::new()
    }

    fn grade(&self, _: &Item, _: &Answer) -> Grading {
        Grading::NeedsJudge
    }

    fn oracle(&self, _: &Item) -> String {
        String::new()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        Ok(Item::new("", None, row.clone()))
    }
}

fn dataset(source: &str, note: Option<&str>) -> DatasetUse {
    DatasetUse {
        id: "sayings".into(),
        revision: "r".into(),
        source: source.into(),
        digest: "d".into(),
        data_key: "datasets/sayings/data.zst".into(),
        documents: None,
        attachments: BTreeMap::new(),
        note: note.map(str::to_owned),
    }
}

#[tokio::test]
async fn a_plan_says_whose_words_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::new(folder.path().join("data")).durability(Durability::Normal);
    let embedded = Embedded::open(options).unwrap();
    let config = embedded.sdk_config();
    let blobs = Blobs::new(&config, "bench");
    blobs.ensure_bucket().await.unwrap();
    let planner = |url: String| {
        let library = LibraryConfig {
            hub_url: url.clone(),
            github_raw_url: url,
            backoff: Duration::ZERO,
            ..LibraryConfig::new(folder.path().join("downloads"))
        };
        let queues = Queues::new(&config, BTreeMap::new());
        Planner::new(State::new(&config, "table", 0), queues, Library::new(blobs.clone(), library))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = planner(format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);

    // Out of reach: own words, and the note says so beside what there was to say already.
    let own = nobody.wording(&Sayings, &DatasetChoice::Hub, dataset("hub", Some("cached"))).await.unwrap();
    assert_eq!((own.template.source, own.template.digest.as_str()), (TemplateSource::Own, "own"));
    assert!(own.templates.is_empty());
    let note = own.dataset.note.unwrap();
    assert!(note.starts_with("cached; own wording instead of the official text `ask`: http://"), "{note}");

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = planner(format!("http://{}", listener.local_addr().unwrap()));
    let router = Router::new().route("/a/b/c0ffee/ask.py", get(async || FILE));
    tokio::spawn(async move { axum::serve(listener, router).await });

    // Demo data asks nobody, though somebody is there, and that is nothing to tell.
    for (choice, source) in [(DatasetChoice::Demo, "demo"), (DatasetChoice::Hub, "demo")] {
        let demo = there.wording(&Sayings, &choice, dataset(source, None)).await.unwrap();
        assert_eq!((demo.template.source, demo.dataset.note), (TemplateSource::Own, None));
    }

    let official = there.wording(&Sayings, &DatasetChoice::Hub, dataset("hub", None)).await.unwrap();
    assert_eq!(official.template, Template { source: TemplateSource::Official, digest: OFFICIAL.to_owned() });
    assert_eq!(official.dataset.note, None);
    let texts = load_templates(&blobs, &official.templates).await.unwrap();
    assert_eq!(texts, Templates::from([("ask".to_owned(), OFFICIAL.to_owned())]));

    // What is stored by now serves demo data and runs without a network.
    for (planner, choice, source) in [
        (&nobody, DatasetChoice::Hub, "hub"),
        (&nobody, DatasetChoice::Demo, "demo"),
        (&there, DatasetChoice::Demo, "demo"),
    ] {
        let stored = planner.wording(&Sayings, &choice, dataset(source, None)).await.unwrap();
        assert_eq!((stored.templates, stored.dataset.note), (official.templates.clone(), None));
        assert_eq!(stored.template, official.template);
    }
}
