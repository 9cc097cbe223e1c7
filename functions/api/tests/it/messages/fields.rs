//! Fields and parameters with values that are refused.

use serde_json::{Value, json};

use super::{ADMIN, Recorder, cut, id, order, with};
use crate::server::Server;

/// Explanation of the bodies that lines name.
pub(super) const BODIES: &str = "ORDER is an order of the oracle for `mmlu_pro` with demo data, SCHEDULE the same every \
                                 night, ENTRY an access entry with a name.";

fn long(characters: usize) -> String {
    "x".repeat(characters)
}

/// Returns fields of orders and values that are refused.
fn of_orders() -> Vec<(&'static str, Value)> {
    vec![
        ("model_id", json!(7)),
        ("model_id", json!(long(513))),
        ("provider", json!(1)),
        ("subset_pct", json!(0)),
        ("subset_pct", json!(101)),
        ("subset_pct", json!(null)),
        ("subset_pct", json!("x")),
        ("subset_pct", json!(1.5)),
        ("subset_count", json!(0)),
        ("subset_seed", json!(long(129))),
        ("subset_seed", json!("a\nb")),
        ("selected_benchmarks", json!("mmlu_pro")),
        ("selected_benchmarks", json!([1])),
        ("selected_benchmarks", json!(vec!["x"; 201])),
        ("config", json!("x")),
        ("config", json!({ "x": long(70_000) })),
        ("samples", json!(1_001)),
        ("temperature", json!("hot")),
        ("temperature", json!(2.1)),
        ("max_tokens", json!(0)),
        ("top_p", json!(0)),
        ("top_p", json!(1.5)),
        ("top_k", json!(0)),
        ("stop", json!("END")),
        ("stop", json!([""])),
        ("stop", json!(vec!["x"; 17])),
        ("sampler_seed", json!(1.5)),
        ("system_prompt", json!(7)),
        ("system_prompt", json!("é".repeat(17 * 1024))),
        ("reasoning_effort", json!("much")),
        ("thinking_budget", json!(0)),
        ("extra_body", json!([])),
        ("extra_body", json!({ "x": long(17 * 1024) })),
        ("extra_body", json!({ "temperature": 1 })),
        ("omit", json!(["seed"])),
        ("max_tokens_field", json!("tokens")),
        ("requests_per_minute", json!(60_001)),
        ("timeout_seconds", json!(3_601)),
        ("max_failures", json!(0)),
        ("items", json!({})),
        ("items", json!([long(256)])),
        ("items", json!(vec![long(255); 500])),
        ("items", json!(["a\nb"])),
        ("demo", json!("perhaps")),
        ("budget_usd", json!(0)),
        ("budget_usd", json!(-1)),
        ("budget_tokens", json!(0)),
        ("protocols", json!([])),
        ("protocols", json!({ "mmlu_pro": "nope" })),
        ("protocols", json!({ "nope": "x" })),
        ("benchmark_options", json!(1)),
        ("benchmark_options", json!({ "mmlu_pro": 1 })),
        ("benchmark_options", json!({ "mmlu_pro": { "release": "v1" } })),
        ("benchmark_options", json!({ "livecodebench": { "release": [] } })),
        ("benchmark_options", json!({ "livecodebench": { "release": "v0" } })),
        ("benchmark_options", json!({ "nope": { "a": "b" } })),
        ("judge", json!("oracle")),
        ("judge", json!({ "model_id": 7 })),
        ("judge", json!({ "model": 7 })),
        ("judge", json!({ "model": "a/b", "model_id": "a/c" })),
        ("judge", json!({ "provider": 7 })),
        ("judge", json!({ "temperature": 3 })),
        ("judge", json!({ "seed": "x" })),
        ("judge", json!({ "max_tokens": 0 })),
        ("judge", json!({ "modell": "oracle" })),
        ("judge_model", json!("oracle")),
        ("user_model", json!("openrouter/u")),
        ("user_model", json!({ "model_id": 7 })),
        ("user_model", json!({ "modell": "openrouter/u" })),
        ("tasks", json!("1")),
        ("tasks", json!([1.5])),
        ("tasks", json!([1])),
        ("agent", json!("oracle")),
        ("agent", json!(7)),
        ("agent_options", json!({ "max_turns": "5" })),
        ("agent_options", json!("max_turns")),
        ("agent_options", json!({ "max_turns": [5] })),
    ]
    .into_iter()
    .chain(of_labels())
    .collect()
}

/// Returns labels of runs and values that are refused.
fn of_labels() -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!(7)),
        ("name", json!(long(101))),
        ("name", json!("a\nb")),
        ("tags", json!("a")),
        ("tags", json!(["two words"])),
        ("tags", json!(numbers(17))),
        ("tags", json!(numbers(101))),
        ("notes", json!(long(4_001))),
        ("notes", json!("\u{1b}[2J")),
        ("visibility", json!("secret")),
    ]
}

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

/// Returns fields of schedules, besides those of orders, and values that are refused.
fn of_schedules() -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!("  ")),
        ("name", json!(long(101))),
        ("cron", json!(7)),
        ("cron", json!("30 2 * *")),
        ("cron", json!("99 2 * * *")),
        ("cron", json!("0 0 L * *")),
        ("cron", json!("* * * * *")),
        ("cron", json!("*/10 * * * *")),
        ("cron", json!("0 0 31 2 *")),
        ("cron", json!("0,".repeat(120))),
        ("time_zone", json!("Mars/Olympus")),
        ("webhook_url", json!("http://hooks.example.com/")),
        ("webhook_url", json!("https://a:b@hooks.example.com/")),
        ("webhook_url", json!("https://hooks.example.com/#x")),
        ("webhook_url", json!("https://localhost/")),
        ("webhook_url", json!(format!("https://hooks.example.com/{}", long(2_048)))),
        ("enabled", json!("perhaps")),
    ]
}

/// Returns fields of access entries and values that are refused.
fn of_entries() -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!(" ")),
        ("name", json!(long(101))),
        ("oracle", json!("perhaps")),
        ("gated", json!(2)),
        ("tasks", json!("perhaps")),
        ("expires_in_seconds", json!(1)),
        ("key", json!(7)),
        ("user", json!("\n")),
        ("user", json!(long(256))),
        ("orakel", json!(true)),
    ]
}

/// Returns queries that are refused. `RUN` and `SCHEDULE` stand for ids.
fn queries() -> Vec<String> {
    let long = long(513);
    [
        "/api/models?search=LONG",
        "/api/models?provider=LONG",
        "/api/models?limit=501",
        "/api/models?offset=x",
        "/api/benchmarks?texts=x",
        "/api/benchmarks/mmlu_pro?protocol=LONG",
        "/api/runs?status=LONG",
        "/api/runs?model_id=zz",
        "/api/runs?model_slug=LONG",
        "/api/runs?tag=LONG",
        "/api/runs?name=LONG",
        "/api/runs?model=LONG",
        "/api/runs?benchmark=LONG",
        "/api/runs?owner=other",
        "/api/runs?mine=x",
        "/api/runs?search=LONG",
        "/api/runs?limit=-1",
        "/api/runs?id_prefix=3f2",
        "/api/runs?task=x",
        "/api/runs?offset=99999999999999999999999",
        "/api/runs/RUN/benchmarks/mmlu_pro?limit=501",
        "/api/runs/RUN/benchmarks/mmlu_pro?offset=-1",
        "/api/runs/RUN/benchmarks/mmlu_pro?cursor=x",
        "/api/runs/RUN/benchmarks/mmlu_pro?outcome=correct,nope",
        "/api/runs/RUN/benchmarks/mmlu_pro?group=LONG",
        "/api/runs/RUN/benchmarks/mmlu_pro?item=LONG",
        "/api/runs/RUN/benchmarks/mmlu_pro?sample=-1",
        "/api/runs/RUN/benchmarks/mmlu_pro?order=x",
        "/api/runs/RUN/benchmarks/mmlu_pro?texts=x",
        "/api/runs/RUN/items/index",
        "/api/runs/RUN/items/index?benchmark=LONG",
        "/api/runs/RUN/items/index?benchmark=mmlu_pro&part=x",
        "/api/runs/RUN/items/log",
        "/api/runs/RUN/items/log?benchmark=LONG&position=-1&sample=x&attempt=-1&log=LONG&offset=-1&limit=3",
        "/api/runs/RUN/artifacts",
        "/api/runs/RUN/artifacts?benchmark=LONG&position=-1&sample=x&attempt=-1&log=LONG&offset=-1&limit=3",
        "/api/runs/RUN/items/turns",
        "/api/runs/RUN/items/turns?benchmark=LONG&position=-1&sample=x&from=-1",
        "/api/leaderboard?benchmark=LONG",
        "/api/runs/RUN/events?cursor=x",
        "/api/runs/RUN/events?limit=0",
        "/api/runs/RUN/events?Last-Event-ID=LONG",
        "/api/schedules?limit=0",
        "/api/schedules?offset=x",
        "/api/schedules?mine=x",
        "/api/schedules/SCHEDULE/firings?limit=201",
        "/api/schedules/SCHEDULE/firings?before=yesterday",
        "/api/ops/overview?minutes=29",
        "/api/ops/sandy/metrics?hours=49",
        "/api/ops/sandy/sandboxes?ids=IDS",
    ]
    .map(|query| query.replace("LONG", &long).replace("IDS", &vec!["x"; 101].join(",")))
    .into()
}

fn schedule(change: Value) -> Value {
    with(order(json!({ "name": "nightly", "cron": "30 2 * * *" })), &change)
}

/// Shows a changed body by its name and the changed field.
fn shown(name: &str, field: &str, value: &Value) -> String {
    format!("{name} + {{\"{field}\":{}}}", cut(&value.to_string()))
}

pub(super) async fn record(recorder: &mut Recorder) {
    let server = Server::deployed().await;
    let local = Server::local().await;
    recorder.heading("Fields of orders");
    recorder.post(&local, "/api/runs", &[], "{}", &json!({})).await;
    for (field, value) in of_orders() {
        let body = order(json!({ field: value }));
        recorder.post(&local, "/api/runs", &[], &shown("ORDER", field, &value), &body).await;
    }
    let bad_key = [("idempotency-key", "two words")];
    recorder.post(&local, "/api/runs", &bad_key, "ORDER", &order(json!({}))).await;

    recorder.heading("Fields of schedules");
    let (path, caller) = ("/api/schedules", [("authorization", "Bearer key-a")]);
    recorder.post(&server, path, &[], "{}", &json!({})).await;
    for (field, value) in of_schedules() {
        let body = schedule(json!({ field: value }));
        recorder.post(&server, path, &[], &shown("SCHEDULE", field, &value), &body).await;
    }
    let made = id(&server.order(path, &caller, &schedule(json!({}))).await);
    recorder.name(&made, "SCHEDULE");

    recorder.heading("Fields of access entries");
    recorder.post(&server, "/api/admin/access", &[ADMIN], "{}", &json!({})).await;
    for (field, value) in of_entries() {
        let body = with(json!({ "name": "ci" }), &json!({ field: value }));
        recorder.post(&server, "/api/admin/access", &[ADMIN], &shown("ENTRY", field, &value), &body).await;
    }
    let key = json!({ "name": "ci", "key": "two words" });
    recorder.post(&server, "/api/admin/access", &[ADMIN], "ENTRY + {\"key\":\"two words\"}", &key).await;

    recorder.heading("Fields of rejudges and requeues");
    let run = id(&server.order("/api/runs", &caller, &order(json!({}))).await);
    recorder.name(&run, "RUN");
    for change in [json!({ "judge": 1 }), json!({ "budget_usd": 0 }), json!({ "budget_tokens": 0 })] {
        let path = format!("/api/runs/{run}/rejudge");
        recorder.post(&server, &path, &caller, &change.to_string(), &change).await;
    }
    changes(recorder, &server, &run, &caller).await;
    server.post(&format!("/api/runs/{run}/cancel"), &caller).await;
    for change in [
        json!({ "errors": "all" }),
        json!({ "position": -1 }),
        json!({ "position": 0, "sample": "first" }),
        json!({ "position": 0, "benchmark": 3 }),
        json!({ "budget_usd": 0 }),
        json!({ "budget_tokens": 0 }),
    ] {
        let path = format!("/api/admin/runs/{run}/requeue");
        recorder.post(&server, &path, &caller, &change.to_string(), &change).await;
    }

    recorder.heading("Queries");
    for query in queries() {
        let path = query.replace("RUN", &run).replace("SCHEDULE", &made);
        recorder.send(&server, "GET", &path, &[]).await;
    }
}

/// Changes of a run's labels.
async fn changes(recorder: &mut Recorder, server: &Server, run: &str, caller: &[(&str, &str)]) {
    let path = format!("/api/runs/{run}");
    for (field, value) in of_labels() {
        recorder.patch(server, &path, caller, &json!({ field: value })).await;
    }
    let headers: Vec<_> = caller.iter().copied().chain([super::JSON]).collect();
    let full = json!({ "tags": numbers(16) }).to_string();
    assert_eq!(server.ask("PATCH", &path, &headers, full).await.status, 200);
    for change in [
        json!({ "add_tags": ["seventeenth"] }),
        json!({ "remove_tags": ["ä"] }),
        json!({ "tags": ["a"], "add_tags": ["b"] }),
        json!({ "budget_usd": 5 }),
    ] {
        recorder.patch(server, &path, caller, &change).await;
    }
}

/// Returns the documented fields and query parameters that no recorded request has wrong.
pub(super) fn unrefused(recorder: &Recorder, document: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    for (schema, route, parent) in [
        ("Order", "/api/runs", ""),
        ("JudgeOrder", "/api/runs", "judge."),
        ("ScheduleOrder", "/api/schedules", ""),
        ("AccessOrder", "/api/admin/access", ""),
        ("RejudgeOrder", "/api/runs/RUN/rejudge", ""),
        ("RunChange", "/api/runs/RUN", ""),
        ("RequeueBody", "/api/admin/runs/RUN/requeue", ""),
    ] {
        let schema_of = &document["components"]["schemas"][schema];
        let parts = schema_of["allOf"].as_array().into_iter().flatten().chain([schema_of]);
        let fields = parts.filter_map(|part| part["properties"].as_object()).flat_map(|fields| fields.keys());
        let fields: Vec<String> = fields.map(|field| format!("{parent}{field}")).collect();
        assert!(!fields.is_empty(), "{schema}");
        let unrefused = fields.into_iter().filter(|field| !recorder.refuses(route, field));
        missing.extend(unrefused.map(|field| format!("{schema} {field}")));
    }
    // Browsers are sent to a page that says what is wrong.
    let is_for_browsers = |path: &str| matches!(path, "/api/auth/login" | "/api/auth/callback");
    for (path, operations) in document["paths"].as_object().unwrap() {
        if is_for_browsers(path) {
            continue;
        }
        let route = path.replace("{run_id}", "RUN").replace("{schedule_id}", "SCHEDULE");
        let route = route.replace("{benchmark_name}", "mmlu_pro").replace("{task_id}", "7");
        let parameters =
            operations.as_object().unwrap().values().flat_map(|one| one["parameters"].as_array());
        let queries = parameters.flatten().filter(|parameter| parameter["in"] == "query");
        // Exports are another function.
        let is_export = route.ends_with("/export");
        let names = queries.map(|parameter| parameter["name"].as_str().unwrap());
        let names = names.filter(|name| *name != "format" && !is_export);
        missing.extend(
            names.filter(|name| !recorder.refuses(&route, name)).map(|name| format!("{route}?{name}")),
        );
    }
    missing
}
