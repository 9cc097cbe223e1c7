//! Orders for runs, read from requests.

use bench_domain::run::{JudgeSpec, SAMPLES_PER_ITEM_MAX};
use bench_domain::sampling::{MAX_COUNT_ITEMS, MAX_SEED_CHARS, SubsetError};
use bench_domain::{Budget, Code, RunLabels, RunTemplate, Subset};
use bench_inference::PROVIDERS;
use bench_runs::order::no_effect_warning;
use bench_runs::{Order, OrderWarning, TrustedSettings};
use bench_web::fields::short_name;
use bench_web::{ApiError, FieldReader};
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

use crate::runs::bounds::MODEL_CHARS_MAX;
use crate::runs::budget::read_budget;
use crate::runs::choices::{OPTIONS_FIELD, read_options, read_protocols};
use crate::runs::generation::{read_generation, read_limits, setting_fields};
use crate::runs::judge::{JudgeBody, UserModelBody, read_judge, read_user_model};
use crate::runs::labels::{read_labels_without_name, read_name};
use crate::runs::tasks::{OrderedTasks, take_task_fields};

/// Maximum number of benchmarks in a request, known or not.
const BENCHMARKS_MAX: usize = 200;
/// Maximum number of items in a request: they are stored with the run.
const ITEMS_MAX: usize = 1_000;
const ITEM_CHARS_MAX: usize = 255;
/// Maximum size of all item ids together, in bytes.
const ITEMS_BYTES_MAX: usize = 100_000;
/// Maximum size of `config`, in bytes: it is stored with the run.
const CONFIG_BYTES_MAX: usize = 64 * 1024;
const IDEMPOTENCY_CHARS_MAX: usize = 255;
/// Maximum number of unknown fields that warnings name.
const WARNINGS_MAX: usize = 20;

/// Returns the schema of the sources that an order may name.
fn source_schema() -> Schema {
    let names: Vec<_> = PROVIDERS.iter().map(|provider| format!("`{provider}`")).collect();
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some(format!("{} or `oracle`.", names.join(", "))))
        .into()
}

/// Order of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order, example = json!({
    "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "subset_count": 10, "subset_seed": "demo", "demo": true
}))]
#[allow(dead_code)] // describes what `read_order` reads
pub(crate) struct OrderBody {
    /// Model: an id of the catalog, the provider's own id, a slug, or `provider/slug`.
    model_id: String,
    #[schema(schema_with = source_schema, required = false)]
    provider: Option<String>,
    /// Share of the items, in percent.
    #[schema(default = 100, minimum = 1, maximum = 100)]
    subset_pct: u32,
    /// Number of items; takes precedence over `subset_pct`.
    #[schema(minimum = 1)]
    subset_count: Option<u64>,
    /// Seed that selects the items: equal seeds select equal items. Defaults to the run's id.
    #[schema(max_length = 128)]
    subset_seed: Option<String>,
    /// Names of benchmarks. Unknown names are left out, as long as one is known. Null or an empty list means all
    /// benchmarks that this server and caller can run; those that need a judge only if there is one. `ifbench` is IFEval,
    /// which can also be named `ifeval`; AllenAI's IFBench is `ifbench_allenai`.
    selected_benchmarks: Option<Vec<String>>,
    /// Any JSON object of at most 64 KiB. It is stored with the run and has no effect.
    #[schema(value_type = Option<Object>)]
    config: Option<()>,
    /// Uploaded terminal tasks, at most 1,000: their ids, content hashes, or `NAME@` and the first 12 digits of the hash. The
    /// run has the benchmark `terminal_tasks` then, and `samples` episodes of each task.
    #[schema(value_type = Option<Vec<String>>)]
    tasks: Option<()>,
    /// Agent of the episodes of `tasks`, or of a benchmark with agents such as `terminal_bench_hard`, of `GET /api/agents`;
    /// `terminus-2` if only `model_id` is given. It decides the model if it asks none, so `model_id` can be left out then.
    #[schema(max_length = 50)]
    agent: Option<String>,
    /// Options of the agent by name, such as `{"max_turns": 50}`: texts, numbers or Booleans. The agent `custom` needs
    /// `content_hash`, the `id` of an agent of `POST /api/agents`.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    agent_options: Option<()>,
    /// Samples per item. Defaults to the protocol's.
    #[schema(minimum = 1, maximum = 1000)]
    samples: Option<u32>,
    /// Temperature of the answers, 0 to 2. Defaults to the protocol's.
    temperature: Option<f64>,
    /// Maximum length of an answer in tokens. Defaults to the protocol's.
    max_tokens: Option<u32>,
    /// Nucleus sampling of the answers, above 0 to 1. Defaults to the protocol's.
    top_p: Option<f64>,
    /// Number of the most probable tokens to sample from.
    #[schema(minimum = 1, maximum = 1_000_000)]
    top_k: Option<u32>,
    /// Texts that end an answer, at most 16. Defaults to the protocol's.
    stop: Option<Vec<String>>,
    /// Seed of the provider's sampler. `subset_seed` is another one: it selects the items.
    sampler_seed: Option<i64>,
    /// System message in front of every prompt, at most 32 KiB.
    system_prompt: Option<String>,
    /// Effort of the model's reasoning: `none`, `minimal`, `low`, `medium`, `high` or `xhigh`.
    reasoning_effort: Option<String>,
    /// Maximum number of tokens of the model's reasoning, for providers with such a setting.
    #[schema(minimum = 1)]
    thinking_budget: Option<u32>,
    /// Fields that are added to the body of every request, at most 16 KiB. It must not contain what has a field of its
    /// own here. It is part of the public results.
    #[schema(value_type = Option<Object>)]
    extra_body: Option<()>,
    /// Settings of the benchmark that requests leave out, for models that refuse them: `temperature`, `top_p`,
    /// `max_tokens`, `stop`.
    omit: Option<Vec<String>>,
    /// Name of the request's field for `max_tokens`: `max_tokens` or `max_completion_tokens`. Defaults to the one that the
    /// provider wants.
    max_tokens_field: Option<String>,
    /// Maximum number of requests per minute to the model.
    #[schema(minimum = 1, maximum = 60_000)]
    requests_per_minute: Option<u32>,
    /// Time limit for one answer, in seconds, instead of the benchmark's own. The server's limit stays.
    #[schema(minimum = 1, maximum = 3_600)]
    timeout_seconds: Option<u32>,
    /// Number of samples that end as infrastructure-error or too-long before the run stops.
    #[schema(minimum = 1)]
    max_failures: Option<u32>,
    /// Only these items, instead of a subset, at most 1,000: the dataset's own ids (`source_id` of an item, such as
    /// its `question_id`), or `#` and the index of the row, from 0 (`#12` for the item whose `item_id` is 12).
    items: Option<Vec<String>>,
    /// Uses the demo data bundled with the program. The scores say nothing about the real benchmark.
    demo: Option<bool>,
    /// Budget in US dollars, above 0. When it is reached, the run fails with the reason `budget` and keeps its
    /// answers; requests in progress are still paid for. The model's price must be known.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    budget_usd: Option<f64>,
    /// Budget in tokens of prompts and answers together.
    #[schema(minimum = 1)]
    budget_tokens: Option<u64>,
    /// Short names of protocols for benchmarks that shouldn't use their default: `{"gpqa_diamond": "authors"}`. `GET
    /// /api/benchmarks` lists them.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    protocols: Option<()>,
    /// Options of benchmarks, such as the release of a dataset: `{"livecodebench": {"release": "release_v5",
    /// "start_date": "2024-08-01"}}`. `GET /api/benchmarks/NAME` lists them.
    #[schema(value_type = Option<std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>>>)]
    benchmark_options: Option<()>,
    /// Judge, for benchmarks whose answers a model judges.
    judge: Option<JudgeBody>,
    /// Model that simulates users, for benchmarks whose items are conversations, such as `tau_bench_telecom`. An order with one is
    /// refused without it.
    user_model: Option<UserModelBody>,
    /// Name of the run, one line. It need not be unique, and `PATCH /api/runs/{run_id}` changes it, tags and notes at
    /// any time. Whoever can read the run can read them.
    #[schema(max_length = 100)]
    name: Option<String>,
    /// Tags of the run, to find it in lists. Each has 1 to 50 characters: ASCII letters, digits, and `-_.:/`.
    #[schema(max_items = 16)]
    tags: Option<Vec<String>>,
    /// Notes about the run, one or more lines.
    #[schema(max_length = 4000)]
    notes: Option<String>,
    /// Visibility of the run to other callers: `public` (default), `unlisted` (in no list, readable by its id) or `private`
    /// (doesn't exist for them). `PATCH /api/runs/{run_id}` changes it.
    visibility: Option<String>,
}

/// Reads the body of a request for a run, with the terminal tasks in it.
///
/// # Errors
/// 422 with every problem.
pub(crate) fn read_task_order(mut fields: FieldReader) -> Result<(Order, Option<OrderedTasks>), ApiError> {
    let tasks = take_task_fields(&mut fields);
    Ok((read_order(fields)?, tasks))
}

/// Reads the body of a request.
///
/// # Errors
/// 422 with every problem.
pub(crate) fn read_order(mut fields: FieldReader) -> Result<Order, ApiError> {
    let name = read_name(&mut fields);
    let mut order = read_unnamed_order(fields)?;
    order.labels.name = name;
    Ok(order)
}

/// Reads the body of a request except for `name`, which is the schedule's in the order of a schedule.
///
/// # Errors
/// 422 with every problem, including those that were noted before.
pub(crate) fn read_unnamed_order(mut fields: FieldReader) -> Result<Order, ApiError> {
    let model = fields.text("model_id", MODEL_CHARS_MAX);
    let pct = fields.integer("subset_pct", 100, 1, 100);
    let count = fields.maybe_integer("subset_count", 1, MAX_COUNT_ITEMS);
    let seed = fields.maybe_text("subset_seed", MAX_SEED_CHARS);
    let benchmarks = fields.maybe_texts("selected_benchmarks", BENCHMARKS_MAX, ITEM_CHARS_MAX);
    let config = fields.maybe_object("config").map(|object| Value::Object(object).to_string());
    if config.as_ref().is_some_and(|config| config.len() > CONFIG_BYTES_MAX) {
        fields.note("too_long", "config", format!("Object should have at most {CONFIG_BYTES_MAX} bytes"));
    }
    let provider = fields.maybe_text("provider", MODEL_CHARS_MAX);
    let samples = fields.maybe_integer("samples", 1, SAMPLES_PER_ITEM_MAX.into());
    let generation = read_generation(&mut fields);
    let limits = read_limits(&mut fields);
    let items = fields.maybe_texts("items", ITEMS_MAX, ITEM_CHARS_MAX).unwrap_or_default();
    if items.iter().map(String::len).sum::<usize>() > ITEMS_BYTES_MAX {
        fields.note(
            "too_long",
            "items",
            format!("Item ids should have at most {ITEMS_BYTES_MAX} bytes in total"),
        );
    }
    // People read them at a terminal, as they read the seed.
    if items.iter().any(|item| item.contains(char::is_control)) {
        fields.note_invalid("items", "item ids must not have control characters");
    }
    let demo = fields.flag("demo");
    let budget = read_budget(&mut fields);
    let protocols = read_protocols(&mut fields);
    let options = read_options(&mut fields, &protocols);
    let judge = read_judge(&mut fields);
    let user = read_user_model(&mut fields);
    let labels = read_labels_without_name(&mut fields);
    let mut warnings = unknown_fields(&fields);
    let chooses_part =
        ["subset_pct", "subset_count", "subset_seed"].into_iter().filter(|name| fields.has(name));
    warnings.extend(match items.is_empty() {
        false => chooses_part.map(|name| no_effect_warning(name, "items are named in `items`")).collect(),
        true if count.is_some() && pct != 100 => {
            vec![no_effect_warning("subset_pct", "`subset_count` wins over it")]
        }
        true => Vec::new(),
    });
    let subset = Subset::new(u32::try_from(pct).unwrap_or(100), count, seed.as_deref());
    // The reader has checked the other parts.
    if let Err(error @ SubsetError::SeedControl) = &subset {
        fields.note_invalid("subset_seed", error);
    }
    fields.finish()?;
    let subset = subset.map_err(|error| ApiError::new(Code::InvalidRequest, error.to_string()))?;
    let narrow = |number: u64| u32::try_from(number).ok();
    Ok(Order {
        model,
        provider,
        subset,
        benchmarks,
        items,
        samples: samples.and_then(narrow),
        generation,
        demo,
        budget,
        limits,
        protocols,
        options,
        judge,
        user,
        labels,
        config,
        idempotency_key: None,
        trusted: TrustedSettings::default(),
        warnings,
    })
}

/// Returns the fields of the order that makes these runs, as [`read_order`] reads them.
pub(crate) fn order_fields(run: &RunTemplate) -> Map<String, Value> {
    // Every field is listed: a new one must be added to the order's fields or left out on purpose.
    let RunTemplate {
        model,
        benchmarks: _,
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
        config,
        coverage_min: _,
        price: _,
        budget: Budget { usd, tokens },
        labels: RunLabels { name, tags, notes, visibility },
        limits,
    } = run;
    let config: Option<Value> = config.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let fields = json!({
        "model_id": model.qualified(),
        "subset_pct": pct,
        "subset_count": count,
        "subset_seed": seed,
        "selected_benchmarks": selected_benchmarks,
        "config": config,
        "samples": samples,
        "tasks": Value::Null,
        "agent": Value::Null,
        "agent_options": Value::Null,
        "items": run.item_names(),
        "demo": run.is_demo(),
        "name": name,
        "tags": tags,
        "notes": notes,
        "visibility": visibility,
        "budget_usd": usd,
        "budget_tokens": tokens,
        "protocols": protocols,
        OPTIONS_FIELD: options,
        "judge": judge.as_ref().map(model_fields),
        "user_model": user.as_ref().map(model_fields),
    });
    let mut all = setting_fields(generation, *limits);
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    all
}

/// Returns the fields of a judge or a user simulator.
fn model_fields(model: &JudgeSpec) -> Value {
    let settings = &model.generation;
    json!({
        "model_id": model.model.qualified(),
        "temperature": settings.temperature,
        "seed": settings.seed,
        "max_tokens": settings.max_tokens,
    })
}

/// Returns a warning for each field that was sent but isn't part of an order.
pub(crate) fn unknown_fields(fields: &FieldReader) -> Vec<OrderWarning> {
    let warning = |field: String| {
        let mut text = format!("`{}` is not a field of an order and was ignored", short_name(&field));
        if let Some(suggested_name) = suggested_name(&field) {
            text.push_str(&format!("; did you mean `{suggested_name}`?"));
        }
        OrderWarning { field, text }
    };
    fields.unread().into_iter().take(WARNINGS_MAX).map(warning).collect()
}

/// Returns the correct name of a field that is commonly misnamed.
fn suggested_name(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "benchmark_names" | "benchmarks" | "benchmark" | "benchmark_name" => Some("selected_benchmarks"),
        "model" | "model_name" | "model_slug" => Some("model_id"),
        "seed" => Some("subset_seed"),
        "count" | "limit" | "num_items" | "n" => Some("subset_count"),
        "pct" | "percent" => Some("subset_pct"),
        "item_ids" => Some("items"),
        "budget" => Some("budget_usd"),
        "options" => Some("benchmark_options"),
        "protocol" => Some("protocols"),
        "tag" | "labels" => Some("tags"),
        "note" => Some("notes"),
        "run_name" => Some("name"),
        "max_completion_tokens" => Some("max_tokens"),
        "stop_sequences" => Some("stop"),
        "system" | "system_instruction" | "system_message" => Some("system_prompt"),
        "effort" | "reasoning" => Some("reasoning_effort"),
        "budget_tokens_thinking" | "reasoning_tokens" => Some("thinking_budget"),
        "timeout" => Some("timeout_seconds"),
        "rpm" | "requests_per_minute_max" => Some("requests_per_minute"),
        "generation_seed" | "sampling_seed" => Some("sampler_seed"),
        _ => None,
    }
}

/// Returns the idempotency key of a request, if it has one.
///
/// # Errors
/// 422 for a key that is too long or not visible ASCII.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let legal = !key.is_empty()
        && key.len() <= IDEMPOTENCY_CHARS_MAX
        && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !legal {
        return Err(ApiError::new(
            Code::InvalidRequest,
            format!("`Idempotency-Key` must have 1 to {IDEMPOTENCY_CHARS_MAX} visible ASCII characters"),
        ));
    }
    Ok(Some(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::PartialSchema;

    use super::*;

    fn read(body: Value) -> Result<Order, ApiError> {
        read_order(FieldReader::from_body(body.as_object().unwrap().clone()))
    }

    #[test]
    fn every_documented_field_is_read_and_returned_for_stored_orders() {
        let schema = serde_json::to_value(<OrderBody as PartialSchema>::schema()).unwrap();
        let documented: BTreeSet<String> =
            schema["properties"].as_object().unwrap().keys().cloned().collect();
        let mut body: Map<String, Value> =
            documented.iter().map(|name| (name.clone(), Value::Null)).collect();
        body.extend([("model_id".to_owned(), json!("a/b")), ("subset_pct".to_owned(), json!(100))]);
        let fields = FieldReader::from_body(body);
        assert_eq!(read_task_order(fields).unwrap().0.warnings, [], "an unread field causes a warning");

        let template = bench_domain::testing::template("a/b", "mmlu_pro");
        let mut told: BTreeSet<String> = order_fields(&template).into_iter().map(|(name, _)| name).collect();
        // `model_id` includes the provider.
        assert!(told.insert("provider".to_owned()));
        assert_eq!(told, documented);
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        for (name, value) in [
            ("subset_seed", json!("a\u{1b}]0;title\u{7}")),
            ("subset_seed", json!("a\nstatus: succeeded")),
            ("items", json!(["1", "\u{9b}2J"])),
            ("name", json!("a\u{1b}[2J")),
            ("notes", json!("a\rstatus: succeeded")),
        ] {
            let error = read(json!({ "model_id": "a/b", name: value })).unwrap_err();
            assert_eq!(error.status(), 422);
            assert!(
                error.message().contains(name) && error.message().contains("control"),
                "{}",
                error.message()
            );
        }
    }

    #[test]
    fn the_body_of_the_compatible_system_is_read() {
        let order = read(json!({
            "model_id": "a/b", "subset_pct": "5", "subset_count": null, "subset_seed": "  s ",
            "selected_benchmarks": ["MMLU_Pro"], "config": { "x": 1 }, "provider": null, "benchmark_names": ["y"],
        }))
        .unwrap();
        assert_eq!(order.subset, Subset { pct: 5, count: None, seed: Some("s".into()) });
        assert_eq!(order.config.as_deref(), Some(r#"{"x":1}"#));
        assert_eq!(order.benchmarks.as_deref(), Some(&["MMLU_Pro".to_owned()][..]));
        let bare = read(json!({ "model_id": "a/b", "subset_seed": "   " })).unwrap();
        assert_eq!(bare.subset, Subset::default());
    }

    #[test]
    fn bounds_are_checked() {
        for (field, value) in [
            ("subset_pct", json!(0)),
            ("subset_pct", json!(101)),
            ("subset_pct", json!(null)),
            ("subset_count", json!(0)),
            ("subset_count", json!(1_u64 << 31)),
            ("subset_seed", json!("x".repeat(129))),
            ("model_id", json!(7)),
            ("selected_benchmarks", json!("mmlu_pro")),
            ("config", json!([1])),
            ("config", json!({ "x": "y".repeat(70_000) })),
            ("samples", json!(0)),
            ("samples", json!(1_001)),
            ("temperature", json!(-0.1)),
            ("max_tokens", json!(0)),
            ("items", json!(vec!["x".repeat(255); 500])),
            ("items", json!([1])),
            ("demo", json!("perhaps")),
            ("budget_usd", json!(0)),
            ("budget_usd", json!(0.0)),
            ("budget_usd", json!(-1)),
            ("budget_usd", json!(1_000_000.5)),
            ("budget_usd", json!("NaN")),
            ("budget_usd", json!("inf")),
            ("budget_usd", json!("much")),
            ("budget_tokens", json!(0)),
            ("budget_tokens", json!(1.5)),
            ("budget_tokens", json!(-7)),
            ("protocols", json!([])),
            ("protocols.mmlu_pro", json!(1)),
            ("protocols.mmlu_pro", json!("nope")),
            ("protocols.nope", json!("x")),
            ("judge", json!("oracle")),
            ("judge.model_id", json!(7)),
            ("judge.temperature", json!(2.1)),
            ("judge.seed", json!("x")),
            ("judge.seed", json!(1.5)),
            ("judge.max_tokens", json!(0)),
            ("judge.modell", json!("oracle")),
            ("judge.model", json!(7)),
            ("judge.base_url", json!("http://127.0.0.1:9/v1")),
            ("judge_model", json!("oracle")),
            ("name", json!(7)),
            ("name", json!("a\nb")),
            ("name", json!("x".repeat(101))),
            ("tags", json!("a")),
            ("tags", json!(["a b"])),
            ("tags", json!((0..17).map(|n| n.to_string()).collect::<Vec<_>>())),
            ("notes", json!("x".repeat(4_001))),
        ] {
            let mut body = json!({ "model_id": "a/b" });
            match field.split_once('.') {
                None => body[field] = value.clone(),
                Some((object, field)) => body[object] = json!({ field: value }),
            }
            let error = read(body).unwrap_err();
            assert_eq!(error.status(), 422, "{field}");
            assert!(error.message().starts_with(field), "{field}: {}", error.message());
        }
        assert!(read(json!({})).unwrap_err().message().contains("Field required"));
    }

    #[test]
    fn budgets_are_read_and_make_another_order() {
        let plain = read(json!({ "model_id": "a/b" })).unwrap();
        assert_eq!(plain.budget, Budget::default());
        let nothing = json!({ "model_id": "a/b", "budget_usd": null, "budget_tokens": null });
        assert_eq!(read(nothing).unwrap(), plain);
        let body = json!({ "model_id": "a/b", "budget_usd": "0.5", "budget_tokens": 1 });
        let limited = read(body).unwrap();
        assert_eq!(limited.budget, Budget { usd: Some(0.5), tokens: Some(1) });
        assert_ne!(limited.digest(), plain.digest());
    }

    #[test]
    fn labels_are_read_and_make_another_order() {
        let plain = read(json!({ "model_id": "a/b" })).unwrap();
        let none = json!({ "model_id": "a/b", "name": " ", "tags": [], "notes": null });
        assert_eq!(read(none).unwrap(), plain);
        let body = json!({ "model_id": "a/b", "name": " n ", "tags": ["t", "t"], "notes": "1\n2\n" });
        let labeled = read(body).unwrap();
        let expected = RunLabels {
            name: Some("n".into()),
            tags: vec!["t".into()],
            notes: Some("1\n2".into()),
            ..RunLabels::default()
        };
        assert_eq!(labeled.labels, expected);
        assert_ne!(labeled.digest(), plain.digest());
    }

    #[test]
    fn judges_and_protocols_are_read_and_make_another_order() {
        let plain = read(json!({ "model_id": "a/b", "judge": null, "protocols": null })).unwrap();
        assert_eq!((&plain.judge, plain.protocols.len()), (&None, 0));
        let body = json!({ "model_id": "a/b", "judge": { "model_id": " ", "temperature": 0, "seed": "-7" } });
        let judged = read(body).unwrap();
        let judge = judged.judge.clone().unwrap();
        assert_eq!(
            (judge.model, judge.generation.temperature, judge.generation.seed),
            (None, Some(0.0), Some(-7))
        );
        assert_ne!(judged.digest(), plain.digest());
        let protocol = bench_benchmarks::find("mmlu_pro").unwrap().metadata().protocol_name;
        let chosen = read(json!({ "model_id": "a/b", "protocols": { "mmlu_pro": protocol } })).unwrap();
        assert_eq!(chosen.protocols["mmlu_pro"], protocol);
        assert_ne!(chosen.digest(), plain.digest());
        // The digest that an older version of the program computed.
        assert_eq!(
            read(json!({ "model_id": "oracle" })).unwrap().digest(),
            "8115c82d8622262817bc30a18c1fa45c159d03d6ebe061a816d3a90aa75010f4"
        );
    }

    #[test]
    fn a_misspelled_judge_is_reported() {
        let judge = |judge: Value| read(json!({ "model_id": "a/b", "judge": judge }));
        let named = judge(json!({ "model": "openrouter/j", "model_id": null })).unwrap();
        assert_eq!(named.judge.unwrap().model.as_deref(), Some("openrouter/j"));
        assert!(judge(json!({ "model": "openrouter/j ", "model_id": "openrouter/j" })).is_ok());
        let two = judge(json!({ "model": "openrouter/j", "model_id": "openrouter/k" })).unwrap_err();
        assert_eq!(two.status(), 422);
        assert!(two.message().contains("judge.model: "), "{}", two.message());
        let misspelt = judge(json!({ "modell": "oracle" })).unwrap_err();
        let known = "known fields are model_id, model, provider";
        assert!(misspelt.message().contains(known), "{}", misspelt.message());
        let outside = read(json!({ "model_id": "a/b", "judge_model": "oracle" })).unwrap_err();
        assert!(outside.message().contains("judge.model_id"), "{}", outside.message());
        assert!(read(json!({ "model_id": "a/b", "judge_model": null, "judging": 1 })).is_ok());
    }

    #[test]
    fn equal_orders_have_equal_digests() {
        let body = json!({ "model_id": "a/b", "subset_pct": 5 });
        let one = read(body.clone()).unwrap();
        assert_eq!(one.digest(), read(body).unwrap().digest());
        assert_ne!(one.digest(), read(json!({ "model_id": "a/b", "subset_pct": 6 })).unwrap().digest());
    }

    #[test]
    fn idempotency_keys_are_visible_ascii() {
        let with = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("idempotency-key", http::HeaderValue::from_bytes(value).unwrap());
            idempotency_key(&headers)
        };
        assert_eq!(with(b"k-1").unwrap().as_deref(), Some("k-1"));
        assert!(with(&[b'k'; 255]).is_ok());
        for bad in [&b""[..], b"a b", &[b'k'; 256], "ü".as_bytes()] {
            assert_eq!(with(bad).unwrap_err().status(), 422);
        }
        assert_eq!(idempotency_key(&HeaderMap::new()).unwrap(), None);
    }
}
