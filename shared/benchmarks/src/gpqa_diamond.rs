//! GPQA Diamond: multiple-choice questions with four options, written by experts in biology, chemistry and physics.
//!
//! Protocols: `simple-evals` is openai/simple-evals at ee3b0318, which published scores use. `authors` is the baseline
//! script of idavidrein/gpqa without few-shot examples. Each has its own prompt, option order and parser.

mod order;
mod prompt;
mod row;

use std::borrow::Cow;

use bench_domain::{Generation, Prompt};
use bench_items::{DatasetSpec, DemoData, Gate, HubSource, Item, Layout, Part, Row, RowError, TemplateSpec};

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::metrics::{Metrics, Refusals};
use crate::scorers::{ChoiceLetter, Scorer, choice};

/// Letters of the options, by position.
const LETTERS: &str = "ABCD";

/// GPQA Diamond as simple-evals runs it.
#[derive(Debug, Clone, Copy)]
pub struct GpqaDiamond;

/// GPQA Diamond as its authors run it.
#[derive(Debug, Clone, Copy)]
pub struct GpqaDiamondAuthors;

/// Script whose prompt, option order and parser are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    SimpleEvals,
    Authors,
}

const DATASET: Link = Link { title: "Dataset", url: "https://huggingface.co/datasets/Idavidrein/gpqa" };
const PAPER: Link = Link { title: "Paper", url: "https://arxiv.org/abs/2311.12022" };

/// Values that both protocols share.
const METADATA: Metadata = Metadata {
    name: "gpqa_diamond",
    display_name: "GPQA Diamond",
    description: "198 questions of biology, chemistry and physics with four options, hard to answer even with a search engine. The dataset must not be republished.",
    item_id: "row index in the file, from 0; Record ID is the dataset's own id",
    group_noun: "domains",
    ..Metadata::DEFAULT
};

static SIMPLE_EVALS: Metadata = Metadata {
    protocol_name: "simple-evals",
    parser: "simple-evals: the first `Answer: X`, compared as written",
    protocol: "openai/simple-evals ee3b0318, gpqa_eval.py: zero-shot chain of thought, options in a new order for each of 4 samples, mean over samples",
    sources: &[DATASET, Link { title: "Protocol", url: "https://github.com/openai/simple-evals" }, PAPER],
    metrics: &["accuracy", "domains"],
    samples_per_item: 4,
    generation: || Generation { temperature: Some(0.5), max_tokens: Some(2048), ..Generation::default() },
    deviations: &[
        "Rows come from the authors' dataset; the official script reads a copy of it as CSV.",
        "Temperature and token limit are those of the official chat sampler; the official script sets neither for reasoning models. Such a model needs more tokens, and answers that were cut off are counted apart.",
        "Reasoning that a provider delivers apart from the answer is not graded; the official script never sees it.",
    ],
    ..METADATA
};

static AUTHORS: Metadata = Metadata {
    protocol_name: "authors",
    parser: "the authors': five patterns with the letter in parentheses, of each the first match",
    protocol: "idavidrein/gpqa, baselines/run_baseline.py: zero-shot prompt with its system message, options shuffled once with seed 0, five-pattern parser",
    sources: &[
        DATASET,
        Link { title: "Official evaluation", url: "https://github.com/idavidrein/gpqa" },
        PAPER,
    ],
    metrics: &["accuracy", "domains", "refusals"],
    generation: || Generation { temperature: Some(0.0), max_tokens: Some(1000), ..Generation::default() },
    deviations: &[
        "Of the authors' five prompts this is the one without worked examples and without reasoning; the figures of their paper are made with either.",
        "The sentence that asks for the form of the answer is ours; the form itself, the rest of the message and the system message are the authors'.",
        "The row with index 69 is asked like all others; the authors' script counts it as refused without asking, for a row of another set.",
        "Reasoning that a provider delivers apart from the answer is not graded.",
    ],
    ..METADATA
};

static SPEC: DatasetSpec = DatasetSpec {
    repository: None,
    sources: &[HubSource {
        id: "Idavidrein/gpqa",
        items: &[Part { config: "gpqa_diamond", split: "train" }],
        ..HubSource::DEFAULT
    }],
    gate: Some(Gate { terms_url: "https://huggingface.co/datasets/Idavidrein/gpqa" }),
    license: "CC-BY-4.0",
    items: 198,
    demo: DemoData { items: include_str!("../data/gpqa_diamond.jsonl"), support: &[] },
};

impl Protocol {
    fn order(self, row: u64, sample: u32) -> order::Order {
        match self {
            Self::SimpleEvals => order::simple_evals(row, sample),
            Self::Authors => order::authors(row),
        }
    }

    fn prompt(self, item: &Item, templates: &Templates) -> Result<Prompt, ItemProblem> {
        let shown = row::display(item, self)?;
        Ok(match self {
            Self::SimpleEvals => prompt::simple_evals(&shown, templates),
            Self::Authors => prompt::authors(&shown),
        })
    }
}

/// Creates the scorer of a protocol from its parser and the gold letter in its order of the options.
macro_rules! scorer {
    ($parser:ident, $protocol:expr) => {
        ChoiceLetter {
            parser: &choice::$parser,
            gold: |item| row::gold(item, $protocol),
            chance: |_| None,
            score_row: |row| row::score_row(row, $protocol),
        }
    };
}

static SIMPLE_EVALS_SCORER: ChoiceLetter = scorer!(SIMPLE_EVALS, Protocol::SimpleEvals);
static AUTHORS_SCORER: ChoiceLetter = scorer!(GPQA_AUTHORS, Protocol::Authors);

macro_rules! gpqa_diamond {
    ($name:ty, $protocol:expr, $metadata:ident) => {
        impl Layout for $name {
            fn name(&self) -> &'static str {
                $metadata.name
            }

            fn spec(&self) -> &DatasetSpec {
                &SPEC
            }

            fn templates(&self) -> &'static [TemplateSpec] {
                match $protocol {
                    Protocol::SimpleEvals => &prompt::TEMPLATES,
                    Protocol::Authors => &[],
                }
            }

            fn question_columns(&self) -> &'static [&'static str] {
                &[row::QUESTION]
            }

            fn id_columns(&self) -> &'static [&'static str] {
                &[row::RECORD_ID]
            }

            fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
                row::item(index, &row).map(Some)
            }
        }

        impl Benchmark for $name {
            fn metadata(&self) -> &'static Metadata {
                &$metadata
            }

            fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
                match $protocol {
                    Protocol::SimpleEvals => &[&GpqaDiamondAuthors],
                    Protocol::Authors => &[],
                }
            }

            fn item_for_sample<'a>(&self, item: &'a Item, sample: u32) -> Cow<'a, Item> {
                row::for_sample(item, $protocol, sample).map_or(Cow::Borrowed(item), Cow::Owned)
            }

            fn template(&self, templates: &Templates) -> Template {
                match $protocol {
                    Protocol::SimpleEvals => prompt::simple_evals_template(templates),
                    Protocol::Authors => prompt::authors_template(),
                }
            }

            fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
                $protocol.prompt(item, &material.templates)
            }

            fn scorer(&self) -> &dyn Scorer {
                match $protocol {
                    Protocol::SimpleEvals => &SIMPLE_EVALS_SCORER,
                    Protocol::Authors => &AUTHORS_SCORER,
                }
            }

            fn metrics(&self) -> Option<Box<dyn Metrics>> {
                match $protocol {
                    Protocol::SimpleEvals => None,
                    Protocol::Authors => Some(Box::<Refusals>::default()),
                }
            }
        }
    };
}

gpqa_diamond!(GpqaDiamond, Protocol::SimpleEvals, SIMPLE_EVALS);
gpqa_diamond!(GpqaDiamondAuthors, Protocol::Authors, AUTHORS);

#[cfg(test)]
mod tests;
