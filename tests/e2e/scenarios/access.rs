//! Access to orders.

use reqwest::Method;
use serde_json::json;

use crate::call::{Caller, demo_order, list};
use crate::scenarios::schedules::cron_in_a_minute;
use crate::target::{ANSWERS_A, Target};

pub(super) async fn only_known_callers_order(target: &Target) {
    let model = demo_order(ANSWERS_A, "mmlu_pro");
    let made_up = Caller::Key("made-up-4d1f");
    for path in ["/api/runs", "/api/runs/api"] {
        target.post(path, made_up, &model).await.detail(403);
        // A key confirmed by its provider doesn't give access to runs that reveal gold answers.
        target
            .post(path, Caller::Key("sk-e2e-stranger-77"), &demo_order("oracle", "mmlu_pro"))
            .await
            .detail(403);
        target
            .post(path, Caller::Key("sk-e2e-stranger-77"), &demo_order(ANSWERS_A, "gpqa_diamond"))
            .await
            .detail(403);
    }
    assert_eq!(target.model.question_count_with("made-up-4d1f"), 0);
    let mut large = demo_order(ANSWERS_A, "mmlu_pro");
    large["demo"] = json!(false);
    large["samples"] = json!(1_000);
    let detail = target.post("/api/runs", Caller::Key("sk-e2e-stranger-77"), &large).await.detail(422);
    assert!(detail.contains("12032000 samples"), "{detail}");
    // Only the operator sees the details of operations.
    let overview = target.get("/api/ops/overview").await.expect(200);
    for shown in ["workers", "queued_runs", "running_runs", "completed_runs", "unreadable_messages"] {
        assert!(list(&overview, shown).is_empty(), "{shown}: {overview:#}");
    }
}

pub(super) async fn tokens_order_on_the_operators_key_until_they_are_revoked(target: &Target) {
    let name =
        format!("e2e-{:?}", std::time::SystemTime::now()).replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let body = json!({ "name": name, "oracle": true, "expires_in_seconds": 3_600 });
    target.post("/api/admin/access", Caller::Nobody, &body).await.detail(401);
    let created = target.post("/api/admin/access", Caller::Admin, &body).await.expect(201);
    let token = created["token"].as_str().unwrap().to_owned();
    let mut order = demo_order(ANSWERS_A, "mmlu_pro");
    order["subset_count"] = json!(2);
    order["benchmark_names"] = json!(["aime_2025"]);
    let answer = target.post("/api/runs", Caller::Key(&token), &order).await.expect(201);
    assert!(answer["warnings"][0].as_str().unwrap().contains("benchmark_names"), "{answer:#}");
    let run = format!("/api/runs/{}", answer["id"].as_str().unwrap());
    target.wait_for_end(&run, "succeeded").await;
    order["model_id"] = json!("oracle");
    let oracle = target.order(Caller::Key(&token), order.clone()).await;
    target.wait_for_end(&oracle, "succeeded").await;
    assert_eq!(target.model.question_count_with(&token), 0, "a token goes to no provider");
    assert_eq!(target.find_text(&token).await, Vec::<String>::new());
    let mut nightly = order.clone();
    nightly["name"] = json!(name);
    nightly["cron"] = json!(cron_in_a_minute());
    nightly["enabled"] = json!(false);
    let schedule = target.post("/api/schedules", Caller::Key(&token), &nightly).await.expect(201);
    let schedule = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    let listed = target.get_by("/api/admin/access", Caller::Admin).await.expect(200);
    assert!(list(&listed, "entries").iter().any(|entry| entry["name"] == name.as_str()));
    target.delete(&format!("/api/admin/access/{name}"), Caller::Admin).await.expect(200);
    target.post("/api/runs", Caller::Key(&token), &order).await.detail(401);
    target.delete(&run, Caller::Key(&token)).await.detail(401);
    target.get_by(&run, Caller::Key(&token)).await.expect(200);

    // Its schedules can't order runs any more, either.
    let mut switched = json!({ "enabled": true });
    switched["cron"] = json!(cron_in_a_minute());
    let request = target.request(Method::PATCH, &schedule, Caller::Admin).json(&switched);
    target.send(request).await.expect(200);
    let refused = || async {
        let firings = target.get(&format!("{schedule}/firings")).await.expect(200);
        let first = list(&firings, "firings").first().cloned()?;
        first["error"].as_str().map(str::to_owned)
    };
    let error = target.wait_until("the planned time", refused).await;
    assert!(error.contains("access token was revoked"), "{error}");
    target.delete(&schedule, Caller::Admin).await.expect(200);
}
