//! Runs from their order to their end.

use reqwest::Method;
use serde_json::{Value, json};

use crate::call::{Caller, demo_order, list, number};
use crate::target::{ACCEPTS, HANGS, Target};

/// Programs of the demo data run in a separate sandbox each.
pub(super) async fn code_is_run_in_sandboxes(target: &Target) {
    let order = json!({
        "model_id": "oracle", "selected_benchmarks": ["livecodebench"], "demo": true, "subset_count": 4, "samples": 1,
    });
    let run = target.order(Caller::Admin, order).await;
    let done = target.wait_for_end(&run, "succeeded").await;
    assert_eq!((&done["overall_score"], &done["coverage"]), (&json!(1.0), &json!(1.0)));
    let items = pages(target, &format!("{run}/benchmarks/livecodebench")).await;
    assert_eq!(items.len(), 4);
    for item in &items {
        assert_eq!((&item["is_correct"], &item["outcome"]), (&json!(true), &json!("correct")), "{item:#}");
        assert!(item["test_code"].as_str().is_some_and(|code| !code.is_empty()), "{item:#}");
    }
}

/// Follows a run as the website does, by polling the run and its events.
pub(super) async fn followed_to_success(target: &Target) {
    // One of them is judged, also by the oracle.
    let selected = ["mmlu_pro", "aime_2025", "aa_omniscience"];
    let order = json!({ "model_id": "oracle", "selected_benchmarks": selected, "demo": true });
    let run = target.order(Caller::Admin, order).await;
    let (mut seen, mut events, mut cursor) = (0, Vec::new(), String::new());
    let done = loop {
        let found = target.run(&run).await;
        let completed = number(&found["progress"], "completed");
        assert!(completed >= seen, "progress went from {seen} back to {completed}");
        seen = completed;
        let page = target.get(&format!("{run}/events?cursor={cursor}&limit=3")).await.expect(200);
        events.extend(list(&page, "events").iter().cloned());
        page["cursor"].as_str().unwrap().clone_into(&mut cursor);
        if page["done"] == true {
            break target.run(&run).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(done["status"], "succeeded", "{done:#}");
    assert_eq!((&done["overall_score"], &done["coverage"]), (&json!(1.0), &json!(1.0)));
    assert_eq!(number(&done["progress"], "completed"), number(&done["progress"], "total"));

    let numbers: Vec<u64> = events.iter().map(|event| number(event, "sequence")).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<&str> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("run_created", "run_completed"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "benchmark_completed").count(), 3, "{kinds:?}");
    let stream = target.get(&format!("{run}/events")).await;
    let text = String::from_utf8(stream.body.to_vec()).unwrap();
    assert_eq!(
        text.matches("\nid: ").count() + usize::from(text.starts_with("id: ")),
        events.len(),
        "{text}"
    );
    assert!(text.trim_end().ends_with("event: done\ndata: {}"), "{text}");

    for benchmark in list(&done, "benchmarks") {
        let name = benchmark["benchmark_name"].as_str().unwrap();
        let items = pages(target, &format!("{run}/benchmarks/{name}")).await;
        assert_eq!(items.len() as u64, number(benchmark, "planned_samples"), "{name}");
        let index = target.get(&format!("{run}/items/index?benchmark={name}&part=0")).await.expect(200);
        assert_eq!(list(&index, "rows").len(), items.len(), "{name}");
        for (position, item) in items.iter().enumerate() {
            assert_eq!(
                (&item["is_correct"], &item["outcome"]),
                (&json!(true), &json!("correct")),
                "{item:#}"
            );
            assert!(item["prompt"].as_str().is_some_and(|text| !text.is_empty()), "{item:#}");
            assert!(item["response"].as_str().is_some_and(|text| !text.is_empty()), "{item:#}");
            if name == "mmlu_pro" {
                assert_eq!(number(item, "position"), position as u64);
            }
        }
    }
    let id = done["id"].clone();
    let listed = target.get("/api/runs?status=succeeded&model_slug=orac&limit=200").await.expect(200);
    assert!(list(&listed, "runs").iter().any(|run| run["id"] == id));
    assert!(number(&listed, "total") >= 1);
}

/// Returns all items of a benchmark, page by page.
async fn pages(target: &Target, address: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = target.get(&format!("{address}?limit=11&cursor={cursor}")).await.expect(200);
        items.extend(list(&page["items"], "items").iter().cloned());
        match page["items"]["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return items,
        }
    }
}

pub(super) async fn repeated_order_makes_one_run(target: &Target) {
    let key = format!("order-{:?}", std::time::SystemTime::now())
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let mut body = demo_order("oracle", "mmlu_pro");
    body["subset_count"] = json!(2);
    let place = |body: Value| {
        let request =
            target.request(Method::POST, "/api/runs", Caller::Admin).header("idempotency-key", &key);
        target.send(request.json(&body))
    };
    let (one, two) = tokio::join!(place(body.clone()), place(body.clone()));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201]);
    let id = one.json()["id"].clone();
    assert_eq!(two.json()["id"], id);
    assert_eq!(place(body.clone()).await.expect(200)["id"], id);
    body["subset_count"] = json!(3);
    assert!(place(body).await.detail(422).contains("Idempotency-Key"));
    target.wait_for_end(&format!("/api/runs/{}", id.as_str().unwrap()), "succeeded").await;
}

pub(super) async fn canceled_requeued_and_deleted(target: &Target) {
    let mut body = demo_order(HANGS, "mmlu_pro");
    body["subset_count"] = json!(3);
    let owner = Caller::Key("sk-e2e-cancel-2f61");
    let run = target.order(owner, body).await;
    target
        .wait_until("the run to start", || async {
            (target.run(&run).await["status"] == "running").then_some(())
        })
        .await;
    target.post(&format!("{run}/cancel"), owner, &json!({})).await.expect(200);
    assert_eq!(target.run(&run).await["status"], "canceled");
    target.post(&format!("{run}/cancel"), owner, &json!({})).await.detail(400);
    assert_eq!(target.get(&format!("{run}/export?format=zip")).await.status, 400);

    // Its key was deleted, so a requeue needs it again.
    let again = run.replace("/api/runs", "/api/admin/runs") + "/requeue";
    assert!(target.post(&again, Caller::Admin, &json!({})).await.detail(400).contains("key"));
    target.post(&again, owner, &json!({})).await.expect(200);
    let found = target.run(&run).await;
    assert_eq!(
        (&found["generation_number"], &found["error_message"]),
        (&json!(2), &Value::Null),
        "{found:#}"
    );
    target.delete(&run, owner).await.detail(400);
    target.post(&format!("{run}/cancel"), owner, &json!({})).await.expect(200);
    target.wait_for_end(&run, "canceled").await;

    target.delete(&run, owner).await.expect(200);
    target.get(&run).await.detail(404);
}

pub(super) async fn named_tagged_and_found(target: &Target) {
    let mut body = demo_order("oracle", "mmlu_pro");
    (body["subset_count"], body["name"], body["tags"]) = (json!(2), json!("first"), json!(["e2e", "old"]));
    let run = target.order(Caller::Admin, body).await;
    let id = run.rsplit('/').next().unwrap().to_owned();
    let patch =
        |caller, change: Value| target.send(target.request(Method::PATCH, &run, caller).json(&change));
    let found = |tags: &str| {
        let path = format!("/api/runs?tag={tags}&limit=200");
        let id = id.clone();
        async move {
            let page = target.get(&path).await.expect(200);
            list(&page, "runs").iter().any(|run| run["id"] == id.as_str())
        }
    };
    assert!(found("e2e,old").await);
    target.wait_for_end(&run, "succeeded").await;
    patch(Caller::Key("sk-e2e-labels-0c11"), json!({ "name": "theirs" })).await.detail(403);
    patch(Caller::Admin, json!({ "tags": ["two words"] })).await.detail(422);
    let change = json!({ "name": "second", "remove_tags": ["old"], "add_tags": ["new"], "notes": "read" });
    let changed = patch(Caller::Admin, change).await.expect(200);
    let labels = |run: &Value| json!([run["name"], run["tags"], run["notes"]]);
    assert_eq!(labels(&changed), json!(["second", ["e2e", "new"], "read"]));
    assert_eq!(labels(&target.run(&run).await), labels(&changed));
    assert!(found("e2e,new").await && !found("e2e,old").await);
    let removed =
        patch(Caller::Admin, json!({ "name": null, "tags": null, "notes": null })).await.expect(200);
    assert_eq!(labels(&removed), json!([null, [], null]));
    assert!(!found("new").await);
}

pub(super) async fn compared(target: &Target) {
    let order = |model| {
        let mut body = demo_order(model, "mmlu_pro");
        body["subset_count"] = json!(12);
        body["subset_seed"] = json!("compared");
        target.order(Caller::Admin, body)
    };
    let (right, other) = (order("oracle").await, order(crate::target::ANSWERS_A).await);
    target.wait_for_end(&right, "succeeded").await;
    let found = target.wait_for_end(&other, "succeeded").await;
    assert!(found["overall_score"].as_f64().is_some_and(|score| score < 1.0), "{found:#}");
    let other_id = other.rsplit('/').next().unwrap();
    let comparison = target.get(&format!("{right}/compare/{other_id}")).await.expect(200);
    let benchmarks = list(&comparison, "benchmarks");
    assert_eq!(benchmarks.len(), 1, "{comparison:#}");

    assert!(!target.is_gone(other_id).await);
    target.delete(&other, Caller::Admin).await.expect(200);
    let gone = || async { target.is_gone(other_id).await.then_some(()) };
    target.wait_until("everything of the run to be gone", gone).await;
    target.get(&format!("{right}/compare/{other_id}")).await.detail(404);
}

pub(super) async fn judged_again(target: &Target) {
    let mut body = demo_order("oracle", "aa_omniscience");
    body["subset_count"] = json!(3);
    let first = target.order(Caller::Admin, body).await;
    target.wait_for_end(&first, "succeeded").await;
    let order = json!({ "judge": { "model_id": ACCEPTS } });
    let again = target.post(&format!("{first}/rejudge"), Caller::Admin, &order).await.expect(201);
    let second = format!("/api/runs/{}", again["id"].as_str().unwrap());
    let done = target.wait_for_end(&second, "succeeded").await;
    assert_eq!((&done["overall_score"], &done["coverage"]), (&json!(1.0), &json!(1.0)), "{done:#}");
    let judgings = target.get(&format!("{first}/judgings")).await.expect(200);
    assert_eq!(list(&judgings, "judgings").len(), 2, "{judgings:#}");
}
