//! `bench ops`.

use bench_domain::Timestamp;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::page::Page;
use crate::run_ref::ShortIds;
use crate::table::{Column, Table};
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
    /// Absent in responses of older servers.
    model: Option<String>,
    #[serde(default)]
    thinking_level: Option<String>,
    model_slug: String,
    provider: String,
    status: String,
    #[serde(default)]
    interrupted: bool,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    #[serde(default)]
    benchmarks: Option<Vec<String>>,
}

impl Line {
    /// Returns the model's name with its thinking level, if ordered.
    fn model(&self) -> String {
        let name = self.model.clone().unwrap_or_else(|| format!("{}/{}", self.provider, self.model_slug));
        match &self.thinking_level {
            Some(level) => format!("{name} (thinking {level})"),
            None => name,
        }
    }
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
    output::print_page(&page(overview, minutes))?;
    if !overview.unreadable_messages.is_empty() {
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

fn page(overview: &Overview, minutes: u64) -> Page {
    let mut page = Page::new(0, 0);
    page.text("", counts(overview));
    if let Some(load) = load(&overview.timeseries, minutes) {
        page.text("", load);
    }
    let open = overview.running_runs.iter().chain(&overview.queued_runs);
    let all: Vec<&Line> = open.chain(overview.completed_runs.iter().take(10)).collect();
    for (is_empty, table) in [
        (overview.queues.is_empty(), queues(&overview.queues)),
        (overview.workers.is_empty(), workers(&overview.workers)),
        (all.is_empty(), runs(&all)),
        (overview.unreadable_messages.is_empty(), unreadable(&overview.unreadable_messages)),
    ] {
        if !is_empty {
            page.blank();
            page.table(table);
        }
    }
    page
}

fn counts(overview: &Overview) -> String {
    let counts = &overview.queue_counts;
    let tokens = |window: &Window| {
        format!("{} in, {} out", format::count(window.input_tokens), format::count(window.output_tokens))
    };
    let open = overview.running_runs.iter().chain(&overview.queued_runs);
    let interrupted = match open.filter(|run| run.interrupted).count() {
        0 => String::new(),
        interrupted => format!(" ({} of these interrupted)", format::count(interrupted as u64)),
    };
    format!(
        "Runs: {} queued, {} running{interrupted}, {} succeeded, {} failed, {} canceled\nTokens: {} in 24 h; {} in 7 d",
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
        "Last {minutes} minutes: active in {}; at the busiest {}, {} running and {} queued",
        series.len(),
        format::plural(most(|minute| minute.worker_count)?, "worker"),
        format::count(most(|minute| minute.running_runs)?),
        format::count(most(|minute| minute.queued_runs)?),
    ))
}

fn queues(queues: &[Queue]) -> Table {
    let mut table = Table::new([
        Column::text("queue"),
        Column::number("waiting"),
        Column::number("in flight"),
        Column::number("for later"),
        Column::number("dead"),
    ]);
    for queue in queues {
        let cell = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), format::count);
        table.row([
            queue.name.clone(),
            cell(queue.visible),
            cell(queue.in_flight),
            cell(queue.delayed),
            cell(queue.dead),
        ]);
    }
    table
}

fn workers(workers: &[Worker]) -> Table {
    let mut table = Table::new([
        Column::path("worker"),
        Column::text("host").drop_as(1),
        Column::number("runs"),
        Column::number("samples at once").drop_as(2),
        Column::text("last seen (UTC)"),
    ]);
    for worker in workers {
        table.row([
            worker.worker_id.clone(),
            worker.hostname.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{} of {}", worker.running_runs, worker.max_concurrent_runs),
            worker.item_concurrency.to_string(),
            worker.last_seen.whole_seconds().to_string(),
        ]);
    }
    table
}

fn runs(runs: &[&Line]) -> Table {
    let short = ShortIds::new(runs.iter().map(|run| run.id.as_str()));
    let mut table = Table::new([
        Column::text("run"),
        Column::text("status"),
        Column::text("since (UTC)").drop_as(1),
        Column::path("model"),
        Column::words("benchmarks"),
    ]);
    for run in runs {
        let since = run.completed_at.or(run.started_at).unwrap_or(run.created_at);
        table.row([
            short.get(&run.id),
            if run.interrupted { "interrupted".to_owned() } else { run.status.clone() },
            format::minute(since),
            run.model(),
            show::benchmark_names(run.benchmarks.iter().flatten().map(String::as_str)),
        ]);
    }
    table
}

fn unreadable(messages: &[Unreadable]) -> Table {
    let short = ShortIds::new(messages.iter().filter_map(|message| message.run_id.as_deref()));
    let mut table = Table::new([
        Column::text("unreadable message"),
        Column::text("sent (UTC)").drop_as(1),
        Column::text("run"),
        Column::words("problem"),
    ]);
    for message in messages {
        table.row([
            message.queue.clone(),
            format::minute(message.sent_at),
            message.run_id.as_deref().map_or_else(|| "-".to_owned(), |run| short.get(run)),
            message.problem.clone(),
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
        assert!(
            load(&overview.timeseries, 60)
                .unwrap()
                .contains("at the busiest 2 workers, 1 running and 0 queued")
        );
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
        assert!(table.contains(" - ") && table.ends_with(" 7"), "{table}");
    }

    #[test]
    fn screen_of_ops() {
        let run = |id: &str, status: &str| {
            serde_json::json!({
                "id": id, "model": "chutes/deepseek-ai/DeepSeek-V3-0324",
                "model_slug": "deepseek-ai/DeepSeek-V3-0324", "provider": "chutes", "status": status,
                "created_at": "2026-01-02T03:04:05Z", "started_at": null, "completed_at": null,
                "benchmarks": ["mmlu_pro", "gpqa_diamond"],
            })
        };
        let window = serde_json::json!({ "input_tokens": 1_234_567, "output_tokens": 89_000 });
        let overview: Overview = serde_json::from_value(serde_json::json!({
            "workers": [{ "worker_id": "host.example/12345", "hostname": "host.example", "running_runs": 1,
                "max_concurrent_runs": 3, "item_concurrency": 64, "last_seen": "2026-01-02T03:04:05Z" }],
            "timeseries": [{ "worker_count": 2, "running_runs": 1, "queued_runs": 0 }],
            "queue_counts": { "queued": 1, "running": 1, "succeeded": 12_032, "failed": 0, "canceled": 0 },
            "queued_runs": [run("8d7e6f50-7d4a-4f60-9b1e-0a5c6d7e8f90", "queued")],
            "running_runs": [run("3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "running")], "completed_runs": [],
            "token_stats": { "last_24h": window, "last_7d": window },
            "queues": [{ "name": "items", "visible": 120, "in_flight": 64, "delayed": 0, "dead": 0 },
                { "name": "turns", "visible": null, "in_flight": null, "delayed": null, "dead": 1 }],
            "unreadable_messages": [{ "queue": "items", "sent_at": "2026-01-02T03:04:05Z",
                "problem": "the message is not JSON: expected value at line 1 column 1", "run_id": null }],
        }))
        .unwrap();
        crate::screen_tests::check("ops", |layout| page(&overview, 60).render(layout));
    }
}
