//! AIME: contest problems whose answers are integers from 0 to 999.
//!
//! Protocol: eth-sri/matharena at e9276603, competition `aime/aime_2025`: one user message, boxed answer,
//! the provider's own sampling, four samples per problem, score = mean over samples.

use bench_domain::{Generation, Prompt};
use bench_items::{DatasetSpec, DemoData, HubSource, Item, Layout, Part, Row, RowError};
use num_bigint::BigInt;
use serde_json::Value;

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::scorers::{BoxedInteger, Scorer, boxed};

/// Instruction before the problem: asks for a boxed answer and states its range.
const INSTRUCTION: &str =
    "Solve the problem and give your final answer inside \\boxed{}. It is a whole number from 0 to 999.";
/// Text between the instruction and the problem.
const GAP: &str = "\n\n";
/// Largest answer of the contest.
const ANSWER_MAX: u32 = 999;

/// AIME problems of one or more years.
pub struct Aime {
    metadata: &'static Metadata,
    spec: &'static DatasetSpec,
    id_columns: &'static [&'static str],
    /// Returns the group of a row.
    group: fn(&Row) -> Option<String>,
    /// If true, rows without a problem are left out; otherwise they are errors.
    leaves_out: bool,
}

/// The 30 problems of 2025. One of the three copies of the dataset names the id column differently, and one has no id.
pub static AIME_2025: Aime = Aime {
    metadata: &METADATA_2025,
    spec: &SPEC_2025,
    id_columns: &["id", "problem_idx"],
    group: part,
    leaves_out: false,
};

/// The 90 problems of 2022, 2023 and 2024.
pub static AIME_2022_2024: Aime = Aime {
    metadata: &METADATA_2022_2024,
    spec: &SPEC_2022_2024,
    id_columns: &["id"],
    group: year,
    leaves_out: true,
};

const MATHARENA: Link = Link { title: "Official evaluation", url: "https://github.com/eth-sri/matharena" };

/// Values that both benchmarks share. Sampling settings are the provider's defaults. The token limit is the minimum
/// that the protocol gives to reasoning models.
const METADATA: Metadata = Metadata {
    protocol_name: "matharena",
    parser: "MathArena's parser of boxed answers, lenient",
    samples_per_item: 4,
    generation: || Generation { max_tokens: Some(65_536), ..Generation::default() },
    item_timeout_seconds: 3600,
    deviations: &[
        "The instruction asks for the same as the official one, in other words.",
        "The official list of recorded replies of particular models is not used; it has no answer to an AIME problem.",
        "Boxed contents of more than 1000 characters are not evaluated.",
        "No follow-up message asks for a boxed answer when there is none.",
    ],
    ..Metadata::DEFAULT
};

static METADATA_2025: Metadata = Metadata {
    name: "aime_2025",
    display_name: "AIME 2025",
    description: "The 30 problems of both American Invitational Mathematics Examinations of 2025; each is asked four times.",
    protocol: "MathArena e9276603, aime_2025: boxed answer, lenient parser, mean over 4 samples",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/MathArena/aime_2025" },
        MATHARENA,
        Link { title: "Leaderboard", url: "https://matharena.ai" },
    ],
    metrics: &["accuracy", "parts"],
    default_selected: true,
    item_id: "row index from 0, part I before part II; problem_idx or id, where the copy of the dataset has one, is the dataset's own id",
    group_noun: "parts",
    ..METADATA
};

static METADATA_2022_2024: Metadata = Metadata {
    name: "aime_2022_2024",
    display_name: "AIME 2022-2024",
    description: "The 90 problems of 2022, 2023 and 2024, a common validation set; most models have seen them in training.",
    protocol: "MathArena e9276603, the parser and prompt of aime_2025: boxed answer, mean over 4 samples",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/AI-MO/aimo-validation-aime" },
        MATHARENA,
    ],
    metrics: &["accuracy", "years"],
    item_id: "row index from 0; rows without a problem keep theirs; id is the dataset's own id",
    group_noun: "years",
    ..METADATA
};

const TRAIN: &[Part] = &[Part { config: "default", split: "train" }];

static SPEC_2025: DatasetSpec = DatasetSpec {
    sources: &[
        HubSource { id: "MathArena/aime_2025", items: TRAIN, ..HubSource::DEFAULT },
        HubSource {
            id: "math-ai/aime25",
            items: &[Part { config: "default", split: "test" }],
            ..HubSource::DEFAULT
        },
        HubSource {
            id: "opencompass/AIME2025",
            items: &[
                Part { config: "AIME2025-I", split: "test" },
                Part { config: "AIME2025-II", split: "test" },
            ],
            ..HubSource::DEFAULT
        },
    ],
    license: "CC-BY-NC-SA-4.0",
    items: 30,
    demo: DemoData { items: include_str!("../data/aime_2025.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

static SPEC_2022_2024: DatasetSpec = DatasetSpec {
    sources: &[HubSource { id: "AI-MO/aimo-validation-aime", items: TRAIN, ..HubSource::DEFAULT }],
    license: "Apache-2.0",
    items: 90,
    demo: DemoData { items: include_str!("../data/aime_2022_2024.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

/// Returns the problem's text from either of its columns; `None` if there is none.
fn problem(row: &Row) -> Result<Option<&str>, RowError> {
    for column in ["problem", "question"] {
        match row.get(column) {
            Some(Value::String(text)) => {
                return Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty()));
            }
            Some(Value::Null) | None => {}
            Some(_) => return Err(RowError::column(column, "is not a string")),
        }
    }
    Ok(None)
}

/// Checks that a row has an answer in the contest's range.
fn check_gold(row: &Row) -> Result<(), RowError> {
    let gold = boxed::gold(row)?;
    if gold < BigInt::ZERO || gold > BigInt::from(ANSWER_MAX) {
        return Err(RowError::column("answer", format!("is {gold} instead of 0 to {ANSWER_MAX}")));
    }
    Ok(())
}

/// Returns the part of the examination, if the row's id names it (`I-1` to `II-15`).
fn part(row: &Row) -> Option<String> {
    let (part, number) = row.get("id")?.as_str()?.split_once('-')?;
    (matches!(part, "I" | "II") && number.parse::<u8>().is_ok()).then(|| part.to_owned())
}

/// Returns the year named in the row's URL.
fn year(row: &Row) -> Option<String> {
    let url = row.get("url")?.as_str()?;
    let page = url.split('/').find(|page| page.contains("_AIME"))?;
    page.split('_')
        .next()
        .filter(|year| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()))
        .map(Into::into)
}

impl Layout for Aime {
    fn name(&self) -> &'static str {
        self.metadata.name
    }

    fn spec(&self) -> &DatasetSpec {
        self.spec
    }

    fn id_columns(&self) -> &'static [&'static str] {
        self.id_columns
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &["question", "problem"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        match problem(&row)? {
            Some(_) => {}
            None if self.leaves_out => return Ok(None),
            None => return Err(RowError::column("problem", "is missing")),
        }
        check_gold(&row)?;
        Ok(Some(Item::new(index.to_string(), (self.group)(&row), row)))
    }
}

impl Benchmark for Aime {
    fn metadata(&self) -> &'static Metadata {
        self.metadata
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Own, &[INSTRUCTION, GAP])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let problem = problem(&item.row)?.ok_or_else(|| RowError::column("problem", "is missing"))?;
        Ok(Prompt::user(format!("{INSTRUCTION}{GAP}{problem}")))
    }

    fn scorer(&self) -> &dyn Scorer {
        &BoxedInteger
    }
}

#[cfg(test)]
mod tests;
