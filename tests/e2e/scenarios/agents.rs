//! Benchmarks of agents. The suite's sandbox host runs programs, but has no container engine.

use bench_tests::conversation::{AGENT_CALLS, TASK, USER_CALLS};
use reqwest::Method;
use serde_json::{Value, json};

use super::keys::new_key;
use crate::call::{Caller, demo_order, list, number};
use crate::target::{CUSTOMER, SUPPORTS, Target};

const CONVERSATIONS: &str = "tau_bench_telecom";
const REPOSITORIES: &str = "swe_bench_pro";

/// Each model is asked with its own key, which is stored nowhere in clear and gone with the run.
pub(super) async fn conversation_is_held_by_two_models_with_a_key_each(target: &Target) {
    let (key, user_key) = (new_key("agent"), new_key("user"));
    let mut order = demo_order(SUPPORTS, CONVERSATIONS);
    order["items"] = json!([TASK]);
    let owner = Caller::Key(&key);
    let refused = target.post("/api/runs", owner, &order).await.detail(422);
    assert!(refused.contains("user_model"), "{refused}");
    order["user_model"] = json!({ "model_id": CUSTOMER });
    let request = target.request(Method::POST, "/api/runs", owner).json(&order);
    let created = request.header("x-user-authorization", format!("Bearer {user_key}"));
    let created = target.send(created).await.expect(201);
    let run = format!("/api/runs/{}", created["id"].as_str().unwrap());
    let done = target.wait_for_end(&run, "succeeded").await;
    assert_eq!((&done["overall_score"], &done["coverage"]), (&json!(1.0), &json!(1.0)), "{done:#}");
    let item = only_item(target, &run, CONVERSATIONS).await;
    let dialogue = &item["judge_output"]["dialogue"];
    assert_eq!(
        (&dialogue["termination"], &dialogue["reward"]),
        (&json!("user_stop"), &json!(1.0)),
        "{item:#}"
    );
    assert!(dialogue["user_model"].as_str().is_some_and(|model| model.contains("customer")), "{item:#}");
    assert_eq!(number(&dialogue["user"], "calls"), USER_CALLS);
    for (key, asked) in [(&key, AGENT_CALLS), (&user_key, USER_CALLS)] {
        assert_eq!(target.model.question_count_with(key) as u64, asked);
        assert!(!item.to_string().contains(key.as_str()) && !done.to_string().contains(key.as_str()));
        assert_eq!(target.find_text(key).await, Vec::<String>::new());
    }
}

pub(super) async fn gold_actions_and_patches_need_no_model(target: &Target) {
    let run = target.order(Caller::Admin, demo_order("oracle", CONVERSATIONS)).await;
    let done = target.wait_for_end(&run, "succeeded").await;
    assert_eq!((&done["overall_score"], &done["coverage"]), (&json!(1.0), &json!(1.0)), "{done:#}");
    // The patches are stored, and need an engine to be verified.
    let run = target.order(Caller::Admin, demo_order("oracle", REPOSITORIES)).await;
    let failed = target.wait_for_end(&run, "failed").await;
    let why = failed["error_message"].as_str().unwrap_or_default();
    assert!(why.contains("container engine"), "{failed:#}");
}

/// Returns the only sample of a benchmark in a run.
async fn only_item(target: &Target, run: &str, benchmark: &str) -> Value {
    let page = target.get(&format!("{run}/benchmarks/{benchmark}")).await.expect(200);
    let items = list(&page["items"], "items");
    assert_eq!(items.len(), 1, "{page:#}");
    items[0].clone()
}
