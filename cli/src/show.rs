//! Tables and lines about runs.

mod tables;

use bench_benchmarks::NO_TEXT_DIGEST;
pub(crate) use bench_benchmarks::listed_name as benchmark_name;
use bench_domain::RunStatus;
use bench_runs::TERMINAL_TASKS;

use crate::format;
use crate::progress::without_hash;
use crate::views::{Benchmark, Dataset, Judge, Run};

/// Maximum number of tasks that lists name.
const TASKS_MAX: usize = 2;

/// Returns the id of the benchmark that a user names: by its id, by another name of it, or as lists show it. A name that
/// isn't known stays as it is.
pub(crate) fn benchmark_id(named: &str) -> String {
    let short = named.split(" (").next().unwrap_or(named);
    let known = short.parse::<bench_domain::BenchmarkName>().ok();
    let known = known.and_then(|name| bench_benchmarks::find_named(&name));
    known.map_or_else(|| named.to_owned(), |benchmark| benchmark.name().to_owned())
}

pub(crate) use tables::{judgings, results, runs};

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
        // The user model is part of what a score means.
        let user = run.user_model.as_ref().map(|user| format!("users simulated by {}", user.model));
        lines.extend(user.filter(|user| !lines.contains(user)));
        for benchmark in &run.benchmarks {
            let title = match runs.len() {
                1 => benchmark.listed_name(),
                _ => format!("{}, {}", run.leveled_model(), benchmark.listed_name()),
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
    parts.extend(benchmark.changed_settings.iter().cloned());
    let prompt = benchmark.prompt_source.as_deref().zip(benchmark.prompt_digest.as_deref());
    let prompt = prompt
        .and_then(|(source, digest)| prompt_of_benchmark(&benchmark.benchmark_name, source, Some(digest)));
    parts.extend(prompt.map(|prompt| format!("prompt: {prompt}")));
    parts.extend(benchmark.judge.as_ref().map(judge));
    parts.extend(tokens_of(
        "the judge",
        (benchmark.judge_input_tokens, benchmark.judge_output_tokens, benchmark.judge_estimated_tokens),
        benchmark.judge_cost.map(|cost| cost.total_usd),
    ));
    parts.extend(tokens_of(
        "the user model",
        (benchmark.user_input_tokens, benchmark.user_output_tokens, benchmark.user_estimated_tokens),
        benchmark.user_cost.map(|cost| cost.total_usd),
    ));
    Some(parts.join(", "))
}

/// Describes input, output and estimated tokens of a judge or user model, and their cost; `None` without tokens.
fn tokens_of(
    role: &str,
    (input, output, estimated): (u64, u64, u64),
    cost_usd: Option<f64>,
) -> Option<String> {
    if input == 0 && output == 0 {
        return None;
    }
    let about = if estimated > 0 { "~" } else { "" };
    let cost = cost_usd.map(|usd| format!(", {about}{}", format::dollars(usd)));
    let tokens = format!("{about}{} / {about}{}", format::count(input), format::count(output));
    let estimated = match estimated {
        0 => String::new(),
        estimated => format!(" ({} of them estimated)", format::count(estimated)),
    };
    Some(format!("tokens of {role} {tokens}{estimated}{}", cost.unwrap_or_default()))
}

/// Names the text of a benchmark's prompt as [`prompt_label`] does; `None` if an agent that asks no model worked on its items.
pub(crate) fn prompt_of_benchmark(name: &str, source: &str, digest: Option<&str>) -> Option<String> {
    let has_agent = bench_benchmarks::find(name).is_some_and(|known| known.has_agent());
    (!has_agent || digest != Some(NO_TEXT_DIGEST)).then(|| prompt_label(source, digest))
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
    let judged: Vec<String> = run.benchmarks.iter().filter(of_oracle).map(Benchmark::listed_name).collect();
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

/// Returns a warning to show before results that contain demo data.
pub(crate) fn demo_banner(runs: &[Run]) -> Option<String> {
    let demo = runs.iter().flat_map(|run| &run.benchmarks).filter(|benchmark| benchmark.demo);
    let mut names: Vec<String> = demo.map(Benchmark::listed_name).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "DEMO DATA in {}: the items are bundled with this program. The scores say nothing about the real benchmark.",
            names.join(", ")
        )
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
        (RunStatus::Running, _) => match &run.waiting {
            Some(waiting) => format!("running {done}/{planned}, {}", waiting.reason()),
            None => format!("running {done}/{planned}"),
        },
        (status, _) => status.to_string(),
    }
}

/// Names benchmarks for people, in one line.
pub(crate) fn benchmark_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(benchmark_name).collect::<Vec<_>>().join(", ")
}

fn name(benchmark: &Benchmark) -> String {
    let demo = if benchmark.demo { " (DEMO)" } else { "" };
    let agent = benchmark.agent().map_or_else(String::new, |agent| format!(" with {agent}"));
    format!("{}{agent}{demo}", benchmark.listed_name())
}

/// Names a benchmark of a run with its tasks, if it has some: `terminal_tasks: fix-csv, hello-world and 3 more`.
fn with_tasks(run: &Run, benchmark: &Benchmark) -> String {
    let name = name(benchmark);
    let tasks = run.tasks.as_deref().filter(|_| benchmark.benchmark_name == TERMINAL_TASKS);
    match tasks {
        Some(tasks) if !tasks.is_empty() => format!("{name}: {}", task_names(tasks, benchmark.sampled_items)),
        _ => name,
    }
}

/// Names all tasks of a run that its view names, with their content hashes; `None` for other runs.
pub(crate) fn tasks(run: &Run) -> Option<String> {
    let tasks = run.tasks.as_deref().filter(|tasks| !tasks.is_empty())?;
    let all = run.benchmarks.iter().find(|benchmark| benchmark.benchmark_name == TERMINAL_TASKS);
    let others = all.map_or(0, |benchmark| benchmark.sampled_items.saturating_sub(tasks.len() as u64));
    let more = if others > 0 { format!(" and {} more", format::count(others)) } else { String::new() };
    Some(format!("{}{more}", tasks.join(", ")))
}

/// Names the first tasks of a run, without their content hashes, and counts the others.
fn task_names(tasks: &[String], all: u64) -> String {
    let shown = tasks.get(..TASKS_MAX).unwrap_or(tasks);
    let names = shown.iter().map(|task| without_hash(task)).collect::<Vec<_>>().join(", ");
    match all.saturating_sub(shown.len() as u64) {
        0 => names,
        others => format!("{names} and {} more", format::count(others)),
    }
}

/// Formats the score of a benchmark with its interval, or why it has none.
pub(crate) fn score(benchmark: &Benchmark) -> String {
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

/// Explains `(–)` in place of an interval; `None` if no score lacks one.
pub(crate) fn interval_note(runs: &[Run]) -> Option<&'static str> {
    let mut benchmarks = runs.iter().flat_map(|run| &run.benchmarks);
    let lacks_one = |benchmark: &Benchmark| benchmark.score.is_some() && benchmark.interval.is_none();
    benchmarks
        .any(lacks_one)
        .then_some("no interval: the items' scores are all equal, so their spread isn't known")
}

/// Formats the score of a benchmark, or its state in its run if it has none.
fn score_or_state(run: &Run, benchmark: &Benchmark) -> String {
    if benchmark.score.or(benchmark.score_of_graded).is_some() {
        return score(benchmark);
    }
    let state = match benchmark.status.as_str() {
        "pending" | "running" if run.interrupted => "interrupted",
        "skipped" if run.status == RunStatus::Canceled => "canceled",
        _ => return score(benchmark),
    };
    match benchmark.planned_samples {
        0 => state.to_owned(),
        planned => {
            format!("{state} {}/{}", format::count(benchmark.completed_samples), format::count(planned))
        }
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
pub(crate) mod tests {
    use super::*;
    use crate::views::Interval;

    pub(crate) fn run(demo: bool) -> Run {
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
    fn benchmarks_are_found_by_every_name() {
        for named in ["ifbench", "ifeval", "IFEval", "ifbench (IFEval)", "IF_Bench"] {
            assert_eq!(benchmark_id(named), "ifbench", "{named}");
        }
        assert_eq!(benchmark_id("own one"), "own one");
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
        let mut simulated = run.clone();
        simulated.user_model =
            serde_json::from_value(serde_json::json!({ "model": "openrouter/u" })).unwrap();
        let lines = made_by(&[simulated.clone(), simulated]);
        assert_eq!(lines.iter().filter(|line| *line == "users simulated by openrouter/u").count(), 1);
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
    fn a_benchmark_has_the_state_of_its_run() {
        let mut run = run(false);
        run.benchmarks[0].score = None;
        (run.benchmarks[0].completed_samples, run.benchmarks[0].planned_samples) = (300, 1_200);
        let mut shown = |status: &str, of_run: RunStatus, interrupted: bool| {
            (run.status, run.interrupted) = (of_run, interrupted);
            run.benchmarks[0].status = status.to_owned();
            score_or_state(&run, &run.benchmarks[0])
        };
        assert_eq!(shown("running", RunStatus::Running, false), "running");
        assert_eq!(shown("running", RunStatus::Running, true), "interrupted 300/1,200");
        assert_eq!(shown("skipped", RunStatus::Canceled, false), "canceled 300/1,200");
        assert_eq!(shown("skipped", RunStatus::Failed, false), "skipped");
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
        assert!(demo_banner(&demo).unwrap().contains("DEMO DATA in mmlu_pro"));
        assert!(demo_banner(&[run(false)]).is_none());
    }
}
