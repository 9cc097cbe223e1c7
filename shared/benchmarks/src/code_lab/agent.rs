//! Protocol `agent` of the code lab: the agent `bash` works on the project in a sandbox, and what it changed is graded as a reply.

mod jobs;

use std::time::Duration;

use bench_agents::bash::{BashSettings, workspace_first_message, workspace_prompt_parts};
use bench_code_tasks::{CodeTask, TestCommand};
use bench_domain::{Agent, Answer, Code, JobReport, JobSpec, Outcome, Prompt, Stage, Verdict};
use bench_items::{DatasetSpec, Item, Layout, Row, RowError};

use super::{CodeLab, METADATA, grade, row};
use crate::benchmark::Benchmark;
use crate::grading::Grading;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Metadata, Template, TemplateSource};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::sandbox::SandboxGrader;
use crate::scorers::workspace::{
    WorkspaceChange, WorkspaceCommand, WorkspaceCommandEnd, WorkspaceError, WorkspaceProtocol,
};
use crate::terminal_tasks::agent::agent_without_model;
use crate::terminal_tasks::agent_choice;

/// Maximum time of the agent's work on a task.
const TIME_MAX: Duration = Duration::from_secs(2 * 3_600);
/// Folder of commands where only the validity of options matters.
const ANY_FOLDER: &str = "/";
/// Stands for the folder of commands before it is known.
const FOLDER: &str = "{folder}";
/// Source of answers from a file.
const REPLAY: &str = "replay";

const OPTION_AGENT: &str = "agent";
/// Option of the agent `bash` that has no meaning here.
const OPTION_FOLDER: &str = "agent.folder";

/// Text for the agent before a task.
const OPENING: &str = "Change a software project so that it does what the task below asks for. The project is in the folder in which your commands start. \
Hidden tests check it after you have ended, in another sandbox. Only the text files that you added, changed or removed in that folder are taken there, \
without what tools leave, such as caches. Keep to names, formats and interfaces exactly as they are given. There is no network, and nothing can be asked back.";
/// Text about programs that a linker made.
const PROGRAMS: &str = "Commands can't change the modes of files. A program that a linker wrote without its mode can be started from your next command on.";

/// Programming tasks on which an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeLabAgent;

/// The protocol with one reply, which has the same items.
static REPLY: CodeLab = CodeLab::DEFAULT;

static AGENT_METADATA: Metadata = Metadata {
    protocol_name: "agent",
    protocol: "own: the agent bash works in a sandbox; all recorded tests must pass on what it changed",
    parser: "the difference between the task's files and those that the agent left",
    ..METADATA
};

static OPTIONS: [OptionMetadata; 2] = [
    OptionMetadata {
        name: OPTION_AGENT,
        description: "agent: `bash` runs one of the model's commands a turn",
        default: "",
    },
    OptionMetadata {
        name: "agent.NAME",
        description: "option NAME of the agent: `max_turns`, `command_timeout_sec`, `max_output_bytes`, `max_format_errors`, `max_tokens`, `max_cost_usd` or `max_time_sec`",
        default: "",
    },
];

impl Layout for CodeLabAgent {
    fn name(&self) -> &'static str {
        REPLY.name()
    }

    fn spec(&self) -> &DatasetSpec {
        REPLY.spec()
    }

    fn id_columns(&self) -> &'static [&'static str] {
        REPLY.id_columns()
    }

    fn question_columns(&self) -> &'static [&'static str] {
        REPLY.question_columns()
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        REPLY.item(index, row)
    }
}

impl Benchmark for CodeLabAgent {
    fn metadata(&self) -> &'static Metadata {
        &AGENT_METADATA
    }

    fn template(&self, _templates: &Templates) -> Template {
        let [task, format_error, output_cut] = workspace_prompt_parts();
        Template::new(TemplateSource::Own, &[OPENING, PROGRAMS, &task, &format_error, &output_cut])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        Ok(Prompt::user(instruction(&row::task(item)?)))
    }

    fn scorer(&self) -> &dyn Scorer {
        self
    }

    fn has_agent(&self) -> bool {
        true
    }

    fn default_agent(&self) -> Option<Agent> {
        Some(Agent::Bash)
    }

    fn workspace(&self) -> Option<&'static dyn WorkspaceProtocol> {
        Some(&CodeLabAgent)
    }

    fn options(&self) -> &'static [OptionMetadata] {
        &OPTIONS
    }

    /// Answers of other sources than a model are changes, which are graded as they are.
    fn without_model(&self, source: &str) -> Option<&'static dyn Benchmark> {
        let asks_none = source == REPLAY || agent_without_model(source).is_some();
        asks_none.then_some(&REPLY as &dyn Benchmark)
    }

    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        for (name, value) in options {
            match name.as_str() {
                OPTION_AGENT if value != Agent::Bash.as_str() => {
                    return Err(OptionError(format!("option `{OPTION_AGENT}` is bash, not `{value}`")));
                }
                OPTION_FOLDER => {
                    return Err(OptionError(format!(
                        "option `{OPTION_FOLDER}` can't be set: commands start in the task's project"
                    )));
                }
                name if crate::terminal_tasks::is_agent_option(name) => {}
                unknown => return Err(OptionError::unknown(unknown, &OPTIONS)),
            }
        }
        let own = agent_choice("", Some(options)).options;
        BashSettings::parse(&own, ANY_FOLDER).map_err(|error| OptionError(error.to_string()))?;
        Ok(None)
    }
}

impl Scorer for CodeLabAgent {
    fn expected(&self, item: &Item) -> String {
        Scorer::expected(&REPLY, item)
    }

    fn oracle(&self, item: &Item) -> String {
        Scorer::oracle(&REPLY, item)
    }

    fn missing_oracle(&self, item: &Item) -> Option<String> {
        Scorer::missing_oracle(&REPLY, item)
    }

    /// Leaves an empty answer to an episode. A change, such as one of an earlier run, is graded as it is.
    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        match answer.text.is_empty() {
            true => Grading::NeedsTurn(Stage::Episode),
            false => Scorer::grade(&REPLY, item, answer),
        }
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        Scorer::score_row(&REPLY, row)
    }

    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        Scorer::sandbox(&REPLY)
    }
}

impl WorkspaceProtocol for CodeLabAgent {
    fn instruction(&self, item: &Item) -> Result<String, ItemProblem> {
        let task = row::task(item)?;
        match task.ungradable() {
            Some(why) => Err(ItemProblem::Content(why)),
            None => Ok(instruction(&task)),
        }
    }

    fn first_message(&self, instruction: &str, options: &Options) -> String {
        let own = agent_choice("", Some(options)).options;
        let settings =
            BashSettings::parse(&own, ANY_FOLDER).unwrap_or_else(|_| BashSettings::new(ANY_FOLDER));
        workspace_first_message(&BashSettings { folder: FOLDER.to_owned(), ..settings }, instruction)
    }

    fn time_limit(&self) -> Duration {
        TIME_MAX
    }

    fn layout(&self, item: &Item) -> Result<JobSpec, ItemProblem> {
        Ok(jobs::layout(&row::task(item)?))
    }

    fn folder(&self, report: &JobReport) -> Option<String> {
        jobs::folder(report)
    }

    fn command(&self, item: &Item, command: &WorkspaceCommand) -> Result<JobSpec, ItemProblem> {
        Ok(jobs::command(&row::task(item)?, command))
    }

    fn command_end(&self, report: &JobReport) -> WorkspaceCommandEnd {
        jobs::command_end(report)
    }

    fn collection(&self, item: &Item) -> Result<JobSpec, ItemProblem> {
        Ok(jobs::collection(&row::task(item)?))
    }

    fn change(&self, item: &Item, report: &JobReport) -> Result<WorkspaceChange, WorkspaceError> {
        let task = row::task(item).map_err(|problem| WorkspaceError::Unreadable(problem.to_string()))?;
        jobs::change(&task, report)
    }

    fn grade(&self, item: &Item, change: &Answer) -> Grading {
        let grading = match row::task(item) {
            Ok(task) => grade(&task, change),
            Err(problem) => Verdict::ungraded(Code::InvalidItem, problem.to_string()).into(),
        };
        match grading {
            Grading::Done(verdict) if verdict.outcome == Outcome::NoAnswer => {
                let reason = "The agent changed nothing that a patch can have.".to_owned();
                Verdict { reason, ..verdict }.into()
            }
            other => other,
        }
    }
}

/// Returns the text about a task for the agent.
fn instruction(task: &CodeTask) -> String {
    let mut about = String::new();
    if !task.build.is_empty() {
        let commands: Vec<String> = task.build.iter().map(|argv| format!("`{}`", argv.join(" "))).collect();
        about.push_str(&format!(
            " Before the tests, it is built with {}, where {{bin}} and {{build}} are folders outside of it.",
            commands.join(" and ")
        ));
    }
    if let Some(command) = own_tests(&task.command) {
        about.push_str(&format!(" Its tests are run with `{command}`, after changes of them were undone."));
    }
    format!("{OPENING}{about} {PROGRAMS}\n\n# Task\n\n{}", task.instructions)
}

/// Returns the command of tests that run in the project; `None` for tests outside of it.
fn own_tests(command: &TestCommand) -> Option<String> {
    let (runner, args) = command.parts();
    let runner = match command {
        TestCommand::Lab | TestCommand::Other(_) => return None,
        TestCommand::Go(_) => "go test",
        TestCommand::Pytest(_) | TestCommand::Cargo(_) | TestCommand::Node(_) => runner,
    };
    Some(std::iter::once(runner).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests;
