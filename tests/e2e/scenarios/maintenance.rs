//! `MAINTENANCE_MODE`: no new runs, while open runs continue.

use std::time::Duration;

use serde_json::json;

use crate::call::{Caller, demo_order};
use crate::embedded::{open, serve, vars};
use crate::target::{AwsServices, ModelEndpoint, RawStorage, SLOW, Target, model};

/// Responses of a server in maintenance.
pub(super) async fn new_runs_are_refused(target: &Target) {
    let status = target.get("/api/status").await.expect(200);
    assert_eq!(status["maintenance_mode"], true);
    let body = demo_order("oracle", "mmlu_pro");
    for (path, caller) in [("/api/runs", Caller::Admin), ("/api/runs/api", Caller::Key("sk-e2e-early-5b"))] {
        let detail = target.post(path, caller, &body).await.detail(503);
        assert_eq!(Some(detail.as_str()), status["message"].as_str());
    }
    assert_eq!(target.get("/api/health").await.status, 200);
    assert_eq!(target.get("/api/runs").await.status, 200);
}

/// Uses a separate stack, which is restarted with the variable. For a deployed stack, the script that changes the
/// functions' configuration checks its own run.
pub(super) async fn open_runs_continue(target: &Target) {
    if !matches!(target.aws.stored, RawStorage::Files(_)) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let model = model().await;
    let vars = vars(&model.base_url());
    let mut stack = open(dir.path(), 4, None, vars.clone()).await;
    stack.start().await.unwrap();
    let (base_url, server) = serve(&stack).await;
    let aws = AwsServices {
        queues: stack.queues.clone(),
        blobs: stack.blobs.clone(),
        stored: RawStorage::Files(dir.path().join("data")),
    };
    let mut own = Target::new(base_url, target.admin_secret.clone(), ModelEndpoint::Own(model), aws);
    let mut body = demo_order(SLOW, "mmlu_pro");
    body["subset_count"] = json!(12);
    let run = own.order(Caller::Admin, body).await;
    own.wait_until("the first answers", || async {
        (own.run(&run).await["progress"]["completed"].as_u64() > Some(2)).then_some(())
    })
    .await;
    drop(server);
    stack.stop(Duration::from_secs(10)).await;

    let changed = [("MAINTENANCE_MODE", "true"), ("MAINTENANCE_MESSAGE", "Back on Friday.")];
    let mut vars = vars;
    vars.extend(changed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut stack = open(dir.path(), 16, None, vars).await;
    stack.start().await.unwrap();
    let (base_url, _server) = serve(&stack).await;
    own.base_url = base_url;
    new_runs_are_refused(&own).await;
    assert_eq!(own.get("/api/status").await.json()["message"], "Back on Friday.");
    let found = own.wait_for_end(&run, "succeeded").await;
    assert_eq!(found["coverage"], json!(1.0));
    stack.stop(Duration::from_secs(10)).await;
}
