//! Anyone may read; only owners may change.

use serde_json::json;

use crate::call::{Caller, demo_order, list};
use crate::target::{HANGS, Target};

pub(super) async fn others_are_refused(target: &Target) {
    let (owner, other) = (Caller::Key("sk-e2e-owner-90c2"), Caller::Key("sk-e2e-other-17aa"));
    let mut body = demo_order(HANGS, "mmlu_pro");
    body["subset_count"] = json!(1);
    assert_eq!(target.post("/api/runs", Caller::Nobody, &body).await.status, 401);
    assert_eq!(target.post("/api/runs/api", Caller::Nobody, &body).await.status, 401);
    let run = target.order(owner, body).await;
    let cancel = format!("{run}/cancel");
    let requeue = run.replace("/api/runs", "/api/admin/runs") + "/requeue";
    for path in [&cancel, &requeue] {
        target.post(path, Caller::Nobody, &json!({})).await.detail(401);
        target.post(path, other, &json!({})).await.detail(403);
        let wrong =
            target.request(reqwest::Method::POST, path, Caller::Nobody).header("x-admin-secret", "wrong");
        assert_eq!(target.send(wrong).await.status, 401);
    }
    target.delete(&run, Caller::Nobody).await.detail(401);
    target.delete(&run, other).await.detail(403);
    // All callers may read.
    for caller in [Caller::Nobody, other] {
        assert_ne!(target.get_by(&run, caller).await.expect(200)["status"], "canceled");
        let details = target.get_by(&format!("{run}/benchmarks/mmlu_pro"), caller).await.expect(200);
        assert!(list(&details["items"], "items").len() <= 1);
    }
    let synced = target.post("/api/admin/sync-models", other, &json!({})).await;
    synced.detail(401);
    // The operator may cancel it, and the owner delete it.
    target.post(&cancel, Caller::Admin, &json!({})).await.expect(200);
    target.wait_for_end(&run, "canceled").await;
    target.delete(&run, owner).await.expect(200);
    target.get(&run).await.detail(404);
}

/// CloudFront passes keys to function URLs in a separate header, which must be ignored everywhere else.
pub(super) async fn copied_key_is_ignored(target: &Target) {
    const OWNER: &str = "sk-e2e-copied-5d13";
    let mut body = demo_order(HANGS, "mmlu_pro");
    body["subset_count"] = json!(1);
    let run = target.order(Caller::Key(OWNER), body).await;
    let cancel = format!("{run}/cancel");
    for (caller, status) in [(Caller::Nobody, 401), (Caller::Key("sk-e2e-other-17aa"), 403)] {
        for (method, path) in [(reqwest::Method::POST, &cancel), (reqwest::Method::DELETE, &run)] {
            let copied = target
                .request(method, path, caller)
                .header("x-bench-authorization", format!("Bearer {OWNER}"));
            target.send(copied).await.detail(status);
        }
    }
    target.post(&cancel, Caller::Key(OWNER), &json!({})).await.expect(200);
}
