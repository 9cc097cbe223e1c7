//! AIME: contest problems whose answers are integers from 0 to 999.
//!
//! Protocol: eth-sri/matharena at e9276603, competition `aime/aime_2025`: one user message, boxed answer,
//! the provider's own sampling, four samples per problem, score = mean over samples.

mod gold;
mod matharena;

use bench_domain::{Answer, Generation, Prompt, Verdict};
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Part, Row, RowError};
use serde_json::{Map, Value, json};

use crate::benchmark::{Benchmark, Grading, ItemProblem};
use crate::facts::{Facts, Link, Template, TemplateSource};
use crate::grading::{self, Finding};
use crate::material::{Material, Templates};

/// What is asked for, before the problem: a boxed answer and its range.
const INSTRUCTION: &str =
    "Solve the problem and give your final answer inside \\boxed{}. It is a whole number from 0 to 999.";

/// Between the instruction and the problem.
const GAP: &str = "\n\n";

/// The 30 problems of 2025.
#[derive(Debug, Clone, Copy)]
pub struct Aime2025;

/// The 90 problems of 2022, 2023 and 2024.
#[derive(Debug, Clone, Copy)]
pub struct Aime2022To2024;

const MATHARENA: Link = Link { title: "Official evaluation", url: "https://github.com/eth-sri/matharena" };

const DEVIATIONS: [&str; 4] = [
    "The instruction asks for the same as the official one, in other words.",
    "The official list of recorded replies of particular models is not used; it holds no answer to an AIME problem.",
    "Boxed contents of more than 1000 characters are not evaluated.",
    "No follow-up message asks for a boxed answer when there is none.",
];

static FACTS_2025: Facts = Facts {
    name: "aime_2025",
    display_name: "AIME 2025",
    description: "The 30 problems of both American Invitational Mathematics Examinations of 2025; each is asked four times.",
    protocol_name: "matharena",
    parser: "MathArena's parser of boxed answers, lenient",
    protocol: "MathArena e9276603, aime_2025: boxed answer, lenient parser, mean over 4 samples",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/MathArena/aime_2025" },
        MATHARENA,
        Link { title: "Leaderboard", url: "https://matharena.ai" },
    ],
    metrics: &["accuracy", "parts"],
    samples_per_item: 4,
    generation,
    support: None,
    item_timeout_seconds: 3600,
    deviations: &DEVIATIONS,
    default_selected: true,
    setup_notes: "",
    item_id: "row index from 0, part I before part II; problem_idx or id, where the copy of the dataset has one, is the dataset's own id",
    group_noun: "parts",
};

static FACTS_2022_2024: Facts = Facts {
    name: "aime_2022_2024",
    display_name: "AIME 2022-2024",
    description: "The 90 problems of 2022, 2023 and 2024, a common validation set; most models have seen them in training.",
    protocol_name: "matharena",
    parser: "MathArena's parser of boxed answers, lenient",
    protocol: "MathArena e9276603, the parser and prompt of aime_2025: boxed answer, mean over 4 samples",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/AI-MO/aimo-validation-aime" },
        MATHARENA,
    ],
    metrics: &["accuracy", "years"],
    default_selected: false,
    item_id: "row index from 0; rows without a problem keep theirs; id is the dataset's own id",
    group_noun: "years",
    samples_per_item: 4,
    generation,
    support: None,
    item_timeout_seconds: 3600,
    deviations: &DEVIATIONS,
    setup_notes: "",
};

/// The provider's own sampling; the limit is what the protocol gives reasoning models at least.
fn generation() -> Generation {
    Generation { max_tokens: Some(65_536), ..Generation::default() }
}

const TRAIN: &[Part] = &[Part { config: "default", split: "train" }];

static SPEC_2025: DatasetSpec = DatasetSpec {
    sources: &[
        HubSource { id: "MathArena/aime_2025", revision: None, items: TRAIN, support: &[] },
        HubSource {
            id: "math-ai/aime25",
            revision: None,
            items: &[Part { config: "default", split: "test" }],
            support: &[],
        },
        HubSource {
            id: "opencompass/AIME2025",
            revision: None,
            items: &[
                Part { config: "AIME2025-I", split: "test" },
                Part { config: "AIME2025-II", split: "test" },
            ],
            support: &[],
        },
    ],
    gate: None,
    licence: "CC-BY-NC-SA-4.0",
    items: 30,
    demo: DemoData { items: include_str!("../../data/aime_2025.jsonl"), support: &[] },
};

static SPEC_2022_2024: DatasetSpec = DatasetSpec {
    sources: &[HubSource { id: "AI-MO/aimo-validation-aime", revision: None, items: TRAIN, support: &[] }],
    gate: None,
    licence: "Apache-2.0",
    items: 90,
    demo: DemoData { items: include_str!("../../data/aime_2022_2024.jsonl"), support: &[] },
};

/// The problem's text, under either of its names; `None` when there is none.
/// Enough of an answer to recognise it in a sentence.
const SHOWN_CHARS_MAX: usize = 60;

fn problem(row: &Row) -> Result<Option<&str>, RowError> {
    for column in ["problem", "question"] {
        match row.get(column) {
            Some(Value::String(text)) => {
                return Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty()));
            }
            Some(Value::Null) | None => {}
            Some(_) => return Err(RowError::column(column, "is not a text")),
        }
    }
    Ok(None)
}

fn prompt(item: &Item) -> Result<Prompt, ItemProblem> {
    let problem = problem(&item.row)?.ok_or_else(|| RowError::column("problem", "is missing"))?;
    Ok(Prompt::user(format!("{INSTRUCTION}{GAP}{problem}")))
}

fn template() -> Template {
    Template::of(TemplateSource::Own, &[INSTRUCTION, GAP])
}

fn expected(item: &Item) -> String {
    gold::of_row(&item.row).map(|gold| gold.to_string()).unwrap_or_default()
}

fn grade(item: &Item, answer: &Answer) -> Verdict {
    let Ok(gold) = gold::of_row(&item.row) else { return grading::without_gold() };
    let found = matharena::extract(&answer.text);
    let correct = found.equals(&gold);
    let mut detail = Map::new();
    detail.insert("parser".into(), json!("matharena"));
    detail.insert("source".into(), json!(found.source));
    detail.insert("warning".into(), json!(found.warning));
    let reason = match &found.text {
        Some(text) if text == "[]" => {
            "The box holds nothing but text, which the official parser drops.".to_owned()
        }
        Some(text) => {
            format!("The answer is {}; right is {gold}.", grading::shortened(text, SHOWN_CHARS_MAX))
        }
        None => String::new(),
    };
    grading::settle(answer, Finding { extracted: found.text, correct, reason, detail })
}

fn score_row(row: &Row) -> Result<Item, RowError> {
    let gold = gold::of_row(row)?;
    let mut fields = Row::new();
    fields.insert("answer".into(), Value::String(gold.to_string()));
    Ok(Item::new("", None, fields))
}

/// The part of the examination, where the row's id names it (`I-1` to `II-15`).
fn part(row: &Row) -> Option<String> {
    let (part, number) = row.get("id")?.as_str()?.split_once('-')?;
    (matches!(part, "I" | "II") && number.parse::<u8>().is_ok()).then(|| part.to_owned())
}

/// The year that the row's address names.
fn year(row: &Row) -> Option<String> {
    let url = row.get("url")?.as_str()?;
    let page = url.split('/').find(|page| page.contains("_AIME"))?;
    page.split('_')
        .next()
        .filter(|year| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()))
        .map(Into::into)
}

impl Layout for Aime2025 {
    fn name(&self) -> &'static str {
        FACTS_2025.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC_2025
    }

    /// Of three copies of the dataset one calls it otherwise, and one has none.
    fn id_columns(&self) -> &'static [&'static str] {
        &["id", "problem_idx"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        problem(&row)?.ok_or_else(|| RowError::column("problem", "is missing"))?;
        gold::of_contest(&row)?;
        Ok(Some(Item::new(index.to_string(), part(&row), row)))
    }
}

impl Layout for Aime2022To2024 {
    fn name(&self) -> &'static str {
        FACTS_2022_2024.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC_2022_2024
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["id"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        if problem(&row)?.is_none() {
            return Ok(None);
        }
        gold::of_contest(&row)?;
        Ok(Some(Item::new(index.to_string(), year(&row), row)))
    }
}

macro_rules! aime {
    ($name:ty, $facts:ident) => {
        impl Benchmark for $name {
            fn facts(&self) -> &'static Facts {
                &$facts
            }

            fn template(&self, _templates: &Templates) -> Template {
                template()
            }

            fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
                prompt(item)
            }

            fn expected(&self, item: &Item) -> String {
                expected(item)
            }

            fn grade(&self, item: &Item, answer: &Answer) -> Grading {
                grade(item, answer).into()
            }

            fn oracle(&self, item: &Item) -> String {
                format!("The final answer is $\\boxed{{{}}}$.", expected(item))
            }

            fn score_row(&self, row: &Row) -> Result<Item, RowError> {
                score_row(row)
            }
        }
    };
}

aime!(Aime2025, FACTS_2025);
aime!(Aime2022To2024, FACTS_2022_2024);

#[cfg(test)]
mod tests;
