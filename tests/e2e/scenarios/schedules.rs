//! Scheduled runs.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};

use crate::call::{Caller, demo_order, list};
use crate::target::{ANSWERS_A, Target};

/// Time until the planned time, long enough that it is still ahead when the schedule is stored.
const AHEAD_S: u64 = 70;

/// Returns a daily cron expression whose next time is in about a minute.
pub(super) fn cron_in_a_minute() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let minutes = (now + AHEAD_S) / 60;
    format!("{} {} * * *", minutes % 60, (minutes / 60) % 24)
}

pub(super) async fn planned_time_makes_one_run_on_the_schedules_own_key(target: &Target) {
    let key = format!("sk-e2e-nightly-{:x}", std::process::id());
    let mut body = demo_order(ANSWERS_A, "mmlu_pro");
    body["subset_count"] = json!(5);
    body["name"] = json!("nightly");
    body["cron"] = json!(cron_in_a_minute());
    let created = target.post("/api/schedules", Caller::Key(&key), &body).await.expect(201);
    assert_eq!((&created["enabled"], &created["own_key"]), (&json!(true), &json!(true)), "{created:#}");
    assert_eq!(list(&created, "next_times").len(), 3);
    let schedule = format!("/api/schedules/{}", created["id"].as_str().unwrap());
    assert_eq!(target.find_text(&key).await, Vec::<String>::new());
    let listed = target.get("/api/schedules").await.expect(200);
    assert!(list(&listed, "schedules").iter().any(|listed| listed["id"] == created["id"]));

    let ended = || async {
        let firings = schedule_firings(target, &schedule).await;
        firings.iter().find(|firing| firing["status"] == "ended").cloned()
    };
    let firing = target.wait_until("the end of the planned run", ended).await;
    assert_eq!(firing["planned_at"], created["next_times"][0], "{firing:#}");
    assert_eq!(firing["run_status"], "succeeded", "{firing:#}");
    assert_eq!(schedule_firings(target, &schedule).await.len(), 1);
    assert_eq!(target.model.question_count_with(&key), 5);
    let run = target.run(&format!("/api/runs/{}", firing["run_id"].as_str().unwrap())).await;
    assert_eq!(run["status"], "succeeded", "{run:#}");

    // Only its owner may change it; its key is deleted with it.
    let off = json!({ "enabled": false });
    change(target, &schedule, Caller::Key("sk-e2e-somebody-else"), &off, 403).await;
    let changed = change(target, &schedule, Caller::Key(&key), &off, 200).await;
    assert_eq!((&changed["enabled"], &changed["next_times"]), (&json!(false), &json!([])));
    target.delete(&schedule, Caller::Key("sk-e2e-somebody-else")).await.detail(403);
    target.delete(&schedule, Caller::Key(&key)).await.expect(200);
    target.get(&schedule).await.detail(404);
    assert_eq!(target.find_text(&key).await, Vec::<String>::new());
}

async fn schedule_firings(target: &Target, schedule: &str) -> Vec<Value> {
    let found = target.get(&format!("{schedule}/firings")).await.expect(200);
    list(&found, "firings").to_vec()
}

async fn change(target: &Target, schedule: &str, caller: Caller<'_>, body: &Value, status: u16) -> Value {
    target.send(target.request(Method::PATCH, schedule, caller).json(body)).await.expect(status)
}
