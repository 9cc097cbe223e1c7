//! `bench leaderboard`.

use bench_domain::Timestamp;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::{Api, ApiArgs, find_benchmark};
use crate::client::encode;
use crate::exit::ExitStatus;
use crate::run_ref::ShortIds;
use crate::table::{Column, Table};
use crate::views::Interval;
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench leaderboard
      benchmarks that have runs
  bench leaderboard mmlu_pro
      models ranked by their latest complete run, with ties
  bench leaderboard mmlu_pro --server https://bench.example.com --json";

#[derive(Debug, Args)]
pub(crate) struct LeaderboardArgs {
    /// Benchmark to rank models in [default: list the benchmarks that have runs]
    #[arg(value_name = "BENCHMARK")]
    benchmark: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Deserialize)]
struct Leaderboard {
    benchmarks: Vec<Listed>,
    boards: Vec<Board>,
    tie_method: String,
    excluded: std::collections::BTreeMap<String, u64>,
    runs_read: u64,
    is_complete: bool,
}

#[derive(Debug, Deserialize)]
struct Listed {
    benchmark_name: String,
    runs: u64,
}

#[derive(Debug, Deserialize)]
struct Board {
    protocol: String,
    dataset: Dataset,
    demo: bool,
    #[serde(default)]
    options: std::collections::BTreeMap<String, String>,
    samples_per_item: u32,
    judge: Option<String>,
    #[serde(default)]
    user_model: Option<String>,
    changed_settings: Vec<String>,
    items: u64,
    dataset_items: u64,
    subset_seed: Option<String>,
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Dataset {
    id: String,
    revision: String,
}

#[derive(Debug, Deserialize)]
struct Entry {
    rank_low: u64,
    rank_high: u64,
    model: String,
    #[serde(default)]
    thinking_level: Option<String>,
    endpoint_host: Option<String>,
    own_endpoint: bool,
    run_id: String,
    completed_at: Timestamp,
    score: f64,
    interval: Option<Interval>,
    best: Best,
    runs: u64,
}

#[derive(Debug, Deserialize)]
struct Best {
    score: f64,
}

pub(crate) async fn run(args: LeaderboardArgs) -> anyhow::Result<ExitStatus> {
    // A server may know other benchmarks.
    if let (Some(name), None) = (&args.benchmark, args.api.server.server()) {
        find_benchmark(name)?;
    }
    let api = Api::open(&args.api.server, &args.api.data).await?;
    let result = show_leaderboard(&api, &args).await;
    api.close().await;
    result.map(|()| ExitStatus::Success)
}

async fn show_leaderboard(api: &Api, args: &LeaderboardArgs) -> anyhow::Result<()> {
    let query = args.benchmark.as_ref().map(|name| format!("?benchmark={}", encode(name)));
    let answer: Value = api.client.get(&format!("/api/leaderboard{}", query.unwrap_or_default())).await?;
    if args.api.json {
        return output::json(&answer);
    }
    let found: Leaderboard = serde_json::from_value(answer)?;
    match &args.benchmark {
        None => print_benchmarks(&found),
        Some(name) => print_boards(&found, name),
    }
}

fn print_benchmarks(found: &Leaderboard) -> anyhow::Result<()> {
    if found.benchmarks.is_empty() {
        output::note("there are no finished runs to rank");
        return Ok(());
    }
    let mut table = Table::new([Column::text("benchmark"), Column::number("runs")]);
    for benchmark in &found.benchmarks {
        table.row([benchmark.benchmark_name.clone(), format::count(benchmark.runs)]);
    }
    output::print_table(&table)
}

fn print_boards(found: &Leaderboard, name: &str) -> anyhow::Result<()> {
    if found.boards.is_empty() {
        output::note(&format!("no run of {name} ranks"));
    }
    for (index, board) in found.boards.iter().enumerate() {
        if index > 0 {
            output::print("")?;
        }
        for line in heading(board) {
            output::print(&line)?;
        }
        output::print_table(&table(board))?;
    }
    if found.boards.iter().any(|board| board.entries.len() > 1) {
        output::note(&found.tie_method);
    }
    if found.boards.len() > 1 {
        output::note("scores in different tables can't be compared");
    }
    notes(found).iter().for_each(|note| output::note(note));
    Ok(())
}

/// Returns what the results of a board have in common.
fn heading(board: &Board) -> Vec<String> {
    let mut facts = vec![format!("protocol {}", board.protocol)];
    let revision: String = board.dataset.revision.chars().take(12).collect();
    facts.push(format!("dataset {}@{revision}", board.dataset.id));
    facts.push(match &board.subset_seed {
        Some(seed) => format!(
            "{} of {} with seed {seed}",
            format::count(board.items),
            format::plural(board.dataset_items, "item")
        ),
        None => format::plural(board.items, "item"),
    });
    if board.samples_per_item > 1 {
        facts.push(format!("{} samples each", board.samples_per_item));
    }
    facts.extend(board.judge.as_ref().map(|judge| format!("judge {judge}")));
    facts.extend(board.user_model.as_ref().map(|model| format!("user model {model}")));
    facts.extend(board.options.iter().map(|(name, value)| format!("{name} {value}")));
    facts.extend(board.changed_settings.iter().cloned());
    let mut lines = vec![facts.join(", ")];
    if board.demo {
        lines.insert(0, "DEMO: these scores say nothing about the real benchmark".to_owned());
    }
    lines
}

fn table(board: &Board) -> Table {
    let ids = ShortIds::new(board.entries.iter().map(|entry| entry.run_id.as_str()));
    let mut table = Table::new([
        Column::number("rank"),
        Column::path("model"),
        Column::text("score"),
        Column::text("best").drop_as(1),
        Column::text("run"),
        Column::text("finished (UTC)").drop_as(2),
    ]);
    for entry in &board.entries {
        let rank = match entry.rank_low == entry.rank_high {
            true => entry.rank_low.to_string(),
            false => format!("{}–{}", entry.rank_low, entry.rank_high),
        };
        let model = match entry.endpoint_host.as_ref().filter(|_| entry.own_endpoint) {
            Some(host) => format!("{} at {host}", entry.model),
            None => entry.model.clone(),
        };
        let model = match &entry.thinking_level {
            Some(level) => format!("{model} (thinking {level})"),
            None => model,
        };
        let interval = entry.interval.map(|interval| (interval.low, interval.high));
        table.row([
            rank,
            model,
            format::percent_within(entry.score, interval, true),
            format!("{} of {}", format::percent(Some(entry.best.score)), entry.runs),
            ids.get(&entry.run_id).to_owned(),
            format::minute(entry.completed_at),
        ]);
    }
    table
}

/// Returns notes about runs that don't rank.
fn notes(found: &Leaderboard) -> Vec<String> {
    let reason = |name: &str| match name {
        "failed" => "without a score",
        "oracle" => "of the oracle",
        "replay" => "of stored responses",
        "own_endpoint" => "at an own address",
        "demo" => "with demo data",
        "own_items" => "with items that no other run has",
        "partial" => "without full coverage",
        _ => "for another reason",
    };
    let left_out = found.excluded.iter().filter(|(_, count)| **count > 0);
    let mut notes: Vec<String> = left_out
        .map(|(name, count)| format!("not ranked: {} {}", format::plural(*count, "run"), reason(name)))
        .collect();
    if !found.is_complete {
        notes.push(format!("only the newest {} were read", format::plural(found.runs_read, "run")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn screen_of_the_leaderboard() {
        let entry = |rank: [u64; 2], model: &str, score: f64, runs: u64| {
            json!({
                "rank_low": rank[0], "rank_high": rank[1], "model": model, "endpoint_host": null,
                "own_endpoint": false, "run_id": format!("{}b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", 300 + runs),
                "completed_at": "2026-01-02T03:04:05Z", "score": score,
                "interval": { "low": score - 0.012, "high": score + 0.012 }, "best": { "score": score + 0.01 },
                "runs": runs,
            })
        };
        let mut board: Board = serde_json::from_value(json!({
            "protocol": "mmlu_pro 5-shot CoT v1", "dataset": { "id": "TIGER-Lab/MMLU-Pro", "revision": "3373e0b32277875b" },
            "demo": false, "options": {}, "samples_per_item": 1, "judge": null, "changed_settings": [],
            "items": 12_032, "dataset_items": 12_032, "subset_seed": null,
            "entries": [
                entry([1, 1], "openrouter/deepseek/deepseek-chat-v3.1", 0.812, 3),
                entry([2, 3], "openrouter/qwen/qwen3-235b-a22b-2507", 0.781, 1),
                entry([2, 3], "chutes/zai-org/GLM-4.6", 0.774, 12),
            ],
        }))
        .unwrap();
        assert_eq!(
            heading(&board),
            ["protocol mmlu_pro 5-shot CoT v1, dataset TIGER-Lab/MMLU-Pro@3373e0b32277, 12,032 items"]
        );
        crate::screen_tests::check("leaderboard", |layout| table(&board).render(layout));
        board.user_model = Some("openrouter/u".to_owned());
        assert!(heading(&board)[0].ends_with("12,032 items, user model openrouter/u"));
    }
}
