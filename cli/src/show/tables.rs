//! Tables of runs, results and judgings.

use super::{dataset, judge, name, outcomes, samples, score_or_state, status, tokens, with_tasks};
use crate::format;
use crate::page::Page;
use crate::run_ref::ShortIds;
use crate::table::{Column, Table};
use crate::views::{JudgedBenchmark, Judgings, Run};

/// Builds a table of results, with a row for each benchmark. A score always has its coverage and outcomes beside it.
pub(crate) fn results(runs: &[Run]) -> Table {
    let all = || runs.iter().flat_map(|run| &run.benchmarks);
    let with_tokens = all().any(|it| [it.input_tokens, it.output_tokens, it.estimated_tokens] != [0; 3]);
    let with_cost = all().any(|benchmark| benchmark.cost.is_some());
    let with_latency = all().any(|benchmark| benchmark.latency().is_some_and(|latency| latency.p95 > 0.0));
    // The model of a single run is also named elsewhere.
    let model = Column::path("model");
    let mut columns = vec![
        if runs.len() == 1 { model.drop_as(4) } else { model },
        Column::words("benchmark"),
        Column::text("score (95% interval)"),
        Column::number("coverage"),
        Column::number("n").drop_as(2),
        Column::words("outcomes"),
    ];
    columns.extend(with_tokens.then(|| Column::number("tokens in / out").drop_as(6)));
    columns.extend(with_cost.then(|| Column::number("cost").drop_as(3)));
    columns.extend(with_latency.then(|| Column::number("latency p50 / p95").drop_as(7)));
    columns.push(Column::path("dataset").drop_as(5));
    let mut table = Table::new(columns);
    for run in runs {
        for benchmark in &run.benchmarks {
            let mut row = vec![
                run.leveled_model(),
                name(benchmark),
                score_or_state(run, benchmark),
                format::percent(benchmark.coverage),
                samples(benchmark),
                outcomes(benchmark),
            ];
            row.extend(with_tokens.then(|| tokens(benchmark)));
            if with_cost {
                let at_least = if benchmark.estimated_tokens > 0 { "≥ " } else { "" };
                let cost =
                    benchmark.cost.map(|cost| format!("{at_least}{}", format::dollars(cost.total_usd)));
                row.push(cost.unwrap_or_else(|| "-".to_owned()));
            }
            if with_latency {
                let latency = benchmark.latency();
                let latency = latency
                    .map(|l| format!("{} / {}", format::milliseconds(l.p50), format::milliseconds(l.p95)));
                row.push(latency.unwrap_or_else(|| "-".to_owned()));
            }
            row.push(dataset(benchmark.dataset.as_ref()));
            table.row(row);
        }
    }
    table
}

/// Builds the page of a list of runs: the table, and what the marks in it mean.
pub(crate) fn runs(runs: &[Run]) -> Page {
    let mut page = Page::new(0, 0);
    let model = Column::path("model").on_one_line();
    let wide = runs_table(runs, model, |run| (format::minute(run.created_at), run.leveled_model()));
    let narrow = runs_table(runs, Column::path("model"), |run| {
        let without_year = format::minute(run.created_at).chars().skip("2026-".len()).collect();
        (without_year, short_model(run, runs))
    });
    page.table(wide.or_narrow(narrow));
    if runs.iter().any(|run| run.overall_score.is_some() && has_changed_settings(run)) {
        page.text("* ", "settings differ from the benchmark's own; `bench runs RUN` names them");
    }
    page
}

/// Builds a table of runs. `time_and_model` are the cells whose form depends on the width.
fn runs_table(runs: &[Run], model: Column, time_and_model: impl Fn(&Run) -> (String, String)) -> Table {
    let short = ShortIds::new(runs.iter().map(|run| run.id.as_str()));
    let is_named = runs.iter().any(|run| run.name.is_some());
    let is_tagged = runs.iter().any(|run| !run.tags.is_empty());
    let mut columns = vec![Column::text("run")];
    columns.extend(is_named.then(|| Column::words("name")));
    columns.extend([
        Column::text("created (UTC)").drop_last(),
        model,
        Column::words("benchmarks"),
        Column::words("status"),
        Column::words("score").aligned_right(),
        Column::number("coverage"),
    ]);
    columns.extend(is_tagged.then(|| Column::words("tags").drop_as(2)));
    let mut table = Table::new(columns);
    for run in runs {
        let mut row = vec![short.get(&run.id)];
        row.extend(is_named.then(|| run.name.clone().unwrap_or_else(|| "-".to_owned())));
        let (created, model) = time_and_model(run);
        row.extend([
            created,
            model,
            run.benchmarks.iter().map(|benchmark| with_tasks(run, benchmark)).collect::<Vec<_>>().join(", "),
            status(run),
            overall(run),
            format::percent(run.coverage),
        ]);
        row.extend(is_tagged.then(|| if run.tags.is_empty() { "-".to_owned() } else { run.tags.join(", ") }));
        table.row(row);
    }
    table
}

/// Returns the end of the model's name, without its provider and its author, unless the list has another model with that
/// name.
fn short_model(run: &Run, all: &[Run]) -> String {
    fn name(run: &Run) -> &str {
        run.model_slug().rsplit('/').find(|part| !part.is_empty()).unwrap_or_default()
    }
    let model = run.model();
    let is_ambiguous = all.iter().any(|other| name(other) == name(run) && other.model() != model);
    run.with_level(if is_ambiguous || name(run).is_empty() { model } else { name(run).to_owned() })
}

fn has_changed_settings(run: &Run) -> bool {
    run.benchmarks.iter().any(|benchmark| !benchmark.changed_settings.is_empty())
}

/// Formats the overall score for a narrow column. A mean of several benchmarks says so, and a star marks settings that
/// differ from the benchmark's own.
fn overall(run: &Run) -> String {
    let score = run.overall().replace(" benchmark scores)", ")");
    let mark = if run.overall_score.is_some() && has_changed_settings(run) { "*" } else { "" };
    match score.split_once(' ') {
        Some((score, rest)) => format!("{score}{mark} {rest}"),
        None => format!("{score}{mark}"),
    }
}

/// Builds a table of a run's judgings, with a row for each benchmark of each judging.
pub(crate) fn judgings(judgings: &Judgings) -> Table {
    let short = ShortIds::new(judgings.judgings.iter().map(|judging| judging.run_id.as_str()));
    let mut table = Table::new([
        Column::number("version"),
        Column::text("run"),
        Column::path("judge"),
        Column::words("status"),
        Column::words("benchmark"),
        Column::number("score"),
        Column::number("coverage"),
        Column::words("judged by").drop_as(1),
    ]);
    for judging in &judgings.judgings {
        let status = judging.status.map_or_else(|| "deleted".to_owned(), |status| status.to_string());
        let model = judging.judge.as_ref().map_or("-", |judge| judge.model.as_str());
        let mut row = |benchmark: Option<&JudgedBenchmark>| {
            table.row([
                judging.version.to_string(),
                short.get(&judging.run_id),
                model.to_owned(),
                status.clone(),
                benchmark.map_or_else(
                    || "-".to_owned(),
                    |benchmark| super::benchmark_name(&benchmark.benchmark_name),
                ),
                format::percent(benchmark.and_then(|benchmark| benchmark.score)),
                format::percent(benchmark.and_then(|benchmark| benchmark.coverage)),
                benchmark.and_then(|benchmark| benchmark.judge.as_ref()).map(judge).unwrap_or_default(),
            ]);
        };
        match judging.benchmarks.as_slice() {
            [] => row(None),
            benchmarks => benchmarks.iter().for_each(|benchmark| row(Some(benchmark))),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::show::tests::run;

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
    fn no_width_separates_a_score_from_its_coverage_and_outcomes() {
        let layout = |width| crate::layout::Layout { width, is_terminal: true, has_unicode: true };
        for width in 20..=200 {
            let text = results(&[run(false)]).render(layout(width));
            for part in ["50.0%", "(25.0–75.0)", "100.0%", "correct", "incorrect", "truncated"] {
                assert!(text.contains(part), "{width}: {part}\n{text}");
            }
        }
    }

    /// Adds the names of tasks to a run of terminal tasks.
    fn of_tasks(mut run: Run) -> Run {
        let names = ["fix-csv", "org/log-summary", "hello-world", "count-words"];
        run.tasks = Some(names.map(|name| format!("{name}@0123456789ab")).into());
        run.benchmarks[0].sampled_items = 12;
        run
    }

    fn several_runs() -> Vec<Run> {
        let run = |id: &str, model: &str, status: &str, score: Option<f64>, names: &[&str]| -> Run {
            let benchmarks: Vec<_> = names
                .iter()
                .map(|name| {
                    serde_json::json!({ "benchmark_name": name, "status": status, "planned_samples": 12_032,
                        "completed_samples": 120, "demo": *name == "hle" })
                })
                .collect();
            let label = format!("mean of {} benchmark scores", names.len());
            serde_json::from_value(serde_json::json!({
                "id": id, "status": status, "model_slug": model.split_once('/').map_or(model, |(_, slug)| slug), "model": model, "provider": "p",
                "created_at": "2026-01-02T03:04:05Z", "overall_score": score, "overall_score_label": label,
                "coverage": score.map(|_| 1.0), "interrupted": status == "running", "benchmarks": benchmarks,
            }))
            .unwrap()
        };
        vec![
            run(
                "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90",
                "chutes/deepseek-ai/DeepSeek-V3-0324",
                "succeeded",
                Some(0.519),
                &["mmlu_pro"],
            ),
            run(
                "3f2b8c1e-0000-4f60-9b1e-0a5c6d7e8f90",
                "openai-compatible/qwen3",
                "running",
                None,
                &["gpqa_diamond"],
            ),
            run(
                "8d7e6f50-7d4a-4f60-9b1e-0a5c6d7e8f90",
                "oracle",
                "succeeded",
                Some(1.0),
                &["mmlu_pro", "hle", "aime_2025"],
            ),
            run(
                "00112233-7d4a-4f60-9b1e-0a5c6d7e8f90",
                "openrouter/meta-llama/llama-3.1-405b-instruct",
                "failed",
                None,
                &["livecodebench"],
            ),
            of_tasks(run(
                "44556677-7d4a-4f60-9b1e-0a5c6d7e8f90",
                "oracle",
                "succeeded",
                Some(1.0),
                &["terminal_tasks"],
            )),
        ]
    }

    #[test]
    fn screen_of_runs() {
        crate::screen_tests::check("runs", |layout| runs(&several_runs()).render(layout));
    }

    #[test]
    fn screen_of_results() {
        let mut other = run(false);
        other.benchmarks[0].estimated_tokens = 3_450;
        crate::screen_tests::check("results", |layout| results(&[run(false), other.clone()]).render(layout));
    }

    #[test]
    fn two_thinking_levels_of_a_model_are_told_apart() {
        let leveled = |generation: serde_json::Value| -> Run {
            serde_json::from_value(serde_json::json!({
                "id": "r", "status": "succeeded", "model_slug": "x/m", "provider": "chutes", "created_at": "2026-01-02T03:04:05Z",
                "generation": generation, "benchmarks": [{ "benchmark_name": "mmlu_pro", "status": "succeeded" }],
            }))
            .unwrap()
        };
        let all = [
            leveled(serde_json::Value::Null),
            leveled(serde_json::json!({ "stop": [], "reasoning_effort": "low", "thinking_budget": null })),
            leveled(serde_json::json!({ "reasoning_effort": "an effort of a newer server" })),
            leveled(serde_json::json!({ "thinking_budget": 8_192 })),
        ];
        let text = results(&all).to_string();
        let listed = runs(&all).render(Layout { width: 70, is_terminal: true, has_unicode: true });
        for part in
            ["m (thinking low)", "m (thinking an effort of a newer server)", "m (thinking 8192 tokens)"]
        {
            assert!(text.contains(&format!("chutes/x/{part}")), "{part}\n{text}");
        }
        assert!(text.contains("chutes/x/m  ") && listed.contains("(thinking"), "{text}\n{listed}");
        assert_eq!(short_model(&all[1], &all), "m (thinking low)");
        assert_eq!(serde_json::to_value(all[3].summary()).unwrap()["thinking_level"], "8192 tokens");
    }

    #[test]
    fn demo_data_is_marked() {
        let demo = [run(true)];
        assert!(results(&demo).to_string().contains("mmlu_pro (DEMO)"));
        assert!(in_file(&demo).contains("mmlu_pro (DEMO)"));
    }

    fn in_file(listed: &[Run]) -> String {
        runs(listed).render(Layout::FILE)
    }

    #[test]
    fn tags_have_a_column_if_a_run_has_some() {
        let mut listed = [run(false), run(false)];
        assert!(!in_file(&listed).contains("tags"));
        listed[1].tags = vec!["exp-7".into(), "nightly".into()];
        let text = in_file(&listed);
        assert!(text.contains("  tags\n") && text.ends_with("  exp-7, nightly"), "{text}");
    }

    #[test]
    fn changed_settings_are_marked() {
        let mut listed = [run(false), run(false)];
        assert!(!in_file(&listed).contains('*'));
        listed[1].benchmarks[0].changed_settings = vec!["temperature 1".into()];
        let text = in_file(&listed);
        assert!(text.contains("50.0%*") && text.contains("\n* settings differ"), "{text}");
        listed[1].overall_score = None;
        assert!(!in_file(&listed).contains('*'), "there is no score to compare");
    }

    #[test]
    fn providers_and_authors_are_left_out_where_the_model_is_clear() {
        let named = |provider: &str, slug: &str| -> Run {
            serde_json::from_value(serde_json::json!({
                "id": "r", "status": "succeeded", "model_slug": slug, "provider": provider,
                "created_at": "2026-01-02T03:04:05Z", "benchmarks": [],
            }))
            .unwrap()
        };
        let all = [
            named("openai-compatible", "a"),
            named("openai-compatible", "b"),
            named("chutes", "x/b"),
            named("lmstudio", "/x/c/"),
        ];
        let shown = all.each_ref().map(|run| short_model(run, &all));
        assert_eq!(shown, ["a", "openai-compatible/b", "chutes/x/b", "c"]);
    }

    #[test]
    fn names_have_a_column_if_a_run_has_one() {
        let mut listed = [run(false), run(false)];
        assert!(!in_file(&listed).contains("name"));
        listed[1].name = Some("baseline, 4 shots".into());
        let text = in_file(&listed);
        for part in ["  name  ", "  -  ", "  baseline, 4 shots  "] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
