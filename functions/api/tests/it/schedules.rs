//! Schedules over HTTP: create, read, change, run, delete.

use crate::schema::assert_fits;
use crate::server::{Reply, Server};
use bench_domain::run::{AuthMode, COVERAGE_MIN_DEFAULT, ItemNaming, JudgeSpec, Owner};
use bench_domain::schedule::{BenchmarkDifference, Comparison, Firing, FiringState, NoticeKind, Schedule};
use bench_domain::statistics::Interval;
use bench_domain::{
    Budget, Generation, ModelRole, Price, RunId, RunLabels, RunLimits, RunStatus, RunTemplate, ScheduleId,
    Subset, Timestamp,
};
use bench_state::{FiringRef, ScheduleWrite, Transition};
use serde_json::{Value, json};

const A: (&str, &str) = ("authorization", "Bearer key-a");
const B: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");
const PATH: &str = "/api/schedules";

fn body() -> Value {
    json!({
        "name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "model_id": "oracle",
        "selected_benchmarks": ["mmlu_pro", "nope"], "subset_count": 5, "demo": true, "budget_tokens": 1000,
        "webhook_url": "https://hooks.example.com/secret-path",
    })
}

async fn make(server: &Server, headers: &[(&str, &str)], body: &Value) -> Value {
    let reply = server.order(PATH, headers, body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()
}

async fn patch(server: &Server, schedule: &Value, headers: &[(&str, &str)], body: &Value) -> Reply {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    server.ask("PATCH", &path(schedule), &all, body.to_string()).await
}

fn path(schedule: &Value) -> String {
    format!("{PATH}/{}", schedule["id"].as_str().unwrap())
}

async fn stored(server: &Server, schedule: &Value) -> Schedule {
    let id: ScheduleId = schedule["id"].as_str().unwrap().parse().unwrap();
    server.api.state.schedule(id).await.unwrap().unwrap().schedule
}

#[tokio::test]
async fn a_schedule_is_an_order_with_a_plan() {
    let server = Server::local().await;
    let made = make(&server, &[], &body()).await;
    for (field, value) in [
        ("name", json!("nightly")),
        ("cron", json!("30 2 * * *")),
        ("time_zone", json!("Europe/Berlin")),
        ("enabled", json!(true)),
        ("model", json!("oracle")),
        ("benchmarks", json!(["mmlu_pro"])),
        ("ignored_benchmarks", json!(["nope"])),
        ("subset_count", json!(5)),
        ("subset_seed", made["id"].clone()),
        ("demo", json!(true)),
        ("budget_tokens", json!(1000)),
        ("own_key", json!(false)),
        ("webhook_url", json!("https://hooks.example.com/secret-path")),
        ("is_owner", json!(true)),
        ("last", Value::Null),
    ] {
        if field != "model" {
            assert_eq!(made[field], value, "{field}");
        }
    }
    let times: Vec<Timestamp> = serde_json::from_value(made["next_times"].clone()).unwrap();
    assert!(times.len() == 3 && times.is_sorted() && times[0] > bench_clock::now(), "{times:?}");
    let stored = stored(&server, &made).await;
    assert_eq!(
        (stored.next_at, stored.auth, &stored.owner),
        (Some(times[0]), AuthMode::System, &Owner::Local)
    );
    assert_eq!(stored.run.budget.tokens, Some(1000));

    let list = server.get(PATH).await.json();
    assert_eq!((&list["total"], &list["next_offset"]), (&json!(1), &Value::Null));
    assert_eq!(list["schedules"][0]["id"], made["id"]);
    assert_eq!(server.get(&path(&made)).await.json()["name"], "nightly");
    // Defaults are UTC and all benchmarks, and a schedule can be created disabled.
    let bare = make(
        &server,
        &[],
        &json!({ "name": "n", "cron": "0 0 * * 0", "model_id": "oracle", "demo": true, "enabled": false }),
    )
    .await;
    assert_eq!((&bare["time_zone"], &bare["next_times"]), (&json!("UTC"), &json!([])));
    assert_eq!(bare["benchmarks"].as_array().unwrap().len(), bench_benchmarks::all().len());
    assert_eq!(self::stored(&server, &bare).await.next_at, None);
    let page = server.get(&format!("{PATH}?limit=1")).await.json();
    assert_eq!((&page["next_offset"], &page["schedules"][0]["id"]), (&json!(1), &made["id"]));
    let page = server.get(&format!("{PATH}?limit=1&offset=1")).await.json();
    assert_eq!((&page["next_offset"], &page["schedules"][0]["id"]), (&Value::Null, &bare["id"]));
}

#[tokio::test]
async fn all_problems_are_reported_at_once_and_nothing_is_created() {
    let server = Server::deployed().await;
    for (field, value, kind) in [
        ("name", json!("  "), "value_error"),
        ("name", json!("x".repeat(150)), "value_error"),
        ("cron", json!("* * * * *"), "value_error"),
        ("cron", json!("30 2 * *"), "value_error"),
        ("cron", json!("99 2 * * *"), "value_error"),
        ("cron", json!(7), "string_type"),
        ("time_zone", json!("Mars/Olympus"), "value_error"),
        ("webhook_url", json!("http://hooks.example.com/"), "value_error"),
        ("webhook_url", json!("https://a:b@example.com/"), "value_error"),
        ("webhook_url", json!("https://localhost/"), "value_error"),
        ("webhook_url", json!("https://192.168.0.1/"), "value_error"),
        ("webhook_url", json!("https://[::1]/"), "value_error"),
        ("benchmark_options", json!(1), "dict_type"),
        ("enabled", json!("perhaps"), "bool_type"),
        ("subset_count", json!(0), "greater_than_equal"),
        ("budget_tokens", json!(-1), "greater_than_equal"),
    ] {
        let mut body = body();
        body[field] = value.clone();
        let reply = server.order(PATH, &[A], &body).await;
        assert_eq!(reply.problems(), [kind], "{field} {value}: {}", reply.text);
        assert_eq!(reply.json()["detail"][0]["loc"], json!(["body", field]), "{value}");
    }
    let many = server.order(PATH, &[A], &json!({ "time_zone": "x/y", "subset_pct": 0 })).await;
    let problems = many.json()["detail"].clone();
    let fields = problems.as_array().unwrap().iter().map(|problem| problem["loc"][1].as_str().unwrap());
    assert_eq!(fields.collect::<Vec<_>>(), ["name", "time_zone", "cron", "model_id", "subset_pct"]);
    let mut unknown = body();
    unknown["model_id"] = json!("no/such");
    assert_eq!(server.order(PATH, &[A], &unknown).await.status, 404);
    let mut unknown = body();
    unknown["selected_benchmarks"] = json!(["nope"]);
    assert_eq!(server.order(PATH, &[A], &unknown).await.status, 400);
    assert_eq!(server.order(PATH, &[], &body()).await.status, 401);
    assert_eq!(
        server.order(PATH, &[], &json!({})).await.status,
        422,
        "what it should be is told to everybody"
    );
    assert_eq!(server.get(PATH).await.json()["total"], 0);
    for id in ["abc", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"] {
        for (method, path) in [("GET", ""), ("GET", "/firings"), ("DELETE", ""), ("POST", "/run-now")] {
            let path = format!("{PATH}/{id}{path}");
            let reply = server.ask(method, &path, &[ADMIN], axum::body::Body::empty()).await;
            assert_eq!(
                (reply.status.as_u16(), reply.detail().as_str()),
                (404, "schedule not found"),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn reading_is_public_changing_is_owned_and_secrets_are_the_owners() {
    let server = Server::deployed().await;
    let made = make(&server, &[A], &body()).await;
    let stored = stored(&server, &made).await;
    assert_eq!((made["own_key"].clone(), stored.auth), (json!(true), AuthMode::ApiKey));
    let key = server.api.credentials.get_for_schedule(stored.id, ModelRole::Model).await.unwrap().unwrap();
    assert_eq!(key.expose(), "key-a");
    for (headers, sees) in [(&[][..], false), (&[B][..], false), (&[A][..], true), (&[ADMIN][..], true)] {
        for path in [path(&made), PATH.to_owned()] {
            let reply = server.ask("GET", &path, headers, axum::body::Body::empty()).await;
            assert_eq!(reply.status, 200);
            assert_eq!(reply.text.contains("secret-path"), sees, "{headers:?} {path}");
            assert!(reply.text.contains("\"has_webhook\":true"));
            assert!(!reply.text.contains("key-a"), "the key is shown to nobody");
        }
    }
    for (headers, status) in [(&[][..], 401), (&[B][..], 403)] {
        let change = patch(&server, &made, headers, &json!({ "enabled": false })).await;
        assert_eq!(change.status, status);
        for (method, end) in [("DELETE", ""), ("POST", "/run-now")] {
            let path = format!("{}{end}", path(&made));
            let reply = server.ask(method, &path, headers, axum::body::Body::empty()).await;
            assert_eq!(reply.status, status, "{method} {end}");
            if status == 403 {
                assert_eq!(reply.detail(), "this schedule belongs to another caller");
            }
        }
    }
    // The operator may create a schedule on the operator's key.
    let operators = make(&server, &[ADMIN], &body()).await;
    assert_eq!(operators["own_key"], false);
    assert_eq!(patch(&server, &made, &[ADMIN], &json!({ "enabled": false })).await.status, 200);

    let deleted = server.ask("DELETE", &path(&made), &[A], axum::body::Body::empty()).await;
    assert_eq!((deleted.status.as_u16(), &deleted.json()["success"]), (200, &json!(true)));
    assert!(
        server.api.credentials.get_for_schedule(stored.id, ModelRole::Model).await.unwrap().is_none(),
        "its key is gone with it"
    );
    assert_eq!(server.get(&path(&made)).await.status, 404);
}

#[tokio::test]
async fn a_change_is_of_what_is_sent_and_nothing_else() {
    let server = Server::local().await;
    let made = make(&server, &[], &body()).await;
    let before = stored(&server, &made).await;

    let reply = patch(&server, &made, &[], &json!({ "name": " weekly ", "cron": "0 4 * * MON" })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let after = stored(&server, &made).await;
    assert_eq!((after.name.as_str(), after.timing.cron()), ("weekly", "0 4 * * MON"));
    assert_eq!(
        (after.timing.time_zone(), &after.run, &after.webhook),
        ("Europe/Berlin", &before.run, &before.webhook)
    );
    assert!(after.next_at.is_some() && after.next_at == after.timing.next_after(bench_clock::now()));

    patch(&server, &made, &[], &json!({ "enabled": false })).await;
    assert_eq!(stored(&server, &made).await.next_at, None);
    let on = patch(&server, &made, &[], &json!({ "enabled": true, "webhook_url": null })).await.json();
    assert_eq!((&on["has_webhook"], on["next_times"].as_array().unwrap().len()), (&json!(false), 3));
    assert!(stored(&server, &made).await.next_at.is_some());

    let change = json!({ "subset_count": 7, "selected_benchmarks": ["aime_2025"], "temperature": 0.5 });
    let changed = patch(&server, &made, &[], &change).await.json();
    assert_eq!((&changed["subset_count"], &changed["benchmarks"]), (&json!(7), &json!(["aime_2025"])));
    let after = stored(&server, &made).await;
    assert_eq!(
        (after.run.subset.seed, after.run.budget, after.run.model),
        (before.run.subset.seed, before.run.budget, before.run.model)
    );
    assert_eq!(after.run.datasets.len(), 1, "still demo data");
    let back =
        patch(&server, &made, &[], &json!({ "temperature": null, "budget_tokens": null })).await.json();
    assert_eq!((&back["temperature"], &back["budget_tokens"]), (&Value::Null, &Value::Null));

    // Invalid changes are refused and change nothing.
    let before = stored(&server, &made).await;
    for (change, status) in [
        (json!({ "cron": "nope" }), 422),
        (json!({ "time_zone": "x", "name": "other" }), 422),
        (json!({ "model_id": "no/such" }), 404),
        (json!({ "selected_benchmarks": ["nope"] }), 400),
        (json!([]), 422),
    ] {
        assert_eq!(patch(&server, &made, &[], &change).await.status, status, "{change}");
    }
    assert_eq!(
        patch(&server, &made, &[], &json!({ "name": null, "cron": null, "enabled": null })).await.status,
        200
    );
    let after = stored(&server, &made).await;
    assert_eq!(Schedule { updated_at: before.updated_at, ..after }, before);
}

/// Returns true if every field of a template differs from its default.
fn is_all_set(run: &RunTemplate) -> bool {
    // Every field is listed: a new one must be added to the order of the test below.
    let RunTemplate {
        model: _,
        benchmarks,
        selected_benchmarks,
        subset: Subset { pct, count, seed },
        items,
        item_naming,
        samples,
        generation,
        datasets,
        protocols,
        options,
        judge,
        // No benchmark of the order has conversations.
        user: _,
        config,
        coverage_min,
        price,
        budget: Budget { usd, tokens },
        labels: RunLabels { name: _, tags, notes, visibility },
        limits: RunLimits { requests_per_minute, timeout_seconds, max_failures },
    } = run;
    let Generation {
        temperature,
        // It is omitted.
        top_p: _,
        max_tokens,
        stop,
        seed: sampler_seed,
        top_k,
        system_prompt,
        reasoning_effort,
        // It excludes the effort.
        thinking_budget: _,
        extra_body,
        omit,
        max_tokens_field,
    } = generation;
    let Some(JudgeSpec { model: _, auth: _, generation: judging, price: _ }) = judge else { return false };
    let small = [samples, max_tokens, top_k, requests_per_minute, timeout_seconds, max_failures];
    let small = small.map(|number| number.map(u64::from));
    let numbers = [&[*count, *tokens][..], &small].concat();
    let judging = [judging.max_tokens.map(i64::from), judging.seed, judging.temperature.map(|_| 0)];
    !benchmarks.is_empty()
        && [selected_benchmarks.as_ref(), Some(items)]
            .iter()
            .all(|list| list.is_some_and(|list| !list.is_empty()))
        && *pct != 100
        && numbers.iter().all(Option::is_some)
        && [seed, config, notes].iter().all(|text| text.is_some())
        && *item_naming == ItemNaming::SourceId
        && [temperature, usd].iter().all(|number| number.is_some())
        && [system_prompt, extra_body].iter().all(|text| text.is_some())
        && !(stop.is_empty() || omit.is_empty())
        && sampler_seed.is_some()
        && reasoning_effort.is_some()
        && max_tokens_field.is_some()
        && !datasets.is_empty()
        && !tags.is_empty()
        && !visibility.is_public()
        && !protocols.is_empty()
        && !options.is_empty()
        && judging.iter().all(Option::is_some)
        && *coverage_min != COVERAGE_MIN_DEFAULT
        && price.is_some()
}

/// Creates a schedule that sets every field of an order, and returns it with its stored run template.
async fn with_everything(server: &Server) -> (Value, RunTemplate) {
    let body = json!({
        "name": "all", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "model_id": "oracle", "demo": true,
        "selected_benchmarks": ["gpqa_diamond", "livecodebench", "hle"], "items": ["#1"], "subset_pct": 50,
        "subset_count": 5, "subset_seed": "s", "config": { "x": [1] }, "samples": 3, "temperature": 0.5,
        "max_tokens": 4096, "budget_usd": 2.5, "budget_tokens": 1_000_000, "tags": ["t"], "notes": "n",
        "visibility": "unlisted",
        "top_k": 20,
        "stop": ["END"], "sampler_seed": -7, "system_prompt": "Be brief.", "reasoning_effort": "high",
        "extra_body": { "min_p": 1.0 }, "omit": ["top_p"], "max_tokens_field": "max_completion_tokens",
        "requests_per_minute": 60, "timeout_seconds": 30, "max_failures": 5,
        "protocols": { "gpqa_diamond": "authors" },
        "benchmark_options": { "livecodebench": { "start_date": "2024-08-01" } },
        "judge": { "model_id": "oracle", "temperature": 0.25, "seed": 7, "max_tokens": 512 },
    });
    let made = make(server, &[], &body).await;
    let id: ScheduleId = made["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.schedule(id).await.unwrap().unwrap();
    let mut schedule = record.schedule.clone();
    // These fields are recorded, not ordered.
    schedule.run.coverage_min = 0.25;
    schedule.run.price = Some(Price { input_per_million_usd: 1.0, output_per_million_usd: 2.0 });
    let written = server.api.state.update_schedule(&record, &schedule, None).await.unwrap();
    assert_eq!(written, ScheduleWrite::Done);
    assert!(is_all_set(&schedule.run), "{:#?}", schedule.run);
    (made, schedule.run)
}

#[tokio::test]
async fn a_change_of_one_field_keeps_all_the_others() {
    let server = Server::local().await;
    let (made, before) = with_everything(&server).await;
    let reply = patch(&server, &made, &[], &json!({ "samples": 3, "judge": {} })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(stored(&server, &made).await.run, before, "nothing was changed, but all of it was read anew");
    let reply = patch(&server, &made, &[], &json!({ "samples": 4 })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(stored(&server, &made).await.run, RunTemplate { samples: Some(4), ..before });
}

#[tokio::test]
async fn a_change_of_an_older_schedule_keeps_the_items_that_it_names_by_row() {
    let server = Server::local().await;
    let (made, _) = with_everything(&server).await;
    let id: ScheduleId = made["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.schedule(id).await.unwrap().unwrap();
    let mut schedule = record.schedule.clone();
    (schedule.run.items, schedule.run.item_naming) = (vec!["12".into(), "3".into()], ItemNaming::RowIndex);
    server.api.state.update_schedule(&record, &schedule, None).await.unwrap();
    let shown = server.get(&path(&made)).await.json();
    assert_eq!(shown["items"], json!(["#12", "#3"]), "as orders name them");
    assert_eq!(patch(&server, &made, &[], &json!({ "samples": 4 })).await.status, 200);
    let run = stored(&server, &made).await.run;
    assert_eq!((run.items, run.item_naming), (vec!["#12".to_owned(), "#3".into()], ItemNaming::SourceId));
}

#[tokio::test]
async fn a_schedule_with_values_that_are_refused_today_can_be_renamed_and_switched_off() {
    let server = Server::deployed().await;
    let made = make(&server, &[A], &body()).await;
    let id: ScheduleId = made["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.schedule(id).await.unwrap().unwrap();
    let mut schedule = record.schedule.clone();
    schedule.run.subset.seed = Some("a\u{1b}b".into());
    schedule.run.items = vec!["a\nb".into()];
    schedule.webhook = serde_json::from_value(json!("https://127.0.0.1/secret-path")).unwrap();
    server.api.state.update_schedule(&record, &schedule, None).await.unwrap();
    for change in [
        json!({ "enabled": false }),
        json!({ "name": "renamed" }),
        json!({ "cron": "0 4 * * *", "time_zone": "UTC" }),
        json!({ "time_zone": "Europe/Berlin" }),
    ] {
        let reply = patch(&server, &made, &[A], &change).await;
        assert_eq!(reply.status, 200, "{change}: {}", reply.text);
    }
    let after = stored(&server, &made).await;
    assert_eq!((after.name.as_str(), after.enabled, after.timing.cron()), ("renamed", false, "0 4 * * *"));
    assert_eq!((&after.run, &after.webhook), (&schedule.run, &schedule.webhook));
    // What is run is checked as a whole when a part of it changes, and new values are checked always.
    let order = patch(&server, &made, &[A], &json!({ "samples": 2 })).await;
    assert_eq!(order.problems(), ["value_error", "value_error"], "{}", order.text);
    let webhook = patch(&server, &made, &[A], &json!({ "webhook_url": "https://127.0.0.1/x" })).await;
    assert_eq!(webhook.problems(), ["value_error"], "{}", webhook.text);
    let mended = json!({ "subset_seed": "ab", "items": ["#1"], "webhook_url": null });
    assert_eq!(patch(&server, &made, &[A], &mended).await.status, 200);
}

#[tokio::test]
async fn a_name_is_taken_once_however_many_ask_for_it() {
    let server = Server::local().await;
    let body = body();
    let orders = (0..6).map(|_| server.order(PATH, &[], &body));
    let replies = futures_util::future::join_all(orders).await;
    let made: Vec<_> = replies.iter().filter(|reply| reply.status == 201).collect();
    assert_eq!(made.len(), 1, "{:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
    for reply in replies.iter().filter(|reply| reply.status != 201) {
        let told = (reply.status.as_u16(), reply.detail());
        assert_eq!(told.0, 409, "{}", reply.text);
        assert!(told.1.starts_with("you already have a schedule named `nightly`"), "{}", told.1);
    }
    let made = made[0].json();
    let other = make(
        &server,
        &[],
        &json!({ "name": "other", "cron": "0 0 * * 0", "model_id": "oracle", "demo": true }),
    )
    .await;
    assert_eq!(patch(&server, &other, &[], &json!({ "name": "nightly" })).await.status, 409);
    assert_eq!(patch(&server, &made, &[], &json!({ "name": "daily" })).await.status, 200);
    assert_eq!(patch(&server, &other, &[], &json!({ "name": "nightly" })).await.status, 200);
}

#[tokio::test]
async fn in_maintenance_nothing_new_is_scheduled_or_run() {
    let server = Server::local().await;
    let made = make(&server, &[], &body()).await;
    let closed =
        Server::new(true, &[("MAINTENANCE_MODE", "1"), ("MAINTENANCE_MESSAGE", "Back at noon.")]).await;
    let reply = closed.order(PATH, &[], &body()).await;
    assert_eq!((reply.status.as_u16(), reply.detail().as_str()), (503, "Back at noon."));
    assert_eq!(closed.post(&format!("{}/run-now", path(&made)), &[]).await.status, 503);
    assert_eq!(
        closed.order(PATH, &[], &json!({})).await.status,
        422,
        "a bad order is told first, as for runs"
    );
}

#[tokio::test]
async fn run_now_takes_up_the_moment_as_if_it_were_planned() {
    let server = Server::local().await;
    let made = make(&server, &[], &body()).await;
    let before = stored(&server, &made).await;
    let run_now = format!("{}/run-now", path(&made));
    let reply = server.post(&run_now, &[]).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["status"]), (202, &json!("starting")), "{}", reply.text);
    let planned: Timestamp = serde_json::from_value(reply.json()["planned_at"].clone()).unwrap();
    let open = server.api.state.open_firings(10).await.unwrap();
    assert_eq!(open, [FiringRef { schedule: before.id, planned }], "the scheduler goes on from there");
    assert_eq!(stored(&server, &made).await.next_at, before.next_at, "its plan stays");
    assert_eq!(server.get(&path(&made)).await.json()["last"]["status"], "starting");
    patch(&server, &made, &[], &json!({ "enabled": false })).await;
    assert_eq!(server.post(&run_now, &[]).await.status, 400);
}

#[tokio::test]
async fn history_shows_scores_to_all_and_recipients_to_the_owner() {
    let server = Server::deployed().await;
    let made = make(&server, &[A], &body()).await;
    let state = &server.api.state;
    let id: ScheduleId = made["id"].as_str().unwrap().parse().unwrap();
    let at = |hour: i64| Timestamp::from_micros((1_767_225_600 + hour * 3_600) * 1_000_000);
    let order = async || {
        let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
        let made = server.order("/api/runs", &[A], &body).await.json();
        made["id"].as_str().unwrap().parse::<RunId>().unwrap()
    };
    let (run, earlier) = (order().await, order().await);
    let mut ended = Firing::starting(id, at(2), at(2));
    ended.state = FiringState::Ended {
        run,
        started_at: at(2),
        ended_at: at(3),
        run_status: Some(RunStatus::Succeeded),
        score: Some(0.5),
        error: None,
        code: None,
        comparison: Some(Comparison {
            with: earlier,
            regressed: true,
            benchmarks: vec![BenchmarkDifference {
                benchmark: "mmlu_pro".parse().unwrap(),
                items: 5,
                difference: Some(-0.2),
                interval: Some(Interval { low: -0.3, high: -0.1 }),
                regressed: true,
                warnings: Vec::new(),
            }],
        }),
    };
    ended.notify(NoticeKind::Regressed, "It is worse", true, false);
    let missed = Firing::missed(id, at(1), 3, at(2));
    let record = state.schedule(id).await.unwrap().unwrap();
    let next = record.schedule.next_at;
    assert_eq!(state.fire(&record, next, &[missed, ended], at(4)).await.unwrap(), Transition::Done);

    let history = format!("{}/firings", path(&made));
    let all = server.get(&history).await.json();
    let firings = all["firings"].as_array().unwrap();
    assert_eq!((firings.len(), &all["next_before"]), (2, &Value::Null));
    for (field, value) in [
        ("status", json!("ended")),
        ("run_id", json!(run)),
        ("run_status", json!("succeeded")),
        ("score", json!(0.5)),
        ("notices", Value::Null),
    ] {
        assert_eq!(firings[0][field], value, "{field}");
    }
    let document = server.get("/openapi.json").await.json();
    for firing in firings {
        assert_fits(&document, "FiringView", firing);
    }
    let comparison = &firings[0]["comparison"];
    assert_eq!((&comparison["with_run"], &comparison["regressed"]), (&json!(earlier), &json!(true)));
    assert_eq!(comparison["benchmarks"][0]["difference"], -0.2);
    assert_eq!((&firings[1]["status"], &firings[1]["missed_earlier"]), (&json!("missed"), &json!(3)));
    let owners = server.ask("GET", &history, &[A], axum::body::Body::empty()).await.json();
    let notice = &owners["firings"][0]["notices"][0];
    assert_eq!((&notice["kind"], &notice["webhook"]["state"]), (&json!("regressed"), &json!("due")));
    let page = server.get(&format!("{history}?limit=1")).await.json();
    let before = page["next_before"].as_str().unwrap();
    let page = server.get(&format!("{history}?limit=1&before={before}")).await.json();
    assert_eq!(page["firings"][0]["status"], "missed");
    assert_eq!(server.get(&format!("{history}?before=yesterday")).await.status, 422);
    assert_eq!(server.get(PATH).await.json()["schedules"][0]["last"]["score"], 0.5);

    // Others learn nothing about runs that aren't public.
    let hide = async |run: RunId, visibility: &str| {
        let headers = [A, ("content-type", "application/json")];
        let body = json!({ "visibility": visibility }).to_string();
        assert_eq!(server.ask("PATCH", &format!("/api/runs/{run}"), &headers, body).await.status, 200);
    };
    hide(earlier, "unlisted").await;
    let firing = server.get(&history).await.json()["firings"][0].clone();
    assert_eq!((&firing["run_id"], &firing["comparison"]), (&json!(run), &Value::Null));
    hide(run, "private").await;
    let owners = server.ask("GET", &history, &[A], axum::body::Body::empty()).await.json();
    assert_eq!((&owners["firings"][0]["run_id"], &owners["firings"][0]["score"]), (&json!(run), &json!(0.5)));
    let listed = server.get(PATH).await.json();
    let one = server.get(&path(&made)).await.json();
    for firing in
        [&server.get(&history).await.json()["firings"][0], &listed["schedules"][0]["last"], &one["last"]]
    {
        assert_eq!(firing["status"], "ended");
        for field in ["run_id", "run_status", "score", "error", "error_code", "comparison"] {
            assert_eq!(firing[field], Value::Null, "{field}");
        }
    }
}

#[tokio::test]
async fn an_owner_has_a_bounded_number() {
    let server = Server::deployed().await;
    let mut template = stored(&server, &make(&server, &[A], &body()).await).await;
    for number in 1..100 {
        template.id = ScheduleId::random();
        template.name = format!("schedule {number}");
        let created = server.api.state.create_schedule(&template, None).await.unwrap();
        assert_eq!(created, ScheduleWrite::Done);
    }
    let reply = server.order(PATH, &[A], &body()).await;
    assert_eq!(reply.status, 409, "{}", reply.text);
    make(&server, &[B], &body()).await;
}

#[tokio::test]
async fn every_field_is_described() {
    let server = Server::local().await;
    let made = make(&server, &[], &body()).await;
    let document = server.get("/openapi.json").await.json();
    let schema = |name: &str| document["components"]["schemas"][name]["properties"].clone();
    let described = schema("ScheduleView");
    for field in server.get(&path(&made)).await.json().as_object().unwrap().keys() {
        assert!(described.get(field).is_some(), "{field}");
    }
    let firing = server.post(&format!("{}/run-now", path(&made)), &[]).await.json();
    let described = schema("FiringView");
    for field in firing.as_object().unwrap().keys() {
        assert!(described.get(field).is_some(), "{field}");
    }
    let order = document["components"]["schemas"]["ScheduleOrder"].to_string();
    for field in ["cron", "time_zone", "webhook_url"] {
        assert!(order.contains(field), "{order}");
    }
}
