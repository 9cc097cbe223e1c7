//! τ²-bench telecom: conversations of a support agent with a simulated customer, who has a phone of their own with tools.
//!
//! Protocol: tau2 1.0.1 (tag `v1.0.1`), domain `telecom`, split `base`, turns of whole messages. The official package in a sandbox
//! holds tools, policy, system prompts, user scenarios and the reward ([`step`]); conversations follow the rules of its orchestrator
//! ([`bench_agents::dialogue`]). Items have only the ids of tasks.

mod metrics;
mod protocol;
pub mod step;
mod tasks;

use bench_domain::{Agent, Generation, Prompt};
use bench_items::{DatasetSpec, DemoData, Item, Layout, PinnedFile, RepositorySource, Row, RowError};

use crate::benchmark::Benchmark;
use crate::columns::text;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template, TemplateSource};
use crate::metrics::Metrics;
use crate::scorers::Scorer;
use crate::scorers::dialogue::DialogueProtocol;
use crate::scorers::episode::EpisodeScorer;

/// τ²-bench telecom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TauBenchTelecom;

/// Number of trials of a task, as leaderboards of the benchmark have it.
pub const TRIALS: u32 = 4;

/// Version of the official package.
pub const PACKAGE_VERSION: &str = "1.0.1";
/// Domains of the step script: the official one, and a small one of ours.
const TELECOM: &str = "telecom";
const DEMO: &str = "demo";

const ID_COLUMN: &str = "id";
/// Column of the splits that a task is in; rows without it are in all.
const SPLITS_COLUMN: &str = "splits";
/// Column with the domain of a demo task.
const DOMAIN_COLUMN: &str = "domain";
const SPLIT: &str = "base";
/// Columns that items keep.
const COLUMNS: [&str; 2] = [ID_COLUMN, DOMAIN_COLUMN];

static METADATA: Metadata = Metadata {
    name: "tau_bench_telecom",
    aliases: &["tau2_bench_telecom", "tau2_telecom"],
    display_name: "τ²-bench Telecom",
    description: "Support calls at a phone company: the model talks to a customer, whom another model simulates, and both have tools. The state in which the call leaves phone and contract decides.",
    protocol_name: "tau2",
    protocol: "tau2 1.0.1, domain telecom, split base: agent llm_agent, user_simulator, at most 200 steps and 10 failed tool calls, reward of the official evaluator",
    parser: "the reward of the official evaluator on the whole conversation; 1 is right",
    sources: &[
        Link { title: "Official program and tasks", url: "https://github.com/sierra-research/tau2-bench" },
        Link { title: "Paper", url: "https://arxiv.org/abs/2506.07982" },
    ],
    metrics: &[
        "accuracy",
        "pass_hat_1",
        "pass_hat_2",
        "pass_hat_3",
        "pass_hat_4",
        "terminations",
        "user_tokens",
    ],
    samples_per_item: TRIALS,
    generation: || Generation { temperature: Some(0.0), ..Generation::default() },
    item_timeout_seconds: 1_200,
    deviations: &[
        "An empty reply, and one with a tool call whose arguments are no JSON object, is asked again, up to three times in a row; officially the whole conversation starts over. Empty arguments count as {}.",
        "A reply that the provider refuses, or that no longer fits into the model's context, ends the sample without a grade, as an exception does officially, but without three more tries.",
        "Both models are sent the trial's seed, as officially, unless the order gives a model its own.",
        "Both models are asked at temperature 0, also one that refuses it, which needs `--omit temperature` or `--temperature 1`, or `--user-temperature 1` for the user model; officially the client library leaves out the temperature for models that it knows to refuse it.",
        "A refusal's text is a message, where officially the message is empty.",
        "Ids that the package draws at random are numbered per task, so that a replay of the conversation gives the same ones.",
        "Requests are streamed, and have no num_retries; a provider that is busy or fails is waited for instead.",
        "Schemas of tools are sent with the names of their fields in alphabetical order.",
        "A message with more than 10,000 tool calls or 1 MiB of text is asked again like an empty one.",
    ],
    setup_notes: "A sandbox host with Python 3.12 or later and the official package, which no registry has: `bench sandy setup tau2` installs it. The tasks come from the repository of the package. The user simulator is a model of its own, named by --user-model.",
    item_id: "position in the split, from 0; id is the official task id",
    group_noun: "issues",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec {
    repository: Some(RepositorySource {
        repository: "sierra-research/tau2-bench",
        revision: "v1.0.1",
        files: &[
            PinnedFile {
                path: "data/tau2/domains/telecom/split_tasks.json",
                sha256: "605b488bb9a6acb3c7f4505240a855fdc8681d09aadb16a8f38b2efcfc5c3aec",
            },
            PinnedFile {
                path: "data/tau2/domains/telecom/tasks.json",
                sha256: "37e562e1ae3242577407e1303b1548bc64e7ea68e37d36173e6747990ceaf8a4",
            },
        ],
    }),
    license: "MIT (tau2-bench)",
    items: 114,
    demo: DemoData { items: include_str!("../data/tau_bench_demo.jsonl"), support: &[] },
    ..DatasetSpec::DEFAULT
};

impl Layout for TauBenchTelecom {
    fn name(&self) -> &'static str {
        METADATA.name
    }

    fn spec(&self) -> &DatasetSpec {
        &SPEC
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &[ID_COLUMN]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &[ID_COLUMN]
    }

    fn numbers_items(&self) -> bool {
        true
    }

    fn repository_rows(&self, files: &[String]) -> Result<Vec<Row>, RowError> {
        tasks::rows(files)
    }

    fn item(&self, index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
        let id = text(&row, ID_COLUMN)?.to_owned();
        if let Some(splits) = row.get(SPLITS_COLUMN) {
            let named =
                splits.as_array().ok_or_else(|| RowError::column(SPLITS_COLUMN, "expected a list"))?;
            if !named.iter().any(|split| split == SPLIT) {
                return Ok(None);
            }
        }
        row.retain(|column, _| COLUMNS.contains(&column.as_str()));
        Ok(Some(Item::new(index.to_string(), Some(issue(&id).to_owned()), row)))
    }
}

/// Returns the kind of a task's problem: the beginning of its id in brackets.
fn issue(id: &str) -> &str {
    id.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or("other", |(issue, _)| issue)
}

/// Returns the id of an item's task, and its domain.
fn task(item: &Item) -> Result<(&str, &'static str), ItemProblem> {
    let id = text(&item.row, ID_COLUMN)?;
    match item.row.get(DOMAIN_COLUMN).map(|domain| domain.as_str()) {
        None | Some(Some(TELECOM)) => Ok((id, TELECOM)),
        Some(Some(DEMO)) => Ok((id, DEMO)),
        Some(_) => Err(RowError::column(DOMAIN_COLUMN, "expected telecom or demo").into()),
    }
}

impl Benchmark for TauBenchTelecom {
    fn metadata(&self) -> &'static Metadata {
        &METADATA
    }

    /// The package has all texts; its version names them.
    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Official, &[PACKAGE_VERSION, TELECOM])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        let (id, domain) = task(item)?;
        Ok(Prompt::user(format!("Conversation about the task {id} of the domain {domain}.")))
    }

    fn scorer(&self) -> &dyn Scorer {
        &EpisodeScorer { expected: "leaves phone and contract as the task asks" }
    }

    fn has_agent(&self) -> bool {
        true
    }

    /// The conversation's own agent has no name in orders.
    fn default_agent(&self) -> Option<Agent> {
        None
    }

    fn dialogue(&self) -> Option<&'static dyn DialogueProtocol> {
        Some(&TauBenchTelecom)
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<metrics::Conversations>::default())
    }
}

#[cfg(test)]
mod tests;
