use serde_json::{Value, json};

use super::*;

fn run(status: &str, completed: u64, waiting: Value) -> Run {
    serde_json::from_value(json!({
        "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": status, "model_slug": "m",
        "provider": "chutes", "created_at": "2026-01-02T03:04:05Z", "waiting": waiting,
        "benchmarks": [{ "benchmark_name": "hle", "status": "running", "planned_samples": 22,
            "completed_samples": completed, "graded_samples": completed, "correct_samples": completed }],
    }))
    .unwrap()
}

fn without_bars() -> RunProgress {
    RunProgress { terminal: false, ..RunProgress::new() }
}

#[test]
fn counts_from_before_are_not_shown() {
    let mut progress = without_bars();
    progress.update(&[run("queued", 22, Value::Null)]);
    assert!(progress.shown.is_empty() && progress.printed_at.is_none());
    progress.update(&[run("running", 2, Value::Null)]);
    assert_eq!(progress.shown.values().next().unwrap().last_printed, Some(2));
    // A benchmark that was shown before is still shown after its last sample.
    assert!(progress.print(&[run("running", 22, Value::Null)], false));
    // A run that was over from the start is shown.
    let mut progress = without_bars();
    progress.update(&[run("succeeded", 22, Value::Null)]);
    assert_eq!(progress.shown.len(), 1);
}

/// Returns the line about a run that has finished one sample a second for ten seconds, some seconds later.
fn line_after(seconds: u64, run: &Run) -> String {
    let start = Instant::now();
    let mut pace = Pace::default();
    for second in 0..=10 {
        pace.note(start + Duration::from_secs(second), second);
    }
    let shown = ShownBenchmark { bar: None, table: None, columns: 0, pace, last_printed: None };
    shown.line("hle", run, &run.benchmarks[0], start + Duration::from_secs(10 + seconds))
}

#[test]
fn a_line_says_how_far_how_good_and_how_long() {
    let running = run("running", 10, Value::Null);
    assert_eq!(line_after(0, &running), "hle 10/22 45.5%  1.0/s  eta 12 s  correct 100.0%");
    assert_eq!(line_after(30, &running), "hle 10/22 45.5%  eta –  correct 100.0%", "nothing moves");
    let wait = json!({ "kind": "rate_limited", "waits_for": "model", "until": "2999-01-02T03:04:05Z" });
    assert_eq!(line_after(0, &run("running", 10, wait)), "hle 10/22 45.5%  eta –  correct 100.0%");
    assert_eq!(line_after(0, &run("running", 22, Value::Null)), "hle 22/22 100.0%  correct 100.0%");
}

#[test]
fn a_wait_is_shown_once_until_it_changes_or_ends() {
    let wait = |until: &str| json!({ "kind": "rate_limited", "waits_for": "model", "until": until, "waiting_samples": 12 });
    let mut progress = without_bars();
    progress.update(&[run("running", 10, wait("2999-01-02T03:04:05Z"))]);
    let shown = progress.waits.values().next().unwrap();
    let same = run("running", 10, wait("2999-01-02T03:05:04Z"));
    assert!(!shown.is_due(same.waiting.as_ref().unwrap()));
    let longer = run("running", 10, wait("2999-01-02T03:05:05Z"));
    assert!(shown.is_due(longer.waiting.as_ref().unwrap()));
    progress.update(&[run("running", 11, Value::Null)]);
    assert!(progress.waits.is_empty());
    // A run that is over waits for nothing.
    progress.update(&[run("canceled", 11, wait("2999-01-02T03:04:05Z"))]);
    assert!(progress.waits.is_empty());
}

#[test]
fn lines_become_rarer() {
    let seconds = |elapsed| line_interval(Duration::from_secs(elapsed)).as_secs();
    assert_eq!([0, 60, 600, 3_600, 36_000].map(seconds), [5, 5, 50, 300, 300]);
}

#[test]
fn bars_fit_their_terminal() {
    for (columns, has_bar) in [(20, false), (59, false), (60, true), (80, true), (200, true)] {
        let template = bar_template(columns);
        assert_eq!(template.contains("{bar"), has_bar, "{columns}");
        assert!(ProgressStyle::with_template(template).is_ok());
    }
    assert_eq!([0.04, 0.5, 12.0].map(pace), ["2.4/min", "0.5/s", "12.0/s"]);
    assert_eq!(cut_name("hle (DEMO)", 22, 20), "hle (DEMO)");
    assert!(cut_name("ifbench_allenai (IFBench) (DEMO)", 12_032, 20).chars().count() <= 6);
    assert_eq!(cut_name("ifbench_allenai (IFBench) (DEMO)", 22, 80), "ifbench_allenai (IFBench) (DEMO)");
}

#[test]
fn parts_without_room_are_left_out_whole() {
    let parts = || vec![(3, "0.5/s".to_owned()), (0, "eta 9 s".to_owned()), (1, "correct 25.0%".to_owned())];
    assert_eq!(fit(parts(), 29), "0.5/s  eta 9 s  correct 25.0%");
    assert_eq!(fit(parts(), 28), "eta 9 s  correct 25.0%");
    assert_eq!(fit(parts(), 21), "eta 9 s");
    assert_eq!(fit(parts(), 3), "");
}

#[test]
fn samples_without_a_score_are_counted() {
    let mut failing = run("running", 10, Value::Null);
    (failing.benchmarks[0].graded_samples, failing.benchmarks[0].correct_samples) = (7, 0);
    assert_eq!(line_after(0, &failing), "hle 10/22 45.5%  1.0/s  eta 12 s  correct 0.0%  3 without a score");
}
