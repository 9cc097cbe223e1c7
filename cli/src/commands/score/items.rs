//! Lookup of items that responses name instead of containing their grading fields.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench_benchmarks::Benchmark;
use bench_datasets::{DatasetError, Index, load_item};
use bench_domain::run::DatasetChoice;
use bench_items::Row;
use bench_items::{ItemNames, NameProblems};
use serde_json::Value;

use super::SharedItem;
use super::lines::Lines;
use crate::data_dir::DataArgs;
use crate::exit::{Problem, sentence};
use crate::progress::DatasetProgress;
use bench_stack::Stack;

/// Maximum number of items in memory. Responses to the same item are usually close together.
const KEPT_MAX: usize = 10_000;

/// Finds items by name. Opens the data directory on first use.
pub(super) struct Items {
    benchmark: &'static dyn Benchmark,
    choice: DatasetChoice,
    file: Option<PathBuf>,
    data: DataArgs,
    opened: Option<OpenDataset>,
}

struct OpenDataset {
    stack: Stack,
    index: Index,
    /// Index positions of the items that the responses name.
    positions: HashMap<String, usize>,
    kept: HashMap<usize, SharedItem>,
}

impl Items {
    pub(super) fn new(
        benchmark: &'static dyn Benchmark,
        choice: DatasetChoice,
        file: Option<PathBuf>,
        data: DataArgs,
    ) -> Self {
        Self { benchmark, choice, file, data, opened: None }
    }

    /// Finds every item that the lines name, before any of them is graded.
    ///
    /// # Errors
    /// Fails if responses match no item of the dataset, or match ambiguously. The error counts and lists them.
    pub(super) async fn find<R: Read>(&mut self, mut lines: Lines<BufReader<R>>) -> anyhow::Result<()> {
        let Some((number, first)) = next_name(self.benchmark, &mut lines)? else { return Ok(()) };
        let opened = open(self.benchmark, &self.choice, self.file.as_deref(), &self.data).await;
        let opened = opened.map_err(|error| match error.is::<DatasetError>() {
            // The line is the reason why the dataset is needed.
            true => lines.error_at(number, &sentence(&error)),
            false => error,
        })?;
        let opened = self.opened.insert(opened);
        let names = ItemNames::new(&opened.index.items);
        let mut positions = HashMap::new();
        let mut problems = NameProblems::default();
        let mut all = 0;
        let mut next = Some(first);
        while let Some(name) = next {
            all += 1;
            match names.find(&name) {
                Ok(at) => {
                    positions.insert(name, at);
                }
                Err(error) => problems.add(&name, 1, &error),
            }
            next = next_name(self.benchmark, &mut lines)?.map(|(_, name)| name);
        }
        if problems.is_empty() {
            opened.positions = positions;
            return Ok(());
        }
        let description = problems.describe_responses(all, self.benchmark.name());
        let Index { id, revision, .. } = &opened.index;
        let problem = Problem::failure(format!(
            "{}: {description}; the items are from {id} at {revision}",
            lines.name()
        ));
        Err(problem.hint_if(problems.hint(self.benchmark)).into())
    }

    /// Returns the item that a line names, or `None` if the line contains the grading fields.
    pub(super) async fn item_for(&mut self, row: &Row) -> Result<Option<SharedItem>, String> {
        let Some(name) = name_of(self.benchmark, row)? else { return Ok(None) };
        let found = self.opened.as_mut().and_then(|opened| Some((*opened.positions.get(&name)?, opened)));
        // `find` has seen every line that names an item, so a missing name means that the input changed.
        let Some((at, opened)) = found else {
            return Err("the input changed while it was read".to_owned());
        };
        if let Some(item) = opened.kept.get(&at) {
            return Ok(Some(Arc::clone(item)));
        }
        let Some(entry) = opened.index.items.get(at) else { return Ok(None) };
        let item = load_item(&opened.stack.blobs, &opened.index.data_key, entry.offset, entry.length).await;
        let item = Arc::new(item.map_err(|error| error.to_string())?);
        if opened.kept.len() >= KEPT_MAX {
            opened.kept.clear();
        }
        opened.kept.insert(at, Arc::clone(&item));
        Ok(Some(item))
    }

    pub(super) async fn close(self) {
        if let Some(opened) = self.opened {
            opened.stack.stop(Duration::ZERO).await;
        }
    }
}

/// Returns the number of the next line that names an item, and that name. Skips bad lines, which are reported when they
/// are graded.
fn next_name<R: Read>(
    benchmark: &dyn Benchmark,
    lines: &mut Lines<BufReader<R>>,
) -> anyhow::Result<Option<(u64, String)>> {
    while let Some(line) = lines.next_with_item_name()? {
        if let Ok(Some(name)) = name_of(benchmark, &line.row) {
            return Ok(Some((line.number, name)));
        }
    }
    Ok(None)
}

/// Returns the name of the item, if the line doesn't contain the grading fields.
fn name_of(benchmark: &dyn Benchmark, row: &Row) -> Result<Option<String>, String> {
    let name = match row.get("item_id") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
        Some(Value::Null) | None => return Ok(None),
        Some(_) => return Err("column `item_id`: it is neither a text nor a whole number".to_owned()),
    };
    Ok(benchmark.score_row(row).is_err().then_some(name))
}

async fn open(
    benchmark: &'static dyn Benchmark,
    choice: &DatasetChoice,
    file: Option<&std::path::Path>,
    data: &DataArgs,
) -> anyhow::Result<OpenDataset> {
    let progress = Arc::new(DatasetProgress::default());
    let stack = data.open_with_progress(Arc::clone(&progress) as _).await?;
    let prepared = match file {
        Some(file) => stack.library.import_local(benchmark, file, progress.as_ref()).await,
        None => stack.library.prepare(benchmark, choice, progress.as_ref()).await,
    };
    progress.clear();
    let prepared = prepared?;
    if let Some(reason) = &prepared.demo_reason {
        // Grading against items that the model wasn't asked would be worse than no grading.
        let name = benchmark.name();
        return Err(Problem::failure(format!(
            "{name}: responses are not graded against demo items: {reason}"
        ))
        .hint("give --dataset FILE for items from a file, or --demo if the responses are to demo items")
        .into());
    }
    let index = prepared.index;
    Ok(OpenDataset { stack, index, positions: HashMap::new(), kept: HashMap::new() })
}
