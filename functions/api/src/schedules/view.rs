//! Schedules and their firings as JSON.

use std::collections::{BTreeMap, HashSet};

use bench_domain::run::AuthMode;
use bench_domain::schedule::{
    BenchmarkDifference, Comparison, Delivery, Firing, FiringState, Notice, Schedule,
};
use bench_domain::statistics::Interval;
use bench_domain::{
    Code, MaxTokensField, ModelId, OmittedSetting, ReasoningEffort, RunId, RunLabels, RunLimits, RunStatus,
    RunTemplate, ScheduleId, Subset, Timestamp, Visibility,
};
use bench_web::Caller;
use bench_web::error::CodeSchema;
use bench_web::views::{GenerationView, JudgeOrderView, by_benchmark_name};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::runs::compare::DifferenceIntervalView;

/// Number of planned times that a view shows.
const NEXT_TIMES: usize = 3;

/// A schedule: an order with planned times.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScheduleView {
    /// Id of the schedule.
    #[schema(value_type = String, format = "uuid")]
    pub id: ScheduleId,
    /// Name of the schedule, which its runs have, too.
    pub name: String,
    /// Planned times: minute, hour, day of month, month, day of week.
    pub cron: String,
    /// Time zone of `cron`, by its name in the IANA database.
    pub time_zone: String,
    /// False if the schedule is off.
    pub enabled: bool,
    /// The next three planned times; empty if the schedule is off.
    #[schema(value_type = Vec<String>)]
    pub next_times: Vec<Timestamp>,
    /// Model with its provider.
    pub model: String,
    /// Id of the model in the catalog.
    #[schema(value_type = String, format = "uuid")]
    pub model_id: ModelId,
    /// Name of the model at its provider.
    pub model_slug: String,
    /// Provider of the model.
    pub provider: String,
    /// Benchmarks of its runs.
    pub benchmarks: Vec<String>,
    /// Benchmarks as ordered; null means all.
    pub selected_benchmarks: Option<Vec<String>>,
    /// Share of the items, in percent.
    pub subset_pct: u32,
    /// Number of items; takes precedence over `subset_pct`.
    pub subset_count: Option<u64>,
    /// Seed that selects the items, the same for all its runs.
    pub subset_seed: Option<String>,
    /// Items that the order names, instead of a subset: the dataset's own ids, or `#` and the index of the row. Empty
    /// otherwise.
    pub items: Vec<String>,
    /// Uploaded terminal tasks, as `NAME@` and the first 12 digits of the content hash. Empty for other benchmarks.
    pub tasks: Vec<String>,
    /// Samples per item; null uses the protocol's.
    pub samples: Option<u32>,
    /// Temperature of the answers; null uses the protocol's.
    pub temperature: Option<f64>,
    /// Maximum length of an answer in tokens; null uses the protocol's.
    pub max_tokens: Option<u32>,
    /// Nucleus sampling; null uses the protocol's.
    pub top_p: Option<f64>,
    /// Number of the most probable tokens to sample from; null leaves it to the provider.
    pub top_k: Option<u32>,
    /// Texts that end an answer; empty uses the protocol's.
    pub stop: Vec<String>,
    /// Seed of the provider's sampler; null for none.
    pub sampler_seed: Option<i64>,
    /// System message in front of every prompt; null for none.
    pub system_prompt: Option<String>,
    /// Effort of the model's reasoning; null leaves it to the provider.
    #[schema(value_type = Option<String>)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Maximum number of tokens of the model's reasoning; null leaves it to the provider.
    pub thinking_budget: Option<u32>,
    /// Fields that are added to the body of every request; null for none.
    #[schema(value_type = Option<Object>)]
    pub extra_body: Option<Value>,
    /// Settings of the benchmark that requests leave out.
    #[schema(value_type = Vec<String>)]
    pub omit: Vec<OmittedSetting>,
    /// Name of the request's field for `max_tokens`; null uses the one that the provider wants.
    #[schema(value_type = Option<String>)]
    pub max_tokens_field: Option<MaxTokensField>,
    /// Maximum number of requests per minute to the model; null for none.
    pub requests_per_minute: Option<u32>,
    /// Time limit for one answer, in seconds; null uses the benchmark's.
    pub timeout_seconds: Option<u32>,
    /// Number of samples ended as infrastructure-error or too-long that stops a run; null for none.
    pub max_failures: Option<u32>,
    /// True if its runs use demo data bundled with the program.
    pub demo: bool,
    /// Protocols that differ from the default, by benchmark.
    pub protocols: BTreeMap<String, String>,
    /// Options that differ from the defaults, by benchmark.
    pub benchmark_options: BTreeMap<String, BTreeMap<String, String>>,
    /// Judge as ordered; null if no benchmark needs one.
    pub judge: Option<JudgeOrderView>,
    /// Model that simulates users, as ordered; null if no benchmark needs one.
    pub user_model: Option<JudgeOrderView>,
    /// Tags of its runs.
    pub tags: Vec<String>,
    /// Notes of its runs; null for none.
    pub notes: Option<String>,
    /// Visibility of the schedule and its runs to other callers: `public`, `unlisted` or `private`.
    #[schema(value_type = String)]
    pub visibility: Visibility,
    /// True if the schedule belongs to the caller.
    pub is_mine: bool,
    /// Budget of each run in US dollars; null for none.
    pub budget_usd: Option<f64>,
    /// Budget of each run in tokens; null for none.
    pub budget_tokens: Option<u64>,
    /// True if the owner's own key pays for its runs; otherwise the operator's does.
    pub own_key: bool,
    /// True if the schedule has a webhook.
    pub has_webhook: bool,
    /// Address of the webhook; null except for owner and admin.
    pub webhook_url: Option<String>,
    /// True if the caller may change the schedule.
    pub is_owner: bool,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time of the last change by its owner.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Latest firing; null before the first one.
    pub last: Option<FiringView>,
}

/// A firing: a planned time that was taken up, and its run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringView {
    /// Planned time.
    #[schema(value_type = String, format = DateTime)]
    pub planned_at: Timestamp,
    /// Status: `starting`, `started`, `not_started`, `missed` or `ended`.
    pub status: &'static str,
    /// Id of its run; null until it is created. Callers who don't own the schedule get nothing about runs that were deleted or
    /// are less visible than the schedule.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run_id: Option<RunId>,
    /// Time at which the run was created.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// Time at which the run ended, or at which the firing was given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Status with which the run ended; null while it is open, and if it was deleted.
    #[schema(value_type = Option<String>)]
    pub run_status: Option<RunStatus>,
    /// Overall score of the run.
    pub score: Option<f64>,
    /// Reason why the run failed or wasn't created.
    pub error: Option<String>,
    /// Code of `error`; null if it was stored without a code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// Time since which the run counts as overdue; null if it doesn't.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub overdue_at: Option<Timestamp>,
    /// Number of missed planned times before this one that aren't listed.
    pub missed_earlier: u64,
    /// Comparison with the schedule's previous run that succeeded.
    pub comparison: Option<FiringComparison>,
    /// Notices about the firing; null except for owner and admin.
    pub notices: Option<Vec<NoticeView>>,
}

/// Comparison of a run with the previous one, on the same items.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringComparison {
    /// Previous run.
    #[schema(value_type = String, format = "uuid")]
    pub with_run: RunId,
    /// True if a benchmark regressed.
    pub regressed: bool,
    /// Differences by benchmark.
    pub benchmarks: Vec<FiringDifference>,
}

/// Difference of a benchmark between two runs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringDifference {
    /// Name of the benchmark.
    pub benchmark_name: String,
    /// Number of items that both runs have graded.
    pub items: u64,
    /// Mean of this run minus mean of the previous one: negative if this run is worse.
    pub difference: Option<f64>,
    /// 95% confidence interval of the difference.
    #[schema(value_type = Option<DifferenceIntervalView>)]
    pub interval: Option<Interval>,
    /// True if the whole interval is below 0.
    pub regressed: bool,
    /// Reasons to doubt the comparison, one sentence each.
    pub warnings: Vec<String>,
}

/// Notice about a firing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NoticeView {
    /// Kind: `not_started`, `missed`, `failed`, `not_finished` or `regressed`.
    pub kind: &'static str,
    /// Sentence for people.
    pub text: String,
    /// Delivery to the schedule's webhook.
    pub webhook: DeliveryView,
    /// Delivery to the installation's topic.
    pub topic: DeliveryView,
}

/// Delivery of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeliveryView {
    /// State: `not_wanted`, `due`, `done` or `given_up`.
    pub state: &'static str,
    /// Error of the last attempt.
    pub error: Option<String>,
}

/// Rights of a caller to a schedule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    /// True for owner and admins.
    is_owner: bool,
    /// True for the owner.
    is_mine: bool,
}

impl Rights {
    /// Rights of the caller who made the schedule.
    pub(super) const MAKER: Self = Self { is_owner: true, is_mine: true };

    /// Returns the rights of a caller to a schedule.
    pub(super) fn of(caller: &Caller, schedule: &Schedule) -> Self {
        Self { is_owner: caller.owns(&schedule.owner), is_mine: caller.is_own(&schedule.owner) }
    }
}

impl ScheduleView {
    /// Creates the view of a schedule without its latest firing. It includes fields for callers who may change the schedule if
    /// `rights` allow that.
    pub(super) fn new(schedule: &Schedule, rights: Rights, now: Timestamp) -> Self {
        let Rights { is_owner, is_mine } = rights;
        // Every field is listed: a new field of orders must be shown or left out on purpose.
        let RunTemplate {
            model,
            benchmarks,
            selected_benchmarks,
            subset: Subset { pct, count, seed },
            items: _,
            item_naming: _,
            samples,
            generation,
            datasets: _,
            protocols,
            options,
            judge,
            user,
            config: _,
            coverage_min: _,
            price: _,
            budget,
            // The runs have the schedule's name.
            labels: RunLabels { name: _, tags, notes, visibility },
            limits: RunLimits { requests_per_minute, timeout_seconds, max_failures },
        } = &schedule.run;
        let settings = GenerationView::from(generation);
        let next_times =
            if schedule.enabled { schedule.timing.upcoming(now, NEXT_TIMES) } else { Vec::new() };
        Self {
            id: schedule.id,
            name: schedule.name.clone(),
            cron: schedule.timing.cron().to_owned(),
            time_zone: schedule.timing.time_zone().to_owned(),
            enabled: schedule.enabled,
            next_times,
            model: model.qualified(),
            model_id: model.id,
            model_slug: model.slug.clone(),
            provider: model.provider.clone(),
            benchmarks: benchmarks.iter().map(ToString::to_string).collect(),
            selected_benchmarks: selected_benchmarks.clone(),
            subset_pct: *pct,
            subset_count: *count,
            subset_seed: seed.clone(),
            items: schedule.run.item_names(),
            tasks: schedule.tasks.iter().map(|task| task.item.clone()).collect(),
            samples: *samples,
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            top_p: settings.top_p,
            top_k: settings.top_k,
            stop: settings.stop,
            sampler_seed: settings.seed,
            system_prompt: settings.system_prompt,
            reasoning_effort: settings.reasoning_effort,
            thinking_budget: settings.thinking_budget,
            extra_body: settings.extra_body,
            omit: settings.omit,
            max_tokens_field: settings.max_tokens_field,
            requests_per_minute: *requests_per_minute,
            timeout_seconds: *timeout_seconds,
            max_failures: *max_failures,
            demo: schedule.run.is_demo(),
            protocols: by_benchmark_name(protocols),
            benchmark_options: by_benchmark_name(options),
            judge: judge.as_ref().map(JudgeOrderView::from),
            user_model: user.as_ref().map(JudgeOrderView::from),
            tags: tags.clone(),
            notes: notes.clone(),
            visibility: *visibility,
            is_mine,
            budget_usd: budget.usd,
            budget_tokens: budget.tokens,
            own_key: schedule.auth == AuthMode::ApiKey,
            has_webhook: schedule.webhook.is_some(),
            webhook_url: schedule
                .webhook
                .as_ref()
                .filter(|_| is_owner)
                .map(|webhook| webhook.as_str().to_owned()),
            is_owner,
            created_at: schedule.created_at,
            updated_at: schedule.updated_at,
            last: None,
        }
    }
}

impl FiringView {
    /// Creates the view of a firing. With `is_owner`, it includes fields for callers who may change its schedule.
    pub(super) fn new(firing: &Firing, is_owner: bool) -> Self {
        let (error, error_code) = firing.error();
        let mut view = Self {
            planned_at: firing.planned,
            status: firing.state.status().as_str(),
            run_id: firing.run(),
            started_at: None,
            ended_at: None,
            run_status: None,
            score: None,
            error: error.map(str::to_owned),
            error_code,
            overdue_at: firing.overdue_at,
            missed_earlier: 0,
            comparison: None,
            notices: is_owner.then(|| firing.notices.iter().map(NoticeView::from).collect()),
        };
        match &firing.state {
            FiringState::Starting { .. } => {}
            FiringState::Started { started_at, .. } => view.started_at = Some(*started_at),
            FiringState::NotStarted { at, .. } => view.ended_at = Some(*at),
            FiringState::Missed { at, earlier } => {
                view.ended_at = Some(*at);
                view.missed_earlier = *earlier;
            }
            FiringState::Ended { started_at, ended_at, run_status, score, comparison, .. } => {
                view.started_at = Some(*started_at);
                view.ended_at = Some(*ended_at);
                view.run_status = *run_status;
                view.score = *score;
                view.comparison = comparison.as_ref().map(FiringComparison::from);
            }
        }
        view
    }
}

impl FiringView {
    /// Leaves out what the view says about runs other than these.
    pub(super) fn retain_runs(&mut self, shown: &HashSet<RunId>) {
        if self.run_id.is_some_and(|run| !shown.contains(&run)) {
            (self.run_id, self.run_status, self.score) = (None, None, None);
            (self.error, self.error_code, self.comparison) = (None, None, None);
        }
        self.comparison.take_if(|comparison| !shown.contains(&comparison.with_run));
    }
}

impl From<&Comparison> for FiringComparison {
    fn from(comparison: &Comparison) -> Self {
        let benchmarks = comparison.benchmarks.iter().map(FiringDifference::from).collect();
        Self { with_run: comparison.with, regressed: comparison.regressed, benchmarks }
    }
}

impl From<&BenchmarkDifference> for FiringDifference {
    fn from(difference: &BenchmarkDifference) -> Self {
        Self {
            benchmark_name: difference.benchmark.to_string(),
            items: difference.items,
            difference: difference.difference,
            interval: difference.interval,
            regressed: difference.regressed,
            warnings: difference.warnings.clone(),
        }
    }
}

impl From<&Notice> for NoticeView {
    fn from(notice: &Notice) -> Self {
        Self {
            kind: notice.kind.as_str(),
            text: notice.text.clone(),
            webhook: DeliveryView::from(&notice.webhook),
            topic: DeliveryView::from(&notice.topic),
        }
    }
}

impl From<&Delivery> for DeliveryView {
    fn from(delivery: &Delivery) -> Self {
        let (state, error) = match delivery {
            Delivery::NotWanted => ("not_wanted", None),
            Delivery::Due { error, .. } => ("due", error.clone()),
            Delivery::Done { .. } => ("done", None),
            Delivery::GivenUp { error } => ("given_up", Some(error.clone())),
        };
        Self { state, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_its_code() {
        let (planned, error) = (Timestamp::default(), "its own key is gone".to_owned());
        let mut firing = Firing::starting(ScheduleId::random(), planned, planned);
        let shown = |firing: &Firing| {
            let view = serde_json::to_value(FiringView::new(firing, false)).unwrap();
            (view["error"].clone(), view["error_code"].clone())
        };
        assert_eq!(shown(&firing), (serde_json::Value::Null, serde_json::Value::Null));
        for code in [None, Some(Code::KeyRequired)] {
            let expected = (error.clone().into(), serde_json::to_value(code).unwrap());
            firing.state =
                FiringState::Starting { since: planned, tries: 1, error: Some(error.clone()), code };
            assert_eq!(shown(&firing), expected);
            firing.state = FiringState::NotStarted { at: planned, error: error.clone(), code };
            assert_eq!(shown(&firing), expected);
        }
    }
}
