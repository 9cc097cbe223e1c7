//! LiveCodeBench, code generation: problems from programming contests. The answer is a Python program, which is run
//! against the problem's tests.
//!
//! Protocol: LiveCodeBench/LiveCodeBench at 28fef95e, scenario code generation.

mod extract;
mod grader;
mod metrics;
mod prompt;
mod releases;
mod row;
mod scorer;

use bench_domain::{Generation, Prompt};
use bench_items::{DatasetSpec, IndexEntry, Item, Layout, PartFile, Row, RowError, TemplateSpec};

use crate::benchmark::Benchmark;
use crate::columns::text;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::metrics::Metrics;
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers;
use crate::scorers::sandbox::GradingMode;
use metrics::PassAtK;

/// The LiveCodeBench benchmark with a choice of releases.
#[derive(Debug, Clone, Copy)]
pub struct LiveCodeBench {
    /// First and last file that hold its problems, from 1.
    first: u8,
    last: u8,
    /// Variant among the stored datasets.
    variant: &'static str,
    spec: &'static DatasetSpec,
    /// Place where outputs are compared.
    grading: GradingMode,
}

impl LiveCodeBench {
    /// All problems.
    pub const LATEST: Self = releases::LATEST;
}

static METADATA: Metadata = Metadata {
    name: "livecodebench",
    display_name: "LiveCodeBench",
    description: "Problems of programming contests in three levels, each published on a known day. The answer is a Python program that has to pass all tests of its problem; it is run in a sandbox.",
    protocol_name: "code-generation",
    parser: "what lies between the last two lines with a fence",
    protocol: "LiveCodeBench/LiveCodeBench 28fef95e, code generation: chat prompt, last code block, testing_util.py with 6 s a test, pass@k",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/livecodebench/code_generation_lite" },
        Link { title: "Official evaluation", url: "https://github.com/LiveCodeBench/LiveCodeBench" },
        Link { title: "Paper", url: "https://arxiv.org/abs/2403.07974" },
    ],
    metrics: &["pass@1", "pass@5", "pass@1_by_difficulty", "pass@5_by_difficulty", "difficulties"],
    samples_per_item: 10,
    generation: || Generation {
        temperature: Some(0.2),
        top_p: Some(0.95),
        max_tokens: Some(2000),
        ..Generation::default()
    },
    item_timeout_seconds: 1800,
    deviations: &[
        "Every model gets the chat messages, system and user; the official program has forms of its own for some models.",
        "An answer without code is not run; the official program runs the empty text, which fails.",
        "A program that ends with a time limit is run once more before that counts: a busy machine makes them, too.",
        "A program that kills its supervisor is run again, and counts as wrong after the last time, as does one whose results cannot be handed over.",
        "Outputs are compared in a process that the program cannot reach. The official program compares in the program's own process, where a program can read the expected outputs or say that it passed; the option grading=official does the same, with testing_util.py. Both give the same verdicts on all vectors.",
        "With grading=isolated an answer whose class has a comparison of its own equals nothing, an output beyond 16 MiB and four times the expected one is wrong, and a test that passes after twice its time limit counts as a time limit.",
        "Without numpy, programs that import it fail; the verdict's detail says so.",
        "The token limit is the official 2000; a reasoning model needs far more.",
        "pass@k is over the answers that were graded.",
    ],
    setup_notes: "Programs are run in sandboxes: a sandbox host with Python 3.10 or later is needed. All six files have 4.5 GB; the option release takes fewer, such as v6 with 134 MB.",
    item_id: "index in the release's dataset order, from 0, without problems that ask nothing; question_id is the dataset's own id",
    group_noun: "difficulties",
    ..Metadata::DEFAULT
};

impl Layout for LiveCodeBench {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        self.spec
    }

    fn variant(&self) -> &'static str {
        self.variant
    }

    fn files(&self) -> &'static [PartFile] {
        &releases::FILES
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        &prompt::TEMPLATES
    }

    fn numbers_items(&self) -> bool {
        true
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &[row::QUESTION]
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["question_id"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        row::item(index, row)
    }
}

impl Benchmark for LiveCodeBench {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn template(&self, templates: &Templates) -> Template {
        prompt::template(templates)
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let starter = row::optional_text(&item.row, "starter_code")?.unwrap_or_default();
        Ok(prompt::prompt(text(&item.row, row::QUESTION)?, starter, &material.templates))
    }

    fn scorer(&self) -> &dyn scorers::Scorer {
        self
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &releases::OPTIONS
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        Ok(releases::with_options(options)?.map(|slices| slices as &dyn Benchmark))
    }

    fn selects(&self, options: &Options, item: &IndexEntry) -> bool {
        releases::selects(options, item)
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<PassAtK>::default())
    }
}

#[cfg(test)]
mod tests;
