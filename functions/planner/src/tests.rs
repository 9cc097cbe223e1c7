use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bench_benchmarks::scorers::{BoxedInteger, Scorer};
use bench_benchmarks::{ItemProblem, Material, Metadata, Options, Template, TemplateSource, Templates};
use bench_blobs::Blobs;
use bench_datasets::{Index, LibraryConfig, load_templates};
use bench_domain::run::{DatasetChoice, DatasetUse, ItemNaming};
use bench_domain::{BenchmarkName, Prompt, RunSpec, RunTemplate, Subset, testing};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_items::{
    DatasetSpec, DemoData, IndexEntry, Item, Layout, Row, RowError, TemplateOrigin, TemplatePart,
    TemplateRole, TemplateSpec,
};

use super::*;
use crate::outline::wording;

const FILE: &str = "ASK = 'Say it: {question}'\n";
const OFFICIAL: &str = "Say it: {question}";

/// Benchmark that uses the official wording if it is available.
struct Sayings;

static SPEC: DatasetSpec = DatasetSpec {
    license: "MIT",
    demo: DemoData { items: "{\"question\":\"Why?\"}\n", support: &[] },
    ..DatasetSpec::DEFAULT
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
            role: TemplateRole::Wording,
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
    fn metadata(&self) -> &'static Metadata {
        bench_benchmarks::find("mmlu_pro").unwrap().metadata()
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

    fn selects(&self, options: &Options, item: &IndexEntry) -> bool {
        options.get("since").is_none_or(|since| item.tags.get("day").is_some_and(|day| day >= since))
    }

    fn scorer(&self) -> &dyn Scorer {
        &BoxedInteger
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
        demo_support: false,
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
    let library = |url: String| {
        let library = LibraryConfig {
            hub_url: url.clone(),
            github_raw_url: url,
            backoff: Duration::ZERO,
            ..LibraryConfig::new(folder.path().join("downloads"))
        };
        Library::new(blobs.clone(), library)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = library(format!("http://{}", listener.local_addr().unwrap()));
    drop(listener);

    // Unavailable: our own wording is used, and the note says so in addition to its earlier text.
    let own = wording(&nobody, &NoProgress, &Sayings, &DatasetChoice::Hub, dataset("hub", Some("cached")))
        .await
        .unwrap();
    assert_eq!((own.template.source, own.template.digest.as_str()), (TemplateSource::Own, "own"));
    assert!(own.templates.is_empty());
    let note = own.dataset.note.unwrap();
    assert!(note.starts_with("cached; own wording instead of the official text `ask`: http://"), "{note}");

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = library(format!("http://{}", listener.local_addr().unwrap()));
    let router = Router::new().route("/a/b/c0ffee/ask.py", get(async || FILE));
    tokio::spawn(async move { axum::serve(listener, router).await });

    // Demo data makes no request even if the origin is reachable, and the note doesn't mention it.
    for (choice, source) in [(DatasetChoice::Demo, "demo"), (DatasetChoice::Hub, "demo")] {
        let demo = wording(&there, &NoProgress, &Sayings, &choice, dataset(source, None)).await.unwrap();
        assert_eq!((demo.template.source, demo.dataset.note), (TemplateSource::Own, None));
    }

    let official =
        wording(&there, &NoProgress, &Sayings, &DatasetChoice::Hub, dataset("hub", None)).await.unwrap();
    assert_eq!(official.template, Template { source: TemplateSource::Official, digest: OFFICIAL.to_owned() });
    assert_eq!(official.dataset.note, None);
    let texts = load_templates(&blobs, &official.templates).await.unwrap();
    assert_eq!(texts, Templates::from([("ask".to_owned(), OFFICIAL.to_owned())]));

    // Texts stored by now also serve demo data and runs without a network.
    for (library, choice, source) in [
        (&nobody, DatasetChoice::Hub, "hub"),
        (&nobody, DatasetChoice::Demo, "demo"),
        (&there, DatasetChoice::Demo, "demo"),
    ] {
        let stored = wording(library, &NoProgress, &Sayings, &choice, dataset(source, None)).await.unwrap();
        assert_eq!((stored.templates, stored.dataset.note), (official.templates.clone(), None));
        assert_eq!(stored.template, official.template);
    }
}

/// Returns an index of 40 items from 20 days.
fn index() -> Index {
    let entry = |n: u64| IndexEntry {
        id: n.to_string(),
        source_id: Some(format!("{}", n + 30)),
        group: None,
        tags: BTreeMap::from([("day".to_owned(), format!("2024-08-{:02}", n / 2 + 1))]),
        offset: n * 10,
        length: 10,
    };
    let used = dataset("local", None);
    Index {
        format: 1,
        benchmark: "sayings".into(),
        layout_version: 1,
        variant: String::new(),
        id: used.id,
        source: used.source,
        revision: used.revision,
        digest: used.digest,
        data_key: used.data_key,
        data_bytes: 400,
        items: (0..40).map(entry).collect(),
        has_source_ids: true,
        support: BTreeMap::new(),
        documents: None,
        attachments: BTreeMap::new(),
        rows_left_out: 0,
        files: Vec::new(),
        licence: "MIT".into(),
        note: None,
        demo_support: false,
    }
}

fn spec(name: &BenchmarkName, since: Option<&str>) -> RunSpec {
    let since = since.map(|since| (name.clone(), Options::from([("since".to_owned(), since.to_owned())])));
    let template = RunTemplate {
        options: since.into_iter().collect(),
        ..testing::template("oracle/oracle", name.as_str())
    };
    testing::spec(RunId::random(), template)
}

fn chosen(spec: &RunSpec, name: &BenchmarkName) -> Result<(Vec<u64>, u64), String> {
    match choose::items(&Selection::of_run(spec, &Sayings, name), &index()) {
        Ok(chosen) => {
            let ids = chosen.items.iter().map(|item| item.item_id.parse().unwrap());
            Ok((ids.collect(), chosen.of))
        }
        Err(Obstacle::Failed(_, why) | Obstacle::NeedsSetup(_, why)) => Err(why),
    }
}

#[test]
fn options_leave_items_out_before_a_subset_is_chosen() {
    let name: BenchmarkName = "sayings".parse().unwrap();
    let all = spec(&name, None);
    assert_eq!(chosen(&all, &name).unwrap().1, 40);
    let late = spec(&name, Some("2024-08-11"));
    let (mut ids, of) = chosen(&late, &name).unwrap();
    ids.sort_unstable();
    assert_eq!((ids, of), ((20..40).collect(), 20));

    // A percentage applies to the items left by the options: a quarter of 20, the same five every time.
    let seeded = Subset::new(25, None, Some("s")).unwrap();
    let mut quarter = spec(&name, Some("2024-08-11"));
    quarter.subset = seeded.clone();
    let (ids, _) = chosen(&quarter, &name).unwrap();
    assert_eq!(ids.len(), 5);
    assert!(ids.iter().all(|id| *id >= 20));
    let mut again = spec(&name, Some("2024-08-11"));
    again.subset = seeded;
    assert_eq!(chosen(&again, &name).unwrap().0, ids);

    // Options of another benchmark have no effect.
    let mut other = all;
    other.options = spec(&"other".parse().unwrap(), Some("2024-09-01")).template.options;
    assert_eq!(chosen(&other, &name).unwrap().1, 40);
}

#[test]
fn options_that_leave_nothing_are_named() {
    let name: BenchmarkName = "sayings".parse().unwrap();
    let why = chosen(&spec(&name, Some("2024-09-01")), &name).unwrap_err();
    assert_eq!(why, "none of the 40 items of sayings is left by its options: since=2024-09-01");

    let named = |items: &[&str], since| {
        let mut spec = spec(&name, since);
        spec.items = items.iter().map(|item| (*item).to_owned()).collect();
        chosen(&spec, &name)
    };
    assert_eq!(named(&["60", "51"], Some("2024-08-11")).unwrap(), (vec![21, 30], 20));
    assert_eq!(named(&["33", "#30", "60"], None).unwrap(), (vec![3, 30], 40), "an item can be named twice");
    let why = named(&["33", "60"], Some("2024-08-11")).unwrap_err();
    assert_eq!(why, "the dataset has no item 33 under its options: since=2024-08-11");
}

#[test]
fn named_items_go_by_the_datasets_own_ids() {
    let name: BenchmarkName = "sayings".parse().unwrap();
    let named = |items: &[&str], item_naming| {
        let mut spec = spec(&name, None);
        spec.items = items.iter().map(|item| (*item).to_owned()).collect();
        spec.item_naming = item_naming;
        chosen(&spec, &name)
    };
    let own = |items: &[&str]| named(items, ItemNaming::SourceId);
    // 30 is the own id of row 0, and also the index of another row.
    assert_eq!(own(&["30"]).unwrap().0, [0]);
    assert_eq!(own(&["#30", "31"]).unwrap().0, [1, 30]);
    assert_eq!(own(&["99"]).unwrap_err(), "the dataset has no item 99");
    assert_eq!(
        own(&["3", "#40", "30"]).unwrap_err(),
        "the dataset has no item 3, #40 (2 of 3 named); items of sayings are named by the dataset's own id; \
         write a row's index, from 0, as `#3`"
    );
    // An order stored by an older program keeps its original meaning.
    let old = |items: &[&str]| named(items, ItemNaming::RowIndex);
    assert_eq!(old(&["30", "3"]).unwrap().0, [3, 30]);
    assert_eq!(old(&["#30", "41"]).unwrap_err(), "the dataset has no item #30, 41");
}
