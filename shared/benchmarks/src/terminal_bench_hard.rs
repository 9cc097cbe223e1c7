//! Terminal-Bench Hard: the hard tasks of Terminal-Bench 1. An agent works in a task's container, and the task's own tests
//! grade what it did.
//!
//! Protocol: terminal-bench 0.2.18, with the tasks that the hub's dataset ia03/terminal-bench has. Each row holds a task's
//! folder as a gzipped tar archive. The containers are driven by other crates; here are only the items, one per task,
//! and the prompt.

use bench_agents::terminus2::ReplyFormat;
use bench_domain::Prompt;
use bench_items::{
    DatasetSpec, DemoData, HubSource, IndexEntry, Item, ItemFile, Layout, Part, Row, RowError, TemplateSpec,
};
use bench_terminal_tasks::terminal_bench;

use crate::benchmark::Benchmark;
use crate::columns::{number, text, text_or_number};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::episode::EpisodeScorer;
use crate::terminal_tasks::agent::{self, Wording};
use crate::terminal_tasks::variables;

mod selection;

/// Terminal-Bench Hard, for one of the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalBenchHard {
    /// Texts that the run's agent sends to the model.
    wording: Wording,
}

impl TerminalBenchHard {
    /// The tasks for the default agent, `terminus-2` with replies in JSON.
    pub const DEFAULT: Self = Self { wording: Wording::Terminus2(ReplyFormat::Json) };

    fn with(wording: Wording) -> &'static Self {
        static EACH: [TerminalBenchHard; 4] = {
            let [json, xml, bash, none] = Wording::ALL;
            [
                TerminalBenchHard { wording: json },
                TerminalBenchHard { wording: xml },
                TerminalBenchHard { wording: bash },
                TerminalBenchHard { wording: none },
            ]
        };
        wording.choose(&EACH)
    }
}

/// Column with the archive of a task's folder.
const ARCHIVE_COLUMN: &str = "archive";
const TASK_COLUMN: &str = "task_id";
const CONFIG_COLUMN: &str = "task_yaml";
const INSTRUCTION_COLUMN: &str = "base_description";
const BYTES_COLUMN: &str = "archive_bytes";
const DIGEST_COLUMN: &str = "tar_sha256";
const CATEGORY_COLUMN: &str = "category";
const DIFFICULTY_COLUMN: &str = "difficulty";
/// Columns that items keep.
const COLUMNS: [&str; 8] = [
    ARCHIVE_COLUMN,
    TASK_COLUMN,
    CONFIG_COLUMN,
    INSTRUCTION_COLUMN,
    BYTES_COLUMN,
    DIGEST_COLUMN,
    CATEGORY_COLUMN,
    DIFFICULTY_COLUMN,
];

static METADATA: Metadata = Metadata {
    name: "terminal_bench_hard",
    display_name: "Terminal-Bench Hard",
    description: "The hard tasks of Terminal-Bench: an agent works in a container until it says that it is done, and the task's tests grade what it did.",
    protocol_name: "terminal-bench",
    protocol: "terminal-bench 0.2.18: build the environment, let the agent work, copy and run the tests, parse their output",
    parser: "the task's own: for pytest the short summary, for others their markers; every test must pass",
    sources: &[
        Link { title: "Dataset", url: "https://huggingface.co/datasets/ia03/terminal-bench" },
        Link { title: "Official harness", url: "https://github.com/laude-institute/terminal-bench" },
    ],
    item_timeout_seconds: 3_600,
    deviations: &[
        "Which tasks are hard is taken from the dataset's column difficulty. Lists of the same name elsewhere have 44 to 48 tasks; the option tasks takes such a list.",
        "The agent is terminus-2 as of Harbor 0.25, which has the same loop and replies as the harness's own; its official messages come from Harbor's wheel.",
        "Tests run without a terminal, so that their output isn't wrapped at 160 columns and names keep their full length.",
        "Files that are already at `/tests` are removed before the tests are copied, so that an agent can't leave traps there.",
        "Solution and tests are not in the folder that images are built from, unless a Dockerfile or compose file names them; an instruction `COPY . .` doesn't copy them.",
        "A time-out of the agent ends after the turn in which it is reached; the tests are run all the same. Only model calls and commands count, not waits for a provider or a sandbox.",
        "A failure of the machine or of the image's build ends in an infrastructure-error; officially the task counts as unresolved.",
        "Tasks are admitted like uploaded ones: one with a symbolic link, or one that asks for more than this system grants, ends as an infrastructure-error that says why.",
        "A task without an instruction gets the dataset's base_description; without that, it ends as an infrastructure-error.",
    ],
    setup_notes: "A sandbox host with a container engine is needed: install podman or docker. Images are built from registries, and most tests download packages, so containers have a network.",
    item_id: "row in the dataset, from 0, easy and medium tasks included; task_id is the dataset's own id",
    group_noun: "categories",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    sources: &[HubSource {
        id: "ia03/terminal-bench",
        items: &[Part { config: "default", split: "test" }],
        ..HubSource::DEFAULT
    }],
    license: "Apache-2.0 (Terminal-Bench)",
    items: 112,
    demo: DemoData { items: include_str!("../data/terminal_bench_hard.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

static OPTIONS: [OptionMetadata; 5] =
    [selection::DIFFICULTY, selection::TASKS, variables::OPTION, agent::OPTION, agent::OWN_OPTIONS];

/// Packed task of an item, with what its dataset says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedTask {
    /// Gzipped tar archive of the task's folder.
    pub file: ItemFile,
    /// Text for the agent of a task that has none itself.
    pub instruction: Option<String>,
    bytes: Option<u64>,
    sha256: Option<String>,
}

impl PackedTask {
    /// Returns the packed task of a stored item; `None` for items of other benchmarks.
    ///
    /// # Errors
    /// Returns the problem if the item has no archive, or a column is invalid.
    pub fn of_item(item: &Item) -> Result<Option<Self>, RowError> {
        let row = &item.row;
        let Some(archive) = row.get(ARCHIVE_COLUMN) else { return Ok(None) };
        let file = serde_json::from_value(archive.clone())
            .map_err(|_| RowError::column(ARCHIVE_COLUMN, "has no file"))?;
        let known = |column: &str| text(row, column).ok().map(str::trim).filter(|text| !text.is_empty());
        Ok(Some(Self {
            file,
            instruction: known(INSTRUCTION_COLUMN).map(str::to_owned),
            bytes: number(row, BYTES_COLUMN)?,
            sha256: known(DIGEST_COLUMN).map(str::to_ascii_lowercase),
        }))
    }

    /// Compares size and digest with the dataset's. Its card doesn't say whether they are those of the stored archive
    /// or of the tar archive in it, so either is accepted: pairs of size in bytes and SHA-256 in lowercase hex.
    ///
    /// # Errors
    /// Returns the problem in one sentence.
    pub fn check(&self, forms: &[(u64, String)]) -> Result<(), String> {
        if let Some(bytes) = self.bytes
            && !forms.iter().any(|(found, _)| *found == bytes)
        {
            let found = forms.first().map_or(0, |(found, _)| *found);
            return Err(format!("the archive has {found} bytes, and the dataset says {bytes}"));
        }
        match &self.sha256 {
            Some(sha256) if !forms.iter().any(|(_, found)| found == sha256) => {
                Err("the archive's SHA-256 is not the one that the dataset says".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Layout for TerminalBenchHard {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &[TASK_COLUMN]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &[DIGEST_COLUMN, TASK_COLUMN]
    }

    fn file_columns(&self) -> &'static [&'static str] {
        &[ARCHIVE_COLUMN]
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        self.wording.official()
    }

    fn item(&self, index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
        let task = text_or_number(&row, TASK_COLUMN)?;
        row.retain(|column, _| COLUMNS.contains(&column.as_str()));
        // A row without an archive stays an item, so that only this task is reported.
        row.entry(ARCHIVE_COLUMN).or_insert_with(Default::default);
        let known = |column: &str| text(&row, column).ok().map(str::trim).filter(|text| !text.is_empty());
        let group = known(CATEGORY_COLUMN).map(str::to_owned);
        let difficulty = known(DIFFICULTY_COLUMN).map(str::to_ascii_lowercase);
        let mut item = Item::new(index.to_string(), group, Row::new());
        item.tags.insert(selection::TASK_TAG.to_owned(), task.trim().to_owned());
        item.tags.extend(difficulty.map(|value| (selection::DIFFICULTY_TAG.to_owned(), value)));
        item.row = row;
        Ok(Some(item))
    }
}

impl Benchmark for TerminalBenchHard {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    fn template(&self, templates: &Templates) -> Template {
        self.wording.template(templates)
    }

    fn has_agent(&self) -> bool {
        true
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let content = |problem: String| ItemProblem::Content(problem);
        let own = match text(&item.row, CONFIG_COLUMN) {
            Ok(config) => {
                terminal_bench::instruction(config).map_err(|refusal| content(refusal.to_string()))?
            }
            Err(_) => None,
        };
        let given = text(&item.row, INSTRUCTION_COLUMN).ok().filter(|text| !text.trim().is_empty());
        let instruction = own.or_else(|| given.map(str::to_owned));
        instruction.map(Prompt::user).ok_or_else(|| content("the task has no instruction".to_owned()))
    }

    fn scorer(&self) -> &dyn Scorer {
        &EpisodeScorer { expected: "passes all tests of the task" }
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &OPTIONS
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        selection::check(options, &OPTIONS)?;
        variables::refuse_without_custom_agent(options)?;
        Ok(agent::checked_wording(options)?.map(|wording| Self::with(wording) as &dyn Benchmark))
    }

    fn without_model(&self, source: &str) -> Option<&'static dyn Benchmark> {
        agent::agent_without_model(source).map(|_| Self::with(Wording::None) as &dyn Benchmark)
    }

    fn missing_names(&self, options: &Options, items: &[IndexEntry]) -> Vec<String> {
        selection::missing(options, items)
    }

    fn selects(&self, options: &Options, item: &IndexEntry) -> bool {
        selection::selects(options, item)
    }
}

#[cfg(test)]
mod tests;
