//! A run and its benchmarks: what was ordered, and the states they go through.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::StoredFile;
use crate::report::BenchmarkReport;
use crate::{Code, Generation, ModelId, Price, RunId, Timestamp, code};

/// A benchmark whose coverage is below this has no score, unless the run says otherwise.
pub const COVERAGE_MIN_DEFAULT: f64 = 0.9;
/// Upper bound of samples per item.
pub const SAMPLES_PER_ITEM_MAX: u32 = 1_000;

/// How an order and its stored responses name items.
///
/// The default is what orders mean that were stored before the dataset's own ids were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemNaming {
    /// By the index of the item's row alone.
    #[default]
    RowIndex,
    /// By the dataset's own id, or by the row's index after a `#`.
    SourceId,
}

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// Id in the catalogue.
    pub id: ModelId,
    /// Who answers: the name of a provider, `oracle` or `replay`.
    pub provider: String,
    /// The model's name at the provider.
    pub slug: String,
    /// Where the provider answers, when that is not its usual address. Set by the operator or on the
    /// command line, never by a request.
    #[serde(default)]
    pub base_url: Option<String>,
    /// For `replay`: the object that holds the stored responses.
    #[serde(default)]
    pub replay_key: Option<String>,
    /// Host of the base URL when the run was ordered, with the port unless it is the scheme's default, such as
    /// `127.0.0.1:8000`. `None` for models that are not asked over the network, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
}

impl ModelRef {
    /// The name with its provider, as given to `--model`.
    pub fn qualified(&self) -> String {
        match self.provider.as_str() {
            "oracle" => "oracle".to_owned(),
            "replay" => format!("replay:{}", self.slug),
            provider => format!("{provider}/{}", self.slug),
        }
    }

    /// Returns the name with its provider and, where it is known, the host that answers:
    /// `openai-compatible/m at 127.0.0.1:8000`.
    pub fn located(&self) -> String {
        located(&self.qualified(), self.endpoint_host.as_deref())
    }
}

/// Returns a model's qualified name, followed by the host that answers where it is known.
pub fn located(qualified: &str, endpoint_host: Option<&str>) -> String {
    match endpoint_host {
        Some(host) => format!("{qualified} at {host}"),
        None => qualified.to_owned(),
    }
}

/// Who judges answers, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// The judge. Provider `oracle` is a judge without a model that compares with the gold answer.
    pub model: ModelRef,
    /// Whose key pays for it.
    pub auth: AuthMode,
    /// Settings that replace those of the benchmark's protocol, where set.
    #[serde(default)]
    pub generation: Generation,
    /// The provider's price of the judge at the time of creation.
    #[serde(default)]
    pub price: Option<Price>,
}

/// The run whose answers are judged again, and which time this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejudges {
    /// The run that asked the model.
    pub run: RunId,
    /// Version of its judging, from 2: the run itself has version 1.
    pub version: u32,
}

/// The judge that a benchmark of a run used, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeUse {
    /// The judge, with its provider.
    pub model: String,
    /// Host of the judge's base URL; see [`ModelRef::endpoint_host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
    /// Version of the judging: 1 unless answers were judged again.
    pub version: u32,
    /// Digest of the judge's prompt template.
    pub prompt_digest: String,
    /// Where that template came from: `official` or `own`.
    pub prompt_source: String,
    /// The judge's generation settings after the run's own have been applied.
    pub generation: Generation,
}

/// Where the items of a benchmark come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum DatasetChoice {
    /// The hub, or what was cached of it.
    Hub,
    /// The items that this program brings along.
    Demo,
    /// A local file that was taken into the blob store under this revision.
    Local {
        /// Digest of the file's content.
        revision: String,
    },
}

/// Who may cancel, delete, requeue and export a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "id")]
pub enum Owner {
    /// Whoever sits at this machine.
    Local,
    /// The holder of the key with this keyed hash.
    Key(String),
}

/// Whose key is used for model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// The operator's, from the environment.
    System,
    /// The caller's, stored encrypted until the run is over.
    ApiKey,
}

/// A transition that the state does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {from} {what} cannot {verb}")]
pub struct IllegalTransition {
    /// `run`, `benchmark` or `sample`.
    pub what: &'static str,
    /// The state it is in.
    pub from: &'static str,
    /// What was tried.
    pub verb: &'static str,
}

/// The name of a [`RunState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Accepted, not started.
    Queued,
    /// Being worked on.
    Running,
    /// Over, every benchmark has a score.
    Succeeded,
    /// Over, something is missing.
    Failed,
    /// Ended by its owner.
    Canceled,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Canceled];

    /// The name in JSON and in keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether work may still be done.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a run failed, for the causes that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// Its budget was reached; what was answered until then is kept.
    Budget,
    /// A provider refused the run's first requests, of the model or of the judge, all with the same sentence.
    Refused,
}

impl FailureReason {
    /// The reason that a code stands for, if there is one.
    pub const fn of(code: Code) -> Option<Self> {
        match code {
            Code::BudgetReached => Some(Self::Budget),
            Code::AllRequestsRejected => Some(Self::Refused),
            _ => None,
        }
    }

    /// Code of the same cause.
    pub const fn code(self) -> Code {
        match self {
            Self::Budget => Code::BudgetReached,
            Self::Refused => Code::AllRequestsRejected,
        }
    }

    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Refused => "refused",
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "status")]
pub enum RunState {
    /// Accepted, not started.
    Queued,
    /// Being worked on.
    Running {
        /// When the planner took it up.
        started_at: Timestamp,
    },
    /// Over, every benchmark has a score.
    Succeeded {
        /// When the planner took it up.
        started_at: Timestamp,
        /// When the finisher closed it.
        completed_at: Timestamp,
        /// Unweighted mean of the benchmarks' scores.
        overall_score: Option<f64>,
    },
    /// Over, something is missing.
    Failed {
        /// When the planner took it up, if it came to that.
        started_at: Option<Timestamp>,
        /// When it was closed.
        completed_at: Timestamp,
        /// What went wrong, in one sentence.
        error: String,
        /// The cause, where it is one that callers tell apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<FailureReason>,
        /// Code of the cause; `None` in records of an older program.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// Ended by its owner.
    Canceled {
        /// When the planner took it up, if it came to that.
        started_at: Option<Timestamp>,
        /// When the owner ended it.
        canceled_at: Timestamp,
    },
}

impl RunState {
    /// The state's name.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Running { .. } => RunStatus::Running,
            Self::Succeeded { .. } => RunStatus::Succeeded,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Canceled { .. } => RunStatus::Canceled,
        }
    }

    fn illegal(&self, verb: &'static str) -> IllegalTransition {
        IllegalTransition { what: "run", from: self.status().as_str(), verb }
    }

    /// Queued → running.
    pub fn start(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Queued => Ok(Self::Running { started_at: now }),
            other => Err(other.illegal("start")),
        }
    }

    /// Running → succeeded.
    pub fn succeed(&self, now: Timestamp, overall_score: Option<f64>) -> Result<Self, IllegalTransition> {
        match self {
            Self::Running { started_at } => {
                Ok(Self::Succeeded { started_at: *started_at, completed_at: now, overall_score })
            }
            other => Err(other.illegal("succeed")),
        }
    }

    /// Queued or running → failed.
    pub fn fail(
        &self,
        now: Timestamp,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Queued | Self::Running { .. } => Ok(Self::Failed {
                started_at,
                completed_at: now,
                error: error.into(),
                reason: FailureReason::of(code),
                code: Some(code),
            }),
            other => Err(other.illegal("fail")),
        }
    }

    /// Queued or running → canceled.
    pub fn cancel(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Queued | Self::Running { .. } => Ok(Self::Canceled { started_at, canceled_at: now }),
            other => Err(other.illegal("be canceled")),
        }
    }

    /// Failed or canceled → queued.
    pub fn requeue(&self) -> Result<Self, IllegalTransition> {
        match self {
            Self::Failed { .. } | Self::Canceled { .. } => Ok(Self::Queued),
            other => Err(other.illegal("be requeued")),
        }
    }

    /// Succeeded, failed or canceled → queued, to ask again for samples that ended with an infrastructure-error.
    pub fn requeue_errors(&self) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { .. } => Ok(Self::Queued),
            other => other.requeue(),
        }
    }

    /// When work began.
    pub const fn started_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued => None,
            Self::Running { started_at } | Self::Succeeded { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. } | Self::Canceled { started_at, .. } => *started_at,
        }
    }

    /// When it was over.
    pub const fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued | Self::Running { .. } => None,
            Self::Succeeded { completed_at, .. } | Self::Failed { completed_at, .. } => Some(*completed_at),
            Self::Canceled { canceled_at, .. } => Some(*canceled_at),
        }
    }

    /// Unweighted mean of the benchmarks' scores, once the run succeeded.
    pub const fn overall_score(&self) -> Option<f64> {
        match self {
            Self::Succeeded { overall_score, .. } => *overall_score,
            _ => None,
        }
    }

    /// Why it failed, when that is a cause that callers tell apart.
    pub const fn failure_reason(&self) -> Option<FailureReason> {
        match self {
            Self::Failed { reason, .. } => *reason,
            _ => None,
        }
    }

    /// Whether it was stopped while answers were on their way, by its budget or by refusals: these are still stored and
    /// counted, and each benchmark is closed with a report.
    pub const fn is_stopped(&self) -> bool {
        matches!(self, Self::Failed { reason: Some(FailureReason::Budget | FailureReason::Refused), .. })
    }

    /// Code of what went wrong, when it failed and that is known.
    pub fn error_code(&self) -> Option<Code> {
        match self {
            Self::Failed { code, reason, .. } => code.or(reason.map(FailureReason::code)),
            _ => None,
        }
    }

    /// What went wrong, when it failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// How one benchmark of a run is carried out, fixed when the planner is done with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which attempt of the planner made it: the fencing token in the keys of its samples.
    pub attempt: u32,
    /// Over how many partitions the samples are spread.
    pub shards: u32,
    /// Items chosen.
    pub items: u64,
    /// Samples per item.
    pub samples_per_item: u32,
    /// Items of the dataset.
    pub dataset_items: u64,
    /// Where the items come from.
    pub dataset: DatasetUse,
    /// Digest of the prompt template that was used.
    pub prompt_digest: String,
    /// Where that template came from: `official` or `own`.
    pub prompt_source: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Its short name, by which it is chosen; empty in plans of an older program.
    #[serde(default)]
    pub protocol_name: String,
    /// Settings of the benchmark's own that counted, the defaults among them; empty where it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The generation settings after the run's own have been applied.
    pub generation: Generation,
    /// Digests of the official texts that go into prompts, by name. Those that could not be had are not here.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
    /// Who judges; `None` where no judge is needed.
    #[serde(default)]
    pub judge: Option<JudgeUse>,
}

impl Plan {
    /// Samples planned: items × samples per item.
    pub const fn samples(&self) -> u64 {
        self.items.saturating_mul(self.samples_per_item as u64)
    }
}

/// The dataset that a benchmark of a run used, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetUse {
    /// Id at the hub, or the file's name.
    pub id: String,
    /// Revision: a commit at the hub, or the digest of a local file or of the demo data.
    pub revision: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// SHA-256 of the normalised content, lowercase hex.
    pub digest: String,
    /// Object that holds one compressed frame per item.
    pub data_key: String,
    /// SHA-256 of the archive that its documents come from, lowercase hex; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Files beside the items that jobs need, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachments: BTreeMap<String, StoredFile>,
    /// Why demo data was used without being asked for.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether the items are real and the few-shot examples or documents in their prompts came with the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_support: bool,
}

impl DatasetUse {
    /// Whether the items are those bundled with the program.
    pub fn is_demo(&self) -> bool {
        self.source == "demo"
    }
}

/// The name of a [`BenchmarkState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkStatus {
    /// Not planned yet.
    Pending,
    /// Samples are being worked on.
    Running,
    /// It has a score.
    Succeeded,
    /// It has none.
    Failed,
    /// Left out, since the run ended first.
    Skipped,
    /// Its items cannot be had without the operator doing something.
    NeedsSetup,
}

impl BenchmarkStatus {
    /// The name in JSON.
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

    /// Whether work may still be done.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

impl fmt::Display for BenchmarkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where one benchmark of a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum BenchmarkState {
    /// Not planned yet.
    Pending,
    /// Samples are being worked on.
    Running {
        /// When its plan was made.
        started_at: Timestamp,
    },
    /// It has a score.
    Succeeded {
        /// When its plan was made.
        started_at: Timestamp,
        /// When the finisher closed it.
        completed_at: Timestamp,
        /// What came out.
        report: Box<BenchmarkReport>,
    },
    /// It has none.
    Failed {
        /// When its plan was made, if it came to that.
        started_at: Option<Timestamp>,
        /// When it was closed.
        completed_at: Timestamp,
        /// What went wrong, in one sentence.
        error: String,
        /// Code of the cause; `None` in records of an older program.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// What came out all the same.
        report: Option<Box<BenchmarkReport>>,
    },
    /// Left out, since the run ended first.
    Skipped {
        /// When its plan was made, if it came to that.
        started_at: Option<Timestamp>,
        /// When it was closed.
        completed_at: Timestamp,
        /// Why.
        error: String,
        /// Code of the cause; `None` in records of an older program.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// Its items cannot be had without the operator doing something.
    NeedsSetup {
        /// What is to be done.
        error: String,
        /// Code of the cause; `None` in records of an older program.
        #[serde(default, deserialize_with = "code::known", skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
}

impl BenchmarkState {
    /// The state's name.
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

    /// Running → succeeded or failed, as its report says.
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

    /// Running → failed with the report of what was answered, or closed as usual when nothing is missing.
    pub fn stop(
        &self,
        now: Timestamp,
        report: BenchmarkReport,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        if report.outcomes.total() >= report.planned {
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

    /// Pending or running → skipped.
    pub fn skip(
        &self,
        now: Timestamp,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Pending | Self::Running { .. } => {
                Ok(Self::Skipped { started_at, completed_at: now, error: error.into(), code: Some(code) })
            }
            other => Err(other.illegal("be skipped")),
        }
    }

    /// Pending → needs-setup.
    pub fn needs_setup(&self, code: Code, error: impl Into<String>) -> Result<Self, IllegalTransition> {
        match self {
            Self::Pending => Ok(Self::NeedsSetup { error: error.into(), code: Some(code) }),
            other => Err(other.illegal("need setup")),
        }
    }

    /// Everything but succeeded → running again when it was planned, else pending.
    pub fn requeue(&self, planned: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { .. } => Err(self.illegal("be requeued")),
            _ if planned => Ok(Self::Running { started_at: self.started_at().unwrap_or(now) }),
            _ => Ok(Self::Pending),
        }
    }

    /// Everything → running again when it was planned, else pending: to ask again for samples that ended with an
    /// infrastructure-error.
    pub fn requeue_errors(&self, planned: bool, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { started_at, .. } => Ok(Self::Running { started_at: *started_at }),
            other => other.requeue(planned, now),
        }
    }

    /// When its plan was made.
    pub const fn started_at(&self) -> Option<Timestamp> {
        match self {
            Self::Pending | Self::NeedsSetup { .. } => None,
            Self::Running { started_at } | Self::Succeeded { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. } | Self::Skipped { started_at, .. } => *started_at,
        }
    }

    /// When it was closed.
    pub const fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Succeeded { completed_at, .. }
            | Self::Failed { completed_at, .. }
            | Self::Skipped { completed_at, .. } => Some(*completed_at),
            _ => None,
        }
    }

    /// What came out, once it was closed by the finisher.
    pub fn report(&self) -> Option<&BenchmarkReport> {
        match self {
            Self::Succeeded { report, .. } => Some(report),
            Self::Failed { report, .. } => report.as_deref(),
            _ => None,
        }
    }

    /// What went wrong or is to be done.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } | Self::Skipped { error, .. } | Self::NeedsSetup { error, .. } => {
                Some(error)
            }
            _ => None,
        }
    }

    /// Code of what went wrong or is to be done, when that is known.
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

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    #[test]
    fn a_run_that_is_over_stays_as_it_is() {
        let running = RunState::Queued.start(NOW).unwrap();
        let canceled = running.cancel(NOW).unwrap();
        assert!(canceled.succeed(NOW, Some(1.0)).is_err());
        assert!(canceled.fail(NOW, Code::InvalidKey, "x").is_err());
        assert!(canceled.cancel(NOW).is_err());
        let succeeded = running.succeed(NOW, Some(0.5)).unwrap();
        assert!(succeeded.cancel(NOW).is_err());
        assert_eq!(succeeded.requeue().unwrap_err().to_string(), "a succeeded run cannot be requeued");
    }

    #[test]
    fn only_failed_and_canceled_runs_are_requeued() {
        let failed = RunState::Queued.fail(NOW, Code::ModelNotFound, "no model").unwrap();
        assert_eq!(failed.requeue(), Ok(RunState::Queued));
        assert!(RunState::Queued.requeue().is_err());
        assert_eq!(failed.error(), Some("no model"));
    }

    #[test]
    fn a_succeeded_run_is_requeued_for_its_errors_only() {
        let running = RunState::Queued.start(NOW).unwrap();
        let succeeded = running.succeed(NOW, Some(0.5)).unwrap();
        assert_eq!(succeeded.requeue_errors(), Ok(RunState::Queued));
        assert_eq!(running.cancel(NOW).unwrap().requeue_errors(), Ok(RunState::Queued));
        assert!(running.requeue_errors().is_err() && RunState::Queued.requeue_errors().is_err());
    }

    #[test]
    fn states_survive_json() {
        for state in [
            RunState::Queued,
            RunState::Queued.start(NOW).unwrap(),
            RunState::Queued.cancel(NOW).unwrap(),
            RunState::Queued.start(NOW).unwrap().succeed(NOW, None).unwrap(),
            RunState::Queued.fail(NOW, Code::InvalidKey, "x").unwrap(),
            RunState::Queued.fail(NOW, Code::BudgetReached, "x").unwrap(),
        ] {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
        }
    }

    #[test]
    fn a_failure_of_an_older_program_has_no_reason() {
        let plain = RunState::Queued.fail(NOW, Code::InvalidKey, "x").unwrap();
        assert!(!serde_json::to_string(&plain).unwrap().contains("reason"));
        assert_eq!(plain.failure_reason(), None);
        assert_eq!(serde_json::from_str::<RunState>(&serde_json::to_string(&plain).unwrap()).unwrap(), plain);
        let old =
            r#"{"status":"failed","started_at":null,"completed_at":"1970-01-01T00:00:01Z","error":"x"}"#;
        let old: RunState = serde_json::from_str(old).unwrap();
        assert_eq!((old.error(), old.error_code()), (Some("x"), None));
        let stopped = RunState::Queued.fail(NOW, Code::BudgetReached, "x").unwrap();
        let text = serde_json::to_string(&stopped).unwrap().replace(r#","code":"budget_reached""#, "");
        let old: RunState = serde_json::from_str(&text).unwrap();
        assert!(!text.contains("code") && old.error_code() == Some(Code::BudgetReached), "{text}");
        assert!(stopped.is_stopped() && stopped.requeue().is_ok());
        assert!(serde_json::to_string(&stopped).unwrap().contains(r#""reason":"budget""#));
        let refused = RunState::Queued.fail(NOW, Code::AllRequestsRejected, "x").unwrap();
        assert!(refused.is_stopped() && refused.requeue().is_ok() && !plain.is_stopped());
        assert!(serde_json::to_string(&refused).unwrap().contains(r#""reason":"refused""#));
    }

    #[test]
    fn a_benchmark_that_is_stopped_keeps_what_it_has() {
        use crate::report::ReportBuilder;
        use crate::sample::SampleSummary;
        use crate::{Outcome, Position};
        let report = |answered: u32| {
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
        };
        let running = BenchmarkState::Pending.start(NOW).unwrap();
        let stopped = running.stop(NOW, report(4), Code::BudgetReached, "stopped").unwrap();
        assert_eq!((stopped.status(), stopped.error()), (BenchmarkStatus::Failed, Some("stopped")));
        assert_eq!(stopped.report().map(|report| (report.graded, report.score)), Some((4, None)));
        assert_eq!(stopped.requeue(true, NOW).unwrap(), running);
        // Enough for a score, and yet not complete: it can be taken up again.
        let nearly = running.stop(NOW, report(9), Code::BudgetReached, "stopped").unwrap();
        assert_eq!((nearly.status(), nearly.report().unwrap().score), (BenchmarkStatus::Failed, Some(1.0)));
        assert_eq!(
            running.stop(NOW, report(10), Code::BudgetReached, "stopped").unwrap().status(),
            BenchmarkStatus::Succeeded
        );
        assert!(stopped.stop(NOW, report(4), Code::BudgetReached, "again").is_err());
    }

    #[test]
    fn a_planned_benchmark_goes_on_where_it_was() {
        let running = BenchmarkState::Pending.start(NOW).unwrap();
        let skipped = running.skip(NOW, Code::RunEnded, "Run canceled").unwrap();
        let later = Timestamp::from_micros(9_000_000);
        assert_eq!(skipped.requeue(true, later).unwrap(), running);
        assert_eq!(BenchmarkState::Pending.requeue(false, later).unwrap(), BenchmarkState::Pending);
    }
}
