//! Part of a benchmark that an order asks for, and reasons why it can't be run.

use bench_benchmarks::{Benchmark, Options};
use bench_domain::run::{DatasetChoice, ItemNaming};
use bench_domain::{BenchmarkName, Code, RunId, RunSpec, Subset};

static NO_OPTIONS: Options = Options::new();
static HUB: DatasetChoice = DatasetChoice::Hub;

/// Why a benchmark of a run cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Nothing of the run's making: it fails.
    #[error("{1}")]
    Failed(Code, String),
    /// The operator must do something first.
    #[error("{1}")]
    NeedsSetup(Code, String),
}

/// Which items of a benchmark are to be asked, as far as an order says it.
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    /// The benchmark under its protocol and with its options.
    pub benchmark: &'a dyn Benchmark,
    /// Where its items come from.
    pub dataset: &'a DatasetChoice,
    /// Its settings that are not the default ones.
    pub options: &'a Options,
    /// Only these items instead of a subset. Empty: no such choice.
    pub items: &'a [String],
    /// How `items` name an item.
    pub item_naming: ItemNaming,
    /// Which part of it.
    pub subset: &'a Subset,
    /// The run, by whose id a subset without a seed is chosen.
    pub run: RunId,
}

impl<'a> Selection<'a> {
    /// What a run's order says of one of its benchmarks.
    pub(crate) fn of_run(spec: &'a RunSpec, benchmark: &'a dyn Benchmark, name: &BenchmarkName) -> Self {
        Self {
            benchmark,
            dataset: spec.datasets.get(name).unwrap_or(&HUB),
            options: spec.options.get(name).unwrap_or(&NO_OPTIONS),
            items: &spec.items,
            item_naming: spec.item_naming,
            subset: &spec.subset,
            run: spec.id,
        }
    }
}
