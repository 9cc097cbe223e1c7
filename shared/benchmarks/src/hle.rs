//! Humanity's Last Exam: questions at the frontier of expert knowledge, some of them with an image.
//!
//! Protocol: centerforaisafety/hle at 87c92ea, `run_model_predictions.py` and `run_judge_results.py`.

mod calibration;
mod image;
mod judge;
mod metrics;
mod prompt;

use bench_domain::{ChatMessage, Prompt, Role};
use bench_items::{DatasetSpec, DemoData, Gate, HubSource, Item, Layout, Part, Row, RowError, TemplateSpec};
use serde_json::{Map, Value};

use crate::benchmark::Benchmark;
use crate::columns::{text, text_or_number};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::metrics::Metrics;
use crate::scorers::{JudgeScorer, Scorer, judged};
use judge::HleJudge;
use metrics::HleMetrics;

/// The benchmark Humanity's Last Exam.
#[derive(Debug, Clone, Copy)]
pub struct Hle {
    text_only: bool,
}

impl Hle {
    /// All questions.
    pub const OFFICIAL: Self = Self { text_only: false };
    /// Questions without an image.
    pub const TEXT_ONLY: Self = Self { text_only: true };
}

static METADATA: Metadata = metadata(false);
static METADATA_TEXT_ONLY: Metadata = metadata(true);

const fn metadata(text_only: bool) -> Metadata {
    Metadata {
        name: "hle",
        display_name: "Humanity's Last Exam",
        description: if text_only {
            "The questions of Humanity's Last Exam that have no image, for models without vision. A judge compares each answer with the right one."
        } else {
            "2,500 questions at the edge of what experts know, about one in seven with an image. A judge compares each answer with the right one."
        },
        protocol_name: if text_only { "text-only" } else { "official" },
        protocol: if text_only {
            "centerforaisafety/hle 87c92ead: answer with explanation and confidence, structured verdict of a judge; questions without an image only"
        } else {
            "centerforaisafety/hle 87c92ead: answer with explanation and confidence, structured verdict of a judge"
        },
        parser: "the judge's structured verdict",
        sources: &[
            Link { title: "Dataset", url: "https://huggingface.co/datasets/cais/hle" },
            Link { title: "Official evaluation", url: "https://github.com/centerforaisafety/hle" },
            Link { title: "Paper", url: "https://arxiv.org/abs/2501.14249" },
        ],
        metrics: &[
            "accuracy",
            "accuracy_official",
            "half_width",
            "calibration_error",
            "calibration_error_all_bins",
            "judged",
            "categories",
        ],
        item_timeout_seconds: 3600,
        deviations: &[
            "The score is over graded answers, with coverage; accuracy_official is over all questions, as the official program prints it.",
            "Calibration sorts answers of equal confidence by their place in the dataset; the official program leaves their order to numpy, which moves the last digits.",
            "calibration_error leaves out the most confident bin, as the official program does; calibration_error_all_bins does not.",
            "Images under a wrong media type are sent under that of their content; strict providers refuse them otherwise.",
            "A verdict is also read without the field strict, in a code fence, and with the confidence as a text, for judges that cannot be bound to a schema; the confidence is cut to 0 to 100.",
            "An empty answer is wrong without asking the judge.",
            "The instructions are a system message for every model; the official program sends them as the user's to models called o1.",
        ],
        setup_notes: "Accept the terms of cais/hle and give a token. Choose a judge; o3-mini-2025-01-31 is the official one. Its rows must not be published. A model without vision ends the questions with an image as unsupported, which leaves too few for a score: choose the protocol text-only for it.",
        item_id: "row index in the test split, from 0; id is the dataset's own id",
        group_noun: "categories",
        ..Metadata::DEFAULT
    }
}

static SPEC: DatasetSpec = spec(2500);
static SPEC_TEXT_ONLY: DatasetSpec = spec(2158);

const fn spec(items: u64) -> DatasetSpec {
    DatasetSpec {
        repository: None,
        sources: &[HubSource {
            id: "cais/hle",
            revision: Some("5a81a4c7271a2a2a312b9a690f0c2fde837e4c29"),
            items: &[Part { config: "default", split: "test" }],
            support: &[],
        }],
        gate: Some(Gate { terms_url: "https://huggingface.co/datasets/cais/hle" }),
        license: "MIT",
        items,
        demo: DemoData { items: include_str!("../data/hle.jsonl"), support: &[] },
    }
}

/// Columns that prompt and judge need. Previews, authors and rationales are dropped.
const COLUMNS: [&str; 7] = ["id", "question", "image", "answer", "answer_type", "category", "raw_subject"];

/// Returns the data URL of the question's image, if it has one.
fn image(row: &Row) -> Result<Option<&str>, RowError> {
    match row.get("image") {
        Some(Value::Null) | None => Ok(None),
        Some(Value::String(url)) => Ok(Some(url.as_str()).filter(|url| !url.trim().is_empty())),
        Some(_) => Err(RowError::column("image", "is not a string")),
    }
}

impl Layout for Hle {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        if self.text_only { &SPEC_TEXT_ONLY } else { &SPEC }
    }

    fn variant(&self) -> &'static str {
        if self.text_only { "text-only" } else { "" }
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        &prompt::TEMPLATES
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["id"]
    }

    fn item(&self, index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
        text(&row, "question")?;
        text_or_number(&row, "answer")?;
        if image(&row)?.is_some() && self.text_only {
            return Ok(None);
        }
        let group = match row.get("category") {
            Some(Value::Null) | None => None,
            Some(_) => Some(text(&row, "category")?.to_owned()),
        };
        row.retain(|column, _| COLUMNS.contains(&column.as_str()));
        Ok(Some(Item::new(index.to_string(), group, row)))
    }
}

static SCORER: JudgeScorer = JudgeScorer {
    judge: &HleJudge,
    empty: |_, answer| judged::empty(answer, Map::new()),
    format_answer: |gold| {
        format!("Explanation: This is the answer that the dataset has.\nAnswer: {gold}\nConfidence: 100%")
    },
    group: "category",
};

impl Benchmark for Hle {
    fn metadata(&self) -> &'static Metadata {
        if self.text_only { &METADATA_TEXT_ONLY } else { &METADATA }
    }

    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        if self.text_only { &[] } else { &[&Self::TEXT_ONLY] }
    }

    fn template(&self, templates: &Templates) -> Template {
        prompt::template(prompt::system(templates))
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let system = ChatMessage::new(Role::System, prompt::system(&material.templates).1);
        let mut question = ChatMessage::new(Role::User, text(&item.row, "question")?);
        if let Some(url) = image(&item.row)? {
            let image = image::image(url).map_err(|problem| {
                ItemProblem::Content(format!("the question's image cannot be shown: {problem}"))
            })?;
            question.images.push(image);
        }
        Ok(Prompt { messages: vec![system, question] })
    }

    fn scorer(&self) -> &dyn Scorer {
        &SCORER
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::new(HleMetrics::default()))
    }
}

#[cfg(test)]
mod tests;
