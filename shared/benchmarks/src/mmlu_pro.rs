//! MMLU-Pro: multiple-choice questions with up to ten options, with five few-shot examples per category.
//!
//! Protocol: TIGER-AI-Lab/MMLU-Pro at f418b116, `evaluate_from_api.py`.

mod prompt;

use std::collections::BTreeMap;

use bench_domain::{Generation, Prompt};
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Part, Row, RowError};
use serde_json::{Value, json};

use crate::benchmark::Benchmark;
use crate::columns::text;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::metrics::{GuessedAnswers, Metrics};
use crate::scorers::{ChoiceLetter, Scorer, choice};

/// Letters of the options, by position.
const LETTERS: &str = "ABCDEFGHIJ";

/// The MMLU-Pro benchmark.
#[derive(Debug, Clone, Copy)]
pub struct MmluPro;

static METADATA: Metadata = Metadata {
    name: "mmlu_pro",
    display_name: "MMLU-Pro",
    description: "Questions with up to ten options from 14 fields, answered with reasoning after five worked examples of the same field.",
    protocol_name: "mmlu-pro-api",
    parser: "three stages of evaluate_from_api.py, after removing **",
    protocol: "TIGER-AI-Lab/MMLU-Pro f418b116, evaluate_from_api.py: 5-shot chain of thought, three-stage extraction",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro" },
        Link { title: "Official evaluation", url: "https://github.com/TIGER-AI-Lab/MMLU-Pro" },
        Link { title: "Paper", url: "https://arxiv.org/abs/2406.01574" },
    ],
    metrics: &["accuracy", "categories", "accuracy_chance_adjusted"],
    generation: || Generation {
        temperature: Some(0.0),
        top_p: Some(1.0),
        max_tokens: Some(4000),
        ..Generation::default()
    },
    support: Some("the worked examples of the item's category, from the validation split"),
    deviations: &[
        "A missing answer counts as wrong; the official scripts put a random option in its place, which cannot be repeated. The expected value of that is shown as accuracy_chance_adjusted.",
        "Reasoning that a provider delivers apart from the answer is not graded; the official script never sees it.",
        "The token limit is the official 4000; a reasoning model needs more, and answers that were cut off are counted apart.",
    ],
    default_selected: true,
    item_id: "row index in the test split, from 0; question_id is the dataset's own id",
    group_noun: "categories",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "TIGER-Lab/MMLU-Pro",
        items: &[Part { config: "default", split: "test" }],
        support: &[Part { config: "default", split: "validation" }],
        ..HubSource::DEFAULT
    }],
    license: "MIT",
    items: 12_032,
    demo: DemoData {
        items: include_str!("../data/mmlu_pro_test.jsonl"),
        support: &[("validation", include_str!("../data/mmlu_pro_validation.jsonl"))],
    },
    ..DatasetSpec::DEFAULT
};

/// Returns the gold letter. The official comparison uses only the column `answer`.
fn gold(row: &Row) -> Result<char, RowError> {
    if let Some(letter) = choice::letter_in(row, &["answer"], LETTERS)? {
        return Ok(letter);
    }
    let index = row.get("answer_index").filter(|index| !index.is_null());
    let index = index.ok_or_else(|| RowError::column("answer", "is missing"))?;
    let letter =
        index.as_u64().and_then(|index| usize::try_from(index).ok()).and_then(|at| LETTERS.chars().nth(at));
    letter.ok_or_else(|| RowError::column("answer_index", "is not a number from 0 to 9"))
}

/// Returns the options without the literal `N/A` entries, which an early revision left behind.
fn options(row: &Row) -> Result<Vec<&str>, RowError> {
    let options = match row.get("options") {
        Some(Value::Array(options)) => options,
        Some(Value::Null) | None => return Err(RowError::column("options", "is missing")),
        Some(Value::String(_)) => {
            return Err(RowError::column(
                "options",
                "is a text, not a list; CSV files can't hold lists, parquet and JSONL files can",
            ));
        }
        Some(_) => return Err(RowError::column("options", "is not a list")),
    };
    let options: Option<Vec<&str>> = options.iter().map(Value::as_str).collect();
    let mut options =
        options.ok_or_else(|| RowError::column("options", "has an entry that is not a string"))?;
    options.retain(|option| *option != "N/A");
    if options.is_empty() || options.len() > LETTERS.len() {
        return Err(RowError::column("options", format!("has {} entries instead of 1 to 10", options.len())));
    }
    Ok(options)
}

/// Makes an item from the gold letter and, if given, the options. Without options the chance of guessing is unknown.
fn score_row(row: &Row) -> Result<Item, RowError> {
    let mut fields = Row::new();
    fields.insert("answer".into(), Value::String(gold(row)?.to_string()));
    if row.get("options").is_some_and(|options| !options.is_null()) {
        options(row)?;
        fields.extend(row.get("options").map(|options| ("options".to_owned(), options.clone())));
    }
    let group = row.get("category").and_then(Value::as_str).map(str::to_owned);
    Ok(Item::new("", group, fields))
}

#[allow(clippy::cast_precision_loss)] // at most ten
fn chance(item: &Item) -> Option<f64> {
    options(&item.row).ok().map(|options| 1.0 / options.len() as f64)
}

static SCORER: ChoiceLetter =
    ChoiceLetter { parser: &choice::MMLU_PRO_API, gold: |item| gold(&item.row), chance, score_row };

impl Layout for MmluPro {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["question_id"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        text(&row, "question")?;
        options(&row)?;
        gold(&row)?;
        let group = text(&row, "category")?.to_owned();
        Ok(Some(Item::new(index.to_string(), Some(group), row)))
    }

    fn support(&self, _split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        let mut categories: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in rows {
            let category = text(&row, "category")?.to_owned();
            let example = json!({
                "question": text(&row, "question")?,
                "options": options(&row)?,
                "cot_content": text(&row, "cot_content")?,
            });
            categories.entry(category).or_default().push(example);
        }
        Ok(categories.into_iter().map(|(category, examples)| (category, Value::Array(examples))).collect())
    }

    fn is_support(&self, row: &Row) -> bool {
        row.get("cot_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    }
}

impl Benchmark for MmluPro {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn support_names(&self, item: &Item) -> Vec<String> {
        item.group.iter().cloned().collect()
    }

    fn support_follows_group(&self) -> bool {
        true
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Official, &prompt::PARTS)
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let category = text(&item.row, "category")?;
        let missing = || ItemProblem::SupportMissing {
            name: category.to_owned(),
            needed: "worked examples of the item's category, from the validation split",
        };
        let examples = material
            .support
            .get(category)
            .and_then(|examples| examples.as_array())
            .filter(|examples| !examples.is_empty());
        let mut message = prompt::header(category);
        for example in examples.ok_or_else(missing)? {
            let example = example.as_object().ok_or_else(missing)?;
            let worked = text(example, "cot_content")?;
            prompt::push_question(&mut message, text(example, "question")?, &options(example)?, worked);
        }
        prompt::push_question(&mut message, text(&item.row, "question")?, &options(&item.row)?, "");
        Ok(Prompt::user(message))
    }

    fn scorer(&self) -> &dyn Scorer {
        &SCORER
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<GuessedAnswers>::default())
    }
}

#[cfg(test)]
mod tests;
