//! Schedules and their firings as JSON.

use std::collections::BTreeMap;

use bench_domain::run::AuthMode;
use bench_domain::schedule::{
    BenchmarkDifference, Comparison, Delivery, Firing, FiringState, Notice, Schedule,
};
use bench_domain::statistics::Interval;
use bench_domain::{Code, ModelId, RunId, RunStatus, RunTemplate, ScheduleId, Subset, Timestamp};
use bench_web::error::CodeSchema;
use bench_web::views::{JudgeOrderView, by_name};
use serde::Serialize;
use utoipa::ToSchema;

/// Number of planned times that a view shows.
const NEXT_TIMES: usize = 3;

/// Runs that are ordered again and again.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScheduleView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub id: ScheduleId,
    /// Its name.
    pub name: String,
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    /// The zone of the IANA database that `cron` is written in.
    pub time_zone: String,
    /// Whether it runs at all.
    pub enabled: bool,
    /// The next planned times, three at most; none while it is off.
    #[schema(value_type = Vec<String>)]
    pub next_times: Vec<Timestamp>,
    /// The model with its provider.
    pub model: String,
    /// The model's id.
    #[schema(value_type = String, format = "uuid")]
    pub model_id: ModelId,
    /// Its name at the provider.
    pub model_slug: String,
    /// The provider.
    pub provider: String,
    /// The benchmarks that are run.
    pub benchmarks: Vec<String>,
    /// The benchmarks as they were ordered; null means all.
    pub selected_benchmarks: Option<Vec<String>>,
    /// Share of the items in percent.
    pub subset_pct: u32,
    /// Number of items; wins over the share.
    pub subset_count: Option<u64>,
    /// What the choice of items depends on: the same for all its runs.
    pub subset_seed: Option<String>,
    /// Only these items instead of a subset; empty where there is no such choice.
    pub items: Vec<String>,
    /// Samples per item; null leaves it to the benchmark.
    pub samples: Option<u32>,
    /// Randomness of the answers; null leaves it to the benchmark.
    pub temperature: Option<f64>,
    /// Upper bound of an answer in tokens; null leaves it to the benchmark.
    pub max_tokens: Option<u32>,
    /// Whether it uses items that the program brings along.
    pub demo: bool,
    /// The protocols that are not the default ones, by benchmark.
    pub protocols: BTreeMap<String, String>,
    /// Settings of benchmarks of their own that are not the default ones, by benchmark.
    pub benchmark_options: BTreeMap<String, BTreeMap<String, String>>,
    /// Who judges; null where nobody has to.
    pub judge: Option<JudgeOrderView>,
    /// US dollars at which a run is stopped.
    pub budget_usd: Option<f64>,
    /// Tokens at which a run is stopped.
    pub budget_tokens: Option<u64>,
    /// Whether it has a key of its own; else the operator's is used.
    pub own_key: bool,
    /// Whether somebody is told by webhook.
    pub has_webhook: bool,
    /// Where; null for everybody but owner and admin.
    pub webhook_url: Option<String>,
    /// Whether the caller may change it.
    pub is_owner: bool,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its owner last changed it.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Its latest planned time and what became of it.
    pub last: Option<FiringView>,
}

/// A planned time and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringView {
    /// The planned time.
    #[schema(value_type = String, format = DateTime)]
    pub planned_at: Timestamp,
    /// `starting`, `started`, `not_started`, `missed` or `ended`.
    pub status: &'static str,
    /// Its run, once there is one.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run_id: Option<RunId>,
    /// When the run was made.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When the run was over, or the planned time was given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// How the run ended; null while it is open, and for one that was deleted.
    #[schema(value_type = Option<String>)]
    pub run_status: Option<RunStatus>,
    /// The run's overall score.
    pub score: Option<f64>,
    /// What went wrong.
    pub error: Option<String>,
    /// Code of `error`; null where that was stored without code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// Since when it is known that the run takes too long.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub overdue_at: Option<Timestamp>,
    /// Planned times before this one that were missed too and are not listed.
    pub missed_earlier: u64,
    /// Against the last run of the schedule that succeeded.
    pub comparison: Option<FiringComparison>,
    /// What people were told; null for everybody but owner and admin.
    pub notices: Option<Vec<NoticeView>>,
}

/// A run against the one before, on the same items.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringComparison {
    /// The earlier run.
    #[schema(value_type = String, format = "uuid")]
    pub with_run: RunId,
    /// Whether a benchmark is worse and that is unlikely to be chance.
    pub regressed: bool,
    /// Benchmark by benchmark.
    pub benchmarks: Vec<FiringDifference>,
}

/// One benchmark of both runs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FiringDifference {
    /// The benchmark.
    pub benchmark_name: String,
    /// Items graded in both.
    pub items: u64,
    /// This run's mean less the earlier one's: below 0 where this run is worse.
    pub difference: Option<f64>,
    /// 95 % interval of the difference.
    #[schema(value_type = Option<Object>)]
    pub interval: Option<Interval>,
    /// Whether the interval is wholly below 0.
    pub regressed: bool,
    /// What makes the comparison doubtful.
    pub warnings: Vec<String>,
}

/// Something that people are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NoticeView {
    /// `not_started`, `missed`, `failed`, `not_finished` or `regressed`.
    pub kind: &'static str,
    /// The message.
    pub text: String,
    /// By webhook.
    pub webhook: DeliveryView,
    /// By the installation's topic.
    pub topic: DeliveryView,
}

/// Whether a message was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeliveryView {
    /// `not_wanted`, `due`, `done` or `given_up`.
    pub state: &'static str,
    /// Why it failed the last time.
    pub error: Option<String>,
}

impl ScheduleView {
    /// Creates the view of a schedule. With `is_owner`, it includes fields for callers who may change the schedule.
    pub(super) fn new(schedule: &Schedule, last: Option<&Firing>, is_owner: bool, now: Timestamp) -> Self {
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
            config: _,
            coverage_min: _,
            price: _,
            budget,
        } = &schedule.run;
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
            samples: *samples,
            temperature: generation.temperature,
            max_tokens: generation.max_tokens,
            demo: schedule.run.is_demo(),
            protocols: by_name(protocols),
            benchmark_options: by_name(options),
            judge: judge.as_ref().map(JudgeOrderView::from),
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
            last: last.map(|firing| FiringView::new(firing, is_owner)),
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
