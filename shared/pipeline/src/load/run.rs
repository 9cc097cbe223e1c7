//! One run, loaded once for all of its samples.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use bench_domain::{BenchmarkName, RunSpec, SampleRef, Spending};
use bench_inference::Keys;
use bench_state::TakenUp;

use crate::answer::source::AnswerSource;
use crate::budget::ledger::{Ledger, Receipt};
use crate::judge::source::JudgeSource;
use crate::load::benchmark::BenchmarkContext;

/// One run, loaded once for all of its samples.
pub(crate) struct RunContext {
    /// The order.
    pub(crate) spec: RunSpec,
    /// Its generation when it was loaded.
    pub(crate) generation: u32,
    /// When the run was last taken up again, if it was.
    pub(crate) taken_up: Option<TakenUp>,
    /// Source of its answers.
    pub(crate) answers: AnswerSource,
    /// Source of its judge's replies.
    pub(crate) judge: JudgeSource,
    /// Keys that are removed from every text that is stored: the run's own, its judge's and the operator's.
    pub(crate) keys: Keys,
    /// What it has spent, if it has a budget.
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// Its planned benchmarks.
    pub(super) benchmarks: BTreeMap<BenchmarkName, Arc<BenchmarkContext>>,
    /// Time at which the run was last seen open, in microseconds; 0 once it was seen over.
    pub(super) seen_open: AtomicI64,
    /// Order of the last use among the runs of this process.
    pub(super) used: AtomicU64,
}

impl RunContext {
    /// Returns the benchmark of a sample, if the sample belongs to its current plan.
    pub(super) fn benchmark_of(&self, sample: &SampleRef) -> Option<&Arc<BenchmarkContext>> {
        self.benchmarks.get(&sample.benchmark).filter(|found| found.plan.attempt == sample.plan)
    }

    /// Returns the number of planned samples; `None` until all benchmarks are planned.
    pub(crate) fn samples(&self) -> Option<u64> {
        let is_planned = self.benchmarks.len() == self.spec.benchmarks.len();
        is_planned.then(|| {
            let samples = self.benchmarks.values().map(|benchmark| benchmark.plan.samples());
            samples.fold(0, u64::saturating_add)
        })
    }

    /// Counts tokens of an answer from its receipt on, if the run has a budget.
    pub(crate) fn receive(&self, spent: Spending) -> Option<Receipt<'_>> {
        self.ledger.as_ref().map(|ledger| ledger.receive(spent))
    }
}
