//! SciCode: problems from the natural sciences, solved step by step in Python.
//!
//! Protocol: scicode-bench/SciCode at 588b4069, `eval/inspect_ai/scicode.py`.

mod extract;
mod given;
mod job;
mod metadata;
mod metrics;
mod problem;
mod prompt;
mod scorer;
mod seal;
mod steps;
mod texts;
mod verdict;

use bench_domain::Prompt;
use bench_items::{
    AttachmentSpec, DatasetSpec, DemoData, HubSource, Item, Layout, Part, PartFile, Row, RowError,
    TemplateSpec,
};

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Metadata, Template};
use crate::metrics::Metrics;
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers;
use crate::scorers::sandbox::GradingMode;
use crate::steps::Steps;
use problem::Problem;

/// The SciCode benchmark with a choice of protocol and options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SciCode {
    with_background: bool,
    split: Split,
    given: GivenSteps,
    grading: GradingMode,
}

/// Selected problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Test,
    Validation,
    All,
}

/// Text for steps that the benchmark gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenSteps {
    /// First definition of the name that the official program extracts from the step's header.
    Official,
    /// Whole given text.
    Whole,
}

impl GivenSteps {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Whole => "whole",
        }
    }
}

const fn scicode(with_background: bool, split: Split, given: GivenSteps) -> SciCode {
    SciCode { with_background, split, given, grading: GradingMode::Isolated }
}

/// All combinations of protocol and options.
static CHOICES: [SciCode; 12] = ISOLATED_CHOICES;

/// The same combinations with official grading.
static OFFICIAL_CHOICES: [SciCode; 12] = with_official_grading(ISOLATED_CHOICES);

const fn with_official_grading<const N: usize>(mut choices: [SciCode; N]) -> [SciCode; N] {
    let mut at = 0;
    while at < N {
        choices[at].grading = GradingMode::Official;
        at += 1;
    }
    choices
}

const ISOLATED_CHOICES: [SciCode; 12] = [
    scicode(false, Split::Test, GivenSteps::Official),
    scicode(false, Split::Test, GivenSteps::Whole),
    scicode(false, Split::Validation, GivenSteps::Official),
    scicode(false, Split::Validation, GivenSteps::Whole),
    scicode(false, Split::All, GivenSteps::Official),
    scicode(false, Split::All, GivenSteps::Whole),
    scicode(true, Split::Test, GivenSteps::Official),
    scicode(true, Split::Test, GivenSteps::Whole),
    scicode(true, Split::Validation, GivenSteps::Official),
    scicode(true, Split::Validation, GivenSteps::Whole),
    scicode(true, Split::All, GivenSteps::Official),
    scicode(true, Split::All, GivenSteps::Whole),
];

impl SciCode {
    /// Without background, as in the headline figures.
    pub const INSPECT: Self = scicode(false, Split::Test, GivenSteps::Official);
    /// With the scientific background of each step.
    pub const BACKGROUND: Self = scicode(true, Split::Test, GivenSteps::Official);

    /// Returns the static value that equals this one.
    fn as_static(self) -> &'static Self {
        let choices = match self.grading {
            GradingMode::Isolated => &CHOICES,
            GradingMode::Official => &OFFICIAL_CHOICES,
        };
        choices.iter().find(|choice| **choice == self).unwrap_or(&Self::INSPECT)
    }
}

const TEST: Part = Part { config: "default", split: "test" };
const VALIDATION: Part = Part { config: "default", split: "validation" };

static SPEC_TEST: DatasetSpec = spec(&[source(&[TEST])], 65);
static SPEC_VALIDATION: DatasetSpec = spec(&[source(&[VALIDATION])], 15);
static SPEC_ALL: DatasetSpec = spec(&[source(&[TEST, VALIDATION])], 80);

const fn source(items: &'static [Part]) -> HubSource {
    HubSource { id: "SciCode1/SciCode", revision: None, items, support: &[] }
}

const fn spec(sources: &'static [HubSource], items: u64) -> DatasetSpec {
    DatasetSpec {
        repository: None,
        sources,
        gate: None,
        license: "Apache-2.0",
        items,
        demo: DemoData { items: include_str!("../data/scicode.jsonl"), support: &[] },
    }
}

/// Name of the attachment with the expected values.
const TARGETS: &str = "targets";

static ATTACHMENTS: [AttachmentSpec; 1] = [AttachmentSpec {
    name: TARGETS,
    id: "Srimadh/Scicode-test-data-h5",
    revision: None,
    path: "test_data.h5",
    ending: ".h5",
    signature: b"\x89HDF\r\n\x1a\n",
    demo: include_bytes!("../data/scicode_targets.h5"),
}];

impl Layout for SciCode {
    fn name(&self) -> &'static str {
        metadata::for_benchmark(Self::INSPECT).name
    }

    fn spec(&self) -> &DatasetSpec {
        match self.split {
            Split::Test => &SPEC_TEST,
            Split::Validation => &SPEC_VALIDATION,
            Split::All => &SPEC_ALL,
        }
    }

    fn variant(&self) -> &'static str {
        match self.split {
            Split::Test => "",
            Split::Validation => "validation",
            Split::All => "all",
        }
    }

    fn files(&self) -> &'static [PartFile] {
        &[
            PartFile { part: TEST, path: "problems_test.jsonl" },
            PartFile { part: VALIDATION, path: "problems_dev.jsonl" },
        ]
    }

    fn attachments(&self) -> &'static [AttachmentSpec] {
        &ATTACHMENTS
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        &texts::TEMPLATES
    }

    /// A problem has no single question column; the whole row identifies it.
    fn question_columns(&self) -> &'static [&'static str] {
        &[]
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["problem_id"]
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        let row = problem::flatten(row);
        Problem::from_row(&row)?;
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

impl Benchmark for SciCode {
    fn metadata(&self) -> &'static Metadata {
        metadata::for_benchmark(*self)
    }

    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        if self.with_background { &[] } else { &[&Self::BACKGROUND] }
    }

    fn template(&self, templates: &Templates) -> Template {
        let (source, text) = texts::prompt(templates, self.with_background);
        Template::new(source, &[text])
    }

    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem> {
        let first = self.next(item, material, &[])?;
        first.map(|step| step.prompt).ok_or_else(|| ItemProblem::Content("nothing is asked".into()))
    }

    fn scorer(&self) -> &dyn scorers::Scorer {
        self
    }

    fn steps(&self) -> Option<&'static dyn Steps> {
        Some(self.as_static())
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &metadata::OPTIONS
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        let mut chosen = *self;
        for (name, value) in options {
            match (name.as_str(), value.as_str()) {
                (metadata::SPLIT, "test") => chosen.split = Split::Test,
                (metadata::SPLIT, "validation") => chosen.split = Split::Validation,
                (metadata::SPLIT, "all") => chosen.split = Split::All,
                (metadata::SPLIT, _) => return Err(invalid_option(name, "test, validation or all")),
                (metadata::GIVEN_STEPS, "official") => chosen.given = GivenSteps::Official,
                (metadata::GIVEN_STEPS, "whole") => chosen.given = GivenSteps::Whole,
                (metadata::GIVEN_STEPS, _) => return Err(invalid_option(name, "official or whole")),
                (GradingMode::OPTION, value) => {
                    chosen.grading = GradingMode::from_name(value)
                        .ok_or_else(|| invalid_option(name, "isolated or official"))?;
                }
                _ => return Err(OptionError::unknown(name, self.options())),
            }
        }
        Ok((chosen != *self).then_some(chosen.as_static()))
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::new(metrics::SciCodeMetrics::default()))
    }
}

fn invalid_option(option: &str, known: &str) -> OptionError {
    OptionError(format!("option `{option}` of scicode must be {known}"))
}

#[cfg(test)]
mod tests;
