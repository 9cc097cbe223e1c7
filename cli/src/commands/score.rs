//! `bench score`.

mod items;
mod lines;
mod source;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use bench_benchmarks::Benchmark;
use bench_benchmarks::score::ScoreLine;
use bench_domain::OutcomeCounts;
use bench_domain::run::DatasetChoice;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use self::items::Items;
use self::lines::{Lines, grade};
use self::source::ResponseSource;
use crate::bars::{bars, can_draw};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench score mmlu_pro --responses replies.jsonl --out verdicts.jsonl
  bench score aime_2025 --responses - < replies.jsonl > verdicts.jsonl
  bench score gpqa_diamond --protocol authors --responses replies.jsonl

Input: a JSONL file with one object per line.
  id         your own id of the response; required
  response   the model's text, or null for no answer
and either the item's grading fields, in the columns of the dataset:
  {\"id\": \"a1\", \"response\": \"… the answer is (C).\", \"answer\": \"C\"}   mmlu_pro
  {\"id\": \"a2\", \"response\": \"… \\\\boxed{70}\", \"gold\": \"70\"}           aime_2025
  {\"id\": \"a3\", \"response\": \"… Answer: C\", \"answer\": \"C\"}            gpqa_diamond
or fields that find the item in the dataset:
  item_id    the dataset's own id, such as its question_id, or the index of the
             row, from 0, as \"#12\"
  sample     number of the sample, from 0, for benchmarks that ask each sample
             of an item differently
A response that matches no item is refused before anything is graded.

Output, in the same order: `id`, `extracted`, `correct`, `score`, `outcome` and
`detail`.
Exit code 0 if at least 90% of the rows (BENCH_COVERAGE_MIN) could be graded,
else 1.

Benchmarks with a judge or a sandbox need `bench run`:
  bench run --model replay:FILE --benchmark hle --judge-model PROVIDER/MODEL
  bench run --model replay:FILE --benchmark livecodebench";

/// Number of lines to grade together.
const BATCH_LINES: usize = 1_024;

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// Benchmark whose rules grade the responses
    benchmark: String,
    /// Protocol of the benchmark [default: its default protocol]
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// File with the responses, one JSON object per line; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    responses: PathBuf,
    /// File for the verdicts [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file that --out names, if it exists
    #[arg(long)]
    force: bool,
    /// Find items in this file instead of the benchmark's dataset
    #[arg(long, value_name = "FILE")]
    dataset: Option<PathBuf>,
    /// Find items in the bundled demo items
    #[arg(long, conflicts_with = "dataset")]
    demo: bool,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) async fn run(args: ScoreArgs) -> anyhow::Result<ExitStatus> {
    let benchmark = super::find_benchmark(&args.benchmark)?;
    let benchmark = bench_benchmarks::with_protocol(benchmark, args.protocol.as_deref())
        .map_err(|unknown| Problem::usage(unknown.to_string()))?;
    if benchmark.judge().is_some() || benchmark.sandbox().is_some() {
        return Err(needs_judge_or_sandbox(&args, benchmark).into());
    }
    let coverage_min = bench_api::coverage_min(|name| std::env::var(name).ok()).map_err(Problem::usage)?;
    if let Some(file) = &args.dataset {
        super::check_exists("--dataset", file)?;
    }
    if let Some(out) = args.out.as_deref().filter(|out| *out != Path::new("-")) {
        // Grading takes minutes, so a misspelled folder is reported first.
        super::check_folder_of("--out", out)?;
        super::check_not_there("--out", out, args.force)?;
        if out.is_dir() {
            return Err(Problem::usage(format!("--out: `{}` is a folder", out.display()))
                .hint("give a file in that folder")
                .into());
        }
    }
    let choice = if args.demo { DatasetChoice::Demo } else { DatasetChoice::Hub };
    let mut items = Items::new(benchmark, choice, args.dataset.clone(), args.data.clone());
    let mut source = ResponseSource::open(&args.responses)?;
    if let Err(error) = items.find(source.lines()?).await {
        items.close().await;
        return Err(error);
    }
    let file = source.name().to_owned();
    let started = Instant::now();
    let mut sink = Sink::open(args.out.as_deref())?;
    let counts = score(benchmark, source.lines()?, &mut items, &mut sink).await;
    items.close().await;
    let counts = counts?;
    if output::is_closed() {
        // A summary of the rows so far would look like one of all.
        output::note("Stopped, since the reader of standard output has ended; not all rows were graded");
        return Ok(ExitStatus::Success);
    }
    if counts.total() == 0 {
        return Err(Problem::failure(format!("`{file}` has no rows to grade")).into());
    }
    sink.finish()?;
    let coverage = print_summary(benchmark, &counts, started);
    if coverage < coverage_min {
        output::error(&format!(
            "only {} of the rows could be graded; below {}, the accuracy is not a score",
            format::percent(Some(coverage)),
            format::percent(Some(coverage_min))
        ));
        return Ok(ExitStatus::Failure);
    }
    Ok(ExitStatus::Success)
}

/// Explains how to grade answers that need a judge or a sandbox.
fn needs_judge_or_sandbox(args: &ScoreArgs, benchmark: &dyn Benchmark) -> Problem {
    let file = if args.responses == Path::new("-") { Path::new("FILE") } else { &args.responses };
    let name = benchmark.name();
    let protocol = args.protocol.as_ref().map(|protocol| format!(" --protocol {name}={protocol}"));
    let (needs, judge) = match benchmark.judge() {
        Some(_) => ("a judge", " --judge-model PROVIDER/MODEL"),
        None => ("a sandbox", ""),
    };
    Problem::usage(format!("grading {name} needs {needs}, and `bench score` uses none")).hint(format!(
        "`bench run --model replay:{} --benchmark {name}{}{judge}` grades stored responses",
        file.display(),
        protocol.unwrap_or_default()
    ))
}

async fn score(
    benchmark: &'static dyn Benchmark,
    mut lines: Lines<BufReader<File>>,
    items: &mut Items,
    sink: &mut Sink,
) -> anyhow::Result<OutcomeCounts> {
    let bar = bar();
    let mut counts = OutcomeCounts::default();
    loop {
        let batch = lines.batch(BATCH_LINES)?;
        if batch.is_empty() || output::is_closed() {
            bar.finish_and_clear();
            return Ok(counts);
        }
        let mut asked = Vec::with_capacity(batch.len());
        for line in batch {
            let item =
                items.item_for(&line.row).await.map_err(|error| lines.error_at(line.number, &error))?;
            asked.push((line, item));
        }
        // The verdicts before a bad line are written, so that users see how far grading came.
        for (number, graded) in grade(benchmark, &asked) {
            let graded: ScoreLine = graded.map_err(|error| lines.error_at(number, &error))?;
            counts.add(graded.outcome);
            sink.write(&graded)?;
        }
        bar.inc(asked.len() as u64);
    }
}

fn bar() -> ProgressBar {
    if !can_draw() {
        return ProgressBar::hidden();
    }
    let bar = bars().add(ProgressBar::new_spinner());
    bar.set_style(
        ProgressStyle::with_template("{spinner:.cyan} {human_pos} responses graded, {per_sec}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar
}

/// Prints a summary, and returns the coverage: graded rows over all rows (at least one).
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts are far below 2^53
fn print_summary(benchmark: &dyn Benchmark, counts: &OutcomeCounts, started: Instant) -> f64 {
    let graded = counts.graded();
    let coverage = graded as f64 / counts.total().max(1) as f64;
    let correct = counts.get(bench_domain::Outcome::Correct);
    let accuracy = (graded > 0).then(|| correct as f64 / graded as f64);
    let rest: Vec<String> = counts
        .iter()
        .filter(|(outcome, count)| *count > 0 && *outcome != bench_domain::Outcome::Correct)
        .map(|(outcome, count)| format!("{} {outcome}", format::count(count)))
        .collect();
    let elapsed = started.elapsed();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let rate = counts.total() as f64 / (elapsed.as_secs_f64().max(1e-6) * cores as f64);
    output::note(&format!(
        "{} ({}): {}, graded {} of {}, coverage {}, {} correct, accuracy {}{}{} ({}, {} per second and core)",
        benchmark.metadata().listed_name(),
        benchmark.metadata().protocol_name,
        format::plural(counts.total(), "response"),
        format::count(graded),
        format::count(counts.total()),
        format::percent(Some(coverage)),
        format::count(correct),
        format::percent(accuracy),
        if rest.is_empty() { "" } else { "; " },
        rest.join(", "),
        format::milliseconds(elapsed.as_secs_f64() * 1_000.0),
        format::count(rate as u64),
    ));
    coverage
}

/// Destination of verdicts. A file appears once it is complete.
enum Sink {
    Stdout(BufWriter<io::Stdout>),
    File { file: BufWriter<File>, partial: PathBuf, to: PathBuf },
}

impl Sink {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(to) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        };
        let mut partial = to.to_owned().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).with_context(|| format!("could not write `{}`", to.display()))?;
        Ok(Self::File { file: BufWriter::new(file), partial, to: to.to_owned() })
    }

    fn write(&mut self, line: &ScoreLine) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line).context("could not write a verdict as JSON")?;
        text.push(b'\n');
        match self {
            Self::Stdout(stdout) => output::written(stdout.write_all(&text)),
            Self::File { file, to, .. } => {
                file.write_all(&text).with_context(|| format!("could not write `{}`", to.display()))
            }
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        match &mut self {
            Self::Stdout(stdout) => output::written(stdout.flush()),
            Self::File { file, partial, to } => {
                let moved = file.flush().and_then(|()| file.get_ref().sync_all());
                let moved = moved.and_then(|()| std::fs::rename(&*partial, &*to));
                moved.with_context(|| format!("could not write `{}`", to.display()))
            }
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Self::File { partial, .. } = self {
            // After success the partial file is already gone.
            let _ = std::fs::remove_file(partial);
        }
    }
}

/// Item that grading threads share.
type SharedItem = Arc<bench_items::Item>;
