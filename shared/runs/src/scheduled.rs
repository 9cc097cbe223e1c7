//! Creation of a schedule's run at a planned time.

use bench_benchmarks::{OptionError, UnknownProtocol};
use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::schedule::Schedule;
use bench_domain::{BenchmarkName, Code, ModelRole, RunId, RunSpec, RunTemplate, SessionId, Timestamp};
use bench_inference::{EndpointError, ModelSource};
use bench_state::access::{AccessKind, LimitScope};
use bench_state::{Creation, StateError};

use crate::creator::FIRST_GENERATION;
use crate::{AccessDenied, CallerKeys, Permissions, RunCreator, Standing, UserStanding};

/// Reason why a schedule's run wasn't created.
#[derive(Debug, thiserror::Error)]
pub enum ScheduledRunError {
    /// The operator has stopped new orders for now.
    #[error("{0}")]
    Maintenance(String),
    /// The schedule's own key for a model is gone.
    #[error("its {} key is gone", key_owner(*.0))]
    KeyGone(ModelRole),
    /// The owner has too many open runs.
    #[error("its owner has as many open runs as one owner may have")]
    TooManyOpenRuns,
    /// All owners together have too many open runs.
    #[error("the server has as many open runs as it takes")]
    TooManyOpenRunsInAll,
    /// The access policy no longer allows the run.
    #[error("this server's access policy no longer lets its owner order runs")]
    PolicyChanged,
    /// The owner isn't signed in.
    #[error(
        "its owner isn't signed in, so the owner's account can't pay; sign in again before its next time"
    )]
    NotSignedIn,
    /// The owner's session may not call models on the owner's account.
    #[error("its owner's session may not call models on the owner's account; sign in again and allow it")]
    ScopeMissing,
    /// The owner's account can't pay for the model, and the operator's keys don't.
    #[error("its owner's account can't pay for models of this provider")]
    PayerMissing,
    /// The operator's keys pay for one of its models, and no longer do for its owner.
    #[error(
        "the operator's key pays for its {}, but not for signed-in users; change it to one that the owner's account pays \
         for",
        .0.label()
    )]
    OperatorPays(ModelRole),
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

/// Returns the word for the owner of a key in this role, among the keys of a schedule.
const fn key_owner(role: ModelRole) -> &'static str {
    match role {
        ModelRole::Model => "own",
        ModelRole::Judge => "judge's",
        ModelRole::UserModel => "user model's",
    }
}

impl From<AccessDenied> for ScheduledRunError {
    fn from(refused: AccessDenied) -> Self {
        match refused {
            AccessDenied::Caller { .. } => Self::PolicyChanged,
            AccessDenied::Scope => Self::ScopeMissing,
            AccessDenied::Payer(_) => Self::PayerMissing,
            AccessDenied::StoredPayer { role, .. } => Self::OperatorPays(role),
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
            Self::KeyGone(role) => role.code(Code::KeyRequired),
            Self::TooManyOpenRuns | Self::TooManyOpenRunsInAll => Code::OpenRunsLimit,
            Self::PolicyChanged | Self::PayerMissing | Self::OperatorPays(_) | Self::OracleNotAllowed => {
                Code::OrderNotAllowed
            }
            Self::NotSignedIn => Code::SessionInvalid,
            Self::ScopeMissing => Code::ScopeMissing,
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
        let mut spec = schedule.run_spec_at(planned, &self.config.software, now);
        let run = spec.id;
        if self.state.run(run).await?.is_none() {
            if let Some(message) = maintenance {
                return Err(ScheduledRunError::Maintenance(message.to_owned()));
            }
            self.check_schedule(schedule)?;
            if spec.uses_session() {
                spec.session = Some(self.paying_session(schedule, now).await?);
            }
            self.check_owner(schedule, &spec, now).await?;
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
        let stored = async |role, auth: Option<AuthMode>| {
            if auth != Some(AuthMode::ApiKey) {
                return Ok(None);
            }
            let key = self.credentials.get_for_schedule(schedule.id, role).await?;
            key.ok_or(ScheduledRunError::KeyGone(role)).map(Some)
        };
        let RunTemplate { judge, user, .. } = &schedule.run;
        Ok(CallerKeys {
            own: stored(ModelRole::Model, Some(schedule.auth)).await?,
            judge: stored(ModelRole::Judge, judge.as_ref().map(|judge| judge.auth)).await?,
            user: stored(ModelRole::UserModel, user.as_ref().map(|user| user.auth)).await?,
        })
    }

    /// Rejects orders that the schedule's owner may no longer place, or for which the operator's keys no longer pay: the
    /// access policy, an access token or its permissions may have changed.
    async fn check_owner(
        &self,
        schedule: &Schedule,
        spec: &RunSpec,
        now: Timestamp,
    ) -> Result<(), ScheduledRunError> {
        let standing = self.standing_of(schedule, now).await?;
        let model = &schedule.run.model;
        let source = ModelSource::from_name(&model.provider)
            .ok_or_else(|| ScheduledRunError::ProviderGone(model.provider.clone()))?;
        standing.check_access(&self.config.policy, source, &schedule.run.benchmarks)?;
        Ok(standing.check_payers(spec, self.config.judge_model.as_ref())?)
    }

    /// Returns the current standing of a schedule's owner.
    async fn standing_of(&self, schedule: &Schedule, now: Timestamp) -> Result<Standing, ScheduledRunError> {
        let owner = match &schedule.owner {
            Owner::Local | Owner::Key(_) if self.config.local => return Ok(Standing::Local),
            Owner::Key(owner) => owner,
            // On a server that others can reach, local schedules are an admin's.
            Owner::Local => return Ok(Standing::Admin),
            Owner::User(subject) => return self.standing_of_user(subject, now).await,
        };
        let entry = self.state.access(owner).await?.filter(|entry| entry.is_valid(now));
        match (schedule.auth, entry) {
            (AuthMode::System, Some(entry)) if entry.kind == AccessKind::Token => {
                Ok(Standing::Token(Permissions::from_entry(&entry)))
            }
            (AuthMode::System, _) => Err(ScheduledRunError::TokenInvalid),
            (AuthMode::Idp, _) => Err(ScheduledRunError::NotSignedIn),
            (AuthMode::ApiKey, Some(entry)) => Ok(Standing::ListedKey(Permissions::from_entry(&entry))),
            (AuthMode::ApiKey, None) => Ok(Standing::Key),
        }
    }

    /// Returns the session that pays for a schedule's run: the owner's newest one that may call models.
    async fn paying_session(
        &self,
        schedule: &Schedule,
        now: Timestamp,
    ) -> Result<SessionId, ScheduledRunError> {
        let Owner::User(subject) = &schedule.owner else { return Err(ScheduledRunError::NotSignedIn) };
        let sessions = self.state.sessions_of(subject, now).await?;
        let may_pay = sessions.iter().find(|session| session.has_invoke_scope);
        match (may_pay, sessions.is_empty()) {
            (Some(session), _) => Ok(session.id.clone()),
            (None, false) => Err(ScheduledRunError::ScopeMissing),
            (None, true) => Err(ScheduledRunError::NotSignedIn),
        }
    }

    /// Returns the current standing of a user who isn't at work: by the user's sessions.
    async fn standing_of_user(&self, subject: &str, now: Timestamp) -> Result<Standing, ScheduledRunError> {
        if self.config.policy.admin_subjects.contains(subject) {
            return Ok(Standing::Admin);
        }
        let listed = self.state.access_of_user(subject, now).await?;
        let sessions = self.state.sessions_of(subject, now).await?;
        Ok(Standing::User(UserStanding {
            permissions: listed.as_ref().map(Permissions::from_entry).unwrap_or_default(),
            has_invoke_scope: sessions.iter().any(|session| session.has_invoke_scope),
            operator_pays: self.config.policy.operator_pays_for_users,
        }))
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
        let inference = &self.config.inference;
        let endpoint = match (auth, &model.base_url, source.provider()) {
            (AuthMode::System, None, Some(provider)) => inference.endpoint(provider),
            (AuthMode::Idp, _, Some(provider)) => inference.session_endpoint(provider),
            _ => return Ok(()),
        };
        endpoint.map(drop).map_err(|problem| ScheduledRunError::CannotBeAsked { what, problem })
    }
}
