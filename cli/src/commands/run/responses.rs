//! Checks of stored responses against the items of a run, before it is made.

use std::collections::{BTreeMap, HashMap};

use bench_benchmarks::Benchmark;
use bench_datasets::PreparedDataset;
use bench_domain::BenchmarkName;
use bench_domain::run::DatasetChoice;
use bench_items::{ItemNames, NameProblems};
use bench_pipeline::{ExcessResponses, NamedItem, RecordedResponses};

use super::models::Responses;
use super::order::Plan;
use crate::exit::Problem;
use crate::format;
use crate::progress::DatasetProgress;
use bench_stack::Stack;

/// Maximum number of benchmarks to name in a message.
const BENCHMARKS_SHOWN_MAX: usize = 5;

/// Rejects stored responses that match no item of the run's datasets, or match ambiguously. Graded against another
/// item, they would make a meaningless score.
pub(super) async fn check(
    plan: &Plan,
    stack: &Stack,
    datasets: &BTreeMap<BenchmarkName, DatasetChoice>,
    progress: &DatasetProgress,
) -> anyhow::Result<()> {
    let all: Vec<&Responses> = plan.models.iter().filter_map(|model| model.replay.as_ref()).collect();
    if all.is_empty() {
        return Ok(());
    }
    let mut prepared = Vec::with_capacity(plan.benchmarks.len());
    for name in &plan.benchmarks {
        let benchmark = plan.configured(name)?;
        let choice = plan.dataset_choice(name, datasets);
        let found = stack.library.prepare(benchmark, &choice, progress).await;
        let found = found.map_err(|error| Problem::failure(format!("{name}: {error}")))?;
        if let Some(reason) = &found.demo_reason {
            let problem = Problem::failure(format!(
                "{name}: stored responses are not graded against demo items: {reason}"
            ));
            return Err(problem.hint("give --demo if the responses are to demo items").into());
        }
        prepared.push((benchmark, found));
    }
    let known: Vec<BenchmarkItems<'_>> =
        prepared.iter().map(|(benchmark, prepared)| BenchmarkItems::new(*benchmark, prepared)).collect();
    for Responses { file, replay, .. } in all {
        check_file(file, replay, &known)?;
        check_samples(file, replay, |name| plan.samples_of(&known, name))?;
    }
    Ok(())
}

impl Plan {
    /// Returns the number of samples of each item that a line of responses applies to, by the line's benchmark. Returns `None`
    /// if the run has no such benchmark.
    fn samples_of(&self, known: &[BenchmarkItems<'_>], name: Option<&str>) -> Option<u32> {
        let named = known.iter().filter(|known| name.is_none_or(|name| name == known.benchmark.name()));
        let own = |known: &BenchmarkItems<'_>| known.benchmark.metadata().samples_per_item;
        named.map(|known| self.settings.samples.unwrap_or_else(|| own(known))).max()
    }
}

/// Rejects responses to samples that the run doesn't have: they would be left out without a word.
fn check_samples(
    file: &str,
    replay: &RecordedResponses,
    samples: impl Fn(Option<&str>) -> Option<u32>,
) -> Result<(), Problem> {
    let Some(ExcessResponses { lines, line, id, samples: needed }) = replay.find_excess(samples) else {
        return Ok(());
    };
    let verb = if lines == 1 { "is" } else { "are" };
    Err(Problem::usage(format!(
        "{file}: {} of {} {verb} to samples that the run doesn't have, the first in line {line}, to `{id}`",
        format::count(lines),
        format::plural(replay.len() as u64, "response"),
    ))
    .hint(format!("`sample` counts from 0; --samples {needed} runs all of them")))
}

/// A benchmark of the run, with the names of its items.
struct BenchmarkItems<'a> {
    benchmark: &'static dyn Benchmark,
    names: ItemNames<'a>,
}

impl<'a> BenchmarkItems<'a> {
    fn new(benchmark: &'static dyn Benchmark, prepared: &'a PreparedDataset) -> Self {
        Self { benchmark, names: ItemNames::new(&prepared.index.items) }
    }

    /// Returns true if a line may be for this benchmark.
    fn is_named_by(&self, named: &NamedItem<'_>) -> bool {
        named.benchmark.is_none_or(|name| name == self.benchmark.name())
    }
}

fn check_file(file: &str, replay: &RecordedResponses, known: &[BenchmarkItems<'_>]) -> Result<(), Problem> {
    let named = replay.named_items();
    check_benchmarks(file, &named)?;
    // A file may have responses to benchmarks that this run doesn't include.
    let named: Vec<_> =
        named.into_iter().filter(|named| known.iter().any(|known| known.is_named_by(named))).collect();
    let all = named.iter().map(|named| named.lines).sum();
    let mut problems: Vec<(Vec<&BenchmarkItems<'_>>, NameProblems)> = Vec::new();
    let mut items: Vec<HashMap<usize, &str>> = known.iter().map(|_| HashMap::new()).collect();
    for named in &named {
        let mut unmatched: Vec<&BenchmarkItems<'_>> = Vec::new();
        let mut errors = Vec::new();
        let mut is_found = false;
        for (known, items) in known.iter().zip(&mut items).filter(|(known, _)| known.is_named_by(named)) {
            match known.names.find(named.id) {
                Ok(at) => {
                    is_found = true;
                    if let Some(other) = items.insert(at, named.id).filter(|other| *other != named.id) {
                        check_clash(file, replay, known.benchmark.name(), (other, named.id))?;
                    }
                }
                Err(error) => {
                    unmatched.push(known);
                    errors.push(error);
                }
            }
        }
        // A line without a benchmark is for every benchmark that has its item, but an ambiguous item in any of them is
        // still an error.
        let worst = errors.iter().find(|error| matches!(error, bench_items::NameError::Ambiguous { .. }));
        let Some(error) = worst.or(errors.first().filter(|_| !is_found)) else { continue };
        let is_same = |(others, _): &&mut (Vec<&BenchmarkItems<'_>>, NameProblems)| {
            others
                .iter()
                .map(|known| known.benchmark.name())
                .eq(unmatched.iter().map(|known| known.benchmark.name()))
        };
        match problems.iter_mut().find(is_same) {
            Some((_, problems)) => problems.add(named.id, named.lines, error),
            None => {
                let mut first = NameProblems::default();
                first.add(named.id, named.lines, error);
                problems.push((unmatched, first));
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let descriptions = problems.iter().map(|(of, problems)| {
        let names: Vec<&str> = of.iter().map(|known| known.benchmark.name()).collect();
        problems.describe_responses(all, &names.join(", "))
    });
    let problem = Problem::failure(format!("{file}: {}", descriptions.collect::<Vec<_>>().join("; ")));
    let hint = problems.iter().find_map(|(of, problems)| problems.hint(of.first()?.benchmark));
    Err(problem.hint_if(hint))
}

/// Rejects unknown benchmarks, which are probably misspelled: their lines would otherwise be ignored.
fn check_benchmarks(file: &str, named: &[NamedItem<'_>]) -> Result<(), Problem> {
    let is_unknown =
        |named: &&NamedItem<'_>| named.benchmark.is_some_and(|name| bench_benchmarks::find(name).is_none());
    let (mut count, mut names) = (0, Vec::new());
    for NamedItem { benchmark, lines, .. } in named.iter().filter(is_unknown) {
        count += lines;
        names.extend(benchmark.map(|name| format!("`{name}`")).filter(|name| !names.contains(name)));
    }
    if count == 0 {
        return Ok(());
    }
    let all: u64 = named.iter().map(|named| named.lines).sum();
    let more = if names.len() > BENCHMARKS_SHOWN_MAX { ", …" } else { "" };
    names.truncate(BENCHMARKS_SHOWN_MAX);
    let (verb, names) = (if count == 1 { "is" } else { "are" }, names.join(", "));
    Err(Problem::failure(format!(
        "{file}: {} of {} responses {verb} for an unknown benchmark: {names}{more}",
        format::count(count),
        format::count(all)
    ))
    .hint("`bench benchmarks` lists the benchmarks"))
}

/// Rejects two answers to the same question that name the item in different ways.
fn check_clash(
    file: &str,
    replay: &RecordedResponses,
    benchmark: &str,
    (one, other): (&str, &str),
) -> Result<(), Problem> {
    match replay.find_conflict(benchmark, one, other) {
        None => Ok(()),
        Some((first, second)) => Err(Problem::failure(format!(
            "{file}: lines {first} and {second} answer the same question: `{one}` and `{other}` are one item of {benchmark}"
        ))),
    }
}
