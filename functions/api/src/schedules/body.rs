//! Schedules, read from a request or from a change that is applied to a stored schedule.

use bench_benchmarks::is_agent_option;
use bench_domain::schedule::{
    CRON_CHARS_MAX, NAME_CHARS_MAX, Schedule, Timing, WEBHOOK_CHARS_MAX, Webhook, validate_name,
};
use bench_runs::{Order, OrderWarning};
use bench_web::{ApiError, FieldReader};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::agent;
use crate::runs::choices::{OPTIONS_FIELD, with_known_names};
use crate::runs::judge::JUDGE_MODEL_ALIAS;
use crate::runs::order::{OrderBody, order_fields, read_unnamed_order};
use crate::runs::tasks::{OrderedTasks, take_task_fields};

const ZONE_CHARS_MAX: usize = 100;
const ZONE_DEFAULT: &str = "UTC";
/// A valid expression, to check a time zone without the schedule's own one.
const ANY_CRON: &str = "0 0 * * *";

/// Fields of the schedule itself, not of its runs.
const OWN_FIELDS: [&str; 5] = ["name", "cron", "time_zone", "webhook_url", "enabled"];
/// Fields that choose the model.
const MODEL_FIELDS: [&str; 3] = ["model_id", "provider", agent::FIELD];
const TASKS_FIELD: &str = "tasks";
const JUDGE_FIELD: &str = "judge";
const USER_FIELD: &str = "user_model";
const PROTOCOLS_FIELD: &str = "protocols";

/// Order of a schedule: its times, and the fields of an order for its runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScheduleOrder, example = json!({
    "name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "model_id": "oracle",
    "selected_benchmarks": ["mmlu_pro"], "subset_count": 100, "demo": true
}))]
#[allow(dead_code)] // describes what `ScheduleBody::read` reads
pub(crate) struct ScheduleOrder {
    /// Name of the schedule, unique among those of its owner. Its runs have the same name.
    #[schema(max_length = 100)]
    name: String,
    /// Planned times: minute, hour, day of month, month, day of week. `30 2 * * *` is every night at 2:30. Two runs
    /// must be at least 15 minutes apart.
    #[schema(max_length = 200)]
    cron: String,
    /// Time zone of `cron`, by its name in the IANA database.
    #[schema(default = "UTC")]
    time_zone: Option<String>,
    /// HTTPS address that receives a `POST` with JSON if a run regresses, fails, takes too long or doesn't start. It
    /// must be public on the internet, unless the server is on loopback. Only the owner sees it.
    webhook_url: Option<String>,
    /// False switches the schedule off.
    #[schema(default = true)]
    enabled: Option<bool>,
    #[serde(flatten)]
    run: OrderBody,
}

/// A parsed schedule order.
#[derive(Debug)]
pub(super) struct ScheduleBody {
    pub(super) settings: Settings,
    pub(super) order: Order,
    pub(super) tasks: Option<OrderedTasks>,
}

/// Settings of the schedule itself.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) timing: Timing,
    pub(super) webhook: Option<Webhook>,
    pub(super) enabled: bool,
}

impl ScheduleBody {
    /// Reads a schedule. `local` is true if the server is bound to loopback: then the webhook may use plain HTTP and
    /// addresses of this machine.
    ///
    /// # Errors
    /// 422 with every problem, one per field.
    pub(super) fn read(mut fields: FieldReader, local: bool) -> Result<Self, ApiError> {
        let name = read_name(&mut fields);
        let timing = read_timing(&mut fields);
        let webhook = read_webhook(&mut fields, local);
        let enabled = read_enabled(&mut fields);
        let tasks = take_task_fields(&mut fields);
        // Also reports the problems noted so far.
        let order = read_unnamed_order(fields)?;
        let (Some(name), Some(timing)) = (name, timing) else { return Err(unread()) };
        Ok(Self { settings: Settings { name, timing, webhook, enabled }, order, tasks })
    }
}

/// Returns the error for a required field that was neither read nor noted as a problem.
fn unread() -> ApiError {
    ApiError::internal("a required field has neither a value nor a problem")
}

fn read_name(fields: &mut FieldReader) -> Option<String> {
    // Reads more than is allowed, so that only `validate_name` reports a name that is too long.
    let name = fields.required_text("name", 2 * NAME_CHARS_MAX)?;
    fields.checked("name", validate_name(&name))
}

fn read_timing(fields: &mut FieldReader) -> Option<Timing> {
    let zone = fields.maybe_text("time_zone", ZONE_CHARS_MAX).filter(|zone| !zone.trim().is_empty());
    let zone = zone.as_deref().unwrap_or(ZONE_DEFAULT);
    // Checked apart from the expression, so that callers learn of both problems at once.
    let is_zone = fields.checked("time_zone", Timing::new(ANY_CRON, zone)).is_some();
    let cron = fields.required_text("cron", 2 * CRON_CHARS_MAX)?;
    fields.checked("cron", Timing::new(&cron, if is_zone { zone } else { ZONE_DEFAULT }))
}

fn read_webhook(fields: &mut FieldReader, local: bool) -> Option<Webhook> {
    let url = fields.maybe_text("webhook_url", 2 * WEBHOOK_CHARS_MAX)?;
    if url.trim().is_empty() {
        return None;
    }
    fields.checked("webhook_url", Webhook::new(&url, local))
}

fn read_enabled(fields: &mut FieldReader) -> bool {
    fields.maybe_flag("enabled").unwrap_or(true)
}

/// The order of a changed schedule.
#[derive(Debug)]
pub(super) struct ChangedOrder {
    pub(super) order: Order,
    pub(super) tasks: Option<OrderedTasks>,
}

/// A change of a schedule.
#[derive(Debug)]
pub(super) struct Change {
    fields: Map<String, Value>,
}

impl Change {
    /// Creates a change from the fields of a request. Null resets a field that is optional; for a required
    /// field it has no effect.
    pub(super) fn new(mut fields: Map<String, Value>) -> Self {
        fields.retain(|name, value| {
            let is_required = matches!(
                name.as_str(),
                "name" | "cron" | "time_zone" | "enabled" | "subset_pct" | "model_id"
            );
            !(is_required && value.is_null())
        });
        if let Some(Value::Object(options)) = fields.get(OPTIONS_FIELD)
            && let Ok(options) = with_known_names(options)
        {
            fields.insert(OPTIONS_FIELD.to_owned(), Value::Object(options));
        }
        Self { fields }
    }

    /// Returns true if the change may name another model.
    pub(super) fn touches_model(&self) -> bool {
        MODEL_FIELDS.iter().any(|name| self.fields.contains_key(*name))
    }

    /// Returns true if the change may name another judge.
    pub(super) fn touches_judge(&self) -> bool {
        self.fields.contains_key(JUDGE_FIELD)
    }

    /// Returns true if the change may name another user model.
    pub(super) fn touches_user_model(&self) -> bool {
        self.fields.contains_key(USER_FIELD)
    }

    /// Returns true if the change affects the runs, not only the settings of the schedule.
    fn touches_run(&self) -> bool {
        self.fields.keys().any(|name| !OWN_FIELDS.contains(&name.as_str()))
    }

    /// Returns those warnings of the whole order that concern fields of this change, as sentences.
    pub(super) fn warnings(&self, all: &[OrderWarning]) -> Vec<String> {
        let of_change = all.iter().filter(|warning| self.fields.contains_key(&warning.field));
        of_change.map(ToString::to_string).collect()
    }

    /// Returns the settings of the changed schedule, and its order if the change affects the runs.
    ///
    /// Only what the change touches is read and checked: an earlier version may have stored values that are refused
    /// today, and such a schedule can still be renamed and switched off.
    ///
    /// # Errors
    /// 422 with every problem, one per field.
    pub(super) fn apply(
        &self,
        schedule: &Schedule,
        local: bool,
    ) -> Result<(Settings, Option<ChangedOrder>), ApiError> {
        let changes = |name: &str| self.fields.contains_key(name);
        let mut fields = self.merge(schedule);
        let name = match changes("name") {
            true => read_name(&mut fields),
            false => Some(schedule.name.clone()),
        };
        let timing = match changes("cron") || changes("time_zone") {
            true => read_timing(&mut fields),
            false => Some(schedule.timing.clone()),
        };
        let webhook = match changes("webhook_url") {
            true => read_webhook(&mut fields, local),
            false => schedule.webhook.clone(),
        };
        let enabled = if changes("enabled") { read_enabled(&mut fields) } else { schedule.enabled };
        let order = if self.touches_run() {
            let tasks = take_task_fields(&mut fields);
            Some(ChangedOrder { order: read_unnamed_order(fields)?, tasks })
        } else {
            fields.finish()?;
            None
        };
        let (Some(name), Some(timing)) = (name, timing) else { return Err(unread()) };
        Ok((Settings { name, timing, webhook, enabled }, order))
    }

    /// Returns the fields of this change over those of the order that makes the schedule's runs.
    fn merge(&self, schedule: &Schedule) -> FieldReader {
        let mut fields = order_fields(&schedule.run);
        // In the order of a schedule, it's the schedule's own.
        fields.remove("name");
        let stored_models = [JUDGE_FIELD, USER_FIELD].map(|field| (field, fields.get(field).cloned()));
        if self.fields.contains_key("cron") || self.fields.contains_key("time_zone") {
            // The two are read together.
            fields.insert("cron".to_owned(), json!(schedule.timing.cron()));
            fields.insert("time_zone".to_owned(), json!(schedule.timing.time_zone()));
        }
        fields.insert(TASKS_FIELD.to_owned(), schedule.tasks.iter().map(|task| task.item.as_str()).collect());
        let mut sent = self.fields.clone();
        agent::replace(&mut fields, &mut sent);
        let stored_options = fields.remove(OPTIONS_FIELD).unwrap_or_default();
        fields.extend(sent);
        // Only the sent fields of the judge and the user simulator change.
        for (field, stored) in stored_models {
            if let (Some(Value::Object(new)), Some(Value::Object(stored))) = (fields.get_mut(field), stored) {
                *new = merge_model(stored, std::mem::take(new));
            }
        }
        if !self.fields.contains_key(PROTOCOLS_FIELD) {
            keep_selected(PROTOCOLS_FIELD, &mut fields);
        }
        let mut stored = Map::from_iter([(OPTIONS_FIELD.to_owned(), stored_options)]);
        agent::follow_benchmark(&mut stored, &fields);
        let sent = fields.remove(OPTIONS_FIELD);
        if sent.is_some() {
            agent::retain_options(&mut stored, is_agent_option);
        }
        fields.extend(stored);
        keep_selected(OPTIONS_FIELD, &mut fields);
        if let Some(sent) = sent {
            let agents = fields.remove(OPTIONS_FIELD).unwrap_or_default();
            fields.insert(OPTIONS_FIELD.to_owned(), agent::with_agents(sent, agents));
        }
        FieldReader::from_body(fields)
    }
}

/// Returns the sent fields of a judge or a user simulator over the stored ones.
fn merge_model(mut stored: Map<String, Value>, mut sent: Map<String, Value>) -> Map<String, Value> {
    // The alternative name replaces the model, too.
    if !sent.contains_key("model_id")
        && let Some(model) = sent.remove(JUDGE_MODEL_ALIAS)
    {
        sent.insert("model_id".to_owned(), model);
    }
    stored.extend(sent);
    stored
}

/// Removes entries of benchmarks that the schedule no longer runs.
fn keep_selected(field: &str, fields: &mut Map<String, Value>) {
    let selected: Vec<String> = match fields.get("selected_benchmarks").and_then(Value::as_array) {
        Some(names) if !names.is_empty() => {
            names.iter().filter_map(Value::as_str).map(|name| name.trim().to_lowercase()).collect()
        }
        _ => return,
    };
    if let Some(Value::Object(by_benchmark)) = fields.get_mut(field) {
        by_benchmark.retain(|name, _| selected.contains(name));
    }
}
