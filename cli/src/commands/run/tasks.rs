//! Terminal tasks in orders.

use std::collections::BTreeMap;

use anyhow::Context;
use bench_benchmarks::{
    CUSTOM_CONTENT, Options, TerminalTasks, agent_option_names, custom_content, task_variables,
};
use bench_domain::run::DatasetChoice;
use bench_domain::{Agent, BenchmarkName, Code, RunId, UnknownAgent};
use bench_runs::{NO_MODEL, Order, Orderer, TERMINAL_TASKS, TrustedSettings};
use bench_stack::{Hold, Stack};
use bench_state::TaskRecord;
use bench_tasks::TaskError;
use serde_json::json;

use super::session::Session;
use crate::agent_archive::AgentArchive;
use crate::client::{Client, Listing, Task};
use crate::commands::options::OptionsByBenchmark;
use crate::exit::Problem;
use crate::output;
use crate::refusal::Refusal;
use crate::task_archive::GivenTask;
use crate::views::Run;

/// Returns the models of an order with tasks, and the options of the benchmark for the agent. An agent that asks no model
/// is a model itself. `files` are those of the agent `custom`.
pub(super) fn models(
    models: &[String],
    agent: Option<&str>,
    options: &[String],
    files: Option<&AgentArchive>,
) -> anyhow::Result<(Vec<String>, Options)> {
    let named: Vec<&str> = models.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let mut options = parse_options(options)?;
    let is_agent = |model: &&str| Agent::in_place_of_model(model).is_some();
    let is_custom = |model: &&str| Agent::in_place_of_model(model) == Some(Agent::Custom);
    let agent: Agent = match agent {
        Some(agent) => agent.parse().map_err(|unknown: UnknownAgent| Problem::usage(unknown.to_string()))?,
        None if files.is_some() || (!named.is_empty() && named.iter().all(is_custom)) => Agent::Custom,
        None if named.is_empty() => {
            return Err(Problem::usage("no agent was given")
                .hint("give --model for the agent terminus-2, or --agent oracle, nop or custom")
                .into());
        }
        None if named.iter().all(is_agent) => {
            refuse_options(&options, named[0])?;
            return Ok((named.into_iter().map(str::to_owned).collect(), Options::new()));
        }
        None => Agent::DEFAULT,
    };
    if agent == Agent::Custom {
        if named.iter().any(|model| !is_custom(model)) {
            return Err(Problem::usage(NO_MODEL).into());
        }
        let name = match files {
            Some(files) => {
                add_content(&mut options, Some(agent.as_str()), files)?;
                files.model.clone()
            }
            None if options.contains_key(CUSTOM_CONTENT) => agent.as_str().to_owned(),
            None => {
                return Err(Problem::usage("the agent `custom` needs its files: give --agent-folder DIR")
                    .hint(format!(
                        "an uploaded one is named by --agent-option {CUSTOM_CONTENT}=HASH; `bench agents show AGENT` prints it"
                    ))
                    .into());
            }
        };
        return Ok((vec![name], agent_option_names(agent, &options)));
    }
    if let Some(files) = files {
        add_content(&mut options, Some(agent.as_str()), files)?;
    }
    if agent.asks_model() {
        if let Some(model) = named.iter().copied().find(is_agent) {
            let problem = format!("the agent `{agent}` asks a model, and `{model}` is none");
            return Err(Problem::usage(problem).hint("order them one after the other").into());
        }
        // Without a model, the default one is used, or missed, as for other benchmarks.
        let named = named.into_iter().map(str::to_owned).collect();
        return Ok((named, agent_option_names(agent, &options)));
    }
    refuse_options(&options, agent.as_str())?;
    match named.iter().find(|model| **model != agent.as_str()) {
        Some(_) => {
            Err(Problem::usage(format!("the agent `{agent}` asks no model; leave --model out")).into())
        }
        None => Ok((vec![agent.as_str().to_owned()], Options::new())),
    }
}

/// Refuses the benchmark of terminal tasks in an order without tasks.
pub(crate) fn refuse_without_tasks(benchmarks: &[String]) -> anyhow::Result<()> {
    match benchmarks.iter().any(|name| name == TERMINAL_TASKS) {
        true => Err(Problem::usage(format!(
            "the benchmark {TERMINAL_TASKS} runs tasks of yours, and none was given"
        ))
        .hint("give them with --task PATH; `bench tasks` lists stored ones, which --task takes by name or id")
        .into()),
        false => Ok(()),
    }
}

/// Adds the content of the files of `--agent-folder` to the agent's options.
///
/// # Errors
/// If another agent was named, or another content.
pub(crate) fn add_content(
    options: &mut BTreeMap<String, String>,
    agent: Option<&str>,
    files: &AgentArchive,
) -> anyhow::Result<()> {
    if let Some(agent) = agent.map(str::trim).filter(|agent| *agent != Agent::Custom.as_str()) {
        let problem = format!("--agent-folder has the files of the agent `custom`, not of `{agent}`");
        return Err(Problem::usage(problem).into());
    }
    match options.insert(CUSTOM_CONTENT.to_owned(), files.content_hash.clone()) {
        Some(_) => {
            let problem = format!("--agent-folder and --agent-option {CUSTOM_CONTENT} name two agents");
            Err(Problem::usage(problem).into())
        }
        None => Ok(()),
    }
}

fn refuse_options(options: &BTreeMap<String, String>, agent: &str) -> anyhow::Result<()> {
    match options.keys().next() {
        None => Ok(()),
        Some(_) => Err(Problem::usage(format!("--agent-option: the agent `{agent}` has no options")).into()),
    }
}

/// Parses `NAME=VALUE`.
pub(crate) fn parse_options(given: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let (name, value) = text
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| Problem::usage(format!("--agent-option: `{text}` is not NAME=VALUE")))?;
        if options.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Problem::usage(format!("--agent-option: `{name}` is given twice")).into());
        }
    }
    Ok(options)
}

/// Stores tasks that aren't stored yet, and returns all of them, each once. With [`Listing::ForRun`], those that lists don't
/// show are used, too.
pub(crate) async fn store(
    client: &Client,
    given: &[GivenTask],
    listing: Listing,
) -> anyhow::Result<Vec<Task>> {
    let mut known = known(client, listing).await?;
    let mut stored = Vec::with_capacity(given.len());
    for given in given {
        let task = store_one(client, given, listing, &known).await?;
        known.insert(task.id, task.clone());
        stored.push((given.name(), task));
    }
    Ok(once_each(stored))
}

/// Leaves out tasks whose files another one has, and says so.
pub(crate) fn once_each(tasks: Vec<(&str, Task)>) -> Vec<Task> {
    let mut once: Vec<(&str, Task)> = Vec::with_capacity(tasks.len());
    for (name, task) in tasks {
        match once.iter().find(|(_, other)| other.content_hash == task.content_hash) {
            Some((first, _)) if *first == name => {
                output::note(&format!("The task `{name}` is given twice; it counts once"));
            }
            Some((first, _)) => {
                output::note(&format!(
                    "The tasks `{first}` and `{name}` have the same files, so they are one task, which counts once"
                ));
            }
            None => once.push((name, task)),
        }
    }
    once.into_iter().map(|(_, task)| task).collect()
}

/// Stores tasks for a run that aren't stored yet. Returns each task, or why the server refuses it.
///
/// # Errors
/// If requests fail for other reasons.
pub(crate) async fn store_each(
    client: &Client,
    given: &[GivenTask],
) -> anyhow::Result<Vec<anyhow::Result<Task>>> {
    let mut known = known(client, Listing::ForRun).await?;
    let mut stored = Vec::with_capacity(given.len());
    for given in given {
        let task = store_one(client, given, Listing::ForRun, &known).await;
        stored.push(match task {
            Ok(task) => {
                known.insert(task.id, task.clone());
                Ok(task)
            }
            Err(error) if error.downcast_ref::<Refusal>().is_some_and(is_task_refusal) => Err(error),
            Err(error) => return Err(error),
        });
    }
    Ok(stored)
}

/// Returns true if the server refused the task, and not the request.
pub(crate) fn is_task_refusal(refusal: &Refusal) -> bool {
    matches!(refusal.code(), Some(Code::TaskRefused | Code::BodyTooLarge))
}

/// Returns the stored tasks by id.
async fn known(client: &Client, listing: Listing) -> anyhow::Result<BTreeMap<u64, Task>> {
    let all = listing == Listing::ForRun;
    let mut known: BTreeMap<u64, Task> = BTreeMap::new();
    loop {
        let path = format!("/api/tasks?limit=100&all={all}&skip={}", known.len());
        let page: Vec<Task> = client.get(&path).await?;
        let (count, before) = (page.len(), known.len());
        known.extend(page.into_iter().map(|task| (task.id, task)));
        if count < 100 || known.len() == before {
            break;
        }
    }
    Ok(known)
}

/// Stores a task unless it is among the stored ones.
async fn store_one(
    client: &Client,
    given: &GivenTask,
    listing: Listing,
    known: &BTreeMap<u64, Task>,
) -> anyhow::Result<Task> {
    match given {
        GivenTask::Archive(archive) => {
            let hash = archive.content_hash()?;
            if let Some(task) = known.values().find(|task| task.content_hash == hash) {
                return Ok(task.clone());
            }
            let added = client.add_task(archive, &archive.name, listing).await;
            added.with_context(|| format!("the task `{}` was not accepted", archive.name))
        }
        GivenTask::Stored(name) => {
            let mut named = named(name, known.values())?;
            // The same files are the same task.
            named.dedup_by(|next, kept| next.content_hash == kept.content_hash);
            let id = only(name, &named)?;
            known.get(&id).cloned().with_context(|| format!("task {id} is gone"))
        }
    }
}

/// Returns the id of the task with this id or name.
pub(crate) fn id_of<'a>(given: &str, stored: impl IntoIterator<Item = &'a Task>) -> anyhow::Result<u64> {
    only(given, &named(given, stored)?)
}

/// Returns the tasks with this id or name, at least one. Those that were only stored for a run count if no other has the name.
fn named<'a>(given: &str, stored: impl IntoIterator<Item = &'a Task>) -> anyhow::Result<Vec<&'a Task>> {
    let stored: Vec<&Task> = stored.into_iter().collect();
    if let Ok(id) = given.parse::<u64>()
        && let Some(task) = stored.iter().find(|task| task.id == id)
    {
        return Ok(vec![task]);
    }
    let mut named = stored;
    named.retain(|task| task.name == given || task.task == given);
    if named.iter().any(|task| task.listed) {
        named.retain(|task| task.listed);
    }
    match named.is_empty() {
        false => Ok(named),
        true => Err(Problem::failure(format!("no stored task has the id or name `{given}`"))
            .hint("`bench tasks list --all` shows the stored tasks; files need a path that exists")
            .into()),
    }
}

/// Returns the id of the only task with a name.
fn only(given: &str, named: &[&Task]) -> anyhow::Result<u64> {
    if let [task] = named {
        return Ok(task.id);
    }
    let ids: Vec<String> = named.iter().map(|task| task.id.to_string()).collect();
    Err(Problem::failure(format!("{} stored tasks have the name `{given}`", ids.len()))
        .hint(format!("give the id: {}", ids.join(", ")))
        .into())
}

/// Imports the dataset of stored tasks, after a check of the variables that the order gives them. A custom agent may ask for
/// others.
pub(super) async fn dataset(
    stack: &Stack,
    tasks: &[Task],
    options: &OptionsByBenchmark,
) -> anyhow::Result<(BenchmarkName, DatasetChoice)> {
    let mut records: Vec<TaskRecord> = Vec::with_capacity(tasks.len());
    for task in tasks {
        let record = stack.api.tasks.get(task.id).await?;
        records.push(record.with_context(|| format!("task {} is gone", task.id))?);
    }
    let name: BenchmarkName = TERMINAL_TASKS.parse().context("the name of the benchmark is invalid")?;
    let options = options.get(TERMINAL_TASKS).filter(|options| custom_content(options).is_none());
    let given: Vec<String> = task_variables(options).into_keys().collect();
    stack.api.tasks.check_variables(&records, &given).await.map_err(|error| match error {
        TaskError::UnknownVariable { .. } => Problem::usage(format!("--option: {error}")).into(),
        error => anyhow::Error::from(error),
    })?;
    Ok((name, stack.api.tasks.dataset(&records, &TerminalTasks::DEFAULT).await?))
}

/// Orders a run of an agent on stored tasks, in this process or at a server.
pub(crate) async fn order_tasks(
    session: &Session,
    tasks: &[Task],
    agent: &str,
    samples: u32,
    options: &OptionsByBenchmark,
) -> anyhow::Result<(RunId, Vec<Hold>)> {
    let Some(stack) = session.stack() else {
        let ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
        let order = json!({ "tasks": ids, "agent": agent, "samples": samples, "benchmark_options": options });
        let created: Run = session.client.post("/api/runs", Some(&order)).await?;
        let run = created.id.parse().context("unexpected answer of the server: it names no run")?;
        return Ok((run, Vec::new()));
    };
    let dataset = dataset(stack, tasks, options).await?;
    let order = Order {
        model: agent.to_owned(),
        benchmarks: Some(vec![TERMINAL_TASKS.to_owned()]),
        samples: Some(samples),
        options: options.clone(),
        trusted: TrustedSettings { datasets: [dataset].into(), ..TrustedSettings::default() },
        ..Order::default()
    };
    let created = stack.orders.create(order, Orderer::local()).await?;
    let run = created.run.run.spec.id;
    let ids: Vec<u64> = tasks.iter().map(|task| task.id).collect();
    stack.api.state.note_task_order(&ids, run).await?;
    Ok((run, stack.hold(&[run], 0).await.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(given: &[&str], agent: Option<&str>, options: &[&str]) -> Result<String, String> {
        let texts = |given: &[&str]| given.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = super::models(&texts(given), agent, &texts(options), None);
        found
            .map(|(models, options)| {
                let options: Vec<_> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {}", models.join(","), options.join(",")).trim().to_owned()
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_task_is_found_by_id_or_name() {
        let tasks = [
            (1, "a", true),
            (2, "b", true),
            (3, "b", true),
            (4, "5", true),
            (6, "a", false),
            (7, "c", false),
        ];
        let stored: Vec<Task> = tasks
            .map(|(id, name, listed)| {
                let task = json!({
                    "id": id, "name": name, "task": format!("{name}@0123456789a{id}"), "content_hash": "0", "status": "pending",
                    "created_at": "", "total_runs": 0, "passed_runs": 0, "listed": listed,
                });
                serde_json::from_value(task).unwrap()
            })
            .into();
        let found = |given: &str| id_of(given, &stored).map_err(|error| error.to_string());
        assert_eq!(
            [found("a"), found("b@0123456789a3"), found("2"), found("5")],
            [Ok(1), Ok(3), Ok(2), Ok(4)]
        );
        assert!(found("b").unwrap_err().contains("2 stored tasks have the name `b`"));
        assert_eq!(found("c"), Ok(7));
        assert!(found("d").unwrap_err().contains("no stored task"));
    }

    #[test]
    fn an_agent_without_a_model_is_one() {
        assert_eq!(models(&[], Some("oracle"), &[]).unwrap(), "oracle");
        assert_eq!(models(&["oracle"], Some("oracle"), &[]).unwrap(), "oracle");
        assert_eq!(models(&["oracle", "nop"], None, &[]).unwrap(), "oracle,nop");
        for (given, agent, options, part) in [
            (vec![], None, vec![], "no agent was given"),
            (vec![], Some("claude"), vec![], "has no agent `claude`"),
            (vec!["openrouter/a/b"], Some("nop"), vec![], "leave --model out"),
            (vec!["oracle"], Some("bash"), vec![], "`oracle` is none"),
            (vec!["oracle", "a/b"], None, vec![], "`oracle` is none"),
            (vec![], Some("nop"), vec!["max_turns=1"], "`nop` has no options"),
            (vec![], Some("custom"), vec![], "give --agent-folder DIR"),
            (vec!["custom"], None, vec![], "give --agent-folder DIR"),
            (vec!["a/b"], Some("custom"), vec![], "until there is a gateway"),
            (vec!["a/b"], None, vec!["x"], "is not NAME=VALUE"),
            (vec!["a/b"], None, vec!["x=1", "x=2"], "`x` is given twice"),
        ] {
            assert!(models(&given, agent, &options).unwrap_err().contains(part), "{given:?} {agent:?}");
        }
    }

    #[test]
    fn a_custom_agent_is_named_by_its_files() {
        let files = AgentArchive {
            content_hash: "0a".to_owned(),
            name: "mine".to_owned(),
            version: Some("1".to_owned()),
            model: "custom/mine@1".to_owned(),
            required_variables: Vec::new(),
            files: 1,
            expanded_bytes: 1,
            bytes: Vec::new(),
        };
        let found = |agent, options: &[String]| super::models(&[], agent, options, Some(&files));
        let expected = [("agent", "custom"), ("agent.content_hash", "0a")];
        let expected: Options = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for agent in [None, Some("custom")] {
            assert_eq!(found(agent, &[]).unwrap(), (vec!["custom/mine@1".to_owned()], expected.clone()));
        }
        let stored = models(&[], Some("custom"), &["content_hash=0b"]).unwrap();
        assert_eq!(stored, "custom agent=custom,agent.content_hash=0b");
        let error = |agent, options: &[String]| found(agent, options).unwrap_err().to_string();
        assert!(error(Some("bash"), &[]).contains("not of `bash`"));
        assert!(error(None, &["content_hash=0b".to_owned()]).contains("name two agents"));
    }

    #[test]
    fn an_agent_that_asks_a_model_is_an_option() {
        assert_eq!(models(&["a/b"], None, &[]).unwrap(), "a/b agent=terminus-2");
        let bash = models(&["a/b", "c/d"], Some("bash"), &["max_turns=3"]).unwrap();
        assert_eq!(bash, "a/b,c/d agent=bash,agent.max_turns=3");
    }
}
