//! One run in detail.

use bench_domain::{Code, RunId, RunStatus};

use super::metrics;
use crate::again;
use crate::client::Client;
use crate::page::Page;
use crate::refusal::Refusal;
use crate::views::{Judgings, Run};
use crate::{format, show};

/// Returns the run's judgings if there is more than one. Older servers have no judgings, and deleting the original run
/// deletes the list.
pub(super) async fn judgings(client: &Client, run: RunId) -> anyhow::Result<Option<Judgings>> {
    match client.get::<Judgings>(&format!("/api/runs/{run}/judgings")).await {
        Ok(found) => Ok((found.judgings.len() > 1).then_some(found)),
        Err(error) => match error.downcast_ref::<Refusal>().and_then(Refusal::code) {
            Some(Code::RouteNotFound | Code::RunNotFound | Code::RunDeleted) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Describes a run: its fields, the table of results, the metrics of its benchmarks, and its judgings. `causes` are those
/// of its infrastructure-errors, and `changes` says what to change if repeating them can't help.
pub(super) fn page(run: &Run, judgings: Option<&Judgings>, causes: &[String], changes: &[String]) -> Page {
    let mut page = Page::new(0, 12);
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            page.field(&format!("{name}:"), value);
        }
    };
    field("run", Some(run.id.clone()));
    run.labels().for_each(|(name, value)| field(name, Some(value)));
    field(run.model_label(), Some(run.located_model()));
    field("tasks", show::tasks(run));
    field("status", Some(show::status(run)));
    let waiting = run.waiting.as_ref();
    field("waiting", waiting.map(|waiting| waiting.describe_with_message(bench_clock::now())));
    let (error, advice) = run.error_and_advice().unzip();
    field("error", error);
    field("hint", advice.flatten());
    let rejudges = run.rejudges.as_ref();
    field("judges", rejudges.map(|of| format!("answers of run {}, version {}", of.run, of.version)));
    field("score", run.overall_score.map(|_| run.overall()));
    field("coverage", run.coverage.map(|coverage| format::percent(Some(coverage))));
    let seed = run.subset_seed.as_ref().map_or_else(String::new, |seed| format!(", seed {seed}"));
    field(
        "items",
        match (run.subset_count, run.subset_pct) {
            (Some(count), _) => Some(format!("{}{seed}", format::count(count))),
            (None, 1..=99) => Some(format!("{}%{seed}", run.subset_pct)),
            _ => None,
        },
    );
    field("cost", run.cost.map(|cost| format::dollars(cost.total_usd)));
    let counted = run.cost.map_or(0.0, |cost| cost.total_usd);
    let spent = run.spent.and_then(|spent| spent.usd).filter(|spent| *spent > counted + 0.000_05);
    field(
        "spent",
        spent.map(|spent| format!("{}, with samples that have no result", format::dollars(spent))),
    );
    field("created", Some(run.created_at.to_string()));
    field("started", run.started_at.map(|time| time.to_string()));
    field("completed", run.completed_at.map(|time| time.to_string()));
    for benchmark in &run.benchmarks {
        let name = benchmark.listed_name();
        field("protocol", benchmark.protocol.as_ref().map(|protocol| format!("{name}: {protocol}")));
        let options = Some(crate::commands::options::format_options(&benchmark.options));
        let options = options.filter(|listed| !listed.is_empty());
        field("options", options.map(|options| format!("{name}: {options}")));
        field("made by", show::facts(benchmark).map(|facts| format!("{name}: {facts}")));
        field("samples", show::sampled(benchmark).map(|sampled| format!("{name}: {sampled}")));
        field("error", run.own_error(benchmark).map(|error| format!("{name}: {error}")));
        let note = benchmark.dataset.as_ref().and_then(|dataset| dataset.note.as_ref());
        field("dataset", note.map(|note| format!("{name}: {note}")));
    }
    causes.iter().for_each(|cause| field("errors", Some(cause.clone())));
    changes.iter().for_each(|advice| field("hint", Some(advice.clone())));
    let resume = format!("`{}`", again::resume(&run.id));
    if run.interrupted {
        field("resume", Some(format!("{resume} continues the run")));
    } else if run.status == RunStatus::Succeeded && run.infrastructure_errors() > 0 && changes.is_empty() {
        field("resume", Some(format!("{resume} repeats the infrastructure-errors")));
    }
    if let Some(banner) = show::demo_banner(std::slice::from_ref(run)) {
        page.banner(banner);
    }
    page.blank();
    page.table(show::results(std::slice::from_ref(run)));
    if let Some(note) = show::interval_note(std::slice::from_ref(run)) {
        page.text("(–) ", note);
    }
    for benchmark in &run.benchmarks {
        metrics::add(&mut page, &run.id, benchmark);
    }
    if let Some(judgings) = judgings {
        page.blank();
        page.heading("judgings");
        page.table(show::judgings(judgings));
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::Layout;

    fn run() -> Run {
        let group = |share: f64| json!({ "accuracy": share, "correct": 300, "graded": 600, "planned": 600, "coverage": 1.0 });
        let metrics = json!({
            "latency_ms": { "p50": 850, "p95": 12_000 }, "categories": { "law": group(0.25), "math": group(0.75) },
            "accuracy_chance_adjusted": 0.52, "clustered": { "mean": 0.519, "standard_error": 0.014 },
            "pass_at": { "1": { "value": 0.519 }, "4": { "value": 0.7 } }, "pass_hat": { "4": { "value": 0.3 } },
        });
        serde_json::from_value(json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded",
            "model_slug": "deepseek-ai/DeepSeek-V3-0324", "model": "chutes/deepseek-ai/DeepSeek-V3-0324",
            "provider": "chutes", "endpoint_host": "llm.chutes.ai", "created_at": "2026-01-02T03:04:05Z",
            "started_at": "2026-01-02T03:04:06Z", "completed_at": "2026-01-02T04:04:05Z", "overall_score": 0.519,
            "overall_score_label": "score of mmlu_pro", "coverage": 0.999, "subset_count": 1_200, "subset_seed": "demo",
            "cost": { "total_usd": 2.5 },
            "benchmarks": [{
                "benchmark_name": "mmlu_pro", "status": "succeeded", "score": 0.519, "coverage": 0.999,
                "interval": { "low": 0.49, "high": 0.547 }, "sampled_items": 1_200, "samples_per_item": 4,
                "outcomes": { "correct": 600, "incorrect": 580, "truncated": 19, "infrastructure-error": 1 },
                "dataset": { "id": "TIGER-Lab/MMLU-Pro", "revision": "0123456789abcdef", "source": "hub" },
                "protocol_name": "authors", "prompt_source": "official", "prompt_digest": "0123456789abcdef",
                "protocol": "the five worked examples of the category, then the question; the answer is the last letter",
                "cost": { "total_usd": 2.5 }, "input_tokens": 1_234_567, "output_tokens": 345_678,
                "metrics": metrics,
            }],
        }))
        .unwrap()
    }

    fn two_judgings() -> Judgings {
        let judging = |version: u32, run: &str| {
            json!({
                "version": version, "run_id": run, "judge": { "model": "openrouter/openai/gpt-5" }, "status": "succeeded",
                "benchmarks": [{ "benchmark_name": "hle", "score": 0.25, "coverage": 1.0, "judge": {
                    "model": "openrouter/openai/gpt-5", "version": 2, "prompt_digest": "fedcba9876543210",
                    "prompt_source": "official", "temperature": 0.0 } }],
            })
        };
        let ids = ["3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "8d7e6f50-7d4a-4f60-9b1e-0a5c6d7e8f90"];
        serde_json::from_value(json!({ "judgings": [judging(1, ids[0]), judging(2, ids[1])] })).unwrap()
    }

    #[test]
    fn screen_of_a_run() {
        let causes =
            ["mmlu_pro: 1 × the provider closed the connection before the answer was complete".to_owned()];
        crate::screen_tests::check("run", |layout| {
            page(&run(), Some(&two_judgings()), &causes, &[]).render(layout)
        });
    }

    #[test]
    fn an_agent_that_asks_no_model_is_none() {
        let shown = |model: &str, benchmark: &str| {
            let run = serde_json::from_value(json!({
                "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded", "model_slug": model, "model": model,
                "provider": "oracle", "created_at": "2026-01-02T03:04:05Z",
                "benchmarks": [{ "benchmark_name": benchmark, "status": "succeeded" }],
            }));
            page(&run.unwrap(), None, &[], &[]).render(Layout::FILE)
        };
        for (model, benchmark, label) in [
            ("oracle", "terminal_tasks", "agent:"),
            ("nop", "terminal_bench_hard", "agent:"),
            ("oracle", "mmlu_pro", "model:"),
            ("openrouter/a/b", "terminal_tasks", "model:"),
        ] {
            let text = shown(model, benchmark);
            let line = text.lines().find(|line| line.ends_with(model)).unwrap();
            assert!(line.starts_with(label), "{text}");
        }
    }

    #[test]
    fn errors_that_would_come_again_have_no_advice_to_resume() {
        let shown = |changes: &[String]| page(&run(), None, &[], changes).render(Layout::FILE);
        assert!(shown(&[]).contains("--resume"));
        let changed = shown(&["change the task".to_owned()]);
        assert!(changed.contains("change the task") && !changed.contains("--resume"), "{changed}");
    }
}
