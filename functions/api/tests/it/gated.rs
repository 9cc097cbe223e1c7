//! Texts of gated datasets: visible only to the run's owner and the operator, on every path that could show them.

use bench_domain::{Outcome, Position, RunId};
use serde_json::{Value, json};

use crate::server::Server;

const OWNER: (&str, &str) = ("authorization", "Bearer key-a");
const STRANGER: (&str, &str) = ("authorization", "Bearer key-b");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

/// Texts that only owner and operator may read: parts of prompt, answer, reasoning, verdict reasons and a provider's message.
const SECRETS: [&str; 5] = ["What is q", "said of", "Hmm.", "B is not A", "from Chutes"];

/// Creates a finished run of GPQA Diamond with items from `source`: correct and wrong answers, and failures.
async fn run_from(server: &Server, source: &str) -> RunId {
    let order = json!({ "model_id": "oracle", "selected_benchmarks": ["gpqa_diamond"], "demo": true });
    let made = server.order("/api/runs", &[OWNER], &order).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let run = made.json()["id"].as_str().unwrap().parse().unwrap();
    let outcomes = [Outcome::Correct, Outcome::Incorrect, Outcome::InfrastructureError, Outcome::Truncated];
    server.plan_from(source, run, "gpqa_diamond", outcomes.len() as u64, 1).await;
    for (item, outcome) in (0..).zip(outcomes) {
        let position = Position { item, sample: 0 };
        let text = format!("said of {item}");
        server.commit_text(run, "gpqa_diamond", position, outcome, &text).await;
    }
    server.close(run).await;
    run
}

/// Returns all paths that show data of a run.
fn paths(run: RunId) -> Vec<String> {
    let details = format!("/api/runs/{run}/benchmarks/gpqa_diamond");
    vec![
        details.clone(),
        format!("{details}?limit=1&offset=1"),
        format!("{details}?cursor=2"),
        format!("/api/runs/{run}"),
        "/api/runs".to_owned(),
        format!("/api/runs/{run}/events"),
        format!("/api/runs/{run}/events?cursor=0"),
        format!("/api/runs/{run}/compare/{run}"),
        "/api/benchmarks".to_owned(),
        "/api/benchmarks/gpqa_diamond".to_owned(),
    ]
}

#[tokio::test]
async fn strangers_read_ids_digests_and_verdicts_on_every_path() {
    let server = Server::deployed().await;
    for source in ["hub", "local"] {
        let run = run_from(&server, source).await;
        for headers in [&[][..], &[STRANGER], &[("x-admin-secret", "guess")]] {
            for path in paths(run) {
                let reply = server.ask("GET", &path, headers, "").await;
                for secret in SECRETS {
                    assert!(
                        !reply.text.contains(secret),
                        "{path} as {headers:?} tells {secret}: {}",
                        reply.text
                    );
                }
            }
            let page = server.ask("GET", &paths(run)[0], headers, "").await.json();
            let items = page["items"]["items"].as_array().unwrap();
            assert_eq!(items.len(), 4);
            for (item, outcome) in
                items.iter().zip(["correct", "incorrect", "infrastructure-error", "truncated"])
            {
                assert_eq!((&item["hidden"], &item["outcome"]), (&json!(true), &json!(outcome)));
                for private in [
                    "prompt",
                    "response",
                    "expected",
                    "reasoning",
                    "extracted",
                    "detail",
                    "reason",
                    "judge_output",
                    "body_url",
                ] {
                    assert_eq!(item[private], Value::Null, "{private}");
                }
                assert_eq!(item["body_sha256"].is_string(), outcome != "infrastructure-error");
                assert!(item["item_id"].is_string());
            }
            assert_eq!(items[2]["error"], "infrastructure-error");
            assert_eq!(items[3]["error"], "Response truncated (finish_reason=length)");
            assert_eq!(page["summary"]["error_breakdown"], json!([]));
            assert_eq!(page["summary"]["outcomes"]["infrastructure-error"], 1);
        }
    }
}

#[tokio::test]
async fn owner_and_operator_read_everything() {
    let server = Server::deployed().await;
    let run = run_from(&server, "hub").await;
    // A stranger reads first: the cached summary for the stranger must not be served to the owner.
    server.ask("GET", &paths(run)[0], &[STRANGER], "").await;
    for headers in [[OWNER], [ADMIN]] {
        let page = server.ask("GET", &paths(run)[0], &headers, "").await;
        for secret in SECRETS {
            assert!(page.text.contains(secret), "{headers:?} misses {secret}: {}", page.text);
        }
        let page = page.json();
        assert_eq!(page["items"]["items"][0]["hidden"], false);
        assert_eq!(page["items"]["items"][0]["expected"], "A");
        assert_eq!(page["summary"]["error_breakdown"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn our_own_items_are_open() {
    let server = Server::deployed().await;
    let run = run_from(&server, "demo").await;
    let page = server.get(&paths(run)[0]).await;
    for secret in SECRETS {
        assert!(page.text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn an_order_that_names_nothing_means_what_can_be_had() {
    let order = json!({ "model_id": "oracle" });
    let server = Server::local().await;
    let id = server.order("/api/runs", &[], &order).await.json()["id"].as_str().unwrap().to_owned();
    assert!(!all_of(&server, &id).await.contains(&"gpqa_diamond".to_owned()));
    let demo = json!({ "model_id": "oracle", "demo": true });
    let id = server.order("/api/runs", &[], &demo).await.json()["id"].as_str().unwrap().to_owned();
    assert!(all_of(&server, &id).await.contains(&"gpqa_diamond".to_owned()));
    // An order that names the benchmark is refused with instructions.
    let named = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro", "gpqa_diamond"] });
    let refused = server.order("/api/runs", &[], &named).await;
    assert_eq!(refused.status, 400);
    assert!(refused.detail().contains("accept its terms"), "{}", refused.text);
}

async fn all_of(server: &Server, run: &str) -> Vec<String> {
    let run = server.api.state.run_with_benchmarks(run.parse().unwrap()).await.unwrap().unwrap();
    run.benchmarks.iter().map(|record| record.name.to_string()).collect()
}
