//! Reasons why a run didn't succeed, and advice on how to continue.

use bench_domain::{CauseCounts, Code, ErrorCause, Outcome, RunStatus, code};
use serde::Deserialize;

use super::budget;
use crate::again;
use crate::causes;
use crate::client::Client;
use crate::commands::cancel::next_steps;
use crate::views::{Benchmark, Run};
use crate::{format, output};

/// Maximum number of reasons to show per benchmark.
const REASONS_MAX: usize = 3;
/// Protocol without images, for models that don't accept any.
const TEXT_ONLY: &str = "text-only";

#[derive(Debug, Deserialize)]
struct Details {
    summary: Summary,
}

#[derive(Debug, Deserialize)]
struct Summary {
    #[serde(default)]
    error_breakdown: Vec<Reason>,
}

/// Number of samples that ended with the same error.
#[derive(Debug, Clone, Deserialize)]
struct Reason {
    message: String,
    /// `None` if the error was stored without a code.
    #[serde(default, deserialize_with = "code::deserialize_known")]
    code: Option<Code>,
    count: u64,
}

impl Reason {
    /// Returns true if the cause is in the item or in the stored responses, so that another attempt would fail, too.
    fn is_permanent(&self) -> bool {
        self.code.is_some_and(Code::is_permanent)
    }
}

/// Explains on standard error why a run didn't succeed, and how to continue.
pub(super) async fn explain(client: &Client, run: &Run) {
    if let Some(stopped) = budget::stopped(run) {
        output::error(&format!("run {} ({}) {stopped}", run.id, run.leveled_model()));
        output::hint(&format!(
            "`{}` with a larger --budget-usd or --budget-tokens runs the rest",
            again::resume(&run.id)
        ));
        return;
    }
    let what = match run.status {
        RunStatus::Canceled => "was canceled",
        _ => "failed",
    };
    let (error, advice) = run.error_and_advice().unwrap_or_default();
    let why = if error.is_empty() { String::new() } else { format!(": {error}") };
    output::error(&format!("run {} ({}) {what}{why}", run.id, run.leveled_model()));
    let mut all = Vec::new();
    for benchmark in &run.benchmarks {
        let name = benchmark.listed_name();
        if let Some(error) = run.own_error(benchmark) {
            output::note(&format!("  {name}: {error}"));
        }
        let reasons = reasons(client, run, benchmark).await;
        for line in lines(&reasons, &error) {
            output::note(&format!("  {name}: {line}"));
        }
        all.push(reasons);
    }
    for hint in advice.into_iter().chain(artifacts_hint(run)).chain(hints(run, &all)) {
        output::hint(&hint);
    }
}

/// Lists on standard error the infrastructure-errors of a run that succeeded, and how to repeat those samples.
pub(crate) async fn print_errors(client: &Client, run: &Run) {
    let mut has_any = false;
    for benchmark in run.benchmarks.iter().filter(|it| outcome(it, Outcome::InfrastructureError) > 0) {
        has_any = true;
        let name = benchmark.listed_name();
        let errors = outcome(benchmark, Outcome::InfrastructureError);
        output::note(&format!(
            "  {name}: {}, without a score",
            format::plural(errors, "infrastructure-error")
        ));
        for line in error_causes(client, run, benchmark).await {
            output::note(&format!("    {line}"));
        }
    }
    let all = all_reasons(client, run).await;
    if has_any {
        artifacts_hint(run).iter().for_each(|hint| output::hint(hint));
        let changes = change_hints(run, &all);
        if changes.is_empty() {
            output::hint(&format!("`{}` repeats them", again::resume(&run.id)));
        }
        changes.iter().for_each(|hint| output::hint(hint));
    }
    let timeouts = all.iter().map(|reasons| count_timeouts(reasons)).sum();
    timeout_hint(run, timeouts).iter().for_each(|hint| output::hint(hint));
}

/// Returns where more about the errors of episodes is; `None` if no episode has one.
fn artifacts_hint(run: &Run) -> Option<String> {
    let is_meant = run.has_episodes() && run.infrastructure_errors() > 0;
    is_meant.then(|| {
        format!(
            "`bench artifacts {}` lists what failed episodes left, such as `engine.txt` with the output of a build",
            run.id
        )
    })
}

/// Returns advice on what to change after the infrastructure-errors of a run that succeeded. Returns nothing if repeating
/// them may help.
pub(crate) async fn change_advice(client: &Client, run: &Run) -> Vec<String> {
    match run.infrastructure_errors() {
        0 => Vec::new(),
        _ => change_hints(run, &all_reasons(client, run).await),
    }
}

/// Returns advice on what to change, and nothing if repeating samples with the same order may help.
fn change_hints(run: &Run, reasons: &[Vec<Reason>]) -> Vec<String> {
    if may_change_any(run, reasons) {
        return Vec::new();
    }
    let hints = cause_hints(run, reasons);
    if hints.is_empty() { vec![nothing_changes(run)] } else { hints }
}

fn nothing_changes(run: &Run) -> String {
    format!("repeating the run would change nothing; `bench runs {} --items` shows every sample", run.id)
}

/// Returns the errors of each benchmark's samples.
async fn all_reasons(client: &Client, run: &Run) -> Vec<Vec<Reason>> {
    let mut all = Vec::with_capacity(run.benchmarks.len());
    for benchmark in &run.benchmarks {
        all.push(reasons(client, run, benchmark).await);
    }
    all
}

/// Returns the number of samples whose answer took too long.
fn count_timeouts(reasons: &[Reason]) -> u64 {
    let timeouts = reasons.iter().filter(|reason| reason.code == Some(Code::AnswerTimeout));
    timeouts.map(|reason| reason.count).sum()
}

/// Names the limit that answers exceeded; `None` if none did. Another limit needs another run, since it is part of the order.
fn timeout_hint(run: &Run, timeouts: u64) -> Option<String> {
    if timeouts == 0 {
        return None;
    }
    let answers = format::plural(timeouts, "answer");
    Some(match run.limits.and_then(|limits| limits.timeout_seconds) {
        Some(own) => format!("{answers} took longer than `--timeout {own}`; a new run can have a larger one"),
        None => format!(
            "{answers} took longer than the benchmark's time limit; `--timeout SECONDS` sets another one for a new run"
        ),
    })
}

/// Formats the causes of a benchmark's infrastructure-errors, one line each, most frequent first. Reads them from the
/// benchmark's page if the run's view has none, as for a gated dataset.
pub(crate) async fn error_causes(client: &Client, run: &Run, benchmark: &Benchmark) -> Vec<String> {
    if outcome(benchmark, Outcome::InfrastructureError) == 0 {
        return Vec::new();
    }
    let (error, _) = run.error_and_advice().unwrap_or_default();
    if benchmark.error_causes.is_empty() {
        return lines(&reasons(client, run, benchmark).await, &error);
    }
    let causes = benchmark.error_causes.iter();
    let reason =
        |cause: &ErrorCause| Reason { message: cause.message.clone(), code: cause.code, count: cause.count };
    lines(&causes.map(reason).collect::<Vec<_>>(), &error)
}

/// Returns the errors that a benchmark's samples ended with, most frequent first. Returns nothing if they can't be
/// read, since the caller reports the failure itself in any case.
async fn reasons(client: &Client, run: &Run, benchmark: &Benchmark) -> Vec<Reason> {
    if ungraded(benchmark) == 0 {
        return Vec::new();
    }
    let path = format!("/api/runs/{}/benchmarks/{}?limit=0", run.id, benchmark.benchmark_name);
    let found: anyhow::Result<Details> = client.get(&path).await;
    found.map(|details| details.summary.error_breakdown).unwrap_or_default()
}

/// Formats the most frequent reasons, one line each. Merges reasons that differ only by item or sample. Leaves out a
/// reason that is in `said`, the error of the run.
fn lines(reasons: &[Reason], said: &str) -> Vec<String> {
    let mut counts = CauseCounts::default();
    for Reason { message, code, count } in reasons {
        let message = causes::readable(message);
        // A long cause was cut when it was stored.
        if !said.contains(message.trim_end_matches([' ', '…'])) {
            counts.add(*code, &message, *count);
        }
    }
    let causes = counts.finish(REASONS_MAX);
    causes.iter().map(|cause| causes::times(cause.count, &causes::one_line(&cause.message))).collect()
}

fn outcome(benchmark: &Benchmark, wanted: Outcome) -> u64 {
    benchmark.outcomes().iter().find(|(outcome, _)| *outcome == wanted).map_or(0, |(_, count)| *count)
}

fn ungraded(benchmark: &Benchmark) -> u64 {
    benchmark.outcomes().iter().filter(|(outcome, _)| !outcome.is_graded()).map(|(_, count)| count).sum()
}

/// Returns true if repeating a benchmark with the same order could change its results.
fn may_change(benchmark: &Benchmark, reasons: &[Reason]) -> bool {
    if benchmark.planned_samples == 0 {
        // Named items and few-shot examples that the dataset lacks will be missing next time, too.
        return benchmark.status != "succeeded" && !benchmark.error_code.is_some_and(Code::is_permanent);
    }
    let stay: u64 = reasons.iter().filter(|reason| reason.is_permanent()).map(|reason| reason.count).sum();
    benchmark.completed_samples < benchmark.planned_samples
        || outcome(benchmark, Outcome::InfrastructureError) > stay
}

fn may_change_any(run: &Run, reasons: &[Vec<Reason>]) -> bool {
    run.benchmarks.iter().zip(reasons).any(|(benchmark, reasons)| may_change(benchmark, reasons))
}

/// Returns advice for causes that another attempt at the same order would meet again.
fn cause_hints(run: &Run, reasons: &[Vec<Reason>]) -> Vec<String> {
    let mut hints = Vec::new();
    let own = run.benchmarks.iter().find(|benchmark| {
        let is_local = benchmark.dataset.as_ref().is_none_or(|dataset| dataset.source == "local");
        is_local && benchmark.error_code == Some(Code::DatasetRowsMissing)
    });
    if let Some(own) = own {
        hints.push(format!(
            "to add the missing rows, give `--dataset {}=FOLDER` with the items and a file named after the split of the \
             rows, such as `validation.jsonl`",
            own.benchmark_name
        ));
    }
    let codes = || reasons.iter().flatten().filter_map(|reason| reason.code);
    if codes().any(|code| code == Code::TaskRefused) {
        hints.push(
            "repeating the run would change nothing: change the task or its variables (`--option env.NAME=VALUE`) as the error says, \
             and order a new run; `bench tasks check PATH` proves a task first"
                .to_owned(),
        );
    }
    if codes().any(|code| code == Code::NoStoredResponse) {
        hints.push(
            "repeating the run would change nothing, since it keeps the responses that it was ordered with: order a new \
             run with a file that has all of them"
                .to_owned(),
        );
    }
    hints
}

/// Returns advice on how to continue. `reasons` has the reasons of each benchmark.
fn hints(run: &Run, reasons: &[Vec<Reason>]) -> Vec<String> {
    let id = &run.id;
    if run.is_refused() {
        // The error itself says what helps. Without a change, the provider would refuse the run again.
        return vec![format!(
            "`{}` continues the run, as it was ordered, once the provider accepts its requests",
            again::resume(id)
        )];
    }
    if run.status == RunStatus::Canceled {
        return vec![next_steps(id)];
    }
    let mut hints = Vec::new();
    for benchmark in run.benchmarks.iter().filter(|it| outcome(it, Outcome::Unsupported) > 0) {
        let name = &benchmark.benchmark_name;
        let has_text_only = bench_benchmarks::find(name)
            .is_some_and(|found| bench_benchmarks::with_protocol(found, Some(TEXT_ONLY)).is_ok());
        if has_text_only && benchmark.protocol_name.as_deref() != Some(TEXT_ONLY) {
            hints.push(format!(
                "for a model without image input, order a new run with `--protocol {name}={TEXT_ONLY}`"
            ));
        }
    }
    hints.extend(timeout_hint(run, reasons.iter().map(|reasons| count_timeouts(reasons)).sum()));
    if !may_change_any(run, reasons) {
        hints.extend(cause_hints(run, reasons));
        if hints.is_empty() {
            hints.push(nothing_changes(run));
        }
        return hints;
    }
    let benchmarks = run.benchmarks.iter().filter_map(|benchmark| benchmark.error_code);
    let samples = reasons.iter().flatten().filter_map(|reason| reason.code);
    let codes: Vec<Code> = benchmarks.chain(run.error_code).chain(samples).collect();
    let resume = again::resume(id);
    if run.judge.is_some() && codes.iter().any(|code| code.is_about_judge()) {
        hints.push(format!(
            "`{resume}` continues with judging and keeps the answers of the model (BENCH_JUDGE_API_KEY is a \
             key for the judge alone)"
        ));
        hints.push(format!(
            "`bench rejudge {id} --judge-model PROVIDER/MODEL{}` grades the answers with another judge",
            again::same_place()
        ));
    } else if codes.contains(&Code::SandboxSetupNeeded) {
        hints.push(format!(
            "`bench sandy setup` (with `--toolchains` or `--packages TASKS` for programming tasks) installs what the sandboxes lack; then `{resume}` continues the run"
        ));
    } else {
        hints.push(format!("`{resume}` runs the missing samples"));
    }
    hints
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(more: Value, benchmark: Value) -> Run {
        let mut one = json!({ "benchmark_name": "hle", "status": "failed", "planned_samples": 4, "completed_samples": 4 });
        one.as_object_mut().unwrap().extend(benchmark.as_object().unwrap().clone());
        let mut run = json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "failed", "model_slug": "m", "provider": "chutes",
            "created_at": "2026-01-02T03:04:05Z", "benchmarks": [one],
        });
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(run).unwrap()
    }

    fn reason(message: &str, count: u64) -> Reason {
        Reason { message: message.into(), code: None, count }
    }

    fn coded(code: Code, message: &str, count: u64) -> Reason {
        Reason { code: Some(code), ..reason(message, count) }
    }

    #[test]
    fn the_most_frequent_reasons_have_a_line_each() {
        let all =
            [reason("a\u{1b}[2J\n b", 1_200), reason("b", 3), reason("c", 2), reason("d", 2), reason("e", 1)];
        assert_eq!(lines(&all, ""), ["1,200 × a[2J b", "3 × b", "2 × c", "3 × other causes"]);
        assert_eq!(lines(&[reason(&"x".repeat(5_000), 1)], "")[0].chars().count(), 4 + 300 + 1);
        assert!(lines(&[], "").is_empty());
    }

    #[test]
    fn what_differs_by_item_and_sample_is_one_reason() {
        let mut all: Vec<Reason> = (0..26)
            .map(|sample| {
                reason(&format!("no stored response for item `q{}`, sample {sample}", sample % 3), 1)
            })
            .collect();
        all.insert(0, reason("HTTP 500", 7));
        assert_eq!(lines(&all, ""), ["26 × no stored response for item …, sample …", "7 × HTTP 500"]);
        assert_eq!(lines(&all[1..2], ""), ["1 × no stored response for item `q0`, sample 0"]);
    }

    #[test]
    fn resuming_is_advised_only_where_it_can_help() {
        let hint = |run: &Run, reasons: &[Reason]| hints(run, &[reasons.to_vec()]).join("\n");
        let broken = run(json!({}), json!({ "outcomes": { "infrastructure-error": 4 } }));
        assert!(hint(&broken, &[reason("HTTP 500", 4)]).contains("--resume"));
        let own = [coded(Code::InvalidItem, "The item has no gold answer to compare with.", 4)];
        assert!(!hint(&broken, &own).contains("--resume"));
        assert!(
            hint(
                &broken,
                &[coded(Code::InvalidItem, "The item cannot be graded: x.", 3), reason("HTTP 500", 1)]
            )
            .contains("--resume")
        );
        let images = run(json!({}), json!({ "outcomes": { "unsupported": 4 }, "protocol_name": "official" }));
        let shown = hint(&images, &[reason("takes no images", 4)]);
        assert!(shown.contains("--protocol hle=text-only") && !shown.contains("--resume"), "{shown}");
        let lacking = json!({ "planned_samples": 0, "completed_samples": 0, "error_code": "item_not_found", "error_message": "the dataset has no item 999" });
        assert!(!hint(&run(json!({}), lacking), &[]).contains("--resume"));
        let examples = json!({
            "planned_samples": 0, "completed_samples": 0, "error_code": "dataset_rows_missing",
            "error_message": "the dataset of hle lacks examples: `x` (1 item); add those rows to the dataset or choose other items",
        });
        let shown = hint(&run(json!({}), examples), &[]);
        assert!(shown.contains("--dataset hle=FOLDER") && !shown.contains("--resume"), "{shown}");
        let unplanned = json!({ "planned_samples": 0, "completed_samples": 0, "error_message": "no hub" });
        assert!(hint(&run(json!({}), unplanned), &[]).contains("--resume"));
        let canceled = run(json!({ "status": "canceled" }), json!({}));
        assert!(hint(&canceled, &[]).contains("--resume"));
    }

    #[test]
    fn tasks_that_are_refused_again_are_to_be_changed() {
        let refused =
            coded(Code::TaskRefused, "the Dockerfile's `RUN --mount` is not supported; copy the file", 4);
        let failed = run(json!({}), json!({ "outcomes": { "infrastructure-error": 4 } }));
        let succeeded = run(
            json!({ "status": "succeeded" }),
            json!({ "status": "succeeded", "outcomes": { "infrastructure-error": 4, "correct": 60 } }),
        );
        let broken = reason("HTTP 500", 1);
        for all in
            [hints(&failed, &[vec![refused.clone()]]), change_hints(&succeeded, &[vec![refused.clone()]])]
        {
            let shown = all.join("\n");
            assert!(
                shown.contains("change the task or its variables") && !shown.contains("--resume"),
                "{shown}"
            );
        }
        let some = [vec![Reason { count: 3, ..refused }, broken]];
        assert!(hints(&failed, &some).join("\n").contains("--resume"));
        assert!(change_hints(&succeeded, &some).is_empty());
    }

    #[test]
    fn wording_decides_nothing() {
        let judged = run(
            json!({ "judge": { "model": "openrouter/j" }, "error_message": "the judge said: has no item x" }),
            json!({ "outcomes": { "infrastructure-error": 4 }, "error_message": "; add those rows to the dataset or " }),
        );
        let texts = [
            "The item is fine",
            "no stored response for item `x`",
            "run `bench sandy setup`",
            "the judge could not be asked: HTTP 401",
        ];
        let resume = |code: Option<Code>, text: &str| {
            hints(&judged, &[vec![Reason { message: text.into(), code, count: 4 }]]).join("\n")
        };
        let expected = resume(None, "");
        assert!(expected.contains("runs the missing samples"), "{expected}");
        for text in texts {
            assert_eq!(resume(Some(Code::ProviderError), text), expected);
        }
        assert!(resume(Some(Code::InvalidItem), "reworded").contains("would change nothing"));
        assert!(resume(Some(Code::NoStoredResponse), "reworded").contains("a file that has all of them"));
        assert!(resume(Some(Code::SandboxSetupNeeded), "reworded").contains("bench sandy setup"));
        assert!(resume(Some(Code::JudgeRateLimited), "reworded").contains("bench rejudge"));
    }

    #[test]
    fn answers_that_took_too_long_are_explained_by_their_limit() {
        let slow = [coded(Code::AnswerTimeout, "slow", 3), coded(Code::ContextTooLong, "long", 2)];
        assert_eq!(count_timeouts(&slow), 3);
        let outcomes = json!({ "outcomes": { "too-long": 5, "correct": 1 } });
        let own = run(json!({ "limits": { "timeout_seconds": 30 } }), outcomes.clone());
        let shown = hints(&own, &[slow.to_vec()]).join(" ");
        assert!(shown.contains("3 answers took longer than `--timeout 30`"), "{shown}");
        let shown = hints(&run(json!({}), outcomes.clone()), &[slow.to_vec()]).join(" ");
        assert!(shown.contains("the benchmark's time limit; `--timeout SECONDS`"), "{shown}");
        assert_eq!(timeout_hint(&own, 0), None);
    }

    #[test]
    fn a_reason_that_the_error_of_the_run_names_is_not_repeated() {
        let body = r#"HTTP 400 from X: {"error":{"message":"temperature is not supported"}}"#;
        let reasons = [reason(body, 5), reason("HTTP 500", 1)];
        let said =
            "the provider refused the first 5 samples alike: HTTP 400 from X: temperature is not supported";
        assert_eq!(lines(&reasons, said), ["1 × HTTP 500"]);
        assert_eq!(lines(&reasons, "")[0], "5 × HTTP 400 from X: temperature is not supported");
    }

    #[test]
    fn resuming_a_refused_run_requires_a_change_at_its_provider() {
        let refused =
            run(json!({ "failure_reason": "refused" }), json!({ "outcomes": { "infrastructure-error": 4 } }));
        let shown = hints(&refused, &[vec![reason("HTTP 400: no", 4)]]);
        assert!(shown.len() == 1 && shown[0].contains("once the provider accepts its requests"), "{shown:?}");
    }

    #[test]
    fn missing_sandbox_packages_are_set_up_before_resuming() {
        let broken = run(json!({}), json!({ "outcomes": { "infrastructure-error": 4 } }));
        let lacking = coded(
            Code::SandboxSetupNeeded,
            "run `bench sandy setup`: the sandbox's Python has no h5py, numpy",
            4,
        );
        assert_eq!(
            lines(std::slice::from_ref(&lacking), ""),
            [format!("4 × {}", lacking.message)],
            "all of it"
        );
        let shown = hints(&broken, &[vec![lacking]]).join("\n");
        let (setup, resume) =
            (shown.find("bench sandy setup").unwrap(), shown.find("bench run --resume").unwrap());
        assert!(setup < resume, "{shown}");
    }

    #[test]
    fn a_judge_that_failed_leaves_the_answers() {
        let judged = run(
            json!({ "judge": { "model": "openrouter/j" } }),
            json!({ "outcomes": { "infrastructure-error": 4 } }),
        );
        let shown =
            hints(&judged, &[vec![coded(Code::JudgeNotUsable, "the judge could not be asked: HTTP 401", 4)]])
                .join("\n");
        for part in ["--resume", "keeps the answers of the model", "bench rejudge", "BENCH_JUDGE_API_KEY"] {
            assert!(shown.contains(part), "{shown}");
        }
        let shown = hints(&judged, &[vec![reason("HTTP 500", 4)]]).join("\n");
        assert!(shown.contains("--resume") && !shown.contains("rejudge"), "{shown}");
    }
}
