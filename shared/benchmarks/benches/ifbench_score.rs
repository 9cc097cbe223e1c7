//! Measures how many stored IFEval responses one core grades per second, and the memory that it takes.
//!
//! Not a test: `cargo bench -p bench-benchmarks --bench ifbench_score [-- RESPONSES]` prints both. The lines have the
//! format that `bench score ifbench` reads and writes.

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use bench_benchmarks::find;
use bench_benchmarks::score::score_line;
use bench_items::Row;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/ifeval_extract.jsonl");
/// Default number of responses to grade.
const RESPONSES: usize = 20_000;
/// Lines that `bench score` reads at a time.
const BATCH_LINES: usize = 1_024;

/// Returns the peak memory of this process in KiB; `None` if the system doesn't report it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let responses = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(RESPONSES);
    let benchmark = find("ifbench").ok_or("no such benchmark")?;
    let text = std::fs::read_to_string(VECTORS)?;
    let vectors: Vec<&str> = text.lines().collect();
    let before = peak_kib();
    let started = Instant::now();
    let (mut correct, mut bytes, mut written) = (0, 0, 0);
    let mut lines = vectors.iter().cycle().take(responses).peekable();
    while lines.peek().is_some() {
        let batch: Result<Vec<Row>, _> = lines
            .by_ref()
            .take(BATCH_LINES)
            .inspect(|line| bytes += line.len())
            .map(|line| serde_json::from_str(line))
            .collect();
        for row in batch? {
            let graded = score_line(benchmark, &row, None)?;
            correct += usize::from(graded.correct);
            written += serde_json::to_vec(&graded)?.len();
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // the figure is only printed
    let per_second = responses as f64 / seconds;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{responses} responses ({bytes} bytes in, {written} bytes out, {correct} correct) on one core"
    )?;
    writeln!(out, "{seconds:.3} s, {per_second:.0} items/s per core")?;
    if let (Some(before), Some(after)) = (before, peak_kib()) {
        writeln!(out, "peak memory {after} KiB, {} KiB above the input", after.saturating_sub(before))?;
    }
    Ok(())
}
