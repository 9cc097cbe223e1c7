//! Caller that reads runs, and what it may do with them.

use bench_domain::ModelRole;
use bench_domain::run::AuthMode;
use bench_inference::ModelSource;
use bench_runs::{Standing, has_judged_answers};
use bench_state::{Results, RunWithBenchmarks};
use bench_web::views::CanView;
use bench_web::{ApiError, Caller, Identity};
use http::request::Parts;

use crate::Api;
use crate::runs::admission::standing_of_caller;
use crate::runs::lifecycle::has_errors;

/// Caller that reads runs.
#[derive(Debug, Clone)]
pub struct Viewer {
    pub(crate) caller: Caller,
    /// Standing for orders; `None` for callers without credentials.
    standing: Option<Standing>,
}

impl Viewer {
    /// Returns the person at this machine.
    pub const fn local() -> Self {
        Self { caller: Caller::Local, standing: Some(Standing::Local) }
    }

    /// Returns the sender of a request. Invalid credentials count as missing.
    ///
    /// # Errors
    /// When the operator's list of callers can't be read.
    pub(crate) async fn of(api: &Api, parts: &Parts) -> Result<Self, ApiError> {
        let caller = Identity::of(parts).reader().clone();
        let standing = standing_of_caller(api, parts, &caller).await?;
        Ok(Self { caller, standing })
    }

    /// Returns what the caller may do with a run now.
    pub(crate) fn can(&self, api: &Api, found: &RunWithBenchmarks) -> CanView {
        let (record, spec) = (&found.run, &found.run.spec);
        let owns = self.caller.owns(&spec.owner);
        let is_open = record.state.status().is_open();
        let is_admitted = self.standing.is_some_and(|standing| {
            ModelSource::from_name(&spec.model.provider).is_some_and(|source| {
                standing.check_access(&api.config.runs.policy, source, &spec.benchmarks).is_ok()
            })
        });
        // A run that was ordered with a key can be repeated by sending the key.
        let lacks_key = self.caller == Caller::Local && spec.auth == AuthMode::ApiKey;
        let judge_model = api.config.runs.judge_model.as_ref();
        let is_paid = self.standing.is_some_and(|standing| standing.check_payers(spec, judge_model).is_ok());
        let repeats = (owns || lacks_key) && is_admitted && is_paid;
        let requeue = repeats && record.state.requeue().is_ok();
        let requeue_errors = repeats && record.state.requeue_errors().is_ok() && has_errors(found);
        let needs_key = spec.auth == AuthMode::ApiKey;
        // Without a key of its own, a judge or user model of the same provider uses the model's.
        let needs_key_of = |role| spec.uses_callers_key(role) && !(needs_key && spec.shares_provider(role));
        let is_gated = found.benchmarks.iter().any(|benchmark| {
            let dataset = benchmark.plan.as_ref().map(|plan| &plan.dataset);
            bench_benchmarks::is_private(&benchmark.name, dataset)
        });
        CanView {
            cancel: owns && record.state.cancel(bench_clock::now()).is_ok(),
            resume: repeats && is_open && !api.state.works_on(record),
            requeue,
            requeue_errors,
            rejudge: owns
                && is_admitted
                && !is_open
                && !api.config.maintenance_mode
                && has_judged_answers(found),
            delete: owns && !is_open,
            edit: owns,
            export: matches!(found.results(), Results::Final(_)) && (owns || !is_gated),
            needs_key: needs_key && (requeue || requeue_errors),
            needs_judge_key: needs_key_of(ModelRole::Judge) && (requeue || requeue_errors),
            needs_user_key: needs_key_of(ModelRole::UserModel) && (requeue || requeue_errors),
        }
    }
}
