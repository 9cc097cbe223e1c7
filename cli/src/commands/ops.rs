//! `bench ops`.

use bench_domain::Timestamp;
use clap::Args;
use comfy_table::{Cell, Table};
use serde::Deserialize;
use serde_json::Value;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::show::number;
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench ops --server https://bench.example
  bench ops --json | jq .queue_counts
  watch -n 15 bench ops --server localhost:3000

Set BENCH_ADMIN_SECRET for a server. docs/operations.md explains what is shown,
and what to do about it.";

#[derive(Debug, Args)]
pub(crate) struct OpsArgs {
    /// Period of the load, in minutes before now, 30 to 1440
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(30..=1440))]
    minutes: u64,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

/// Fields of the overview that are shown. Fields that a compatible server lacks are empty.
#[derive(Debug, Deserialize)]
struct Overview {
    workers: Vec<Worker>,
    #[serde(default)]
    timeseries: Vec<Minute>,
    queue_counts: Counts,
    queued_runs: Vec<Line>,
    running_runs: Vec<Line>,
    completed_runs: Vec<Line>,
    token_stats: Tokens,
    #[serde(default)]
    queues: Vec<Queue>,
    #[serde(default)]
    unreadable_messages: Vec<Unreadable>,
    #[serde(default)]
    wrong_admin_secrets_24h: u64,
}

#[derive(Debug, Deserialize)]
struct Worker {
    worker_id: String,
    hostname: Option<String>,
    running_runs: u64,
    max_concurrent_runs: u64,
    item_concurrency: u64,
    last_seen: Timestamp,
}

#[derive(Debug, Deserialize)]
struct Minute {
    worker_count: u64,
    running_runs: u64,
    queued_runs: u64,
}

#[derive(Debug, Deserialize)]
struct Counts {
    queued: u64,
    running: u64,
    succeeded: u64,
    failed: u64,
    canceled: u64,
}

#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    model_slug: String,
    provider: String,
    status: String,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    #[serde(default)]
    benchmarks: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Tokens {
    last_24h: Window,
    last_7d: Window,
}

#[derive(Debug, Deserialize)]
struct Window {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Deserialize)]
struct Queue {
    name: String,
    visible: Option<u64>,
    in_flight: Option<u64>,
    delayed: Option<u64>,
    dead: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Unreadable {
    queue: String,
    sent_at: Timestamp,
    problem: String,
    run_id: Option<String>,
}

pub(crate) async fn run(args: OpsArgs) -> anyhow::Result<ExitStatus> {
    let mut api = super::Api::open(&args.server, &args.data).await?;
    // The details belong to the operator, regardless of the key that is set for orders.
    api.client = api.client.acting_as_admin();
    let path = format!("/api/ops/overview?minutes={}", args.minutes);
    let answer = if args.json {
        api.client.get::<Value>(&path).await.and_then(|overview| output::json(&overview))
    } else {
        api.client.get::<Overview>(&path).await.and_then(|overview| print(&overview, args.minutes))
    };
    api.close().await;
    answer.map(|()| ExitStatus::Success)
}

fn print(overview: &Overview, minutes: u64) -> anyhow::Result<()> {
    output::print(&counts(overview))?;
    if let Some(load) = load(&overview.timeseries, minutes) {
        output::print(&load)?;
    }
    if !overview.queues.is_empty() {
        output::print(&queues(&overview.queues).to_string())?;
    }
    if !overview.workers.is_empty() {
        output::print(&workers(&overview.workers).to_string())?;
    }
    let open = overview.running_runs.iter().chain(&overview.queued_runs);
    let all: Vec<&Line> = open.chain(overview.completed_runs.iter().take(10)).collect();
    if !all.is_empty() {
        output::print(&runs(&all).to_string())?;
    }
    if !overview.unreadable_messages.is_empty() {
        output::print(&unreadable(&overview.unreadable_messages).to_string())?;
        output::warn("unreadable messages were dropped: docs/operations.md, \"Unreadable messages\"");
    }
    if overview.wrong_admin_secrets_24h > 0 {
        output::warn(&format!(
            "{} requests with a wrong admin secret in the last 24 hours: docs/access.md, \"Wrong admin secrets\"",
            overview.wrong_admin_secrets_24h
        ));
    }
    if overview.queues.iter().any(|queue| queue.dead.is_some_and(|dead| dead > 0)) {
        output::warn(
            "a dead-letter queue is not empty: docs/operations.md, \"A dead-letter queue is not empty\"",
        );
    }
    Ok(())
}

fn counts(overview: &Overview) -> String {
    let counts = &overview.queue_counts;
    let tokens = |window: &Window| {
        format!("{} in, {} out", format::count(window.input_tokens), format::count(window.output_tokens))
    };
    format!(
        "Runs: {} queued, {} running, {} succeeded, {} failed, {} canceled\nTokens: {} in 24 h; {} in 7 d",
        format::count(counts.queued),
        format::count(counts.running),
        format::count(counts.succeeded),
        format::count(counts.failed),
        format::count(counts.canceled),
        tokens(&overview.token_stats.last_24h),
        tokens(&overview.token_stats.last_7d),
    )
}

fn load(series: &[Minute], minutes: u64) -> Option<String> {
    let most = |part: fn(&Minute) -> u64| series.iter().map(part).max();
    Some(format!(
        "Last {minutes} minutes: active in {}; at most {}, {} running, {} queued",
        series.len(),
        format::plural(most(|minute| minute.worker_count)?, "worker"),
        format::count(most(|minute| minute.running_runs)?),
        format::count(most(|minute| minute.queued_runs)?),
    ))
}

fn queues(queues: &[Queue]) -> Table {
    let mut table = show::table(&["queue", "waiting", "in flight", "for later", "dead"]);
    for queue in queues {
        let cell = |count: Option<u64>| number(count.map_or_else(|| "-".to_owned(), format::count));
        table.add_row(vec![
            Cell::new(&queue.name),
            cell(queue.visible),
            cell(queue.in_flight),
            cell(queue.delayed),
            cell(queue.dead),
        ]);
    }
    table
}

fn workers(workers: &[Worker]) -> Table {
    let mut table = show::table(&["worker", "host", "runs", "samples at once", "last seen (UTC)"]);
    for worker in workers {
        table.add_row(vec![
            Cell::new(&worker.worker_id),
            Cell::new(worker.hostname.as_deref().unwrap_or("-")),
            number(format!("{} of {}", worker.running_runs, worker.max_concurrent_runs)),
            number(worker.item_concurrency),
            Cell::new(worker.last_seen.whole_seconds()),
        ]);
    }
    table
}

fn runs(runs: &[&Line]) -> Table {
    let mut table = show::table(&["run", "status", "since (UTC)", "model", "benchmarks"]);
    for run in runs {
        let since = run.completed_at.or(run.started_at).unwrap_or(run.created_at);
        table.add_row(vec![
            Cell::new(&run.id),
            Cell::new(&run.status),
            Cell::new(format::minute(since)),
            Cell::new(format!("{}/{}", run.provider, run.model_slug)),
            Cell::new(run.benchmarks.as_deref().unwrap_or_default().join(", ")),
        ]);
    }
    // Ids must stay on one line, so that users can copy them.
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
    }
    table
}

fn unreadable(messages: &[Unreadable]) -> Table {
    let mut table = show::table(&["unreadable message", "sent (UTC)", "run", "problem"]);
    for message in messages {
        table.add_row(vec![
            Cell::new(&message.queue),
            Cell::new(format::minute(message.sent_at)),
            Cell::new(message.run_id.as_deref().unwrap_or("-")),
            Cell::new(&message.problem),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overview_of_a_compatible_server_can_be_shown() {
        let overview: Overview = serde_json::from_value(serde_json::json!({
            "workers": [{"worker_id": "w", "hostname": null, "running_runs": 1, "max_concurrent_runs": 3,
                "item_concurrency": 4, "last_seen": "2026-01-02T03:04:05.5Z"}],
            "timeseries": [{"timestamp": "2026-01-02T03:04:00Z", "worker_count": 2, "running_runs": 1, "queued_runs": 0}],
            "queue_counts": {"queued": 1, "running": 2, "succeeded": 12032, "failed": 0, "canceled": 0},
            "queued_runs": [], "running_runs": [], "completed_runs": [],
            "worker_config": {"worker_max_concurrent": 3, "worker_item_concurrency": 4},
            "token_stats": {"last_24h": {"window_hours": 24, "input_tokens": 1000, "output_tokens": 2},
                "last_7d": {"window_hours": 168, "input_tokens": 1000, "output_tokens": 2}}
        }))
        .unwrap();
        let text = counts(&overview);
        assert!(text.contains("12,032 succeeded") && text.contains("1,000 in, 2 out in 24 h"), "{text}");
        assert!(load(&overview.timeseries, 60).unwrap().contains("at most 2 workers, 1 running"));
        assert_eq!(load(&[], 60), None);
        assert!(workers(&overview.workers).to_string().contains("2026-01-02T03:04:05Z"));
    }

    #[test]
    fn unreadable_values_are_not_shown_as_zero() {
        let hidden = Queue {
            name: "items".into(),
            visible: None,
            in_flight: Some(0),
            delayed: Some(0),
            dead: Some(7),
        };
        let table = queues(&[hidden]).to_string();
        assert!(table.contains(" - ") && table.contains(" 7 "), "{table}");
    }
}
