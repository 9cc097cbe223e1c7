//! The code lab: programming tasks in six languages. The answer changes a project, which hidden tests grade in a sandbox.
//!
//! The tasks are our own, and come with the program. A dataset of other tasks in the same format can take their place.

mod agent;
mod artifacts;
mod catalog;
mod environment;
pub(crate) mod grader;
mod row;

use std::sync::LazyLock;

use bench_code_tasks::{CodeTask, Form, OfferedForms};
use bench_domain::{Answer, Generation, Outcome, Prompt, Stage, Verdict};
use bench_items::{DatasetSpec, DemoData, Item, Layout, Row, RowError};
use serde_json::{Map, json};

use crate::benchmark::Benchmark;
use crate::grading::{self, Grading, ParserResult};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::sandbox::SandboxGrader;

pub use environment::{PACKAGES_MARKER, PACKAGES_VARIABLE, SPEED_FILE, packages_folder};
pub use grader::{Extent, TaskResults, TestResult, read_results, task_job};
pub use row::task_row;

/// Programming tasks with a choice of what the model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLab {
    forms: OfferedForms,
    includes_tests: bool,
}

const FORMS: [(&str, OfferedForms); 4] = [
    ("any", OfferedForms::Any),
    ("diff", OfferedForms::Only(Form::Diff)),
    ("blocks", OfferedForms::Only(Form::Blocks)),
    ("files", OfferedForms::Only(Form::Files)),
];

/// Every choice: all forms without tests, then all forms with tests.
static EACH: [CodeLab; 2 * FORMS.len()] = {
    let mut each = [CodeLab::DEFAULT; 2 * FORMS.len()];
    let mut at = 0;
    while at < each.len() {
        each[at] = CodeLab { forms: FORMS[at % FORMS.len()].1, includes_tests: at >= FORMS.len() };
        at += 1;
    }
    each
};

impl CodeLab {
    /// A model that may choose the form of its answer and doesn't see the tests.
    pub const DEFAULT: Self = Self { forms: OfferedForms::Any, includes_tests: false };
}

static METADATA: Metadata = Metadata {
    name: "code_lab",
    display_name: "Code lab",
    description: "Programming tasks in six languages: the model changes a project, and hidden tests run it.",
    protocol_name: "single-reply",
    protocol: "own: one reply, applied exactly; all recorded tests must pass",
    parser: "a diff, search-and-replace blocks or whole files",
    sources: &[Link {
        title: "Task format",
        url: "https://github.com/bench-runner/bench-runner/blob/main/docs/tasks.md",
    }],
    metrics: &["accuracy", "languages"],
    generation: || Generation { max_tokens: Some(65_536), ..Generation::default() },
    item_timeout_seconds: 3_600,
    setup_notes: "A sandbox host is needed; `bench sandy setup --toolchains` adds Go and Rust.",
    item_id: "task_id, which is also the dataset's own id",
    group_noun: "languages",
    ..Metadata::DEFAULT
};

static SPEC: LazyLock<DatasetSpec> = LazyLock::new(|| DatasetSpec {
    license: "MIT OR Apache-2.0",
    items: TASKS.lines().count() as u64,
    demo: DemoData { items: TASKS, support: &[] },
    ..DatasetSpec::DEFAULT
});

/// The tasks of the folder `tasks`, one row each.
static TASKS: &str = include_str!(concat!(env!("OUT_DIR"), "/code_lab.jsonl"));

const OPTION_TESTS: &str = "include_tests";
const OPTION_FORM: &str = "answer_form";

static OPTIONS: [OptionMetadata; 2] = [
    OptionMetadata {
        name: OPTION_FORM,
        description: "form to ask for: any, diff, blocks or files",
        default: "any",
    },
    OptionMetadata { name: OPTION_TESTS, description: "true shows the tests to the model", default: "false" },
];

impl Layout for CodeLab {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &[row::ID_COLUMN]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &[row::DIGEST_COLUMN]
    }

    fn item(&self, _index: u64, row: Row) -> Result<Option<Item>, RowError> {
        row::item(row).map(Some)
    }
}

impl Benchmark for CodeLab {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        &[&agent::CodeLabAgent]
    }

    fn template(&self, _templates: &Templates) -> Template {
        let forms = bench_code_tasks::form_texts(self.forms);
        let tests = if self.includes_tests { "with tests" } else { "" };
        Template::new(TemplateSource::Own, &[bench_code_tasks::OPENING, &forms, tests])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let task = row::task(item)?;
        Ok(Prompt::user(bench_code_tasks::prompt(&task, self.forms, self.includes_tests)))
    }

    fn scorer(&self) -> &dyn Scorer {
        self
    }

    fn code_tasks(&self) -> &'static [CodeTask] {
        &catalog::TASKS
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &OPTIONS
    }

    fn option_values(&self, option: &str) -> Vec<&'static str> {
        match option {
            OPTION_FORM => FORMS.iter().map(|(name, _)| *name).collect(),
            OPTION_TESTS => vec!["false", "true"],
            _ => Vec::new(),
        }
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        let mut chosen = Self::DEFAULT;
        for (name, value) in options {
            match name.as_str() {
                OPTION_FORM => {
                    let known = FORMS.iter().find(|(name, _)| name == value);
                    chosen.forms = known.map(|(_, forms)| *forms).ok_or_else(|| {
                        OptionError(format!(
                            "option `{OPTION_FORM}` is any, diff, blocks or files, not `{value}`"
                        ))
                    })?;
                }
                OPTION_TESTS => {
                    chosen.includes_tests = value.parse().map_err(|_| {
                        OptionError(format!("option `{OPTION_TESTS}` is true or false, not `{value}`"))
                    })?;
                }
                unknown => return Err(OptionError::unknown(unknown, &OPTIONS)),
            }
        }
        Ok(EACH.iter().find(|one| **one == chosen).map(|one| one as &dyn Benchmark))
    }
}

impl Scorer for CodeLab {
    fn expected(&self, item: &Item) -> String {
        match row::task(item).ok().and_then(|task| task.recorded_tests().map(<[String]>::len)) {
            Some(1) => "passes its one test".to_owned(),
            Some(tests) => format!("passes all {tests} tests"),
            None => "passes all tests".to_owned(),
        }
    }

    fn oracle(&self, item: &Item) -> String {
        let reference = row::task(item).ok().and_then(|task| task.reference);
        reference.map(|diff| format!("```diff\n{diff}```")).unwrap_or_default()
    }

    fn missing_oracle(&self, item: &Item) -> Option<String> {
        let task = row::task(item).ok()?;
        task.reference.is_none().then(|| format!("the task `{}` has no reference solution", task.id))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        match row::task(item) {
            Ok(task) => grade(&task, answer),
            Err(problem) => Verdict::ungraded(bench_domain::Code::InvalidItem, problem.to_string()).into(),
        }
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        row::item(row.clone())
    }

    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        Some(&grader::GRADER)
    }
}

/// Reads and applies an answer. One that can't be run is wrong, and the verdict names the step.
fn grade(task: &CodeTask, answer: &Answer) -> Grading {
    let nothing = |verdict: &str| {
        let detail = Map::from_iter([("verdict".to_owned(), json!(verdict))]);
        ParserResult { extracted: None, correct: false, reason: String::new(), detail }
    };
    let change = match bench_code_tasks::Answer::read(&answer.text) {
        Ok(change) => change,
        Err(bench_code_tasks::ReadError::Empty) => {
            return grading::verdict_for(answer, nothing("no-answer")).into();
        }
        Err(error) => {
            let verdict = grading::verdict_for(answer, nothing("not-parsed"));
            let reason = match verdict.outcome {
                Outcome::Unparsed => sentence(&error.to_string()),
                _ => verdict.reason.clone(),
            };
            return Verdict { reason, ..verdict }.into();
        }
    };
    match change.apply(&task.workspace) {
        Ok(_) => Grading::NeedsTurn(Stage::Sandbox),
        Err(error) => {
            let reason = format!("The change doesn't apply: {error}.");
            let finding =
                ParserResult { extracted: Some(describe(&change)), reason, ..nothing("not-applied") };
            grading::verdict_for(answer, finding).into()
        }
    }
}

/// Returns a name of the change: its form and its files.
fn describe(change: &bench_code_tasks::Answer) -> String {
    const PATHS_MAX: usize = 5;
    let paths = change.paths();
    let named = paths.iter().take(PATHS_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = paths.len().checked_sub(PATHS_MAX).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    grading::shorten(&format!("{}: {named}{more}", change.form()), 500)
}

/// Returns a message as a sentence.
fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    format!("{}{}.", first.collect::<String>(), chars.as_str())
}
