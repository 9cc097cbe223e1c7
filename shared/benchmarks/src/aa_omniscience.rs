//! AA-Omniscience, its public tenth: measures what a model knows, and whether it admits what it doesn't know.
//!
//! Protocol: the card of ArtificialAnalysis/AA-Omniscience-Public and the paper.

mod grade;
mod judge;
mod metrics;
mod prompt;

use bench_domain::{ChatMessage, Generation, Prompt, Role};
use bench_items::{
    DatasetSpec, DemoData, HubSource, Item, Layout, Part, PartFile, Row, RowError, TemplateSpec,
};
use serde_json::{Map, Value};

use crate::benchmark::Benchmark;
use crate::columns::{text, text_or_number};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::metrics::{GroupTally, Metrics};
use crate::prompts::fill;
use crate::scorers::{JudgeScorer, Scorer};
use judge::OmniscienceJudge;
use metrics::OmniscienceMetrics;

/// AA-Omniscience, public set.
#[derive(Debug, Clone, Copy)]
pub struct AaOmniscience;

static METADATA: Metadata = Metadata {
    name: "aa_omniscience",
    display_name: "AA-Omniscience (public set)",
    description: "600 short questions of fact from six domains. Right answers count for the model, wrong ones against it, and saying that one does not know costs nothing.",
    protocol_name: "public",
    protocol: "dataset card of ArtificialAnalysis/AA-Omniscience-Public at 4a8ffc87: one answer, four grades by a judge, Omniscience Index",
    parser: "the judge's letter A, B, C or D",
    sources: &[
        Link {
            title: "Dataset",
            url: "https://huggingface.co/datasets/ArtificialAnalysis/AA-Omniscience-Public",
        },
        Link { title: "Leaderboard", url: "https://artificialanalysis.ai/evaluations/omniscience" },
        Link { title: "Paper", url: "https://arxiv.org/abs/2511.13029" },
    ],
    metrics: &[
        "omniscience_index",
        "accuracy",
        "hallucination_rate",
        "attempt_rate",
        "grades",
        "ungraded",
        "grading_coverage",
        "domains",
    ],
    generation: || Generation { temperature: Some(0.0), max_tokens: Some(16_384), ..Generation::default() },
    item_timeout_seconds: 1800,
    deviations: &[
        "Pinned to the revision whose card asks by domain and topic; a later one has subtopics.",
        "The public set is a tenth of the questions; its figures are not those of the leaderboard.",
        "The score is a hundredth of the Omniscience Index, from -1 to 1: right 1, wrong -1, partial and not attempted 0.",
        "An empty answer is not attempted, without asking the judge; failed and ungraded answers are left out of every figure and lower the coverage.",
        "Blanks around the card's texts are taken off.",
        "A grade in lower case, such as a, counts as the capital letter; so does one in quotes, emphasized or followed by a period.",
        "Temperature 0 is the publisher's setting for models that do not reason; for a model that does set 0.6.",
    ],
    setup_notes: "Choose a judge; the publisher's is Gemini 2.5 Flash Preview (09-2025) with reasoning.",
    item_id: "row index in the train split, from 0; question_id is the dataset's own id",
    group_noun: "domains",
    ..Metadata::DEFAULT
};

const TRAIN: Part = Part { config: "default", split: "train" };

static SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[HubSource {
        id: prompt::DATASET,
        revision: Some(prompt::REVISION),
        items: &[TRAIN],
        support: &[],
    }],
    gate: None,
    license: "Apache-2.0",
    items: 600,
    demo: DemoData { items: include_str!("../data/aa_omniscience.jsonl"), support: &[] },
};

impl Layout for AaOmniscience {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn files(&self) -> &'static [PartFile] {
        &[PartFile { part: TRAIN, path: "AA-Omniscience_dataset_public.csv" }]
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        &prompt::TEMPLATES
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["question_id"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        text(&row, "question")?;
        text_or_number(&row, "answer")?;
        text(&row, "topic")?;
        let group = Some(text(&row, "domain")?.to_owned());
        Ok(Some(Item::new(index.to_string(), group, row)))
    }
}

static SCORER: JudgeScorer = JudgeScorer {
    judge: &OmniscienceJudge,
    empty: |_, answer| grade::not_attempted_verdict(answer),
    format_answer: str::to_owned,
    group: "domain",
};

impl Benchmark for AaOmniscience {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn template(&self, templates: &Templates) -> Template {
        prompt::template(prompt::answer(templates))
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let slots =
            [(prompt::DOMAIN, text(&item.row, "domain")?), (prompt::TOPIC, text(&item.row, "topic")?)];
        let system = fill(prompt::answer(&material.templates).1, &slots);
        let question = text(&item.row, "question")?;
        let messages = vec![ChatMessage::new(Role::System, system), ChatMessage::new(Role::User, question)];
        Ok(Prompt { messages })
    }

    fn scorer(&self) -> &dyn Scorer {
        &SCORER
    }

    fn scores_are_shares(&self) -> bool {
        false
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::new(OmniscienceMetrics::default()))
    }

    fn extra_metrics(&self, _groups: &[GroupTally]) -> Map<String, Value> {
        // All metrics of this benchmark need the grades.
        Map::new()
    }
}

#[cfg(test)]
mod tests;
