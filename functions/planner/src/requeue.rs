//! Plans a requeued run: asks again only samples that were not graded, or only their infrastructure-errors.

use std::time::Duration;

use bench_domain::report::BenchmarkReport;
use bench_domain::sample::SampleState;
use bench_domain::{Outcome, Position, RunId, SampleRef};
use bench_state::{BenchmarkRecord, RunRecord, SampleChoice, Transition};

use crate::{MESSAGES_AT_ONCE, PlanError, Planner, RACES_MAX, message};

/// Finished samples that a new generation asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopened<'a> {
    /// All samples that were not graded.
    Ungraded,
    /// Samples that ended with an infrastructure-error, including those of benchmarks that succeeded.
    Errors,
    /// One sample without a grade, also of a benchmark that succeeded.
    One(&'a SampleChoice),
}

impl<'a> Reopened<'a> {
    /// Selects the samples of a run that asks again only one, only errors, or everything without a grade.
    pub(crate) fn select(run: &'a RunRecord) -> Self {
        match &run.only_sample {
            Some(choice) => Self::One(choice),
            None if run.errors_only => Self::Errors,
            None => Self::Ungraded,
        }
    }

    fn includes(self, benchmark: &BenchmarkRecord, position: Position, outcome: Outcome) -> bool {
        match self {
            Self::Ungraded => !outcome.is_graded(),
            Self::Errors => outcome == Outcome::InfrastructureError,
            Self::One(choice) => {
                choice.benchmark == benchmark.name && choice.position == position && !outcome.is_graded()
            }
        }
    }

    /// Returns true if a benchmark that succeeded has samples to ask again.
    pub(crate) fn reaches(self, benchmark: &BenchmarkRecord, report: &BenchmarkReport) -> bool {
        match self {
            Self::Ungraded => false,
            Self::Errors => report.infrastructure_errors() > 0,
            Self::One(choice) => choice.benchmark == benchmark.name,
        }
    }
}

impl Planner {
    /// Reopens a benchmark of an earlier generation: continues it if it was planned, otherwise makes it pending
    /// again. Returns `None` if there is nothing to do.
    pub(crate) async fn requeue(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        what: Reopened<'_>,
    ) -> Result<Option<BenchmarkRecord>, PlanError> {
        let name = benchmark.name.as_str();
        let mut record = benchmark.clone();
        for _ in 0..RACES_MAX {
            if record.plan.is_some() {
                // Done before the benchmark is running again, so that it can't be closed in between.
                self.reopen(run, &record, what).await?;
            }
            let now = bench_clock::now();
            let planned = record.plan.is_some();
            let next = match what {
                Reopened::Ungraded => record.state.requeue(planned, now),
                Reopened::Errors | Reopened::One(_) => record.state.requeue_errors(planned, now),
            };
            let Ok(next) = next else { return Ok(None) };
            let changed = self.state.change_benchmark(run, &record, &next, None, None, now).await?;
            let Some(fresh) = self.state.run_with_benchmarks(run).await? else { return Ok(None) };
            let Some(fresh) = fresh.benchmark(name).cloned() else { return Ok(None) };
            record = fresh;
            if changed == Transition::Done {
                return Ok(Some(record));
            }
        }
        Err(PlanError::Races)
    }

    pub(crate) async fn reopen(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        what: Reopened<'_>,
    ) -> Result<(), PlanError> {
        let Some(plan) = &benchmark.plan else { return Ok(()) };
        let sort = benchmark.sort();
        for shard in 0..plan.shards {
            let mut from = None;
            loop {
                let page =
                    self.state.shard_page(run, &benchmark.name, plan.attempt, shard, true, from).await?;
                for record in &page.0 {
                    let SampleState::Done { outcome, .. } = record.state else { continue };
                    if what.includes(benchmark, record.position, outcome) {
                        let sample = SampleRef {
                            run,
                            benchmark: benchmark.name.clone(),
                            plan: plan.attempt,
                            shards: plan.shards,
                            position: record.position,
                        };
                        self.state.reopen(&sample, &sort, record, bench_clock::now()).await?;
                    }
                }
                from = page.1;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends a message for every sample that is not over.
    pub(crate) async fn send_open_samples(
        &self,
        run: &RunRecord,
        benchmark: &BenchmarkRecord,
    ) -> Result<(), PlanError> {
        let Some(plan) = &benchmark.plan else { return Ok(()) };
        for shard in 0..plan.shards {
            let mut from: Option<Position> = None;
            loop {
                let page =
                    self.state.shard_page(run.spec.id, &benchmark.name, plan.attempt, shard, false, from);
                let (open, next) = page.await?;
                let messages: Vec<_> = open
                    .iter()
                    .map(|record| message(run, benchmark, plan, record.position, record.stage()))
                    .collect();
                for some in messages.chunks(MESSAGES_AT_ONCE) {
                    self.queues.send_all(some, Duration::ZERO).await?;
                }
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}
