//! Tables and lines about runs.

use bench_benchmarks::NO_TEXT_DIGEST;
use bench_domain::RunStatus;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use console::style;

use crate::views::{Benchmark, Dataset, Judge, JudgedBenchmark, Judgings, Run};
use crate::{format, output};

/// Creates an empty table with a header, as wide as the terminal.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = output::width() {
        table.set_width(width);
    }
    table.set_header(header.iter().map(|name| Cell::new(*name)));
    table
}

/// Creates a cell with a number.
pub(crate) fn number(text: impl ToString) -> Cell {
    Cell::new(text.to_string()).set_alignment(CellAlignment::Right)
}

/// Builds a table of results, with a row for each benchmark.
pub(crate) fn results(runs: &[Run]) -> Table {
    let all = || runs.iter().flat_map(|run| &run.benchmarks);
    let with_tokens = all().any(|it| [it.input_tokens, it.output_tokens, it.estimated_tokens] != [0; 3]);
    let with_cost = all().any(|benchmark| benchmark.cost.is_some());
    let with_latency = all().any(|benchmark| benchmark.latency().is_some_and(|latency| latency.p95 > 0.0));
    let mut header = vec!["model", "benchmark", "score (95% interval)", "coverage", "n", "outcomes"];
    header.extend(with_tokens.then_some("tokens in / out"));
    header.extend(with_cost.then_some("cost"));
    header.extend(with_latency.then_some("latency p50 / p95"));
    header.push("dataset");
    let mut table = table(&header);
    for run in runs {
        for benchmark in &run.benchmarks {
            let mut row = vec![
                Cell::new(run.model()),
                Cell::new(name(benchmark)),
                Cell::new(score(benchmark)),
                number(format::percent(benchmark.coverage)),
                number(samples(benchmark)),
                Cell::new(outcomes(benchmark)),
            ];
            if with_tokens {
                row.push(number(tokens(benchmark)));
            }
            if with_cost {
                let at_least = if benchmark.estimated_tokens > 0 { "≥ " } else { "" };
                let cost =
                    benchmark.cost.map(|cost| format!("{at_least}{}", format::dollars(cost.total_usd)));
                row.push(number(cost.unwrap_or_else(|| "-".to_owned())));
            }
            if with_latency {
                let latency = benchmark.latency();
                let latency = latency
                    .map(|l| format!("{} / {}", format::milliseconds(l.p50), format::milliseconds(l.p95)));
                row.push(number(latency.unwrap_or_else(|| "-".to_owned())));
            }
            row.push(Cell::new(dataset(benchmark.dataset.as_ref())));
            table.add_row(row);
        }
    }
    table
}

/// Formats the tokens of a benchmark's answers: those that the provider counted, and an estimate of the rest.
fn tokens(benchmark: &Benchmark) -> String {
    let (input, output) = (format::count(benchmark.input_tokens), format::count(benchmark.output_tokens));
    match benchmark.estimated_tokens {
        0 => format!("{input} / {output}"),
        estimated => format!("{input} / {output} + ~{}", format::count(estimated)),
    }
}

/// Explains the tilde before tokens, or returns `None` if the provider counted all tokens.
fn estimated(benchmark: &Benchmark) -> Option<String> {
    (benchmark.estimated_tokens > 0).then(|| {
        format!(
            "~: {} tokens are estimated, since the provider sent no token counts or impossible ones; the cost leaves them out",
            format::count(benchmark.estimated_tokens)
        )
    })
}

/// Describes how scores were made: the source of the answers, and for each benchmark a line with protocol, prompt and
/// judge, and a line with metrics over several samples per item.
pub(crate) fn made_by(runs: &[Run]) -> Vec<String> {
    let mut lines = Vec::new();
    for run in runs {
        // The same model name at two providers means two models.
        if run.endpoint_host().is_some() {
            lines.push(format!("answers by {}", run.located_model()));
        }
        for benchmark in &run.benchmarks {
            let title = match runs.len() {
                1 => benchmark.benchmark_name.clone(),
                _ => format!("{}, {}", run.model(), benchmark.benchmark_name),
            };
            lines.extend(facts(benchmark).map(|facts| format!("{title}: {facts}")));
            lines.extend(sampled(benchmark).map(|sampled| format!("{title}: {sampled}")));
            lines.extend(estimated(benchmark).map(|estimated| format!("{title}: {estimated}")));
        }
    }
    lines
}

/// Describes metric (if not accuracy), protocol, prompt and judge of a benchmark, after it is planned.
pub(crate) fn facts(benchmark: &Benchmark) -> Option<String> {
    let name = benchmark.protocol_name.as_ref().or(benchmark.protocol.as_ref())?;
    let mut parts = Vec::new();
    let metric = benchmark.known().and_then(|known| known.metadata().metrics.first());
    // Readers assume that a score is the share of correct answers unless it says otherwise.
    if let Some(metric) = metric.filter(|metric| **metric != "accuracy") {
        parts.push(format!("score: {metric}"));
    }
    parts.push(format!("protocol {name}"));
    let prompt = benchmark.prompt_source.as_deref().zip(benchmark.prompt_digest.as_deref());
    parts.extend(prompt.map(|(source, digest)| format!("prompt: {}", prompt_label(source, Some(digest)))));
    parts.extend(benchmark.judge.as_ref().map(judge));
    let (input, output) = (benchmark.judge_input_tokens, benchmark.judge_output_tokens);
    if input > 0 || output > 0 {
        let about = if benchmark.judge_estimated_tokens > 0 { "~" } else { "" };
        let cost = benchmark.judge_cost.map(|cost| format!(", {about}{}", format::dollars(cost.total_usd)));
        let tokens = format!("{about}{} / {about}{}", format::count(input), format::count(output));
        let estimated = match benchmark.judge_estimated_tokens {
            0 => String::new(),
            estimated => format!(" ({} of them estimated)", format::count(estimated)),
        };
        parts.push(format!("tokens of the judge {tokens}{estimated}{}", cost.unwrap_or_default()));
    }
    Some(parts.join(", "))
}

/// Names the text of a prompt: official, own wording, or none besides the item's text.
pub(crate) fn prompt_label(source: &str, digest: Option<&str>) -> String {
    if digest == Some(NO_TEXT_DIGEST) {
        return NO_PROMPT_TEXT.to_owned();
    }
    let source = if source == "own" { "OWN wording" } else { source };
    match digest {
        Some(digest) => format!("{source} ({})", format::short(digest)),
        None => source.to_owned(),
    }
}

/// Label of a prompt that consists of the item's text alone.
pub(crate) const NO_PROMPT_TEXT: &str = "the item's text alone";

/// Judge without a model, which compares texts.
const ORACLE: &str = "oracle";

/// Returns a warning if no model judged the answers of a model.
pub(crate) fn judged_without_model(run: &Run) -> Option<String> {
    let of_oracle =
        |benchmark: &&Benchmark| benchmark.judge.as_ref().is_some_and(|judge| judge.model == ORACLE);
    let judged: Vec<&str> =
        run.benchmarks.iter().filter(of_oracle).map(|b| b.benchmark_name.as_str()).collect();
    (run.model() != ORACLE && !judged.is_empty()).then(|| {
        format!(
            "the judge `oracle` is not a model: it compares the texts of answers by {} with the gold answers ({})",
            run.model(),
            judged.join(", ")
        )
    })
}

/// Describes a judge with all settings that affect scores.
pub(crate) fn judge(judge: &Judge) -> String {
    // Settings that aren't given have the provider's values. The oracle has no settings.
    let is_oracle = judge.model == ORACLE;
    let setting = |name: &str, value: Option<String>| match value {
        Some(value) => format!(", {name}: {value}"),
        None if is_oracle => String::new(),
        None => format!(", {name}: provider's"),
    };
    let mut settings = setting("temperature", judge.temperature.map(|temperature| temperature.to_string()));
    settings.push_str(&setting("seed", judge.seed.map(|seed| seed.to_string())));
    if let Some(tokens) = judge.max_tokens {
        settings.push_str(&format!(", max tokens: {}", format::count(tokens.into())));
    }
    let Judge { model, version, .. } = judge;
    if is_oracle {
        return format!(
            "judge {ORACLE} (text comparison with the gold answer, no model), version {version}{settings}"
        );
    }
    let prompt = prompt_label(&judge.prompt_source, Some(&judge.prompt_digest));
    let model = bench_domain::run::name_with_host(model, judge.endpoint_host.as_deref());
    format!("judge {model} (version {version}, prompt: {prompt}{settings})")
}

/// Describes the metrics over several samples per item.
pub(crate) fn sampled(benchmark: &Benchmark) -> Option<String> {
    let sampled = benchmark.sampled()?;
    let mut text = format!("mean of the items' means {}", format::percent(Some(sampled.mean)));
    if let Some(error) = sampled.standard_error {
        text.push_str(&format!(" ± {:.1} (standard error, clustered by item)", error * 100.0));
    }
    for (k, value) in sampled.pass_at {
        text.push_str(&format!(", pass@{k} {}", format::percent(Some(value))));
    }
    for (k, value) in sampled.pass_hat {
        text.push_str(&format!(", pass^{k} {}", format::percent(Some(value))));
    }
    Some(text)
}

/// Builds a table of a run's judgings, with a row for each benchmark of each judging.
pub(crate) fn judgings(judgings: &Judgings) -> Table {
    let mut table =
        table(&["version", "run", "judge", "status", "benchmark", "score", "coverage", "judged by"]);
    for judging in &judgings.judgings {
        let status = judging.status.map_or_else(|| "deleted".to_owned(), |status| status.to_string());
        let model = judging.judge.as_ref().map_or("-", |judge| judge.model.as_str());
        let row = |benchmark: Option<&JudgedBenchmark>| {
            vec![
                number(judging.version),
                Cell::new(&judging.run_id),
                Cell::new(model),
                Cell::new(&status),
                Cell::new(benchmark.map_or("-", |benchmark| benchmark.benchmark_name.as_str())),
                number(format::percent(benchmark.and_then(|benchmark| benchmark.score))),
                number(format::percent(benchmark.and_then(|benchmark| benchmark.coverage))),
                Cell::new(
                    benchmark.and_then(|benchmark| benchmark.judge.as_ref()).map(judge).unwrap_or_default(),
                ),
            ]
        };
        match judging.benchmarks.as_slice() {
            [] => {
                table.add_row(row(None));
            }
            benchmarks => benchmarks.iter().for_each(|benchmark| {
                table.add_row(row(Some(benchmark)));
            }),
        }
    }
    if let Some(column) = table.column_mut(1) {
        column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
    }
    table
}

/// Builds a table of runs.
pub(crate) fn runs(runs: &[Run]) -> Table {
    let mut table = table(&["run", "created (UTC)", "model", "benchmarks", "status", "score", "coverage"]);
    for run in runs {
        let benchmarks: Vec<String> = run.benchmarks.iter().map(name).collect();
        table.add_row(vec![
            Cell::new(&run.id),
            Cell::new(format::minute(run.created_at)),
            Cell::new(run.model()),
            Cell::new(benchmarks.join(", ")),
            Cell::new(status(run)),
            number(run.overall()),
            number(format::percent(run.coverage)),
        ]);
    }
    // Ids must stay on one line, so that users can copy them.
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
    }
    table
}

/// Returns a warning to show before results that contain demo data.
pub(crate) fn demo_banner(runs: &[Run]) -> Option<String> {
    let demo = runs.iter().flat_map(|run| &run.benchmarks).filter(|benchmark| benchmark.demo);
    let mut names: Vec<&str> = demo.map(|benchmark| benchmark.benchmark_name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        let text = format!(
            " DEMO DATA in {}: the items are bundled with this program. The scores say nothing about the real benchmark. ",
            names.join(", ")
        );
        style(text).black().on_yellow().bold().to_string()
    })
}

/// Describes a run's state in words.
pub(crate) fn status(run: &Run) -> String {
    let done: u64 = run.benchmarks.iter().map(|benchmark| benchmark.completed_samples).sum();
    let planned: u64 = run.benchmarks.iter().map(|benchmark| benchmark.planned_samples).sum();
    match (run.status, run.queue_position) {
        (RunStatus::Queued | RunStatus::Running, _) if run.interrupted => {
            format!("interrupted {done}/{planned}")
        }
        (RunStatus::Queued, Some(position)) => format!("queued (position {position})"),
        (RunStatus::Running, _) => format!("running {done}/{planned}"),
        (status, _) => status.to_string(),
    }
}

fn name(benchmark: &Benchmark) -> String {
    let demo = if benchmark.demo { " (DEMO)" } else { "" };
    format!("{}{demo}", benchmark.benchmark_name)
}

fn score(benchmark: &Benchmark) -> String {
    let interval = benchmark.interval.map(|interval| (interval.low, interval.high));
    match (benchmark.score, benchmark.score_of_graded) {
        (Some(score), _) => {
            let is_share = benchmark.known().is_none_or(|known| known.scores_are_shares());
            format::percent_within(score, interval, is_share)
        }
        (None, Some(graded)) => format!("none (graded only: {})", format::percent(Some(graded))),
        (None, None) => benchmark.status.replace('_', " "),
    }
}

fn samples(benchmark: &Benchmark) -> String {
    match benchmark.samples_per_item {
        Some(samples) if samples > 1 => format!("{} × {samples}", format::count(benchmark.sampled_items)),
        _ => format::count(benchmark.sampled_items),
    }
}

fn outcomes(benchmark: &Benchmark) -> String {
    let counts: Vec<String> = benchmark
        .outcomes()
        .iter()
        .map(|(outcome, count)| format!("{} {outcome}", format::count(*count)))
        .collect();
    counts.join(", ")
}

pub(crate) fn dataset(dataset: Option<&Dataset>) -> String {
    let Some(dataset) = dataset else { return "-".to_owned() };
    let revision = format::short(&dataset.revision);
    match dataset.source.as_str() {
        "demo" => format!("DEMO @ {revision}"),
        "local" => format!("{} (local file) @ {revision}", dataset.id),
        _ => format!("{} @ {revision}", dataset.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::Interval;

    fn run(demo: bool) -> Run {
        serde_json::from_value(serde_json::json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded", "model_slug": "m", "model": "chutes/m",
            "provider": "chutes", "created_at": "2026-01-02T03:04:05Z", "overall_score": 0.5, "coverage": 1.0,
            "demo": demo,
            "benchmarks": [{"benchmark_name": "mmlu_pro", "status": "succeeded", "score": 0.5, "coverage": 1.0,
                "interval": {"low": 0.25, "high": 0.75}, "sampled_items": 1200, "samples_per_item": 1, "demo": demo,
                "outcomes": {"correct": 600, "incorrect": 590, "truncated": 10},
                "dataset": {"id": "TIGER-Lab/MMLU-Pro", "revision": "0123456789abcdef", "source": if demo { "demo" } else { "hub" }},
                "cost": {"input_usd": 1.0, "output_usd": 1.5, "total_usd": 2.5},
                "metrics": {"latency_ms": {"p50": 850, "p95": 12000}}}]
        }))
        .unwrap()
    }

    #[test]
    fn a_score_is_shown_with_its_interval_outcomes_and_dataset() {
        let text = results(&[run(false)]).to_string();
        for part in [
            "50.0% (25.0–75.0)",
            "100.0%",
            "1,200",
            "600 correct, 590 incorrect, 10 truncated",
            "$2.50",
            "850 ms / 12.0 s",
            "TIGER-Lab/MMLU-Pro @ 0123456789ab",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("DEMO"));
    }

    #[test]
    fn estimated_tokens_are_shown_as_estimates() {
        let mut run = run(false);
        let benchmark = &mut run.benchmarks[0];
        (benchmark.input_tokens, benchmark.output_tokens) = (1_000, 200);
        let counted = results(std::slice::from_ref(&run)).to_string();
        assert!(
            counted.contains("1,000 / 200") && !counted.contains('~') && !counted.contains('≥'),
            "{counted}"
        );
        run.benchmarks[0].estimated_tokens = 3_450;
        let shown = results(std::slice::from_ref(&run)).to_string();
        assert!(shown.contains("1,000 / 200 + ~3,450") && shown.contains("≥ $2.50"), "{shown}");
        assert!(made_by(std::slice::from_ref(&run))[0].contains("~: 3,450 tokens are estimated"));
        let benchmark = &mut run.benchmarks[0];
        benchmark.protocol_name = Some("authors".into());
        (benchmark.judge_input_tokens, benchmark.judge_output_tokens) = (900, 100);
        assert!(facts(benchmark).unwrap().ends_with("tokens of the judge 900 / 100"));
        benchmark.judge_estimated_tokens = 40;
        assert!(
            facts(benchmark).unwrap().ends_with("tokens of the judge ~900 / ~100 (40 of them estimated)")
        );
    }

    #[test]
    fn scores_say_how_they_were_made() {
        let mut run = run(false);
        assert!(made_by(std::slice::from_ref(&run)).is_empty(), "an older server sends none of these fields");
        let benchmark = &mut run.benchmarks[0];
        benchmark.protocol_name = Some("authors".into());
        benchmark.prompt_source = Some("own".into());
        benchmark.prompt_digest = Some("0123456789abcdef".into());
        benchmark.samples_per_item = Some(4);
        benchmark.judge = serde_json::from_value(serde_json::json!({
            "model": "openrouter/j", "version": 2, "prompt_digest": "fedcba9876543210", "prompt_source": "official",
            "temperature": 0.0, "seed": null, "max_tokens": 4096
        }))
        .ok();
        let metrics = serde_json::json!({
            "mean_of_items": 0.5, "clustered": { "mean": 0.5, "standard_error": 0.025 },
            "pass_at": { "4": { "value": 0.75 }, "1": { "value": 0.5 } },
            "pass_hat": { "4": { "value": 0.25 }, "1": { "value": 0.5 } },
            // Further metrics of the benchmark's protocol.
            "pass@1": 0.5, "pass@3": 0.625, "pass@3_by_difficulty": { "easy": 0.625 }, "pass@x": 1.0
        });
        benchmark.metrics = metrics.as_object().cloned();
        assert_eq!(
            made_by(&[run]),
            [
                "mmlu_pro: protocol authors, prompt: OWN wording (0123456789ab), judge openrouter/j (version 2, prompt: \
                 official (fedcba987654), temperature: 0, seed: provider's, max tokens: 4,096)",
                "mmlu_pro: mean of the items' means 50.0% ± 2.5 (standard error, clustered by item), pass@1 50.0%, \
                 pass@3 62.5%, pass@4 75.0%, pass^4 25.0%",
            ]
        );
    }

    #[test]
    fn a_score_that_is_not_a_share_is_labeled() {
        let mut run = run(false);
        let benchmark = &mut run.benchmarks[0];
        benchmark.benchmark_name = "aa_omniscience".into();
        benchmark.protocol_name = Some("public".into());
        (benchmark.score, benchmark.interval) = (Some(0.25), Some(Interval { low: -0.0353, high: 0.5353 }));
        assert_eq!(score(benchmark), "25.0% (-3.5–53.5)");
        assert_eq!(facts(benchmark).unwrap(), "score: omniscience_index, protocol public");
        (benchmark.score, benchmark.interval) = (Some(0.0), None);
        assert_eq!(score(benchmark), "0.0% (–)");
    }

    #[test]
    fn a_prompt_without_template_is_the_items_text_alone() {
        let mut run = run(false);
        let benchmark = &mut run.benchmarks[0];
        benchmark.protocol_name = Some("ifbench".into());
        (benchmark.prompt_source, benchmark.prompt_digest) =
            (Some("official".into()), Some(NO_TEXT_DIGEST.into()));
        assert_eq!(facts(benchmark).unwrap(), "protocol ifbench, prompt: the item's text alone");
    }

    #[test]
    fn a_judge_that_is_not_a_model_is_reported() {
        let mut run = run(false);
        assert!(judged_without_model(&run).is_none());
        run.benchmarks[0].protocol_name = Some("authors".into());
        run.benchmarks[0].judge = serde_json::from_value(serde_json::json!({
            "model": "oracle", "version": 1, "prompt_digest": "fedcba9876543210", "prompt_source": "own"
        }))
        .ok();
        assert_eq!(
            made_by(std::slice::from_ref(&run)),
            [
                "mmlu_pro: protocol authors, judge oracle (text comparison with the gold answer, no model), version 1"
            ]
        );
        assert!(
            judged_without_model(&run)
                .unwrap()
                .ends_with("texts of answers by chutes/m with the gold answers (mmlu_pro)")
        );
        run.benchmarks[0].judge.as_mut().unwrap().model = "openrouter/j".into();
        assert!(judged_without_model(&run).is_none());
    }

    #[test]
    fn demo_data_is_marked() {
        let demo = [run(true)];
        assert!(results(&demo).to_string().contains("mmlu_pro (DEMO)"));
        assert!(demo_banner(&demo).unwrap().contains("DEMO DATA in mmlu_pro"));
        assert!(demo_banner(&[run(false)]).is_none());
        assert!(runs(&demo).to_string().contains("mmlu_pro (DEMO)"));
    }
}
