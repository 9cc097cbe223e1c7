//! Items that responses name instead of bringing their grading fields.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench_benchmarks::{Benchmark, Row};
use bench_datasets::{Index, load_item};
use bench_domain::run::DatasetChoice;
use serde_json::Value;

use super::SharedItem;
use crate::data_dir::DataArgs;
use crate::exit::sentence;
use crate::progress::DatasetProgress;
use crate::stack::Stack;

/// Items that are kept in memory: several responses to one item come close to each other.
const KEPT_MAX: usize = 10_000;

/// Finds items by their ids. The data directory is opened when the first one is asked for.
pub(super) struct Items {
    benchmark: &'static dyn Benchmark,
    choice: DatasetChoice,
    file: Option<PathBuf>,
    data: DataArgs,
    opened: Option<Opened>,
}

struct Opened {
    stack: Stack,
    index: Index,
    by_id: HashMap<String, usize>,
    kept: HashMap<String, SharedItem>,
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

    /// The item that a line names; `None` when the line brings what is needed itself.
    pub(super) async fn of(&mut self, row: &Row) -> Result<Option<SharedItem>, String> {
        let id = match row.get("item_id") {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) if id.is_i64() || id.is_u64() => id.to_string(),
            Some(Value::Null) | None => return Ok(None),
            Some(_) => return Err("column `item_id`: is neither a text nor a whole number".to_owned()),
        };
        if self.benchmark.score_row(row).is_ok() {
            return Ok(None);
        }
        let opened = match &mut self.opened {
            Some(opened) => opened,
            none => {
                let opened = open(self.benchmark, &self.choice, self.file.as_deref(), &self.data).await;
                none.insert(opened.map_err(|error| sentence(&error))?)
            }
        };
        if let Some(item) = opened.kept.get(&id) {
            return Ok(Some(Arc::clone(item)));
        }
        let entry = opened.by_id.get(&id).and_then(|at| opened.index.items.get(*at));
        let entry = entry.ok_or_else(|| {
            let shown: String = id.chars().take(80).collect();
            format!(
                "{} has no item `{shown}` in {} at {}",
                self.benchmark.name(),
                opened.index.id,
                opened.index.revision
            )
        })?;
        let item = load_item(&opened.stack.blobs, &opened.index.data_key, entry.offset, entry.length).await;
        let item = Arc::new(item.map_err(|error| error.to_string())?);
        if opened.kept.len() >= KEPT_MAX {
            opened.kept.clear();
        }
        opened.kept.insert(id, Arc::clone(&item));
        Ok(Some(item))
    }

    pub(super) async fn close(self) {
        if let Some(opened) = self.opened {
            opened.stack.stop(Duration::ZERO).await;
        }
    }
}

async fn open(
    benchmark: &'static dyn Benchmark,
    choice: &DatasetChoice,
    file: Option<&std::path::Path>,
    data: &DataArgs,
) -> anyhow::Result<Opened> {
    let progress = Arc::new(DatasetProgress::default());
    let stack = data.open_telling(Arc::clone(&progress) as _).await?;
    let prepared = match file {
        Some(file) => stack.library.take_in(benchmark, file, progress.as_ref()).await,
        None => stack.library.prepare(benchmark, choice, progress.as_ref()).await,
    };
    progress.clear();
    let prepared = prepared?;
    if prepared.used.is_demo() && *choice != DatasetChoice::Demo {
        // Grading against other items than those that were asked would be worse than none.
        let reason = prepared.used.note.unwrap_or_else(|| "the dataset could not be had".to_owned());
        anyhow::bail!("{reason}; give --demo when demo items are meant");
    }
    let index = prepared.index;
    let by_id = index.items.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
    Ok(Opened { stack, index, by_id, kept: HashMap::new() })
}
