//! Cancel, delete and requeue.

use crate::server::Server;
use std::time::Duration;

use bench_domain::{ModelRole, Outcome, Secret};
use bench_queue::{Message, QueueName};
use bench_state::{ProviderWait, WaitKind, WaitNoted};
use serde_json::json;

const KEY: (&str, &str) = ("authorization", "Bearer sk-caller");

#[tokio::test]
async fn a_canceled_run_stays_canceled() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro", "aime_2025"]).await;
    server.plan(run, "mmlu_pro", 3, 1).await;
    let reply = server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (200, json!({ "success": true, "message": "Run canceled" }))
    );
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(view["status"], "canceled");
    assert!(view["completed_at"].is_string());
    let again = server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(again.status, 400);
    // The finisher closes the benchmarks, once every process has seen that the run is over.
    let finish = async {
        loop {
            match server.messages(QueueName::Finishes).await {
                none if none.is_empty() => tokio::time::sleep(Duration::from_millis(50)).await,
                some => break some,
            }
        }
    };
    let finish = tokio::time::timeout(Duration::from_secs(60), finish).await.unwrap();
    assert_eq!(finish, [Message::Finish { run, generation: 1 }]);
    let over = server.finished_run(&[Outcome::Correct]).await;
    assert_eq!(server.post(&format!("/api/runs/{over}/cancel"), &[]).await.status, 400);
    assert_eq!(server.get(&format!("/api/runs/{over}")).await.json()["status"], "succeeded");
}

#[tokio::test]
async fn a_run_that_waits_for_its_provider_says_so() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    server.plan(run, "mmlu_pro", 3, 1).await;
    let view = || async { server.get(&format!("/api/runs/{run}")).await.json() };
    assert_eq!(view().await["waiting"], json!(null));
    let now = bench_clock::now();
    let until = now.plus(Duration::from_secs(3_600));
    let wait = ProviderWait {
        kind: WaitKind::RateLimited,
        role: ModelRole::Model,
        since: now,
        until,
        announced_until: until,
        message: Some("HTTP 429: slow down".to_owned()),
    };
    let state = &server.api.state;
    assert_eq!(state.note_provider_wait(run, &wait).await.unwrap(), WaitNoted::Noted(None));
    assert_eq!(state.note_provider_wait(run, &wait).await.unwrap(), WaitNoted::Known, "once for all samples");
    let shown = view().await;
    assert_eq!(
        shown["waiting"],
        json!({
            "kind": "rate_limited", "waits_for": "model", "since": now, "until": until, "waiting_samples": 3,
            "message": "HTTP 429: slow down",
        })
    );
    assert_eq!(shown["eta_seconds"], json!(null));
    let longer = ProviderWait { until: until.plus(Duration::from_secs(60)), ..wait.clone() };
    assert_eq!(state.note_provider_wait(run, &longer).await.unwrap(), WaitNoted::Noted(Some(wait.clone())));
    assert!(!state.end_provider_wait(run, &wait).await.unwrap(), "it was extended meanwhile");
    assert!(state.end_provider_wait(run, &longer).await.unwrap());
    assert_eq!(view().await["waiting"], json!(null));
    // A run that is over waits for nothing.
    state.note_provider_wait(run, &wait).await.unwrap();
    server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(view().await["waiting"], json!(null));
}

#[tokio::test]
async fn a_run_is_deleted_when_it_is_over() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let early = server.ask("DELETE", &format!("/api/runs/{run}"), &[], "").await;
    assert_eq!(early.status, 400);
    let run = server.finished_run(&[Outcome::Correct]).await;
    let reply = server.ask("DELETE", &format!("/api/runs/{run}"), &[], "").await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (200, json!({ "success": true, "message": "Run deleted" }))
    );
    assert_eq!(server.get(&format!("/api/runs/{run}")).await.status, 404);
    assert_eq!(server.get("/api/runs").await.json()["total"], 1);
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{run}"), &[], "").await.status, 404);
    assert_eq!(server.messages(QueueName::Finishes).await, [Message::Finish { run, generation: 1 }]);
}

#[tokio::test]
async fn a_failed_run_is_queued_again() {
    let server = Server::local().await;
    let run = server.finished_run(&[Outcome::Correct, Outcome::InfrastructureError]).await;
    let failed = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&failed["status"], &failed["benchmarks"][0]["score"]), (&json!("failed"), &json!(null)));
    assert!(failed["error_message"].as_str().unwrap().contains("only 1 of 2"));
    server.messages(QueueName::Plans).await;
    let reply = server.post(&format!("/api/admin/runs/{run}/requeue"), &[]).await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()),
        (200, json!({ "success": true, "message": "Run requeued" }))
    );
    let queued = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&queued["status"], &queued["generation_number"]), (&json!("queued"), &json!(2)));
    assert_eq!((&queued["error_message"], &queued["completed_at"]), (&json!(null), &json!(null)));
    assert_eq!(server.messages(QueueName::Plans).await, [Message::Plan { run, generation: 2 }]);
    let again = server.post(&format!("/api/admin/runs/{run}/requeue"), &[]).await;
    assert_eq!(
        (again.status.as_u16(), again.detail().as_str()),
        (400, "Run cannot be requeued (must be failed or canceled)")
    );
}

#[tokio::test]
async fn a_run_that_succeeded_is_queued_again_for_its_errors_only() {
    let server = Server::local().await;
    let mut outcomes = vec![Outcome::Correct; 19];
    outcomes.push(Outcome::InfrastructureError);
    let run = server.finished_run(&outcomes).await;
    let path = format!("/api/admin/runs/{run}/requeue");
    let body = |body: serde_json::Value| body.to_string();
    let headers = [("content-type", "application/json")];
    for plain in ["".to_owned(), body(json!({})), body(json!({ "errors": false }))] {
        let refused = server.ask("POST", &path, &headers, plain).await;
        assert_eq!(
            (refused.status.as_u16(), refused.detail().as_str()),
            (400, "Run cannot be requeued (must be failed or canceled)")
        );
    }
    let odd = server.ask("POST", &path, &headers, body(json!({ "errors": "all" }))).await;
    assert_eq!(odd.status, 422, "{}", odd.text);
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&view["status"], &view["interrupted"]), (&json!("succeeded"), &json!(false)));
    server.messages(QueueName::Plans).await;
    let reply = server.ask("POST", &path, &headers, body(json!({ "errors": true }))).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["message"]), (200, &json!("Run requeued")));
    assert_eq!(server.messages(QueueName::Plans).await, [Message::Plan { run, generation: 2 }]);
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&view["status"], &view["generation_number"]), (&json!("queued"), &json!(2)));

    let whole = server.finished_run(&[Outcome::Correct]).await;
    let path = format!("/api/admin/runs/{whole}/requeue");
    let refused = server.ask("POST", &path, &headers, body(json!({ "errors": true }))).await;
    assert_eq!(refused.status, 400);
    assert!(refused.detail().contains("no infrastructure-errors"), "{}", refused.text);
}

#[tokio::test]
async fn one_sample_without_a_grade_is_queued_again() {
    let server = Server::local().await;
    let run = server.finished_run(&[Outcome::Correct, Outcome::InfrastructureError]).await;
    let path = format!("/api/admin/runs/{run}/requeue");
    let ask = async |body: serde_json::Value| {
        server.ask("POST", &path, &[("content-type", "application/json")], body.to_string()).await
    };
    for (body, part) in [
        (json!({ "sample": 1 }), "need the position of an item"),
        (json!({ "benchmark": "mmlu_pro" }), "need the position of an item"),
        (json!({ "position": 1, "errors": true }), "can't be combined"),
        (json!({ "position": -1 }), "position"),
    ] {
        let refused = ask(body).await;
        assert!(refused.status == 422 && refused.text.contains(part), "{part}: {}", refused.text);
    }
    for (body, part) in [
        (json!({ "position": 0 }), "sample 0 at position 0 was graded"),
        (json!({ "position": 1, "sample": 3 }), "`mmlu_pro` has no sample 3 at position 1"),
        (json!({ "position": 1, "benchmark": "hle" }), "the run has no benchmark `hle`"),
    ] {
        let refused = ask(body).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (400, &json!("nothing_to_requeue")));
        assert!(refused.detail().contains(part), "{part}: {}", refused.text);
    }
    server.messages(QueueName::Plans).await;
    let reply = ask(json!({ "position": 1, "sample": 0, "benchmark": "mmlu_pro" })).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["message"]), (200, &json!("Run requeued")));
    assert_eq!(server.messages(QueueName::Plans).await, [Message::Plan { run, generation: 2 }]);
}

#[tokio::test]
async fn the_callers_key_goes_with_the_run_and_comes_back_with_a_requeue() {
    let server = Server::local().await;
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"] });
    let made = server.order("/api/runs/api", &[KEY], &body).await.json();
    let run = made["id"].as_str().unwrap().parse().unwrap();
    let stored = || async { server.api.credentials.get(run, ModelRole::Model).await.unwrap() };
    assert!(stored().await.is_some());
    assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &[KEY]).await.status, 200);
    assert_eq!(stored().await, None);
    let path = format!("/api/admin/runs/{run}/requeue");
    for headers in [&[][..], &[("x-admin-secret", "hush")]] {
        let without = server.post(&path, headers).await;
        assert_eq!(without.status, 400, "{}", without.text);
        assert!(without.detail().contains("Authorization: Bearer"));
    }
    assert_eq!(stored().await, None);
    assert_eq!(server.get(&format!("/api/runs/{run}")).await.json()["status"], "canceled");
    assert_eq!(server.post(&path, &[KEY]).await.status, 200);
    assert_eq!(stored().await, Some(Secret::new("sk-caller").unwrap()));
    // A second requeue comes too late and doesn't remove the open run's key.
    assert_eq!(server.post(&path, &[KEY]).await.status, 400);
    assert!(stored().await.is_some());
    server.post(&format!("/api/runs/{run}/cancel"), &[KEY]).await;
    assert_eq!(server.ask("DELETE", &format!("/api/runs/{run}"), &[KEY], "").await.status, 200);
    assert_eq!(stored().await, None);
}

#[tokio::test]
async fn cancels_at_the_same_time_tell_of_it_once() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let path = format!("/api/runs/{run}/cancel");
    let replies = futures_util::future::join_all((0..6).map(|_| server.post(&path, &[]))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    let events = server.get(&format!("/api/runs/{run}/events?cursor=")).await.json();
    let kinds =
        events["events"].as_array().unwrap().iter().filter(|event| event["event_type"] == "run_canceled");
    assert_eq!(kinds.count(), 1);
}
