//! State machine of a benchmark of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::BenchmarkReport;
use crate::{Code, IllegalTransition, Timestamp, code};

/// Name of a [`BenchmarkState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkStatus {
    /// Not planned yet.
    Pending,
    /// Samples are in progress.
    Running,
    /// The benchmark has a score.
    Succeeded,
    /// The benchmark has no score.
    Failed,
    /// Left out because the run ended first.
    Skipped,
    /// The items aren't available until the operator does something.
    NeedsSetup,
}

impl BenchmarkStatus {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::NeedsSetup => "needs_setup",
        }
    }

    /// Returns true if there may still be work to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl fmt::Display for BenchmarkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// State of one benchmark of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum BenchmarkState {
    /// Not planned yet.
    Pending,
    /// Samples are in progress.
    Running {
        /// Time at which the plan was made.
        started_at: Timestamp,
    },
    /// The benchmark has a score.
    Succeeded {
        /// Time at which the plan was made.
        started_at: Timestamp,
        /// Time at which the finisher closed the benchmark.
        completed_at: Timestamp,
        /// Report of the benchmark.
        report: Box<BenchmarkReport>,
    },
    /// The benchmark has no score.
    Failed {
        /// Time at which the plan was made, if there is one.
        started_at: Option<Timestamp>,
        /// Time at which the benchmark was closed.
        completed_at: Timestamp,
        /// Error message, one sentence.
        error: String,
        /// Code of the cause; `None` in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
        /// Report of the samples that were finished, if any.
        report: Option<Box<BenchmarkReport>>,
    },
    /// Left out because the run ended first.
    Skipped {
        /// Time at which the plan was made, if there is one.
        started_at: Option<Timestamp>,
        /// Time at which the benchmark was closed.
        completed_at: Timestamp,
        /// Reason, one sentence.
        error: String,
        /// Code of the cause; `None` in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
        /// Report of the samples that were finished. `None` if there was no plan, and in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<BenchmarkReport>>,
    },
    /// The items aren't available until the operator does something.
    NeedsSetup {
        /// Description of what the operator has to do.
        error: String,
        /// Code of the cause; `None` in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
    },
}

impl BenchmarkState {
    /// Returns the name of the state.
    pub const fn status(&self) -> BenchmarkStatus {
        match self {
            Self::Pending => BenchmarkStatus::Pending,
            Self::Running { .. } => BenchmarkStatus::Running,
            Self::Succeeded { .. } => BenchmarkStatus::Succeeded,
            Self::Failed { .. } => BenchmarkStatus::Failed,
            Self::Skipped { .. } => BenchmarkStatus::Skipped,
            Self::NeedsSetup { .. } => BenchmarkStatus::NeedsSetup,
        }
    }

    fn illegal(&self, verb: &'static str) -> IllegalTransition {
        IllegalTransition { what: "benchmark", from: self.status().as_str(), verb }
    }

    /// Pending → running.
    pub fn start(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Pending => Ok(Self::Running { started_at: now }),
            other => Err(other.illegal("start")),
        }
    }

    /// Running → succeeded or failed, depending on the report.
    pub fn close(&self, now: Timestamp, report: BenchmarkReport) -> Result<Self, IllegalTransition> {
        let report = Box::new(report);
        match (self, report.failure()) {
            (Self::Running { started_at }, None) => {
                Ok(Self::Succeeded { started_at: *started_at, completed_at: now, report })
            }
            (Self::Running { started_at }, Some(error)) => Ok(Self::Failed {
                started_at: Some(*started_at),
                completed_at: now,
                error,
                code: Some(Code::TooFewGraded),
                report: Some(report),
            }),
            (other, _) => Err(other.illegal("be closed")),
        }
    }

    /// Running → failed with a report of the samples so far, or closed as usual if no sample is missing.
    pub fn stop(
        &self,
        now: Timestamp,
        report: BenchmarkReport,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        if report.is_complete() {
            return self.close(now, report);
        }
        match self {
            Self::Running { started_at } => Ok(Self::Failed {
                started_at: Some(*started_at),
                completed_at: now,
                error: error.into(),
                code: Some(code),
                report: Some(Box::new(report)),
            }),
            other => Err(other.illegal("be stopped")),
        }
    }

    /// Pending or running → failed, without a report.
    pub fn fail(
        &self,
        now: Timestamp,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Pending | Self::Running { .. } => Ok(Self::Failed {
                started_at,
                completed_at: now,
                error: error.into(),
                code: Some(code),
                report: None,
            }),
            other => Err(other.illegal("fail")),
        }
    }

    /// Pending or running → skipped, with a report of the samples so far if the benchmark was planned. Closed as usual
    /// if no sample is missing.
    pub fn skip(
        &self,
        now: Timestamp,
        report: Option<BenchmarkReport>,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match (self, report) {
            (Self::Running { .. }, Some(report)) if report.is_complete() => self.close(now, report),
            (Self::Pending | Self::Running { .. }, report) => Ok(Self::Skipped {
                started_at,
                completed_at: now,
                error: error.into(),
                code: Some(code),
                report: report.map(Box::new),
            }),
            (other, _) => Err(other.illegal("be skipped")),
        }
    }

    /// Pending → needs-setup.
    pub fn needs_setup(&self, code: Code, error: impl Into<String>) -> Result<Self, IllegalTransition> {
        match self {
            Self::Pending => Ok(Self::NeedsSetup { error: error.into(), code: Some(code) }),
            other => Err(other.illegal("need setup")),
        }
    }

    /// Any state except succeeded → running again if `planned`, otherwise pending.
    pub fn requeue(&self, planned: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { .. } => Err(self.illegal("be requeued")),
            _ if planned => Ok(Self::Running { started_at: self.started_at().unwrap_or(now) }),
            _ => Ok(Self::Pending),
        }
    }

    /// Any state → running again if `planned`, otherwise pending, to repeat samples that ended with an
    /// infrastructure-error.
    pub fn requeue_errors(&self, planned: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { started_at, .. } => Ok(Self::Running { started_at: *started_at }),
            other => other.requeue(planned, now),
        }
    }

    /// Returns the time at which the plan was made.
    pub const fn started_at(&self) -> Option<Timestamp> {
        match self {
            Self::Pending | Self::NeedsSetup { .. } => None,
            Self::Running { started_at } | Self::Succeeded { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. } | Self::Skipped { started_at, .. } => *started_at,
        }
    }

    /// Returns the time at which the benchmark was closed.
    pub const fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Succeeded { completed_at, .. }
            | Self::Failed { completed_at, .. }
            | Self::Skipped { completed_at, .. } => Some(*completed_at),
            _ => None,
        }
    }

    /// Returns the report, if the finisher closed the benchmark.
    pub fn report(&self) -> Option<&BenchmarkReport> {
        match self {
            Self::Succeeded { report, .. } => Some(report),
            Self::Failed { report, .. } | Self::Skipped { report, .. } => report.as_deref(),
            _ => None,
        }
    }

    /// Returns the error message, or the description of what the operator has to do.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } | Self::Skipped { error, .. } | Self::NeedsSetup { error, .. } => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Returns the code of the cause, if known.
    pub const fn error_code(&self) -> Option<Code> {
        match self {
            Self::Failed { code, .. } | Self::Skipped { code, .. } | Self::NeedsSetup { code, .. } => *code,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportBuilder;
    use crate::sample::SampleSummary;
    use crate::{Outcome, Position};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    /// Returns the report of a benchmark of ten items of which `answered` were answered.
    fn report(answered: u32) -> BenchmarkReport {
        let mut builder = ReportBuilder::default();
        for item in 0..answered {
            builder.add(&SampleSummary {
                position: Position { item, sample: 0 },
                item_id: item.to_string(),
                outcome: Outcome::Correct,
                score: Some(1.0),
                truncated: false,
                latency_ms: None,
                usage: None,
                group: None,
                judge_usage: None,
            });
        }
        builder.finish(10, 1, 0.9, None)
    }

    #[test]
    fn a_benchmark_that_is_stopped_keeps_what_it_has() {
        let running = BenchmarkState::Pending.start(NOW).unwrap();
        let stopped = running.stop(NOW, report(4), Code::BudgetReached, "stopped").unwrap();
        assert_eq!((stopped.status(), stopped.error()), (BenchmarkStatus::Failed, Some("stopped")));
        assert_eq!(stopped.report().map(|report| (report.graded, report.score)), Some((4, None)));
        assert_eq!(stopped.requeue(true, NOW).unwrap(), running);
        // There are enough samples for a score, but not all of them; the benchmark can be resumed.
        let nearly = running.stop(NOW, report(9), Code::BudgetReached, "stopped").unwrap();
        assert_eq!((nearly.status(), nearly.report().unwrap().score), (BenchmarkStatus::Failed, Some(1.0)));
        assert_eq!(
            running.stop(NOW, report(10), Code::BudgetReached, "stopped").unwrap().status(),
            BenchmarkStatus::Succeeded
        );
        assert!(stopped.stop(NOW, report(4), Code::BudgetReached, "again").is_err());
    }

    #[test]
    fn a_planned_benchmark_resumes_where_it_stopped() {
        let running = BenchmarkState::Pending.start(NOW).unwrap();
        let skipped = running.skip(NOW, Some(report(3)), Code::RunEnded, "Run canceled").unwrap();
        assert_eq!((skipped.status(), skipped.report().unwrap().graded), (BenchmarkStatus::Skipped, 3));
        let complete = running.skip(NOW, Some(report(10)), Code::RunEnded, "Run canceled").unwrap();
        assert_eq!((complete.status(), complete.error()), (BenchmarkStatus::Succeeded, None));
        let unplanned = BenchmarkState::Pending.skip(NOW, None, Code::RunEnded, "Run canceled").unwrap();
        assert_eq!((unplanned.status(), unplanned.report()), (BenchmarkStatus::Skipped, None));
        let later = Timestamp::from_micros(9_000_000);
        assert_eq!(skipped.requeue(true, later).unwrap(), running);
        assert_eq!(BenchmarkState::Pending.requeue(false, later).unwrap(), BenchmarkState::Pending);
    }
}
