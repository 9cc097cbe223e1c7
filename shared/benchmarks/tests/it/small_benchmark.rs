//! A benchmark in one file. It defines only what is specific to it and uses a shared scorer and shared metrics.

use std::collections::BTreeMap;

use bench_benchmarks::scorers::{ChoiceLetter, Scorer, choice};
use bench_benchmarks::{
    Benchmark, FinishedSample, GuessedAnswers, ItemProblem, Link, Material, Metadata, Metrics, Template,
    TemplateSource, Templates, columns,
};
use bench_domain::{Answer, Outcome, Prompt};
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Part, Row, RowError};
use serde_json::json;

/// Questions about capitals, with three options each.
struct Capitals;

static METADATA: Metadata = Metadata {
    name: "capitals",
    display_name: "Capitals",
    description: "Questions about capitals, with three options each.",
    protocol_name: "plain",
    protocol: "zero-shot, one letter",
    parser: "the three stages of MMLU-Pro",
    sources: &[Link { title: "Dataset", url: "https://example.org/capitals" }],
    item_id: "row index from 0",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "example/capitals",
        items: &[Part { config: "default", split: "test" }],
        ..HubSource::DEFAULT
    }],
    license: "CC0-1.0",
    demo: DemoData {
        items: r#"{"question": "Of Peru?", "A": "Cusco", "B": "Lima", "C": "Ica", "answer": "B"}"#,
        support: &[],
    },
    ..DatasetSpec::DEFAULT
};

const REQUEST: &str =
    "Answer the question. End with \"The answer is (X)\", where X is the letter of an option.";
const LETTERS: &str = "ABC";

fn gold(row: &Row) -> Result<char, RowError> {
    choice::letter_in(row, &["answer"], LETTERS)?.ok_or_else(|| RowError::column("answer", "is missing"))
}

static SCORER: ChoiceLetter = ChoiceLetter {
    parser: &choice::MMLU_PRO_API,
    gold: |item| gold(&item.row),
    chance: |_| Some(1.0 / 3.0),
    score_row: |row| gold(row).map(|_| Item::new("", None, row.clone())),
};

impl Layout for Capitals {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        gold(&row)?;
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

impl Benchmark for Capitals {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Own, &[REQUEST])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let mut message = format!("{REQUEST}\n\n{}", columns::text(&item.row, "question")?);
        for letter in LETTERS.chars() {
            message.push_str(&format!("\n{letter}. {}", columns::text(&item.row, &letter.to_string())?));
        }
        Ok(Prompt::user(message))
    }

    fn scorer(&self) -> &dyn Scorer {
        &SCORER
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<GuessedAnswers>::default())
    }
}

#[test]
fn a_small_benchmark_asks_grades_and_counts() {
    let capitals: &dyn Benchmark = &Capitals;
    let row: Row = serde_json::from_str(SPEC.demo.items).unwrap();
    let item = capitals.item(0, row).unwrap().unwrap();
    let prompt = capitals.prompt(&item, &Material::default()).unwrap().as_text();
    assert!(prompt.ends_with("Of Peru?\nA. Cusco\nB. Lima\nC. Ica"), "{prompt}");
    let mut metrics = capitals.metrics().unwrap();
    let mut outcomes = BTreeMap::new();
    for reply in [capitals.oracle(&item).as_str(), "The answer is (A).", "Lima"] {
        let verdict = capitals.grade(&item, &Answer::local(reply)).done().unwrap();
        metrics.add(&FinishedSample { item: 0, group: None, verdict: &verdict });
        *outcomes.entry(verdict.outcome.as_str()).or_insert(0) += 1;
    }
    assert_eq!(outcomes, BTreeMap::from([("correct", 1), ("incorrect", 1), (Outcome::Unparsed.as_str(), 1)]));
    let adjusted = metrics.finish(3)["accuracy_chance_adjusted"].as_f64().unwrap();
    assert!((adjusted - 4.0 / 9.0).abs() < 1e-12, "{adjusted}");
    assert_eq!(capitals.score_row(&Row::new()).unwrap_err().column.as_deref(), Some("answer"));
    assert_eq!(bench_items::identity(capitals, &item), json!("Of Peru?"));
}
