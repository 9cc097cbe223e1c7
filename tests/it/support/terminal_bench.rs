//! Tasks of Terminal-Bench 1 in rows of its dataset.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Writes the demo tasks to a file, each changed by `change`, which gets its number.
pub(crate) fn rows(dir: &Path, change: impl Fn(usize, &mut Value)) -> PathBuf {
    let benchmark = bench_benchmarks::find("terminal_bench_hard").unwrap();
    let lines = benchmark.spec().demo.items.lines().enumerate().map(|(number, line)| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        change(number, &mut row);
        format!("{row}\n")
    });
    let path = dir.join("terminal_bench.jsonl");
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}
