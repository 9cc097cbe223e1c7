use console::measure_text_width;
use serde_json::{Value, json};

use super::*;
use crate::screen_tests::compare;

fn benchmark(planned: u64, per_task: u32, completed: u64) -> Benchmark {
    Benchmark {
        benchmark_name: "terminal_tasks".to_owned(),
        planned_samples: planned,
        samples_per_item: Some(per_task),
        completed_samples: completed,
        ..Benchmark::default()
    }
}

fn page(episodes: Vec<Value>) -> EpisodePageView {
    serde_json::from_value(json!({ "items": { "items": episodes, "total": 0 } })).unwrap()
}

fn episode(position: usize, sample: usize, outcome: Option<&str>, metadata: Value) -> Value {
    json!({
        "item_id": position.to_string(), "source_id": format!("task-{position}@0123456789ab"),
        "position": position, "sample": sample, "outcome": outcome, "item_metadata": metadata,
        "latency_ms": 1_000 * (sample as u64 + 1),
    })
}

/// Returns the episodes of a plan, with the marks that `mark` chooses.
fn filled(tasks: usize, per_task: usize, mark: impl Fn(usize, usize) -> Mark) -> Vec<TaskEpisodes> {
    let task = |position: usize| {
        let marks: Vec<Mark> = (0..per_task).map(|sample| mark(position, sample)).collect();
        let any_over = marks.iter().any(|mark| mark.is_over());
        TaskEpisodes {
            name: match position % 7 {
                3 => format!("recover-a-database-from-its-write-ahead-log-{position}"),
                _ => format!("task-{position}"),
            },
            marks,
            median_ms: any_over.then_some(12_345 * (position as u64 % 50) + 4_321),
        }
    };
    (0..tasks).map(task).collect()
}

/// Returns a mark for the progress of a run, in which some tasks are over, some at work, and the rest waits.
fn halfway(at: usize, of: usize, salt: usize) -> Mark {
    match (at * 100 / of.max(1), (at * 7 + salt) % 11) {
        (0..40, 0) => Mark::Failed,
        (0..40, 1) => Mark::Partial,
        (0..40, 2) if at.is_multiple_of(5) => Mark::Error,
        (0..40, _) => Mark::Passed,
        (40..42, _) => Mark::Running,
        _ => Mark::Waiting,
    }
}

#[test]
fn screen_of_episodes() {
    console::set_colors_enabled_stderr(false);
    let cases = [
        ("3 tasks of 10 episodes", filled(3, 10, |task, at| halfway(task * 10 + at, 30, task))),
        ("75 tasks of 10 episodes", filled(75, 10, |task, at| halfway(task * 10 + at, 750, task))),
        ("1 task of 750 episodes", filled(1, 750, |_, at| halfway(at, 750, 0))),
        ("750 tasks of 1 episode", filled(750, 1, |task, _| halfway(task, 750, 0))),
        (
            "75 tasks of 10 episodes, over",
            filled(75, 10, |task, at| halfway((task * 10 + at) % 290, 750, task)),
        ),
        ("2 tasks of 100 episodes", filled(2, 100, |task, at| halfway(task * 100 + at, 200, task))),
    ];
    let sizes = [(80, 22), (20, 10), (40, 5), (120, 22), (200, 12), (80, 3), (80, 1)];
    let mut found = String::new();
    for (name, tasks) in &cases {
        for (columns, lines) in sizes {
            let shown = render(tasks, Size { columns, lines });
            assert!((1..=lines).contains(&shown.len()), "{name}, {columns}x{lines}: {shown:?}");
            for line in &shown {
                assert!(measure_text_width(line) < columns, "{name}, {columns} columns: {line}");
            }
            found.push_str(&format!("# {name}, {columns} columns, {lines} lines\n{}\n\n", shown.join("\n")));
        }
    }
    compare("episodes_live", &found);
}

#[test]
fn tasks_at_work_come_first_then_failures_in_the_order_of_the_plan() {
    console::set_colors_enabled_stderr(false);
    use Mark::{Error, Failed, Partial, Passed, Running, Waiting};
    let plan = [Passed, Waiting, Failed, Running, Error, Waiting, Partial, Running, Passed];
    let tasks = filled(plan.len(), 1, |task, _| plan[task]);
    let names = |lines| -> Vec<String> {
        let shown = render(&tasks, Size { columns: 100, lines });
        shown.iter().map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    let shown = names(40);
    let order = [
        "recover-a-database-from-its-writ…",
        "task-7",
        "task-2",
        "task-4",
        "task-6",
        "task-1",
        "task-5",
        "task-0",
        "task-8",
    ];
    assert_eq!(shown[1..=plan.len()], order);
    let few = render(&tasks, Size { columns: 100, lines: 5 });
    assert_eq!(few.last().unwrap(), "6 tasks not shown: 2 with failures, 2 waiting, 2 passed");
}

#[test]
fn pages_of_episodes_that_are_over_are_not_read_again() {
    let mut episodes = Episodes::default();
    episodes.observe(&benchmark(450, 10, 0));
    let next = |episodes: &mut Episodes| episodes.next_page("r", "b").map(|page| page.offset);
    assert_eq!([(); 4].map(|()| next(&mut episodes)), [Some(0), Some(200), Some(400), Some(0)]);
    let over = |range: std::ops::Range<usize>| {
        page(range.map(|at| episode(at / 10, at % 10, Some("correct"), Value::Null)).collect())
    };
    // The first 400 are over: only the last page changes.
    episodes.add(over(0..400));
    assert_eq!([(); 3].map(|()| next(&mut episodes)), [Some(400), Some(400), Some(400)]);
    episodes.add(over(400..450));
    assert!(episodes.are_over());
    assert_eq!(next(&mut episodes), None);
    // Episodes are repeated: all are read again.
    episodes.observe(&benchmark(450, 10, 450));
    episodes.observe(&benchmark(450, 10, 449));
    assert!(!episodes.are_over());
    assert_eq!(next(&mut episodes), Some(0));
    let path = episodes.next_page("r", "b c").unwrap().path();
    assert_eq!(path, "/api/runs/r/benchmarks/b%20c?texts=false&limit=200&offset=200");
}

#[test]
fn episodes_have_the_marks_of_their_outcomes() {
    let mut episodes = Episodes::default();
    episodes.observe(&benchmark(10, 10, 0));
    let outcomes = ["correct", "partial", "incorrect", "no-answer", "infrastructure-error", "unsupported"];
    let mut items: Vec<Value> =
        (0..).zip(outcomes).map(|(at, outcome)| episode(0, at, Some(outcome), Value::Null)).collect();
    items.push(episode(0, 6, None, json!({ "episode_started": true })));
    items.push(episode(0, 7, None, json!({ "episode_started": false, "episode_attempts": 3 })));
    // Of an older server.
    items.push(episode(0, 8, None, json!({ "episode_attempts": 1 })));
    // Outside of the plan.
    items.push(episode(0, 10, Some("correct"), Value::Null));
    items.push(episode(7, 0, Some("correct"), Value::Null));
    episodes.add(page(items));
    let tasks = episodes.tasks();
    let shown: String = tasks[0].marks.iter().map(|mark| mark.symbol()).collect();
    assert_eq!((shown.as_str(), tasks.len()), ("✓◐✗✗!!▸·▸·", 1));
    assert_eq!((tasks[0].name.as_str(), tasks[0].median_ms), ("task-0", Some(3_000)));
    episodes.close();
    let shown: String = episodes.tasks()[0].marks.iter().map(|mark| mark.symbol()).collect();
    assert_eq!(shown, "✓◐✗✗!!····");
}

#[test]
fn hashes_are_shown_where_names_are_equal() {
    assert_eq!(without_hash("fix-csv@0123456789ab"), "fix-csv");
    assert_eq!(without_hash("fix-csv@home"), "fix-csv@home");
    let mut episodes = Episodes::default();
    episodes.observe(&benchmark(3, 1, 0));
    let named = |position: usize, name: &str| json!({ "item_id": "0", "source_id": name, "position": position, "sample": 0 });
    episodes.add(page(vec![
        named(0, "a@0123456789ab"),
        named(1, "a@ba9876543210"),
        named(2, "b@0123456789ab"),
    ]));
    let names: Vec<String> = episodes.tasks().into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["a@0123456789ab", "a@ba9876543210", "b"]);
}
