//! Watches the run of a firing: whether it is over, late, or worse than the previous one.

use std::time::Duration;

use bench_domain::run::RunState;
use bench_domain::schedule::{BenchmarkDifference, Comparison, Firing, FiringState, NoticeKind, Schedule};
use bench_domain::{Code, RunStatus, Timestamp};
use bench_state::{CompareError, FiringRecord, RunWithBenchmarks, StateError};

use crate::counts::{Counts, FiringError, count};
use crate::scheduler::Scheduler;

/// Maximum duration of a scheduled run, unless its next planned time comes first.
const FINISH_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of earlier planned times to search for one whose run succeeded.
const FIRINGS_SEARCHED: usize = 400;

impl Scheduler {
    /// Checks the run of a firing. Returns `None` if another process has continued the firing.
    pub(crate) async fn watch(
        &self,
        schedule: &Schedule,
        record: FiringRecord,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<Option<FiringRecord>, FiringError> {
        let FiringState::Started { run, started_at } = record.firing.state else { return Ok(Some(record)) };
        let mut firing = record.firing.clone();
        let found = self.state.run_with_benchmarks(run).await?;
        match found {
            Some(found) if found.run.state.status().is_open() => {
                if firing.overdue_at.is_some() || !is_overdue(schedule, &firing, started_at, now) {
                    return Ok(Some(record));
                }
                firing.overdue_at = Some(now);
                let text = format!(
                    "The run {run} of schedule {} for {} is not finished yet",
                    schedule.name, firing.planned
                );
                tracing::error!(schedule.id = %schedule.id, run.id = %run, "{text}");
                self.note(&mut firing, schedule, NoticeKind::NotFinished, text);
            }
            Some(found) => self.end(schedule, &mut firing, &found, started_at, now).await?,
            None => {
                firing.state = FiringState::Ended {
                    run,
                    started_at,
                    ended_at: now,
                    run_status: None,
                    score: None,
                    error: Some("The run was deleted.".to_owned()),
                    code: Some(Code::RunNotFound),
                    comparison: None,
                };
            }
        }
        let saved = self.state.save_firing(&record, firing, None).await?;
        if let Some(saved) = &saved {
            match &saved.firing.state {
                FiringState::Ended { comparison, .. } => {
                    count(&counts.ended);
                    if comparison.as_ref().is_some_and(|comparison| comparison.regressed) {
                        count(&counts.regressed);
                    }
                }
                _ => count(&counts.not_finished),
            }
        }
        Ok(saved)
    }

    async fn end(
        &self,
        schedule: &Schedule,
        firing: &mut Firing,
        found: &RunWithBenchmarks,
        started_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), FiringError> {
        let (run, state) = (found.run.spec.id, &found.run.state);
        let comparison = match state {
            RunState::Succeeded { .. } => self.compare_with_last(schedule, firing, found).await?,
            _ => None,
        };
        if let RunState::Failed { error, .. } = state {
            let text =
                format!("The run {run} of schedule {} for {} failed: {error}", schedule.name, firing.planned);
            tracing::error!(schedule.id = %schedule.id, run.id = %run, "{text}");
            self.note(firing, schedule, NoticeKind::Failed, text);
        }
        if let Some(comparison) = comparison.as_ref().filter(|comparison| comparison.regressed) {
            let text = format!(
                "The run {run} of schedule {} for {} is worse than {}: {}",
                schedule.name,
                firing.planned,
                comparison.with,
                regressions(comparison)
            );
            tracing::error!(schedule.id = %schedule.id, run.id = %run, "{text}");
            self.note(firing, schedule, NoticeKind::Regressed, text);
        }
        firing.state = FiringState::Ended {
            run,
            started_at,
            ended_at: state.completed_at().unwrap_or(now),
            run_status: Some(state.status()),
            score: state.overall_score(),
            error: state.error().map(str::to_owned),
            code: state.error_code(),
            comparison,
        };
        Ok(())
    }

    async fn compare_with_last(
        &self,
        schedule: &Schedule,
        firing: &Firing,
        found: &RunWithBenchmarks,
    ) -> Result<Option<Comparison>, FiringError> {
        let Some(last) = self.last_succeeded(schedule, firing).await? else { return Ok(None) };
        let (run, with) = (found.run.spec.id, last.run.spec.id);
        let mut benchmarks = Vec::new();
        for record in &found.benchmarks {
            let Some(other) = last.benchmark(record.name.as_str()) else { continue };
            let compared = match self.state.compare_benchmarks((with, other), (run, record)).await {
                Ok(compared) => compared,
                Err(CompareError::State(error)) => return Err(error.into()),
                Err(too_many @ CompareError::TooMany { .. }) => {
                    benchmarks.push(BenchmarkDifference {
                        benchmark: record.name.clone(),
                        items: 0,
                        difference: None,
                        interval: None,
                        regressed: false,
                        warnings: vec![too_many.to_string()],
                    });
                    continue;
                }
            };
            let mut warnings = compared.warnings;
            if found.run.spec.model != last.run.spec.model {
                warnings.push(format!("The previous run measured {}.", last.run.spec.model.name_with_host()));
            }
            benchmarks.push(BenchmarkDifference {
                benchmark: record.name.clone(),
                items: compared.paired.items,
                difference: compared.paired.difference,
                interval: compared.paired.interval,
                regressed: compared.paired.is_worse(),
                warnings,
            });
        }
        let regressed = benchmarks.iter().any(|benchmark| benchmark.regressed);
        Ok(Some(Comparison { with, benchmarks, regressed }))
    }

    async fn last_succeeded(
        &self,
        schedule: &Schedule,
        firing: &Firing,
    ) -> Result<Option<RunWithBenchmarks>, StateError> {
        for earlier in self.state.firings(schedule.id, Some(firing.planned), FIRINGS_SEARCHED).await? {
            if let FiringState::Ended { run, run_status: Some(RunStatus::Succeeded), .. } = earlier.state
                && let Some(found) = self.state.run_with_benchmarks(run).await?
                && found.run.state.status() == RunStatus::Succeeded
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Adds a notice for all configured receivers.
    pub(crate) fn note(&self, firing: &mut Firing, schedule: &Schedule, kind: NoticeKind, text: String) {
        firing.notify(kind, text, schedule.webhook.is_some(), self.config.topic.is_some());
    }
}

/// Returns true if a run takes too long. A run that was made late is measured against the planned time after that.
fn is_overdue(schedule: &Schedule, firing: &Firing, started_at: Timestamp, now: Timestamp) -> bool {
    let next = schedule.timing.next_after(firing.planned.max(started_at));
    now.since(started_at) >= FINISH_WITHIN || next.is_some_and(|next| next <= now)
}

fn regressions(comparison: &Comparison) -> String {
    let worse = comparison.benchmarks.iter().filter(|benchmark| benchmark.regressed);
    let each = worse.map(|benchmark| {
        let points = |share: f64| format!("{:+.1}", share * 100.0);
        let difference = benchmark.difference.map_or_else(String::new, points);
        let interval = benchmark.interval.map_or_else(String::new, |interval| {
            format!(" (95% interval {} to {})", points(interval.low), points(interval.high))
        });
        format!("{} by {difference} points{interval} on {} items", benchmark.benchmark, benchmark.items)
    });
    each.collect::<Vec<_>>().join("; ")
}
