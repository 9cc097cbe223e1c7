//! Rejudging: versions, copied data, refusals, and views.

use crate::server::Server;
use bench_domain::Outcome::{Correct, Incorrect, Unsupported};
use bench_domain::run::AuthMode;
use bench_domain::{ModelRole, RunId, Secret};
use bench_queue::{Message, QueueName};
use bench_runs::{RejudgeOrder, Standing};
use serde_json::{Value, json};

const JUDGE_KEY: (&str, &str) = ("x-judge-authorization", "Bearer sk-judge");

fn path(run: RunId) -> String {
    format!("/api/runs/{run}/rejudge")
}

fn id(view: &Value) -> RunId {
    view["id"].as_str().unwrap().parse().unwrap()
}

async fn judgings(server: &Server, run: RunId) -> Value {
    let reply = server.get(&format!("/api/runs/{run}/judgings")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

#[tokio::test]
async fn the_answers_of_a_run_are_judged_again_as_a_run_of_its_own() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let first = server.judged_run(&[Correct, Incorrect, Correct]).await;
    let labels = json!({ "name": "baseline", "tags": ["exp-7"], "notes": "about this judge" }).to_string();
    let json = [("content-type", "application/json")];
    assert_eq!(server.ask("PATCH", &format!("/api/runs/{first}"), &json, labels).await.status, 200);
    server.messages(QueueName::Plans).await;
    let judge = json!({ "judge": { "model_id": "openrouter/j", "temperature": 0.25, "seed": 9 } });
    let reply = server.order(&path(first), &[JUDGE_KEY], &judge).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let view = reply.json();
    let second = id(&view);
    assert_eq!(view["rejudges"], json!({ "run": first, "version": 2 }));
    assert_eq!(view["judge"]["model"], "openrouter/j");
    assert_eq!(view["selected_benchmarks"], json!(["hle"]), "the judged ones only");
    assert_eq!((&view["name"], &view["tags"]), (&json!("baseline"), &json!(["exp-7"])));
    assert_eq!(view["notes"], json!(null), "they are about the other run");
    assert_eq!(
        (&view["status"], &view["model"], &view["demo"]),
        (&json!("queued"), &json!("oracle"), &json!(true))
    );
    let (old, new) = (
        server.api.state.run(first).await.unwrap().unwrap().spec,
        server.api.state.run(second).await.unwrap().unwrap().spec,
    );
    assert_eq!(
        (&new.owner, &new.subset, new.samples, &new.generation),
        (&old.owner, &old.subset, old.samples, &old.generation)
    );
    assert_eq!((new.auth, new.template.judge.unwrap().auth), (AuthMode::System, AuthMode::ApiKey));
    assert_eq!(
        server.api.credentials.get(second, ModelRole::Judge).await.unwrap(),
        Some(Secret::new("sk-judge").unwrap())
    );
    assert!(server.messages(QueueName::Plans).await.contains(&Message::Plan { run: second, generation: 1 }));
    let events = server.get(&format!("/api/runs/{second}/events?cursor=")).await.json();
    assert_eq!(events["events"][0]["data"]["rejudges"], json!({ "run": first, "version": 2 }));

    // Rejudging a rejudged run refers to the run that asked the model.
    server
        .finish_judged(second, &[Correct, Correct, Correct], |judge| {
            judge.model = "openrouter/j".into();
            judge.version = 2;
        })
        .await;
    let third = server.order(&path(second), &[], &json!({ "judge": { "model_id": "oracle" } })).await.json();
    assert_eq!(third["rejudges"], json!({ "run": first, "version": 3 }));
    // Without a name, the judge is that of the named run, with its settings unless the order overrides them.
    server.post(&format!("/api/runs/{}/cancel", id(&third)), &[]).await;
    let fourth = server.order(&path(second), &[JUDGE_KEY], &json!({ "judge": { "seed": 10 } })).await.json();
    assert_eq!(
        fourth["judge"],
        json!({ "model": "openrouter/j", "temperature": 0.25, "seed": 10, "max_tokens": null })
    );

    let listed = judgings(&server, first).await;
    assert_eq!(listed, judgings(&server, second).await, "one list for all of them");
    assert_eq!((&listed["run_id"], &listed["model"]), (&json!(first), &json!("oracle")));
    let versions: Vec<(u64, &str)> = listed["judgings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|judging| (judging["version"].as_u64().unwrap(), judging["status"].as_str().unwrap()))
        .collect();
    assert_eq!(versions, [(1, "succeeded"), (2, "succeeded"), (3, "canceled"), (4, "queued")]);
    let scored = &listed["judgings"][1]["benchmarks"];
    assert_eq!(scored.as_array().unwrap().len(), 1);
    assert_eq!((&scored[0]["benchmark_name"], &scored[0]["score"]), (&json!("hle"), &json!(1.0)));
    assert_eq!((&scored[0]["judge"]["version"], &scored[0]["judge"]["seed"]), (&json!(2), &json!(7)));

    // A deleted run's version number stays used. Deleting the first run deletes the list.
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{second}"), &[], "").await.status, 200);
    let listed = judgings(&server, first).await;
    assert_eq!(
        (&listed["judgings"][1]["deleted"], &listed["judgings"][1]["status"]),
        (&json!(true), &json!(null))
    );
    let fifth = server.order(&path(first), &[], &json!({})).await.json();
    assert_eq!(fifth["rejudges"]["version"], 5);
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{first}"), &[], "").await.status, 200);
    server.post(&format!("/api/runs/{}/cancel", id(&fifth)), &[]).await;
    let gone = server.order(&path(id(&fifth)), &[], &json!({})).await;
    assert_eq!(gone.status, 400);
    assert!(gone.detail().contains("was deleted"), "{}", gone.detail());
    assert_eq!(server.get(&format!("/api/runs/{}/judgings", id(&fifth))).await.status, 404);
}

#[tokio::test]
async fn what_cannot_be_judged_again_is_refused() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    let open = server.run_of(&["hle"]).await;
    let unjudged = server.finished_run(&[Correct]).await;
    let unplanned = server.run_of(&["hle"]).await;
    server.post(&format!("/api/runs/{unplanned}/cancel"), &[]).await;
    let judged = server.judged_run(&[Correct]).await;
    for (run, body, status, part) in [
        (open, json!({}), 409, "queued"),
        (unjudged, json!({}), 400, "nothing to judge again"),
        (unplanned, json!({}), 400, "before it had any answer"),
        (judged, json!({ "judge": { "model_id": "nobody/knows" } }), 404, "judge: Model not found"),
        (judged, json!({ "judge": { "model_id": "chutes/j" } }), 400, "CHUTES_API_KEY"),
        (
            judged,
            json!({ "judge": { "model_id": "openrouter/j" }, "budget_usd": 1 }),
            400,
            "price of the judge",
        ),
        (judged, json!({ "judge": { "temperature": 3 } }), 422, ""),
        (RunId::random(), json!({}), 404, "Run not found"),
    ] {
        let reply = server.order(&path(run), &[], &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        if !part.is_empty() {
            assert!(reply.detail().contains(part), "{part}: {}", reply.detail());
        }
    }
    assert_eq!(judgings(&server, judged).await["judgings"].as_array().unwrap().len(), 1, "nothing was made");
    let maintained = Server::new(true, &[("MAINTENANCE_MODE", "1")]).await;
    assert_eq!(maintained.order(&path(judged), &[], &json!({})).await.status, 503);
}

#[tokio::test]
async fn an_order_without_a_body_judges_again_as_it_was() {
    let server = Server::local().await;
    let run = server.judged_run(&[Correct]).await;
    let reply = server.post(&format!("/api/runs/{run}/rejudge"), &[]).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert_eq!(reply.json()["rejudges"]["run"], run.to_string());
    let misspelt = json!({ "judge": { "modell": "oracle" } });
    let refused = server.order(&format!("/api/runs/{run}/rejudge"), &[], &misspelt).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("model_id"), "{}", refused.text);
}

#[tokio::test]
async fn judging_again_is_for_owner_and_operator() {
    let server = Server::deployed().await;
    let owner = ("authorization", "Bearer sk-caller");
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["hle"], "demo": true });
    let run = id(&server.order("/api/runs", &[owner], &body).await.json());
    server.finish_judged(run, &[Correct], |judge| judge.version = 1).await;
    for (headers, status) in [
        (vec![], 401),
        (vec![("authorization", "Bearer sk-other")], 403),
        (vec![("x-admin-secret", "wrong")], 401),
        (vec![owner], 201),
        (vec![("x-admin-secret", "hush")], 201),
    ] {
        let reply = server.order(&path(run), &headers, &json!({})).await;
        assert_eq!(reply.status, status, "{headers:?}: {}", reply.text);
    }
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    for judging in judgings(&server, run).await["judgings"].as_array().unwrap() {
        let made = judging["run_id"].as_str().unwrap().parse().unwrap();
        assert_eq!(server.api.state.run(made).await.unwrap().unwrap().spec.owner, spec.owner);
    }
}

#[tokio::test]
async fn repeats_make_one_version_and_orders_at_once_make_one_each() {
    let server = Server::local().await;
    let run = server.judged_run(&[Correct]).await;
    let key = ("idempotency-key", "again-1");
    let orders = (0..6).map(|_| async { server.order(&path(run), &[key], &json!({})).await });
    let replies = futures_util::future::join_all(orders).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    for reply in &replies {
        assert_eq!(reply.json()["id"], replies[0].json()["id"], "{}", reply.text);
    }
    let other = server.order(&path(run), &[key], &json!({ "judge": { "seed": 2 } })).await;
    assert_eq!(other.status, 422);
    let orders =
        (0..6).map(|_| server.api.orders.rejudge(run, RejudgeOrder::default(), Standing::Local, None));
    let made = futures_util::future::join_all(orders).await;
    let mut versions: Vec<u32> =
        made.into_iter().map(|made| made.unwrap().run.run.spec.rejudges.unwrap().version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [3, 4, 5, 6, 7, 8]);
}

#[tokio::test]
async fn a_repeat_and_what_is_refused_are_not_counted_as_orders() {
    // The run itself counts as one order.
    let server = Server::new(true, &[("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "2")]).await;
    let run = server.judged_run(&[Correct]).await;
    for _ in 0..3 {
        let bad = server.order(&path(run), &[], &json!({ "judge": { "model_id": "nobody/knows" } })).await;
        assert_eq!(bad.status, 404, "{}", bad.text);
    }
    for number in 0..4 {
        let reply = server.order(&path(run), &[("idempotency-key", "again")], &json!({})).await;
        assert_eq!(reply.status, if number == 0 { 201 } else { 200 }, "{}", reply.text);
    }
}

#[tokio::test]
async fn comparisons_say_what_differs() {
    let server = Server::local().await;
    let first = server.judged_run(&[Correct, Incorrect]).await;
    let second = id(&server.order(&path(first), &[], &json!({})).await.json());
    server
        .finish_judged(second, &[Correct, Correct], |judge| {
            judge.model = "openrouter/j".into();
            judge.version = 2;
        })
        .await;
    let compared = server.get(&format!("/api/runs/{second}/compare/{first}")).await.json();
    assert_eq!(compared["a"]["rejudges"], json!({ "run": first, "version": 2 }));
    assert_eq!((&compared["b"]["rejudges"], &compared["only_in_b"]), (&json!(null), &json!(["mmlu_pro"])));
    let hle = &compared["benchmarks"][0];
    assert_eq!((&hle["same_protocol"], &hle["same_judge"]), (&json!(true), &json!(false)));
    assert_eq!((&hle["judge_a"]["model"], &hle["judge_b"]["version"]), (&json!("openrouter/j"), &json!(1)));
    assert_eq!(hle["difference"], -0.5);
    let warnings = hle["warnings"].to_string();
    for part in ["judged differently", "openrouter/j, version 2", "oracle (prompt 777777777777, own"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let third = server.run_of(&["hle"]).await;
    server
        .plan_as(third, "hle", 1, 1, |plan| {
            plan.protocol = "protocol 2".into();
            plan.protocol_name = "two".into();
        })
        .await;
    server.post(&format!("/api/runs/{third}/cancel"), &[]).await;
    let compared = server.get(&format!("/api/runs/{first}/compare/{third}")).await.json();
    let hle = &compared["benchmarks"][0];
    assert_eq!(
        (&hle["protocol_a"], &hle["protocol_b"], &hle["judge_b"]),
        (&json!("one"), &json!("two"), &json!(null))
    );
    let warnings = hle["warnings"].to_string();
    assert!(
        warnings.contains("different protocols: one and two") && warnings.contains("by no model"),
        "{warnings}"
    );
}

#[tokio::test]
async fn what_the_judge_was_shown_and_said_stands_beside_the_answer() {
    let server = Server::local().await;
    let run = server.judged_run(&[Correct, Unsupported]).await;
    let details = server.get(&format!("/api/runs/{run}/benchmarks/hle")).await.json();
    let item = &details["items"]["items"][0];
    assert_eq!(item["judge_prompt"], "Is it right? The gold answer is A.");
    assert_eq!(item["judge_output"]["reply"], r#"{"correct": "yes"}"#);
    assert_eq!(item["judge_output"]["judge"], "oracle");
    let unsupported = &details["items"]["items"][1];
    assert_eq!((&unsupported["outcome"], &unsupported["error"]), (&json!("unsupported"), &json!("because")));
    assert_eq!((&unsupported["is_correct"], &unsupported["judge_prompt"]), (&json!(null), &json!(null)));
    let benchmark = &details["benchmark"];
    assert_eq!(
        (&benchmark["protocol_name"], &benchmark["prompt_source"]),
        (&json!("one"), &json!("official"))
    );
    assert_eq!(
        benchmark["judge"],
        json!({ "model": "oracle", "endpoint_host": null, "version": 1, "prompt_digest": "7".repeat(64), "prompt_source": "own",
            "temperature": 0.0, "seed": 7, "max_tokens": null })
    );
    let plain = server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro")).await.json();
    assert_eq!(
        (&plain["benchmark"]["judge"], &plain["items"]["items"][0]["judge_output"]),
        (&json!(null), &json!(null))
    );
}

#[tokio::test]
async fn a_gated_items_judge_prompt_is_for_owner_and_operator() {
    let server = Server::deployed().await;
    let owner = ("authorization", "Bearer sk-caller");
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["hle"], "demo": true });
    let run = id(&server.order("/api/runs", &[owner], &body).await.json());
    server
        .plan_as(run, "hle", 1, 1, |plan| {
            plan.dataset.source = "hub".into();
            plan.judge = Some(bench_domain::run::JudgeUse {
                model: "oracle".into(),
                endpoint_host: None,
                version: 1,
                prompt_digest: "7".repeat(64),
                prompt_source: "own".into(),
                generation: Default::default(),
            });
        })
        .await;
    server.commit(run, "hle", bench_domain::Position { item: 0, sample: 0 }, Correct).await;
    let path = format!("/api/runs/{run}/benchmarks/hle");
    for (headers, sees) in [
        (vec![], false),
        (vec![("authorization", "Bearer sk-other")], false),
        (vec![owner], true),
        (vec![("x-admin-secret", "hush")], true),
    ] {
        let reply = server.ask("GET", &path, &headers, "").await;
        assert_eq!(reply.text.contains("gold answer is A"), sees, "{headers:?}");
        assert_eq!(reply.text.contains("correct\\\": \\\"yes"), sees, "{headers:?}");
    }
}
