//! Callers' keys.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::call::{Caller, demo_order};
use crate::target::{SLOW, Target};

/// Returns a key that was never used before.
pub(super) fn new_key(name: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("sk-e2e-{name}-{nanos:x}")
}

pub(super) async fn callers_key_is_used_and_never_stored_in_clear(target: &Target) {
    let key = new_key("caller");
    let mut body = demo_order(SLOW, "mmlu_pro");
    body["subset_count"] = json!(12);
    let created = target.post("/api/runs/api", Caller::Key(&key), &body).await.expect(201);
    let id = created["id"].as_str().unwrap().to_owned();
    let run = format!("/api/runs/{id}");
    // The key is stored while the run is open. The search for the id proves that stored texts are found.
    let asked = || async { (target.model.question_count_with(&key) > 0).then_some(()) };
    target.wait_until("a question with the key", asked).await;
    assert_eq!(target.find_text(&key).await, Vec::<String>::new());
    assert!(!target.find_text(&id).await.is_empty());
    let found = target.wait_for_end(&run, "succeeded").await;
    assert!(!found.to_string().contains(&key));
    assert_eq!(target.find_text(&key).await, Vec::<String>::new());
    let sent = target.model.question_count_with(&key);
    assert_eq!(sent, 12);
}

/// The provider's refusal ends the run at once, and its error contains no key.
pub(super) async fn key_that_is_refused_fails_the_run(target: &Target) {
    let key = new_key("refused");
    let body = demo_order("openai-compatible/refuses", "mmlu_pro");
    let run = target.order(Caller::Key(&key), body).await;
    let found = target.wait_for_end(&run, "failed").await;
    let error = found["error_message"].as_str().unwrap();
    assert!(error.contains("no such key") && !error.contains(&key), "{error}");
    let events = target.get(&format!("{run}/events?cursor=&limit=1000")).await.expect(200);
    assert!(!events.to_string().contains(&key));
    assert_eq!(target.find_text(&key).await, Vec::<String>::new());
}
