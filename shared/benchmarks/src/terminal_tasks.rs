//! Terminal tasks that users upload: an agent works in a task's containers, and the task's own tests grade its work.
//!
//! Protocol: Harbor 0.25 for its own task format, Terminal-Bench 0.2.18 for the older one. The containers are driven by
//! other crates; here are only the items, one per task, and the prompt.

use bench_agents::terminus2::ReplyFormat;
use bench_domain::Prompt;
use bench_items::{DatasetSpec, Item, Layout, Row, RowError, TemplateSpec};

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Link, Metadata, Template};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::episode::EpisodeScorer;

pub(crate) mod agent;
pub(crate) mod variables;

use agent::Wording;
pub use agent::{
    AgentChoice, CUSTOM_CONTENT, OFFICIAL_WHEEL, agent_choice, agent_option_names, custom_content,
    is_agent_option,
};

/// Tasks that users upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalTasks {
    /// Texts that the run's agent sends to the model.
    wording: Wording,
}

impl TerminalTasks {
    /// The tasks for the default agent, `terminus-2` with replies in JSON.
    pub const DEFAULT: Self = Self { wording: Wording::Terminus2(ReplyFormat::Json) };

    fn with(wording: Wording) -> &'static Self {
        static EACH: [TerminalTasks; 4] = {
            let [json, xml, bash, none] = Wording::ALL;
            [
                TerminalTasks { wording: json },
                TerminalTasks { wording: xml },
                TerminalTasks { wording: bash },
                TerminalTasks { wording: none },
            ]
        };
        wording.choose(&EACH)
    }
}

/// Column with the name of a task and the first digits of its content hash, which is the item's own id.
pub const TASK_COLUMN: &str = "task";
/// Column with the content hash of a task, 64 hexadecimal digits.
pub const TASK_HASH_COLUMN: &str = "content_hash";
/// Column with the text for the agent.
pub const TASK_INSTRUCTION_COLUMN: &str = "instruction";

static METADATA: Metadata = Metadata {
    name: "terminal_tasks",
    display_name: "Terminal tasks",
    description: "Tasks that you upload: an agent works in a container, and the task's tests grade what it did.",
    protocol_name: "harbor",
    protocol: "Harbor 0.25: start the environment, let the agent work, run the tests, read the reward",
    parser: "the reward that the tests write; full reward (1.0) is correct, less is partial",
    sources: &[
        Link { title: "Task format", url: "https://github.com/laude-institute/harbor" },
        Link { title: "Older format", url: "https://github.com/laude-institute/terminal-bench" },
    ],
    metrics: &["accuracy"],
    deviations: &[
        "Files that are already at `/tests` are removed before the tests are copied, so that an agent can't leave traps there.",
        "An environment that ends under the agent's commands is graded with the reward 0.",
        "Tests of Terminal-Bench 1 run without a terminal, so that their output isn't wrapped at 160 columns.",
        "Only model calls and commands count against the agent's time limit, not waits for a provider or a sandbox; the turn in which it is reached ends first.",
        "Of a terminal's history, the last 8 MiB count.",
        "Each step of a task with several has a terminal of its own; in Harbor, the terminal of the step before goes on.",
    ],
    item_timeout_seconds: 24 * 3_600,
    setup_notes: "A sandbox host with a container engine is needed: install podman or docker.",
    item_id: "position in the order, from 0; task is the task's name and the first digits of its content hash",
    group_noun: "tasks",
    ..Metadata::DEFAULT
};

static SPEC: DatasetSpec = DatasetSpec { license: "that of each task", ..DatasetSpec::DEFAULT };

static OPTIONS: [OptionMetadata; 3] = [variables::OPTION, agent::OPTION, agent::OWN_OPTIONS];

impl Layout for TerminalTasks {
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
        &[TASK_HASH_COLUMN]
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        self.wording.official()
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        let hash = text(&row, TASK_HASH_COLUMN)?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return Err(RowError::column(TASK_HASH_COLUMN, "expected 64 lowercase hexadecimal digits"));
        }
        text(&row, TASK_INSTRUCTION_COLUMN)?;
        let group = text(&row, TASK_COLUMN)?.to_owned();
        Ok(Some(Item::new(index.to_string(), Some(group), row)))
    }
}

fn text<'a>(row: &'a Row, column: &str) -> Result<&'a str, RowError> {
    let value = row.get(column).and_then(|value| value.as_str());
    value.ok_or_else(|| RowError::column(column, "expected a text"))
}

impl Benchmark for TerminalTasks {
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
        let instruction = text(&item.row, TASK_INSTRUCTION_COLUMN);
        let instruction = instruction.map_err(|error| ItemProblem::Content(error.to_string()))?;
        Ok(Prompt::user(instruction))
    }

    fn scorer(&self) -> &dyn Scorer {
        &EpisodeScorer { expected: "earns the full reward" }
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &OPTIONS
    }

    fn without_model(&self, source: &str) -> Option<&'static dyn Benchmark> {
        agent::agent_without_model(source).map(|_| Self::with(Wording::None) as &dyn Benchmark)
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        for name in options.keys().filter(|name| !agent::is_agent_option(name)) {
            if !variables::is_variable(name)? {
                return Err(OptionError::unknown(name, &OPTIONS));
            }
        }
        Ok(agent::checked_wording(options)?.map(|wording| Self::with(wording) as &dyn Benchmark))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use bench_domain::{Answer, Stage};

    use super::*;
    use crate::grading::Grading;
    use crate::task_variables;

    fn row(hash: &str) -> Row {
        let row = json!({ "task": "hello@012345678901", "content_hash": hash, "instruction": "Do it." });
        match row {
            Value::Object(row) => row,
            _ => Row::new(),
        }
    }

    #[test]
    fn a_row_is_a_task() {
        let item = TerminalTasks::DEFAULT.item(3, row(&"0a".repeat(32))).unwrap().unwrap();
        assert_eq!((item.id.as_str(), item.group.as_deref()), ("3", Some("hello@012345678901")));
        assert_eq!(TerminalTasks::DEFAULT.prompt(&item, &Material::default()).unwrap().as_text(), "Do it.");
        assert_eq!(
            Benchmark::grade(&TerminalTasks::DEFAULT, &item, &Answer::local("")),
            Grading::NeedsTurn(Stage::Episode)
        );
        for bad in ["", "0A", &"0a".repeat(31), "../../etc"] {
            assert!(TerminalTasks::DEFAULT.item(0, row(bad)).is_err(), "{bad}");
        }
        assert!(TerminalTasks::DEFAULT.item(0, Row::new()).is_err());
    }

    #[test]
    fn options_are_variables() {
        let options = |name: &str| Options::from([(name.to_owned(), "1".to_owned())]);
        assert!(TerminalTasks::DEFAULT.with_options(&options("env.A_1")).is_ok());
        for bad in ["A", "env.", "env.A=B", "env.A B", "agents"] {
            assert!(TerminalTasks::DEFAULT.with_options(&options(bad)).is_err(), "{bad}");
        }
        let variables = task_variables(Some(&options("env.A")));
        assert_eq!(variables, [("A".to_owned(), "1".to_owned())].into());
        assert!(task_variables(None).is_empty());
    }
}
