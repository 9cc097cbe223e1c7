//! Schedules, read from a request or from a change that is applied to a stored schedule.

use bench_domain::Code;
use bench_domain::schedule::{
    CRON_CHARS_MAX, InvalidTiming, NAME_CHARS_MAX, Schedule, Timing, WEBHOOK_CHARS_MAX, Webhook,
    validate_name,
};
use bench_runs::Order;
use bench_web::{ApiError, FieldReader};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::runs::choices::OPTIONS_FIELD;
use crate::runs::judge::JUDGE_MODEL_ALIAS;
use crate::runs::order::{OrderBody, order_fields, read_order};

const ZONE_CHARS_MAX: usize = 100;
const ZONE_DEFAULT: &str = "UTC";

/// Fields of the schedule itself, not of its runs.
const OWN_FIELDS: [&str; 5] = ["name", "cron", "time_zone", "webhook_url", "enabled"];
/// Fields that choose the model.
const MODEL_FIELDS: [&str; 2] = ["model_id", "provider"];
const JUDGE_FIELD: &str = "judge";
const PROTOCOLS_FIELD: &str = "protocols";

/// A schedule as it is ordered: when, and the fields of an order for a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScheduleOrder, example = json!({
    "name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "model_id": "oracle",
    "selected_benchmarks": ["mmlu_pro"], "subset_count": 100, "demo": true
}))]
#[allow(dead_code)] // describes what `ScheduleBody::read` reads
pub(crate) struct ScheduleOrder {
    /// Its name, for people.
    #[schema(max_length = 100)]
    name: String,
    /// When it runs: minute, hour, day of month, month, day of week; `30 2 * * *` is every night at half past two.
    /// Two runs are at least 15 minutes apart.
    #[schema(max_length = 200)]
    cron: String,
    /// The time zone that `cron` is written in: a name of the IANA database.
    #[schema(default = "UTC")]
    time_zone: Option<String>,
    /// Is called (`POST`, JSON) when a run is worse than the one before, failed, takes too long or did not start.
    /// Shown to the owner only.
    webhook_url: Option<String>,
    /// Whether it runs at all.
    #[schema(default = true)]
    enabled: Option<bool>,
    #[serde(flatten)]
    run: OrderBody,
}

/// A parsed schedule order.
#[derive(Debug)]
pub(super) struct ScheduleBody {
    pub(super) name: String,
    pub(super) timing: Timing,
    pub(super) webhook: Option<Webhook>,
    pub(super) enabled: bool,
    pub(super) order: Order,
}

impl ScheduleBody {
    /// Reads a schedule. `local` is true if the server is bound to loopback: then the webhook may use plain HTTP.
    ///
    /// # Errors
    /// 422 with every problem.
    pub(super) fn read(mut fields: FieldReader, local: bool) -> Result<Self, ApiError> {
        // Reads more than is allowed, so that only `validate_name` reports a name that is too long.
        let name = match validate_name(&fields.text("name", 2 * NAME_CHARS_MAX)) {
            Ok(name) => Some(name),
            Err(error) => {
                fields.note_invalid("name", error);
                None
            }
        };
        let cron = fields.text("cron", 2 * CRON_CHARS_MAX);
        let zone = fields.maybe_text("time_zone", ZONE_CHARS_MAX).filter(|zone| !zone.trim().is_empty());
        let timing = match Timing::new(&cron, zone.as_deref().unwrap_or(ZONE_DEFAULT)) {
            Ok(timing) => Some(timing),
            Err(error) => {
                let field = if matches!(error, InvalidTiming::TimeZone(_)) { "time_zone" } else { "cron" };
                fields.note_invalid(field, error);
                None
            }
        };
        let url = fields.maybe_text("webhook_url", 2 * WEBHOOK_CHARS_MAX);
        let webhook = match url.filter(|url| !url.trim().is_empty()).map(|url| Webhook::new(&url, local)) {
            Some(Ok(webhook)) => Some(webhook),
            Some(Err(error)) => {
                fields.note_invalid("webhook_url", error);
                None
            }
            None => None,
        };
        let enabled = fields.maybe_flag("enabled").unwrap_or(true);
        // Also reports the problems noted so far.
        let order = read_order(fields)?;
        let (Some(name), Some(timing)) = (name, timing) else {
            return Err(ApiError::new(Code::InvalidRequest, "name and cron are required"));
        };
        Ok(Self { name, timing, webhook, enabled, order })
    }
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
            let needed = matches!(
                name.as_str(),
                "name" | "cron" | "time_zone" | "enabled" | "subset_pct" | "model_id"
            );
            !(needed && value.is_null())
        });
        Self { fields }
    }

    /// Returns true if the change affects the runs, not only their times.
    pub(super) fn touches_run(&self) -> bool {
        self.fields.keys().any(|name| !OWN_FIELDS.contains(&name.as_str()))
    }

    /// Returns true if the change may name another model.
    pub(super) fn touches_model(&self) -> bool {
        MODEL_FIELDS.iter().any(|name| self.fields.contains_key(*name))
    }

    /// Returns true if the change may name another judge.
    pub(super) fn touches_judge(&self) -> bool {
        self.fields.contains_key(JUDGE_FIELD)
    }

    /// Returns those warnings of the whole order that concern fields of this change.
    pub(super) fn warnings(&self, mut all: Vec<String>) -> Vec<String> {
        all.retain(|warning| self.fields.keys().any(|name| warning.starts_with(&format!("`{name}`"))));
        all
    }

    /// Returns the fields of the order that would make the changed schedule.
    pub(super) fn over(&self, schedule: &Schedule) -> FieldReader {
        let mut fields = as_fields(schedule);
        let judge = fields.get(JUDGE_FIELD).and_then(Value::as_object).cloned();
        fields.extend(self.fields.clone());
        // Only the sent fields of the judge change.
        if let (Some(Value::Object(new)), Some(mut judge)) = (fields.get_mut(JUDGE_FIELD), judge) {
            let mut new_fields = std::mem::take(new);
            // The alternative name replaces the model, too.
            if !new_fields.contains_key("model_id")
                && let Some(model) = new_fields.remove(JUDGE_MODEL_ALIAS)
            {
                new_fields.insert("model_id".to_owned(), model);
            }
            judge.extend(new_fields);
            *new = judge;
        }
        for by_benchmark in [PROTOCOLS_FIELD, OPTIONS_FIELD] {
            if !self.fields.contains_key(by_benchmark) {
                keep_those_of(by_benchmark, &mut fields);
            }
        }
        FieldReader::of_body(fields)
    }
}

/// Removes entries of benchmarks that the schedule no longer runs.
fn keep_those_of(field: &str, fields: &mut Map<String, Value>) {
    let wanted: Vec<String> = match fields.get("selected_benchmarks").and_then(Value::as_array) {
        Some(names) if !names.is_empty() => {
            names.iter().filter_map(Value::as_str).map(|name| name.trim().to_lowercase()).collect()
        }
        _ => return,
    };
    if let Some(Value::Object(by_benchmark)) = fields.get_mut(field) {
        by_benchmark.retain(|name, _| wanted.contains(name));
    }
}

/// Returns the fields of the order that would make the schedule as it is.
fn as_fields(schedule: &Schedule) -> Map<String, Value> {
    let mut fields = order_fields(&schedule.run);
    fields.insert("name".to_owned(), json!(schedule.name));
    fields.insert("cron".to_owned(), json!(schedule.timing.cron()));
    fields.insert("time_zone".to_owned(), json!(schedule.timing.time_zone()));
    fields.insert("webhook_url".to_owned(), json!(schedule.webhook.as_ref().map(Webhook::as_str)));
    fields.insert("enabled".to_owned(), json!(schedule.enabled));
    fields
}
