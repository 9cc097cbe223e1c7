//! Terminal tasks in orders.

use std::collections::BTreeMap;

use anyhow::Context;
use bench_benchmarks::TerminalTasks;
use bench_domain::run::DatasetChoice;
use bench_domain::{Agent, BenchmarkName, RunId, UnknownAgent};
use bench_runs::{Order, Orderer, TERMINAL_TASKS, TrustedSettings};
use bench_stack::{Hold, Stack};
use bench_state::TaskRecord;
use serde_json::json;

use super::session::Session;
use crate::client::{Client, Task};
use crate::exit::Problem;
use crate::task_archive::TaskArchive;
use crate::views::Run;

/// Returns the models of an order with tasks: an agent that asks no model is one itself.
pub(super) fn models(models: &[String], agent: Option<&str>) -> anyhow::Result<Vec<String>> {
    let named: Vec<&str> = models.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let Some(agent) = agent else {
        if named.is_empty() {
            return Err(Problem::usage("no agent was given")
                .hint("give --agent oracle or --agent nop")
                .into());
        }
        if named.iter().any(|model| model.parse::<Agent>().is_err()) {
            return Err(Problem::usage("no agent of this version works on terminal tasks with a model")
                .hint("give --agent oracle or --agent nop, and no model")
                .into());
        }
        return Ok(named.into_iter().map(str::to_owned).collect());
    };
    let agent: Agent = agent.parse().map_err(|unknown: UnknownAgent| Problem::usage(unknown.to_string()))?;
    match named.iter().find(|model| **model != agent.as_str()) {
        Some(_) => {
            Err(Problem::usage(format!("the agent `{agent}` asks no model; leave --model out")).into())
        }
        None => Ok(vec![agent.as_str().to_owned()]),
    }
}

/// Stores tasks that aren't stored yet, and returns all of them.
pub(super) async fn store(client: &Client, archives: &[TaskArchive]) -> anyhow::Result<Vec<Task>> {
    let mut known: BTreeMap<u64, Task> = BTreeMap::new();
    loop {
        let page: Vec<Task> = client.get(&format!("/api/tasks?limit=100&skip={}", known.len())).await?;
        let (count, before) = (page.len(), known.len());
        known.extend(page.into_iter().map(|task| (task.id, task)));
        if count < 100 || known.len() == before {
            break;
        }
    }
    let mut stored: Vec<Task> = Vec::new();
    for archive in archives {
        let hash = archive.content_hash()?;
        if stored.iter().any(|task| task.content_hash == hash) {
            continue;
        }
        let task = match known.values().find(|task| task.content_hash == hash) {
            Some(task) => task.clone(),
            None => {
                let added = client.add_task(archive, &archive.name).await;
                added.with_context(|| format!("the task `{}` was not accepted", archive.name))?
            }
        };
        stored.push(task);
    }
    Ok(stored)
}

/// Imports the dataset of stored tasks.
pub(super) async fn dataset(stack: &Stack, tasks: &[Task]) -> anyhow::Result<(BenchmarkName, DatasetChoice)> {
    let mut records: Vec<TaskRecord> = Vec::with_capacity(tasks.len());
    for task in tasks {
        let record = stack.api.tasks.get(task.id).await?;
        records.push(record.with_context(|| format!("task {} is gone", task.id))?);
    }
    let name: BenchmarkName = TERMINAL_TASKS.parse().context("the name of the benchmark is invalid")?;
    Ok((name, stack.api.tasks.dataset(&records, &TerminalTasks::UPLOADED).await?))
}

/// Orders a run of an agent on tasks, in this process or at a server.
pub(crate) async fn order_tasks(
    session: &Session,
    archives: &[TaskArchive],
    agent: &str,
    samples: u32,
) -> anyhow::Result<(RunId, Vec<Hold>)> {
    let tasks = store(&session.client, archives).await?;
    let Some(stack) = session.stack() else {
        let ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
        let order = json!({ "tasks": ids, "agent": agent, "samples": samples });
        let created: Run = session.client.post("/api/runs", Some(&order)).await?;
        let run = created.id.parse().context("unexpected answer of the server: it names no run")?;
        return Ok((run, Vec::new()));
    };
    let dataset = dataset(stack, &tasks).await?;
    let order = Order {
        model: agent.to_owned(),
        benchmarks: Some(vec![TERMINAL_TASKS.to_owned()]),
        samples: Some(samples),
        trusted: TrustedSettings { datasets: [dataset].into(), ..TrustedSettings::default() },
        ..Order::default()
    };
    let created = stack.orders.create(order, Orderer::local()).await?;
    let run = created.run.run.spec.id;
    Ok((run, stack.hold(&[run], 0).await.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_agent_without_a_model_is_one() {
        let models = |given: &[&str], agent: Option<&str>| {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            super::models(&given, agent).map_err(|error| error.to_string())
        };
        assert_eq!(models(&[], Some("oracle")).unwrap(), ["oracle"]);
        assert_eq!(models(&["oracle"], Some("oracle")).unwrap(), ["oracle"]);
        assert_eq!(models(&["oracle", "nop"], None).unwrap(), ["oracle", "nop"]);
        for (given, agent, part) in [
            (vec![], None, "no agent was given"),
            (vec![], Some("claude"), "has no agent `claude`"),
            (vec!["openrouter/a/b"], Some("nop"), "leave --model out"),
            (vec!["openrouter/a/b"], None, "no agent of this version"),
        ] {
            assert!(models(&given, agent).unwrap_err().contains(part), "{given:?} {agent:?}");
        }
    }
}
