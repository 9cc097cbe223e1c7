//! From a planned time to its run.

use std::time::Duration;

use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::schedule::{FiringState, NoticeKind, Schedule};
use bench_domain::{RunId, Timestamp};
use bench_inference::ProviderKind;
use bench_queue::Message;
use bench_state::access::{AccessKind, AccessRow, Reached};
use bench_state::credentials::SealedKey;
use bench_state::{Creation, FiringRecord, NewEvent, StateError};

use crate::Scheduler;
use crate::tick::{Counts, count};

/// How long making a run is tried again.
pub(crate) const RETRY_FOR: Duration = Duration::from_secs(3_600);
/// A new run's generation.
const FIRST_GENERATION: u32 = 1;

/// Why a run was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotMade {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{0}")]
    Because(String),
}

impl Scheduler {
    /// Makes the run of a firing. `None`: somebody else went on with it.
    pub(crate) async fn start(
        &self,
        schedule: &Schedule,
        record: FiringRecord,
        now: Timestamp,
        counts: &Counts,
    ) -> Result<Option<FiringRecord>, StateError> {
        let FiringState::Starting { since, tries, .. } = record.firing.state else { return Ok(Some(record)) };
        let planned = record.firing.planned;
        let mut firing = record.firing.clone();
        let made = if schedule.enabled {
            self.make_run(schedule, planned, now).await
        } else {
            Err(NotMade::Because("the schedule was switched off".to_owned()))
        };
        match made {
            Ok(run) => firing.state = FiringState::Started { run, started_at: now },
            Err(error) if schedule.enabled && now.since(since) < RETRY_FOR => {
                tracing::warn!(
                    schedule.id = %schedule.id,
                    %planned,
                    %error,
                    "The run of schedule {} for {planned} could not be made and is tried again: {error}",
                    schedule.name
                );
                firing.state =
                    FiringState::Starting { since, tries: tries + 1, error: Some(error.to_string()) };
            }
            Err(error) => {
                firing.state = FiringState::NotStarted { at: now, error: error.to_string() };
                if schedule.enabled {
                    let text =
                        format!("The run of schedule {} for {planned} did not start: {error}", schedule.name);
                    tracing::error!(schedule.id = %schedule.id, %planned, "{text}");
                    self.note(&mut firing, schedule, NoticeKind::NotStarted, text);
                }
            }
        }
        let saved = self.state.save_firing(&record, firing, None).await?;
        match saved.as_ref().map(|saved| &saved.firing.state) {
            Some(FiringState::Started { .. }) => count(&counts.started),
            Some(FiringState::NotStarted { .. }) if schedule.enabled => count(&counts.not_started),
            _ => {}
        }
        Ok(saved)
    }

    /// The run for a planned time: made, or made before.
    async fn make_run(
        &self,
        schedule: &Schedule,
        planned: Timestamp,
        now: Timestamp,
    ) -> Result<RunId, NotMade> {
        let spec = schedule.run_at(planned, &self.config.software, now);
        let run = spec.id;
        if self.state.run(run).await?.is_none() {
            self.check(schedule)?;
            self.check_access(schedule, now).await?;
            let key = match schedule.auth {
                AuthMode::System => None,
                AuthMode::ApiKey => {
                    let key = self.credentials.get_for(schedule.id).await?;
                    let key = key.ok_or_else(|| NotMade::Because("its own key is gone".to_owned()))?;
                    Some(self.credentials.seal(run, FIRST_GENERATION, &key).await?)
                }
            };
            let judges_key = match spec.judge.as_ref().map(|judge| judge.auth) {
                None | Some(AuthMode::System) => None,
                Some(AuthMode::ApiKey) => {
                    let key = self.credentials.judge_for(schedule.id).await?;
                    let key = key.ok_or_else(|| NotMade::Because("its judge's key is gone".to_owned()))?;
                    Some(self.credentials.seal_judge(run, FIRST_GENERATION, &key).await?)
                }
            };
            let key = SealedKey::all([key, judges_key]);
            let event = NewEvent::run_created(&spec, &[]);
            let limits = self.config.limits.of(&spec.owner, self.config.local);
            let made = self.state.create_run_within(&spec, &event, None, spec.created_at, key, Some(&limits));
            if let Creation::Limited(reached) = made.await? {
                return Err(NotMade::Because(
                    match reached {
                        Reached::Owner => "its owner has as many open runs as one owner may have",
                        Reached::Total => "the server has as many open runs as it takes",
                    }
                    .to_owned(),
                ));
            }
            tracing::info!(run.id = %run, schedule.id = %schedule.id, "Schedule {} made run {run}", schedule.name);
        }
        let message = Message::Plan { run, generation: FIRST_GENERATION };
        if let Err(error) = self.queues.send(&message, Duration::ZERO).await {
            tracing::error!(run.id = %run, %error, "Run {run} waits for reconciliation: {error}");
        }
        Ok(run)
    }

    /// Refuses what the schedule's owner may not order: the access policy, an access token or its permissions may have
    /// changed since.
    async fn check_access(&self, schedule: &Schedule, now: Timestamp) -> Result<(), NotMade> {
        let policy = &self.config.policy;
        let refused = |why: &str| Err(NotMade::Because(why.to_owned()));
        let no_longer = "this server's access policy no longer lets its owner order runs";
        let owner = match &schedule.owner {
            _ if self.config.local => return Ok(()),
            Owner::Key(owner) => owner,
            // On a server that others can reach these are an admin's.
            Owner::Local if policy.has(AccessRow::Admin) => return Ok(()),
            Owner::Local => return refused(no_longer),
        };
        let entry = self.state.access(owner).await?.filter(|entry| entry.is_valid(now));
        let is_token = schedule.auth == AuthMode::System;
        if is_token && entry.as_ref().is_none_or(|entry| entry.kind != AccessKind::Token) {
            return refused("its access token was revoked or has expired");
        }
        let row = if is_token { AccessRow::Token } else { AccessRow::ProviderKey };
        if !policy.has(row) {
            return refused(no_longer);
        }
        let template = &schedule.run;
        let kind = ProviderKind::from_name(&template.model.provider);
        let is_oracle = kind.is_some_and(|kind| !kind.is_remote());
        if is_oracle && !entry.as_ref().is_some_and(|entry| entry.oracle) {
            return refused("runs of the oracle are for admins and listed callers");
        }
        let gated = bench_benchmarks::gated();
        match template.benchmarks.iter().find(|name| gated.contains(*name)) {
            Some(name) if !entry.is_some_and(|entry| entry.gated) => {
                refused(&format!("{name} is gated, and runs of it are for admins and listed callers"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what could only fail.
    fn check(&self, schedule: &Schedule) -> Result<(), NotMade> {
        if let Some(message) = &self.config.maintenance {
            return Err(NotMade::Because(message.clone()));
        }
        let template = &schedule.run;
        let known = |name: &str| bench_benchmarks::find(name).is_some();
        if let Some(gone) = template.benchmarks.iter().find(|name| !known(name.as_str())) {
            return Err(NotMade::Because(format!("there is no benchmark {gone} any more")));
        }
        for (name, protocol) in &template.protocols {
            let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { continue };
            bench_benchmarks::under_protocol(benchmark, Some(protocol))
                .map_err(|unknown| NotMade::Because(unknown.to_string()))?;
        }
        for (name, options) in &template.options {
            let Some(benchmark) = bench_benchmarks::find(name.as_str()) else { continue };
            let protocol = template.protocols.get(name).map(String::as_str);
            let benchmark = bench_benchmarks::under_protocol(benchmark, protocol).unwrap_or(benchmark);
            benchmark
                .under_options(options)
                .map_err(|problem| NotMade::Because(format!("{name}: {problem}")))?;
        }
        self.check_provider(&template.model, schedule.auth, "model")?;
        match &template.judge {
            Some(judge) => self.check_provider(&judge.model, judge.auth, "judge"),
            None => Ok(()),
        }
    }

    fn check_provider(&self, model: &ModelRef, auth: AuthMode, what: &str) -> Result<(), NotMade> {
        let Some(kind) = ProviderKind::from_name(&model.provider) else {
            return Err(NotMade::Because(format!("there is no provider {}", model.provider)));
        };
        // With a key or an address of its own it needs nothing of the operator's.
        if auth == AuthMode::System && model.base_url.is_none() && kind.is_remote() {
            self.config
                .inference
                .endpoint(kind)
                .map_err(|error| NotMade::Because(format!("the {what} cannot be asked: {error}")))?;
        }
        Ok(())
    }
}
