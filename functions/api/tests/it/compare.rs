//! Comparison of two runs on the same items.

use crate::server::Server;
use bench_domain::Outcome::{Correct, Incorrect, InfrastructureError};
use bench_domain::run::{OwnTimeout, Plan};
use bench_domain::{Generation, Position};
use serde_json::json;

#[tokio::test]
async fn runs_are_compared_on_the_items_that_both_have_graded() {
    let server = Server::local().await;
    let a = server.finished_run(&[Correct, Correct, Correct, Incorrect, Correct, InfrastructureError]).await;
    let b = server.finished_run(&[Correct, Incorrect, Incorrect, Incorrect, Correct, Correct]).await;
    let reply = server.get(&format!("/api/runs/{a}/compare/{b}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let comparison = reply.json();
    assert_eq!(comparison["a"]["id"], a.to_string());
    let benchmark = &comparison["benchmarks"][0];
    for (field, value) in [
        ("benchmark_name", json!("mmlu_pro")),
        ("items", json!(5)),
        ("only_in_a", json!(0)),
        ("only_in_b", json!(1)),
        ("mean_a", json!(0.8)),
        ("mean_b", json!(0.4)),
        ("both_right", json!(2)),
        ("only_a_right", json!(2)),
        ("only_b_right", json!(0)),
        ("both_wrong", json!(1)),
        ("mcnemar_p", json!(0.5)),
        ("same_dataset", json!(true)),
        ("same_protocol", json!(true)),
    ] {
        assert_eq!(benchmark[field], value, "{field}");
    }
    assert!((benchmark["difference"].as_f64().unwrap() + 0.4).abs() < 1e-12);
    assert!(benchmark["interval"]["low"].is_number());
    assert!(benchmark["warnings"][0].as_str().unwrap().contains("Demo"));
    let itself = server.get(&format!("/api/runs/{b}/compare/{b}")).await.json();
    assert_eq!(itself["benchmarks"][0]["difference"], 0.0);
}

#[tokio::test]
async fn different_generation_settings_are_named() {
    let server = Server::local().await;
    let a = server.finished_run(&[Correct]).await;
    let b = server.run_of(&["mmlu_pro"]).await;
    let other = Generation { temperature: Some(0.6), max_tokens: Some(2_048), ..Generation::default() };
    let change = |plan: &mut Plan| {
        plan.generation = other;
        plan.timeout = OwnTimeout::new(Some(30), 1_200);
    };
    server.plan_as(b, "mmlu_pro", 1, 1, change).await;
    server.commit(b, "mmlu_pro", Position { item: 0, sample: 0 }, Correct).await;
    server.close(b).await;
    let comparison = server.get(&format!("/api/runs/{a}/compare/{b}")).await.json();
    let benchmark = &comparison["benchmarks"][0];
    assert_eq!(benchmark["same_protocol"], json!(false));
    let warnings = benchmark["warnings"].to_string();
    let expected = "The runs used different generation settings: temperature none and 0.6.";
    assert!(warnings.contains(expected), "{warnings}");
    let times = "The runs had different time limits for an answer: the benchmark's own and 30 s.";
    assert!(warnings.contains(times), "{warnings}");
    assert!(!warnings.contains("prompt template"), "{warnings}");
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused() {
    let server = Server::local().await;
    let over = server.finished_run(&[Correct]).await;
    let open = server.run_of(&["mmlu_pro"]).await;
    for (a, b) in [(over, open), (open, over)] {
        let reply = server.get(&format!("/api/runs/{a}/compare/{b}")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.detail().as_str()),
            (400, format!("run `{open}` is not over; compare it later").as_str())
        );
    }
    let other = server.run_of(&["aime_2025"]).await;
    server.post(&format!("/api/runs/{other}/cancel"), &[]).await;
    let reply = server.get(&format!("/api/runs/{over}/compare/{other}")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.detail().as_str()),
        (400, "the runs have no benchmark in common")
    );
    assert_eq!(server.get(&format!("/api/runs/{over}/compare/abc")).await.status, 404);
    // A run that was canceled before it was planned has nothing to compare, and the response says so.
    server.post(&format!("/api/runs/{open}/cancel"), &[]).await;
    let empty = server.get(&format!("/api/runs/{over}/compare/{open}")).await.json();
    assert_eq!(
        (&empty["benchmarks"][0]["items"], &empty["benchmarks"][0]["difference"]),
        (&json!(0), &json!(null))
    );
    assert!(empty["benchmarks"][0]["warnings"][0].as_str().unwrap().contains("before"));
}
