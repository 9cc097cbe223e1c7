//! AA-LCR: questions that require reasoning over several documents of about 100,000 tokens in total.
//!
//! Protocol: the dataset's card. Versions 1.0 and 1.1 differ in answer keys, judge and rules, so each is a protocol of
//! its own and pinned to its own revision of the dataset.

mod card;
mod judge;
mod verdict;

use std::collections::BTreeMap;

use bench_domain::{Generation, Prompt};
use bench_items::{
    DatasetSpec, DemoData, DocumentArchive, HubSource, Item, Layout, Part, PartFile, Row, RowError,
    TemplateSpec, document_text,
};
use serde_json::Value;

use crate::benchmark::Benchmark;
use crate::columns::{number, text, text_or_number};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::prompts::fill;
use crate::scorers::{JudgeScorer, Scorer, judged};
use judge::LcrJudge;

const INPUT_TOKENS: &str = "input_tokens";
const FILE_NAMES: &str = "data_source_filenames";

/// The benchmark AA-LCR (Artificial Analysis Long Context Reasoning).
#[derive(Debug, Clone, Copy)]
pub struct AaLcr(Version);

/// Version of answer keys, judge and rules, which belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1_0,
    V1_1,
}

impl Version {
    const fn as_str(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
        }
    }
}

impl AaLcr {
    /// Version 1.1, published in 2026.
    pub const V1_1: Self = Self(Version::V1_1);
    /// Version 1.0, published in 2025.
    pub const V1_0: Self = Self(Version::V1_0);
}

static METADATA_1_1: Metadata = metadata(
    Version::V1_1,
    "dataset card of ArtificialAnalysis/AA-LCR at 9a77ef56 (v1.1): corrected keys, judge with four rules, mean over 3 repeats",
);
static METADATA_1_0: Metadata = metadata(
    Version::V1_0,
    "dataset card of ArtificialAnalysis/AA-LCR at bdae010b (v1.0): first keys, judge of one word, mean over 3 repeats",
);

const fn metadata(version: Version, protocol: &'static str) -> Metadata {
    Metadata {
        name: "aa_lcr",
        aliases: &[],
        is_misleading: false,
        display_name: "AA-LCR",
        description: "100 questions that are answered by reasoning over several documents, about 100,000 tokens of them at a time. A judge compares each answer with the official one.",
        protocol_name: version.as_str(),
        protocol,
        parser: "the judge's verdict, CORRECT or INCORRECT",
        sources: &[
            Link { title: "Dataset", url: "https://huggingface.co/datasets/ArtificialAnalysis/AA-LCR" },
            Link {
                title: "Methodology",
                url: "https://artificialanalysis.ai/evaluations/artificial-analysis-long-context-reasoning",
            },
        ],
        metrics: &["accuracy", "document_categories"],
        samples_per_item: 3,
        generation: || Generation {
            temperature: Some(0.0),
            max_tokens: Some(16_384),
            ..Generation::default()
        },
        support: Some("the texts of the question's documents, from the dataset's archive"),
        item_timeout_seconds: 3600,
        deviations: &[
            "Temperature 0 and 16,384 tokens are the publisher's settings for models that do not reason; for a model that does set 0.6 and its own maximum.",
            "An empty answer is wrong without asking the judge.",
            "The publisher ships no program: a reply that is not a verdict by the card is asked for again, then the sample ends without one.",
            "A verdict in lower case, such as {\"verdict\":\"correct\"}, counts as the same one in capitals.",
            "Scores of version 1.0 and 1.1 cannot be compared: keys, judge and rules differ.",
        ],
        default_selected: false,
        setup_notes: "The model needs a context of 128K tokens; a question that does not fit ends as too-long. Choose a judge.",
        item_id: "row index from 0; question_id, which is one more, is the dataset's own id",
        group_noun: "document_categories",
    }
}

static SPEC_1_1: DatasetSpec = DatasetSpec { sources: &[source(card::REVISION_1_1)], ..SPEC };
static SPEC_1_0: DatasetSpec = DatasetSpec { sources: &[source(card::REVISION_1_0)], ..SPEC };

const SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[],
    gate: None,
    license: "Apache-2.0 (questions; the documents are public texts of others)",
    items: 100,
    demo: DemoData {
        items: include_str!("../data/aa_lcr.jsonl"),
        support: &[("documents", include_str!("../data/aa_lcr_documents.jsonl"))],
    },
};

const TEST: Part = Part { config: "default", split: "test" };

static ARCHIVE: DocumentArchive = DocumentArchive {
    path: "extracted_text/AA-LCR_extracted-text.zip",
    sha256: "5e839249826f6b9bd5324f0d139089c9dc481ccb3f212a6dfad00c51045d9d8a",
    prefix: "lcr/",
};

const fn source(revision: &'static str) -> HubSource {
    HubSource { id: "ArtificialAnalysis/AA-LCR", revision: Some(revision), items: &[TEST], support: &[] }
}

/// Columns that prompt and judge need.
const COLUMNS: [&str; 7] =
    ["document_category", "document_set_id", "question_id", "question", "answer", FILE_NAMES, INPUT_TOKENS];

/// Returns the names of a row's documents in the order of the prompt: paths within the archive, relative to `lcr/`.
fn paths(row: &Row) -> Result<Vec<String>, RowError> {
    let category = text(row, "document_category")?;
    let set = text_or_number(row, "document_set_id")?;
    let names = text(row, FILE_NAMES)?.split(';').map(str::trim).filter(|name| !name.is_empty());
    let paths: Vec<String> = names.map(|name| format!("{category}/{set}/{name}")).collect();
    if paths.is_empty() {
        return Err(RowError::column(FILE_NAMES, "names no document"));
    }
    Ok(paths)
}

impl Layout for AaLcr {
    fn name(&self) -> &'static str {
        METADATA_1_1.name
    }

    fn spec(&self) -> &DatasetSpec {
        match self.0 {
            Version::V1_0 => &SPEC_1_0,
            Version::V1_1 => &SPEC_1_1,
        }
    }

    fn files(&self) -> &'static [PartFile] {
        &[PartFile { part: TEST, path: "AA-LCR_Dataset.csv" }]
    }

    fn documents(&self) -> Option<&'static DocumentArchive> {
        // Both versions use the same archive.
        Some(&ARCHIVE)
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        match self.0 {
            Version::V1_0 => &card::TEMPLATES_1_0,
            Version::V1_1 => &card::TEMPLATES_1_1,
        }
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["question_id"]
    }

    fn item(&self, index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
        text(&row, "question")?;
        text_or_number(&row, "answer")?;
        number(&row, INPUT_TOKENS)?;
        paths(&row)?;
        let group = Some(text(&row, "document_category")?.to_owned());
        row.retain(|column, _| COLUMNS.contains(&column.as_str()));
        Ok(Some(Item::new(index.to_string(), group, row)))
    }

    fn support(&self, _split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        let mut texts = BTreeMap::new();
        for row in rows {
            let category = text(&row, "document_category")?;
            let set = text_or_number(&row, "document_set_id")?;
            let path = format!("{category}/{set}/{}", text(&row, "filename")?);
            texts.insert(path, Value::String(text(&row, "text")?.to_owned()));
        }
        Ok(texts)
    }

    fn is_support(&self, row: &Row) -> bool {
        row.contains_key("filename") && row.contains_key("text")
    }
}

static SCORER_1_0: JudgeScorer = JudgeScorer {
    judge: &LcrJudge(Version::V1_0),
    empty: |item, answer| judged::empty(answer, judge::detail(item, Version::V1_0)),
    format_answer: str::to_owned,
    group: "document_category",
};

static SCORER_1_1: JudgeScorer = JudgeScorer {
    judge: &LcrJudge(Version::V1_1),
    empty: |item, answer| judged::empty(answer, judge::detail(item, Version::V1_1)),
    ..SCORER_1_0
};

impl Benchmark for AaLcr {
    fn metadata(&self) -> &'static Metadata {
        match self.0 {
            Version::V1_0 => &METADATA_1_0,
            Version::V1_1 => &METADATA_1_1,
        }
    }

    fn support_names(&self, item: &Item) -> Vec<String> {
        paths(&item.row).unwrap_or_default()
    }

    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        match self.0 {
            Version::V1_0 => &[],
            Version::V1_1 => &[&Self::V1_0],
        }
    }

    fn template(&self, templates: &Templates) -> Template {
        let (source, text) = card::prompt(templates);
        Template::new(source, &[text])
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let question = text(&item.row, "question")?;
        let mut texts = Vec::new();
        for name in paths(&item.row)? {
            match material.support.get(&name).map(|value| document_text(value)) {
                Some(Ok(text)) => texts.push(text),
                _ => {
                    let needed = "the text of one of the question's documents, in UTF-8";
                    return Err(ItemProblem::SupportMissing { name, needed });
                }
            }
        }
        let blocks: Vec<String> = (1..)
            .zip(&texts)
            .map(|(number, text)| format!("BEGIN DOCUMENT {number}:\n{text}\nEND DOCUMENT {number}"))
            .collect();
        let slots = [(card::DOCUMENTS, blocks.join("\n\n")), (card::QUESTION, question.to_owned())];
        let slots = slots.each_ref().map(|(name, value)| (*name, value.as_str()));
        Ok(Prompt::user(fill(card::prompt(&material.templates).1, &slots)))
    }

    fn scorer(&self) -> &dyn Scorer {
        match self.0 {
            Version::V1_0 => &SCORER_1_0,
            Version::V1_1 => &SCORER_1_1,
        }
    }

    fn input_tokens(&self, item: &Item) -> Option<u64> {
        number(&item.row, INPUT_TOKENS).ok().flatten()
    }
}

#[cfg(test)]
mod tests;
