//! Part of a benchmark that an order asks for, and reasons why it can't be run.

use bench_benchmarks::{Benchmark, Options};
use bench_domain::run::{DatasetChoice, ItemNaming};
use bench_domain::{BenchmarkName, Code, RunId, RunSpec, Subset};

static NO_OPTIONS: Options = Options::new();
static HUB: DatasetChoice = DatasetChoice::Hub;

/// Reason why a benchmark of a run can't be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The benchmark fails with this code and message.
    #[error("{1}")]
    Failed(Code, String),
    /// The operator has to set something up first.
    #[error("{1}")]
    NeedsSetup(Code, String),
}

/// Items of a benchmark to ask, as the order specifies them.
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    /// The benchmark under its protocol and with its options.
    pub benchmark: &'a dyn Benchmark,
    /// Source of its items.
    pub dataset: &'a DatasetChoice,
    /// Settings that differ from the defaults.
    pub options: &'a Options,
    /// Ask only these items instead of a subset. Empty for no such choice.
    pub items: &'a [String],
    /// Naming scheme of `items`.
    pub item_naming: ItemNaming,
    /// Part of the benchmark to ask.
    pub subset: &'a Subset,
    /// The run, whose id is the seed of a subset without one.
    pub run: RunId,
}

impl<'a> Selection<'a> {
    /// Returns the selection of a benchmark in a run's order.
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
