//! Creation of a schedule's run at a planned time.

use bench_benchmarks::{OptionError, UnknownProtocol};
use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::schedule::Schedule;
use bench_domain::{BenchmarkName, Code, RunId, Timestamp};
use bench_inference::{EndpointError, ModelSource};
use bench_state::access::{AccessKind, LimitScope};
use bench_state::{Creation, StateError};

use crate::creator::FIRST_GENERATION;
use crate::{AccessDenied, CallerKeys, Permissions, RunCreator, Standing};

/// Reason why a schedule's run wasn't created.
#[derive(Debug, thiserror::Error)]
pub enum ScheduledRunError {
    /// The operator has stopped new orders for now.
    #[error("{0}")]
    Maintenance(String),
    /// The schedule's own key is gone.
    #[error("its own key is gone")]
    KeyGone,
    /// The schedule's key for the judge is gone.
    #[error("its judge's key is gone")]
    JudgeKeyGone,
    /// The owner has too many open runs.
    #[error("its owner has as many open runs as one owner may have")]
    TooManyOpenRuns,
    /// All owners together have too many open runs.
    #[error("the server has as many open runs as it takes")]
    TooManyOpenRunsInAll,
    /// The access policy no longer allows the run.
    #[error("this server's access policy no longer lets its owner order runs")]
    PolicyChanged,
    /// The owner's access token is no longer valid.
    #[error("its access token was revoked or has expired")]
    TokenInvalid,
    /// The owner may not order the oracle.
    #[error("runs of the oracle are for admins and listed callers")]
    OracleNotAllowed,
    /// The owner may not order a gated benchmark.
    #[error("{0} is gated, and runs of it are for admins and listed callers")]
    Gated(BenchmarkName),
    /// One of its benchmarks is gone.
    #[error("benchmark {0} no longer exists")]
    BenchmarkGone(BenchmarkName),
    /// One of its protocols is gone.
    #[error(transparent)]
    ProtocolGone(UnknownProtocol),
    /// One of its options is gone.
    #[error("{benchmark}: {problem}")]
    OptionGone {
        /// Name of the benchmark.
        benchmark: BenchmarkName,
        /// Problem with the option.
        problem: OptionError,
    },
    /// The provider of its model or judge is gone.
    #[error("there is no provider {0}")]
    ProviderGone(String),
    /// The provider of its model or judge is no longer configured.
    #[error("the {what} cannot be asked: {problem}")]
    CannotBeAsked {
        /// `model` or `judge`.
        what: &'static str,
        /// Problem with the provider.
        problem: EndpointError,
    },
    /// Reading or writing the state failed.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<AccessDenied> for ScheduledRunError {
    fn from(refused: AccessDenied) -> Self {
        match refused {
            AccessDenied::Caller { .. } => Self::PolicyChanged,
            AccessDenied::Source(_) => Self::OracleNotAllowed,
            // The order of a schedule has no tasks.
            AccessDenied::Tasks => Self::PolicyChanged,
            AccessDenied::Benchmark(name) => Self::Gated(name),
        }
    }
}

impl ScheduledRunError {
    /// Returns the stable code of the reason, for programs. It's the code of an order that is rejected for the same
    /// reason.
    pub const fn code(&self) -> Code {
        match self {
            Self::Maintenance(_) => Code::Maintenance,
            Self::KeyGone => Code::KeyRequired,
            Self::JudgeKeyGone => Code::JudgeKeyRequired,
            Self::TooManyOpenRuns | Self::TooManyOpenRunsInAll => Code::OpenRunsLimit,
            Self::PolicyChanged | Self::OracleNotAllowed => Code::OrderNotAllowed,
            Self::TokenInvalid => Code::InvalidAccessToken,
            Self::Gated(_) => Code::GatedBenchmark,
            Self::BenchmarkGone(_) => Code::BenchmarkNotFound,
            Self::ProtocolGone(_) => Code::ProtocolNotFound,
            Self::OptionGone { .. } => Code::InvalidRequest,
            Self::ProviderGone(_) => Code::UnsupportedProvider,
            Self::CannotBeAsked { .. } => Code::ProviderNotConfigured,
            Self::State(_) => Code::InternalError,
        }
    }
}

impl RunCreator {
    /// Returns the queued run of a schedule for a planned time, and creates it if it doesn't exist yet. `maintenance`
    /// is the reason why no runs may be created at present.
    ///
    /// Checks only what may have changed since the schedule was created: whether its owner may still order it, and
    /// whether everything it names still exists.
    ///
    /// # Errors
    /// Returns the reason why the run wasn't created. The call may be repeated.
    pub async fn create_scheduled(
        &self,
        schedule: &Schedule,
        planned: Timestamp,
        now: Timestamp,
        maintenance: Option<&str>,
    ) -> Result<RunId, ScheduledRunError> {
        let spec = schedule.run_spec_at(planned, &self.config.software, now);
        let run = spec.id;
        if self.state.run(run).await?.is_none() {
            if let Some(message) = maintenance {
                return Err(ScheduledRunError::Maintenance(message.to_owned()));
            }
            self.check_schedule(schedule)?;
            self.check_owner(schedule, now).await?;
            let sealed =
                self.schedule_keys(schedule).await?.seal(&self.credentials, run, FIRST_GENERATION).await?;
            // Before the run exists, so that a repeated call after a crash needn't do it.
            let tasks: Vec<u64> = schedule.tasks.iter().map(|task| task.id).collect();
            self.state.note_task_order(&tasks, run).await?;
            match self.write(&spec, &[], None, sealed).await? {
                Creation::Limited(LimitScope::Owner) => return Err(ScheduledRunError::TooManyOpenRuns),
                Creation::Limited(LimitScope::Total) => return Err(ScheduledRunError::TooManyOpenRunsInAll),
                Creation::Done | Creation::KeyTaken => {}
            }
            tracing::info!(run.id = %run, schedule.id = %schedule.id, "Schedule {} made run {run}", schedule.name);
        }
        self.send_to_planner(run, FIRST_GENERATION).await;
        Ok(run)
    }

    /// Returns the schedule's own keys.
    async fn schedule_keys(&self, schedule: &Schedule) -> Result<CallerKeys, ScheduledRunError> {
        let mut keys = CallerKeys::default();
        if schedule.auth == AuthMode::ApiKey {
            keys.own = Some(
                self.credentials.get_for_schedule(schedule.id).await?.ok_or(ScheduledRunError::KeyGone)?,
            );
        }
        if schedule.run.judge.as_ref().is_some_and(|judge| judge.auth == AuthMode::ApiKey) {
            keys.judge = Some(
                self.credentials
                    .get_judge_for_schedule(schedule.id)
                    .await?
                    .ok_or(ScheduledRunError::JudgeKeyGone)?,
            );
        }
        Ok(keys)
    }

    /// Rejects orders that the schedule's owner may no longer place: the access policy, an access token or its
    /// permissions may have changed.
    async fn check_owner(&self, schedule: &Schedule, now: Timestamp) -> Result<(), ScheduledRunError> {
        let standing = self.standing_of(schedule, now).await?;
        let model = &schedule.run.model;
        let source = ModelSource::from_name(&model.provider)
            .ok_or_else(|| ScheduledRunError::ProviderGone(model.provider.clone()))?;
        Ok(standing.check_access(&self.config.policy, source, &schedule.run.benchmarks)?)
    }

    /// Returns the current standing of a schedule's owner.
    async fn standing_of(&self, schedule: &Schedule, now: Timestamp) -> Result<Standing, ScheduledRunError> {
        let owner = match &schedule.owner {
            _ if self.config.local => return Ok(Standing::Local),
            Owner::Key(owner) => owner,
            // On a server that others can reach, local schedules are an admin's.
            Owner::Local => return Ok(Standing::Admin),
        };
        let entry = self.state.access(owner).await?.filter(|entry| entry.is_valid(now));
        match (schedule.auth, entry) {
            (AuthMode::System, Some(entry)) if entry.kind == AccessKind::Token => {
                Ok(Standing::Token(Permissions::from_entry(&entry)))
            }
            (AuthMode::System, _) => Err(ScheduledRunError::TokenInvalid),
            (AuthMode::ApiKey, Some(entry)) => Ok(Standing::ListedKey(Permissions::from_entry(&entry))),
            (AuthMode::ApiKey, None) => Ok(Standing::Key),
        }
    }

    /// Rejects schedules whose run would certainly fail.
    fn check_schedule(&self, schedule: &Schedule) -> Result<(), ScheduledRunError> {
        let template = &schedule.run;
        let known = |name: &&BenchmarkName| bench_benchmarks::find(name.as_str()).is_some();
        if let Some(gone) = template.benchmarks.iter().find(|name| !known(name)) {
            return Err(ScheduledRunError::BenchmarkGone(gone.clone()));
        }
        for (name, protocol) in &template.protocols {
            let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { continue };
            bench_benchmarks::with_protocol(benchmark, Some(protocol))
                .map_err(ScheduledRunError::ProtocolGone)?;
        }
        for (name, options) in &template.options {
            let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { continue };
            let protocol = template.protocols.get(name).map(String::as_str);
            let benchmark = bench_benchmarks::with_protocol(benchmark, protocol).unwrap_or(benchmark);
            benchmark
                .with_options(options)
                .map_err(|problem| ScheduledRunError::OptionGone { benchmark: name.clone(), problem })?;
        }
        self.check_provider(&template.model, schedule.auth, "model")?;
        if let Some(judge) = &template.judge {
            self.check_provider(&judge.model, judge.auth, "judge")?;
        }
        match &template.user {
            Some(user) => self.check_provider(&user.model, user.auth, "user model"),
            None => Ok(()),
        }
    }

    fn check_provider(
        &self,
        model: &ModelRef,
        auth: AuthMode,
        what: &'static str,
    ) -> Result<(), ScheduledRunError> {
        let Some(source) = ModelSource::from_name(&model.provider) else {
            return Err(ScheduledRunError::ProviderGone(model.provider.clone()));
        };
        // With its own key or address, the model needs no configuration of the operator.
        if let (AuthMode::System, None, Some(provider)) = (auth, &model.base_url, source.provider()) {
            let endpoint = self.config.inference.endpoint(provider);
            endpoint.map_err(|problem| ScheduledRunError::CannotBeAsked { what, problem })?;
        }
        Ok(())
    }
}
