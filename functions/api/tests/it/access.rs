//! The access policy for orders on a server that others can reach.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bench_domain::run::{AuthMode, Owner};
use bench_domain::{ModelRole, RunId, Timestamp};
use bench_state::access::AccessKind;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Reply, Server};

const ADMIN: (&str, &str) = ("x-admin-secret", "hush");
const GOOD: (&str, &str) = ("authorization", "Bearer sk-good");
const MADE_UP: (&str, &str) = ("authorization", "Bearer made-up");

/// Fake provider that accepts one key and records the requests.
#[derive(Clone)]
pub(crate) struct Provider {
    /// Paths that require the key; the others answer without it.
    checks: BTreeSet<&'static str>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) address: String,
}

impl Provider {
    pub(crate) async fn start(checks: &[&'static str]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { checks: checks.iter().copied().collect(), asked: Arc::default(), address };
        let router = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        provider
    }

    fn asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, _)| asked == path).count()
    }

    fn was_sent(&self, secret: &str) -> bool {
        self.asked.lock().unwrap().iter().any(|(_, key)| key.contains(secret))
    }

    /// Starts a server that isn't bound to loopback and whose models are all at this provider.
    pub(crate) async fn server(&self, more: &[(&str, &str)]) -> Server {
        let base = format!("{}/v1", self.address);
        let mut vars = vec![
            ("OPENAI_COMPATIBLE_BASE_URL", base.as_str()),
            ("OPENAI_COMPATIBLE_API_KEY", "sk-operator"),
            ("OPENROUTER_BASE_URL", base.as_str()),
            ("CHUTES_API_BASE_URL", base.as_str()),
            ("CHUTES_MODELS_API_URL", self.address.as_str()),
        ];
        vars.extend_from_slice(more);
        Server::new(false, &vars).await
    }
}

async fn answer(State(provider): State<Provider>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let key = request.headers().get("authorization").map(|key| key.to_str().unwrap().to_owned());
    let key = key.unwrap_or_default();
    provider.asked.lock().unwrap().push((path.clone(), key.clone()));
    let knows = key == "Bearer sk-good";
    if provider.checks.contains(path.as_str()) && !knows {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": { "message": "no such key" } })))
            .into_response();
    }
    match path.as_str() {
        "/v1/chat/completions" => {
            let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"length\"}]}\n\n\
                        data: [DONE]\n\n";
            ([("content-type", "text/event-stream")], text).into_response()
        }
        "/v1/broken/models" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => Json(json!({ "data": [{ "id": "m" }] })).into_response(),
    }
}

fn order(model: &str) -> Value {
    json!({
        "model_id": model, "selected_benchmarks": ["mmlu_pro"], "demo": true, "subset_count": 3, "samples": 1,
    })
}

fn id(reply: &Reply) -> RunId {
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn keys_order_once_their_provider_has_confirmed_them() {
    for (model, account) in [
        ("openai-compatible/m", "/v1/models"),
        ("openai-compatible/m", "/v1/chat/completions"),
        ("openrouter/m", "/v1/key"),
        ("chutes/m", "/users/me"),
    ] {
        let provider = Provider::start(&[account]).await;
        let server = provider.server(&[]).await;
        for path in ["/api/runs", "/api/runs/api"] {
            let refused = server.order(path, &[MADE_UP], &order(model)).await;
            assert_eq!(refused.status, 403, "{model} {account}: {}", refused.text);
            assert!(!refused.text.contains("made-up"), "{}", refused.text);
            let made = server.order(path, &[GOOD], &order(model)).await;
            let spec = server.api.state.run(id(&made)).await.unwrap().unwrap().spec;
            assert_eq!(spec.auth, AuthMode::ApiKey, "the operator does not pay");
        }
        assert_eq!(server.order("/api/schedules", &[MADE_UP], &nightly(model)).await.status, 403);
        assert_eq!(server.order("/api/schedules", &[GOOD], &nightly(model)).await.status, 201);
        // Confirmations are cached; refusals aren't.
        let good = |asked: &(String, String)| asked.0 == account && asked.1 == "Bearer sk-good";
        let calls = provider.asked.lock().unwrap().iter().filter(|asked| good(asked)).count();
        assert_eq!(calls, 1, "{model} {account}");
        assert_eq!(server.get("/api/runs").await.json()["total"], 2);
    }
}

fn nightly(model: &str) -> Value {
    let mut body = order(model);
    body["name"] = json!("nightly");
    body["cron"] = json!("30 2 * * *");
    body
}

#[tokio::test]
async fn a_provider_that_takes_any_key_confirms_none() {
    let provider = Provider::start(&[]).await;
    let server = provider.server(&[]).await;
    let refused = server.order("/api/runs", &[GOOD], &order("openai-compatible/m")).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(refused.detail().contains("accepts any key"), "{}", refused.text);
    // A failing provider confirms no key either, and that isn't the caller's fault.
    let base = format!("{}/v1/broken", provider.address);
    let broken = Server::new(false, &[("OPENAI_COMPATIBLE_BASE_URL", base.as_str())]).await;
    let reply = broken.order("/api/runs", &[GOOD], &order("openai-compatible/m")).await;
    assert_eq!(reply.status, 503, "{}", reply.text);
    assert!(reply.headers.contains_key("retry-after"));
    assert_eq!(server.get("/api/runs").await.json()["total"], 0);
}

#[tokio::test]
async fn keys_that_are_refused_are_bounded_for_each_address() {
    let provider = Provider::start(&["/v1/models"]).await;
    let server = provider.server(&[]).await;
    let from = |address: &'static str| ("x-forwarded-for", address);
    let mut last = 0;
    for n in 0..14 {
        let key = format!("Bearer made-up-{n}");
        let headers = [("authorization", key.as_str()), from("192.0.2.1")];
        last = server.order("/api/runs", &headers, &order("openai-compatible/m")).await.status.as_u16();
    }
    assert_eq!(last, 429);
    let asked = provider.asked("/v1/models");
    assert!(asked <= 10, "{asked} calls");
    let other = server.order("/api/runs", &[GOOD, from("192.0.2.2")], &order("openai-compatible/m")).await;
    assert_eq!(other.status, 201, "{}", other.text);
}

#[tokio::test]
async fn keys_that_come_at_once_are_bounded_as_those_that_come_in_turn() {
    let provider = Provider::start(&["/v1/models"]).await;
    let server = provider.server(&[]).await;
    let body = order("openai-compatible/m");
    let send = async |key: String| {
        let headers = [("authorization", key.as_str()), ("x-forwarded-for", "192.0.2.1")];
        server.order("/api/runs", &headers, &body).await.status.as_u16()
    };
    let made_up = (0..40).map(|n| send(format!("Bearer made-up-{n}")));
    let statuses = futures_util::future::join_all(made_up).await;
    assert_eq!((count_of(&statuses, 403), count_of(&statuses, 429)), (10, 30), "{statuses:?}");
    assert_eq!(provider.asked("/v1/models"), 10);

    // Concurrent orders with one good key wait for each other instead of counting as refusals.
    let limits =
        [("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "100"), ("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "100")];
    let server = provider.server(&limits).await;
    let orders = (0..20).map(|_| server.order("/api/runs", &[GOOD], &body));
    let replies = futures_util::future::join_all(orders).await;
    assert!(replies.iter().all(|reply| reply.status == 201), "{}", replies[19].text);
}

#[tokio::test]
async fn oracle_and_gated_benchmarks_are_for_admins_and_listed_callers() {
    let provider = Provider::start(&["/v1/models"]).await;
    let server = provider.server(&[("HF_TOKEN", "t")]).await;
    let gated = |model: &str| {
        let mut body = order(model);
        body["selected_benchmarks"] = json!(["mmlu_pro", "gpqa_diamond"]);
        body
    };
    server.list(AccessKind::Token, "bra_plain", false, false).await;
    server.list(AccessKind::Token, "bra_oracle", true, false).await;
    server.list(AccessKind::Token, "bra_gated", false, true).await;
    server.list(AccessKind::Key, "sk-listed", true, true).await;
    let of = |secret: &str| format!("Bearer {secret}");
    for (secret, oracle, gates) in [
        ("sk-good", false, false),
        ("bra_plain", false, false),
        ("bra_oracle", true, false),
        ("bra_gated", false, true),
        ("sk-listed", true, true),
    ] {
        let bearer = of(secret);
        let headers = [("authorization", bearer.as_str())];
        for (name, body, allowed) in [
            ("a", order("oracle"), oracle),
            ("b", order("openai-compatible/m"), true),
            ("c", gated("openai-compatible/m"), gates),
            ("d", gated("oracle"), oracle && gates),
        ] {
            let reply = server.order("/api/runs", &headers, &body).await;
            let expected = if allowed { 201 } else { 403 };
            assert_eq!(reply.status, expected, "{secret} {body}: {}", reply.text);
            if !allowed {
                assert!(reply.detail().contains("admins and listed callers"), "{}", reply.text);
            }
            let mut body = body;
            body["name"] = json!(name);
            body["cron"] = json!("30 2 * * *");
            assert_eq!(
                server.order("/api/schedules", &headers, &body).await.status,
                expected,
                "{secret} {body}"
            );
        }
        // An order that names no benchmarks leaves out those that the caller may not order.
        let mut all = order("openai-compatible/m");
        all["selected_benchmarks"] = Value::Null;
        let reply = server.order("/api/runs", &headers, &all).await;
        let names: Vec<String> = reply.json()["benchmarks"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", reply.text))
            .iter()
            .map(|benchmark| benchmark["benchmark_name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names.contains(&"gpqa_diamond".to_owned()), gates, "{secret}");
        // Makes room for the next caller: this test isn't about the limit of open runs.
        for run in server.get("/api/runs?limit=200").await.json()["runs"].as_array().unwrap() {
            let run = run["id"].as_str().unwrap();
            server.post(&format!("/api/runs/{run}/cancel"), &[ADMIN]).await;
        }
    }
    for body in [order("oracle"), gated("oracle")] {
        assert_eq!(server.order("/api/runs", &[ADMIN], &body).await.status, 201);
    }
}

#[tokio::test]
async fn access_tokens_are_issued_listed_and_revoked() {
    let provider = Provider::start(&["/v1/models"]).await;
    let server = provider.server(&[]).await;
    let path = "/api/admin/access";
    let body = json!({ "name": "ci", "oracle": true, "expires_in_seconds": 3_600 });
    for headers in [&[][..], &[GOOD], &[("x-admin-secret", "guess")]] {
        assert_eq!(server.order(path, headers, &body).await.status, 401, "{headers:?}");
        assert_eq!(server.ask("GET", path, headers, "").await.status, 401, "{headers:?}");
        assert_eq!(server.ask("DELETE", &format!("{path}/ci"), headers, "").await.status, 401);
    }
    let made = server.order(path, &[ADMIN], &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    let token = made["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("bra_") && token.len() > 60);
    assert_eq!(
        (&made["kind"], &made["oracle"], &made["gated"]),
        (&json!("token"), &json!(true), &json!(false))
    );
    assert_eq!(server.order(path, &[ADMIN], &body).await.status, 409, "the name is taken");
    for bad in [
        json!({}),
        json!({ "name": " " }),
        json!({ "name": "x", "expires_in_seconds": 1 }),
        json!({ "name": "x", "orakel": true }),
        json!({ "name": "x", "key": "two words" }),
        json!({ "name": "x", "key": token }),
    ] {
        let reply = server.order(path, &[ADMIN], &bad).await;
        assert_eq!(reply.status, 422, "{bad}");
        assert!(!reply.text.contains("two words") && !reply.text.contains(&token), "{}", reply.text);
    }
    let listed = server.ask("GET", path, &[ADMIN], "").await;
    assert_eq!(listed.json()["entries"][0]["name"], "ci");
    assert!(!listed.text.contains(&token), "{}", listed.text);

    // The token orders on the operator's key and is never sent to a provider.
    let bearer = format!("Bearer {token}");
    let by_token = [("authorization", bearer.as_str())];
    for order_path in ["/api/runs", "/api/runs/api"] {
        let run = id(&server.order(order_path, &by_token, &order("openai-compatible/m")).await);
        let record = server.api.state.run(run).await.unwrap().unwrap();
        assert_eq!(record.spec.auth, AuthMode::System);
        assert!(matches!(record.spec.owner, Owner::Key(_)));
        assert_eq!(server.api.credentials.get(run, ModelRole::Model).await.unwrap(), None);
        // The token's holder owns the run.
        assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &[GOOD]).await.status, 403);
        assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &by_token).await.status, 200);
        let requeue = format!("/api/admin/runs/{run}/requeue");
        assert_eq!(server.post(&requeue, &by_token).await.status, 200);
    }
    let judge = ("x-judge-authorization", bearer.as_str());
    let handed_on = server.order("/api/runs", &[by_token[0], judge], &order("openai-compatible/m")).await;
    assert_eq!(handed_on.status, 401, "{}", handed_on.text);
    let schedule = server.order("/api/schedules", &by_token, &nightly("openai-compatible/m")).await;
    assert_eq!((schedule.status.as_u16(), &schedule.json()["own_key"]), (201, &json!(false)));
    assert!(!provider.was_sent("bra_"), "{:?}", provider.asked.lock().unwrap());

    // No stored file contains the token as plain text.
    let mut files = vec![server.embedded.data_dir().to_owned()];
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(std::fs::read_dir(&file).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "{}", file.display());
        }
    }

    let run = server.get("/api/runs").await.json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let revoked = server.ask("DELETE", &format!("{path}/ci"), &[ADMIN], "").await;
    assert_eq!((revoked.status.as_u16(), &revoked.json()["id"]), (200, &made["id"]));
    assert_eq!(server.ask("DELETE", &format!("{path}/ci"), &[ADMIN], "").await.status, 404);
    for (method, path) in [
        ("POST", "/api/runs".to_owned()),
        ("POST", "/api/runs/api".to_owned()),
        ("POST", "/api/schedules".to_owned()),
        ("POST", format!("/api/runs/{run}/cancel")),
        ("POST", format!("/api/runs/{run}/rejudge")),
        ("POST", format!("/api/admin/runs/{run}/requeue")),
        ("DELETE", format!("/api/runs/{run}")),
    ] {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend_from_slice(&by_token);
        let reply = server.ask(method, &path, &headers, order("openai-compatible/m").to_string()).await;
        assert_eq!(reply.status, 401, "{path}: {}", reply.text);
        assert!(reply.detail().contains("revoked"), "{}", reply.text);
    }
    assert_eq!(server.ask("GET", "/api/runs", &by_token, "").await.status, 200, "reading is public");
}

#[tokio::test]
async fn a_token_ends_when_it_expires() {
    let server = Server::new(false, &[]).await;
    let mut entry = server.list(AccessKind::Token, "bra_late", true, true).await;
    let by_token = [("authorization", "Bearer bra_late")];
    id(&server.order("/api/runs", &by_token, &order("oracle")).await);
    server.api.state.revoke_access(&entry.owner).await.unwrap();
    entry.ends_at = Some(Timestamp::from_micros(bench_clock::now().as_micros() - 1));
    assert!(server.api.state.add_access(&entry).await.unwrap());
    assert_eq!(server.order("/api/runs", &by_token, &order("oracle")).await.status, 401);
    let listed = server.ask("GET", "/api/admin/access", &[ADMIN], "").await.json();
    assert_eq!(listed["entries"][0]["expired"], true);
}

#[tokio::test]
async fn the_policy_says_which_callers_may_order() {
    let provider = Provider::start(&["/v1/models"]).await;
    let token = ("authorization", "Bearer bra_t");
    for (policy, admin, by_token, key) in [
        ("", 201, 201, 201),
        ("admin", 201, 403, 403),
        ("token", 403, 201, 403),
        ("provider-key", 403, 403, 201),
        ("admin, token", 201, 201, 403),
    ] {
        let server = provider.server(&[("BENCH_ACCESS", policy)]).await;
        server.list(AccessKind::Token, "bra_t", false, false).await;
        for (headers, status) in [([ADMIN], admin), ([token], by_token), ([GOOD], key)] {
            let reply = server.order("/api/runs", &headers, &order("openai-compatible/m")).await;
            assert_eq!(reply.status, status, "{policy:?} {headers:?}: {}", reply.text);
        }
        assert_eq!(server.order("/api/runs", &[], &order("openai-compatible/m")).await.status, 401);
    }
}

#[tokio::test]
async fn requeue_is_an_order_like_any_other() {
    let provider = Provider::start(&["/v1/models"]).await;
    let server = provider.server(&[]).await;
    let run = id(&server.order("/api/runs", &[GOOD], &order("openai-compatible/m")).await);
    server.post(&format!("/api/runs/{run}/cancel"), &[GOOD]).await;
    let requeue = format!("/api/admin/runs/{run}/requeue");
    let status = |server: Server, headers: [(&'static str, &'static str); 1]| {
        let requeue = requeue.clone();
        async move { server.post(&requeue, &headers).await.status.as_u16() }
    };
    // The same data with another policy.
    let closed = server.again(&[("BENCH_ACCESS", "admin")]);
    assert_eq!(status(closed, [GOOD]).await, 403);
    assert_eq!(status(server, [GOOD]).await, 200);
}

#[tokio::test]
async fn what_cannot_be_requeued_is_not_counted_as_an_order() {
    let server = Server::new(false, &[("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "2")]).await;
    server.list(AccessKind::Token, "bra_a", true, true).await;
    let by = [("authorization", "Bearer bra_a")];
    let run = id(&server.order("/api/runs", &by, &order("oracle")).await);
    let requeue = format!("/api/admin/runs/{run}/requeue");
    for _ in 0..4 {
        let refused = server.post(&requeue, &by).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
    server.post(&format!("/api/runs/{run}/cancel"), &by).await;
    assert_eq!(server.post(&requeue, &by).await.status, 200);
}

/// Sends `count` orders at once and returns the status codes.
async fn at_once(server: &Server, count: usize, headers: &[(&str, &str)]) -> Vec<u16> {
    let body = order("oracle");
    let orders = (0..count).map(|_| server.order("/api/runs", headers, &body));
    futures_util::future::join_all(orders).await.iter().map(|reply| reply.status.as_u16()).collect()
}

fn count_of(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

#[tokio::test]
async fn open_runs_are_limited_for_each_owner_and_in_total() {
    let vars = [
        ("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "3"),
        ("BENCH_LIMIT_OPEN_RUNS", "5"),
        ("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "1000"),
        ("BENCH_LIMIT_ORDERS_PER_MINUTE", "1000"),
    ];
    let server = Server::new(false, &vars).await;
    for token in ["bra_a", "bra_b"] {
        server.list(AccessKind::Token, token, true, true).await;
    }
    let (a, b) = ([("authorization", "Bearer bra_a")], [("authorization", "Bearer bra_b")]);
    let statuses = at_once(&server, 8, &a).await;
    assert_eq!((count_of(&statuses, 201), count_of(&statuses, 429)), (3, 5), "{statuses:?}");
    let refused = server.order("/api/runs", &a, &order("oracle")).await;
    assert!(refused.detail().contains("3 open runs"), "{}", refused.text);
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    let statuses = at_once(&server, 4, &b).await;
    assert_eq!((count_of(&statuses, 201), count_of(&statuses, 429)), (2, 2), "{statuses:?}");
    let refused = server.order("/api/runs", &b, &order("oracle")).await;
    assert!(refused.detail().contains("server has 5 open runs"), "{}", refused.text);
    assert_eq!(server.api.state.open_runs(&Owner::Local).await.unwrap(), (0, 5));

    // A repeated order still gets its run, and a run that is over makes room.
    let run = server.get("/api/runs").await.json()["runs"][4]["id"].as_str().unwrap().to_owned();
    let owner = server.api.state.run(run.parse().unwrap()).await.unwrap().unwrap().spec.owner;
    assert_eq!(server.api.state.open_runs(&owner).await.unwrap(), (3, 5));
    for _ in 0..2 {
        server.post(&format!("/api/runs/{run}/cancel"), &[ADMIN]).await;
    }
    assert_eq!(server.api.state.open_runs(&owner).await.unwrap(), (2, 4));
    assert_eq!(server.order("/api/runs", &a, &order("oracle")).await.status, 201);
    // A requeued run counts as open again.
    let requeue = server.post(&format!("/api/admin/runs/{run}/requeue"), &a).await;
    assert_eq!(requeue.status, 429, "{}", requeue.text);
    assert_eq!(server.api.state.open_runs(&owner).await.unwrap(), (3, 5));
    // Admins have separate limits.
    assert_eq!(server.order("/api/runs", &[ADMIN], &order("oracle")).await.status, 201);
}

#[tokio::test]
async fn a_repeat_is_answered_at_the_limit_too() {
    let server = Server::new(false, &[("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "1")]).await;
    server.list(AccessKind::Token, "bra_a", true, true).await;
    let headers = [("authorization", "Bearer bra_a"), ("idempotency-key", "k")];
    let body = order("oracle");
    let orders = (0..4).map(|_| server.order("/api/runs", &headers, &body));
    let replies = futures_util::future::join_all(orders).await;
    let ids: BTreeSet<String> = replies.iter().map(|reply| reply.json()["id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{:?}", replies.iter().map(|reply| &reply.text).collect::<Vec<_>>());
}

#[tokio::test]
async fn orders_in_a_minute_are_limited() {
    let vars = [
        ("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "2"),
        ("BENCH_LIMIT_ORDERS_PER_MINUTE", "3"),
        ("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", "1000"),
    ];
    let server = Server::new(false, &vars).await;
    for token in ["bra_a", "bra_b"] {
        server.list(AccessKind::Token, token, true, true).await;
    }
    let now = bench_clock::now();
    let limits = server.api.config.runs.limits;
    let mut counted = Vec::new();
    for owner in ["a", "a", "a", "b", "b", "a"] {
        let owner = Owner::Key(owner.to_owned());
        counted.push(server.api.state.count_order(&owner, &limits, now).await.unwrap());
    }
    use bench_state::access::LimitScope;
    let (none, owner, total) = (None, Some(LimitScope::Owner), Some(LimitScope::Total));
    assert_eq!(counted, [none, none, owner, none, total, owner]);
    let later = now.plus(std::time::Duration::from_secs(60));
    assert_eq!(server.api.state.count_order(&Owner::Key("a".into()), &limits, later).await.unwrap(), None);
    // The orders may span two minutes, rarely three.
    let by = [("authorization", "Bearer bra_a")];
    let statuses = at_once(&server, 12, &by).await;
    let (made, refused) = (count_of(&statuses, 201), count_of(&statuses, 429));
    assert!(made <= 6 && refused >= 6 && made + refused == 12, "{statuses:?}");
    let mut body = order("oracle");
    body["subset_pct"] = json!(0);
    assert_eq!(server.order("/api/runs", &by, &body).await.status, 422, "what is no order is not counted");
}

#[tokio::test]
async fn one_order_has_a_limit_of_samples() {
    let server = Server::deployed().await;
    let key = ("authorization", "Bearer key-a");
    let mut body = json!({
        "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "samples": 1_000,
    });
    let refused = server.order("/api/runs", &[key], &body).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let detail = refused.detail();
    assert!(detail.contains("12032000 samples") && detail.contains("100000"), "{detail}");
    body["name"] = json!("n");
    body["cron"] = json!("30 2 * * *");
    assert_eq!(server.order("/api/schedules", &[key], &body).await.status, 422);
    body["subset_count"] = json!(100);
    assert_eq!(server.order("/api/runs", &[key], &body).await.status, 201);
    body["items"] = json!((0..101).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(server.order("/api/runs", &[key], &body).await.status, 422);
    let small = Server::new(false, &[("BENCH_LIMIT_SAMPLES_PER_ORDER", "27999")]).await;
    small.list(AccessKind::Token, "bra_a", true, true).await;
    let demo =
        json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true, "samples": 1_000 });
    let reply = small.order("/api/runs", &[("authorization", "Bearer bra_a")], &demo).await;
    assert!(reply.status == 422 && reply.detail().contains("28000"), "{}", reply.text);
}

#[tokio::test]
async fn a_laptop_takes_75_open_runs_and_a_thousand_samples_of_an_item() {
    let server = Server::local().await;
    let statuses = at_once(&server, 80, &[]).await;
    assert_eq!(count_of(&statuses, 201), 80, "{statuses:?}");
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "samples": 1_000 });
    for demo in [true, false] {
        let mut body = body.clone();
        body["demo"] = json!(demo);
        let reply = server.order("/api/runs", &[], &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }
}

#[tokio::test]
async fn ignored_fields_come_back_as_warnings() {
    let server = Server::local().await;
    let body = json!({
        "model_id": "oracle", "selected_benchmarks": ["mmlu_pro", "nope"], "demo": true, "subset_count": 2,
        "subset_pct": 5, "temperature": 0.5, "judge": { "model_id": "oracle" }, "benchmark_names": ["aime_2025"],
        "x": null,
    });
    let made = server.order("/api/runs", &[], &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    let warnings: Vec<&str> =
        made["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    for (field, why) in [
        ("benchmark_names", "did you mean `selected_benchmarks`"),
        ("x", "not a field of an order"),
        ("subset_pct", "`subset_count` wins"),
        ("temperature", "no model is asked"),
        ("judge", "none of the benchmarks is judged"),
    ] {
        let about = format!("`{field}`");
        assert!(
            warnings.iter().any(|text| text.starts_with(&about) && text.contains(why)),
            "{field}: {warnings:?}"
        );
    }
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    assert_eq!(made["ignored_benchmarks"], json!(["nope"]));
    assert_eq!(server.order("/api/runs", &[], &order("oracle")).await.json()["warnings"], json!([]));
    let mut nightly = nightly("oracle");
    nightly["webhook"] = json!("x");
    let made = server.order("/api/schedules", &[], &nightly).await.json();
    assert!(made["warnings"][0].as_str().unwrap().starts_with("`webhook`"), "{made}");
    let headers = [("content-type", "application/json")];
    let path = format!("/api/schedules/{}", made["id"].as_str().unwrap());
    // A change is warned of its own fields only: the schedule's `subset_pct` has no effect either.
    let changes = [
        (r#"{"enabled":false,"color":1}"#, vec!["`color`"]),
        (r#"{"subset_pct":5}"#, vec!["`subset_pct`"]),
        (r#"{"samples":1,"n":1}"#, vec!["`n`"]),
        (r#"{"enabled":true}"#, vec![]),
    ];
    for (change, expected) in changes {
        let changed = server.ask("PATCH", &path, &headers, change).await.json();
        let warnings = changed["warnings"].as_array().unwrap();
        let fields = warnings.iter().map(|text| text.as_str().unwrap().split(' ').next().unwrap());
        assert_eq!(fields.collect::<Vec<_>>(), expected, "{change}: {changed}");
    }
    let long: serde_json::Map<String, Value> = (0..200).map(|n| (format!("f{n}"), json!(1))).collect();
    let mut body = order("oracle");
    body.as_object_mut().unwrap().extend(long);
    assert!(server.order("/api/runs", &[], &body).await.json()["warnings"].as_array().unwrap().len() <= 20);
}

#[tokio::test]
async fn wrong_admin_secrets_are_delayed_counted_and_bounded() {
    use bench_web::SecretLimits;
    use std::time::{Duration, Instant};
    let limits = SecretLimits { delay: Duration::from_millis(40), per_minute: 3 };
    let server = Server::with(false, &[], |config| config.secret_limits = limits).await;
    let wrong = [("x-admin-secret", "guess"), ("x-forwarded-for", "192.0.2.1")];
    let mut statuses = Vec::new();
    for n in 0..6_u32 {
        let since = Instant::now();
        let reply = server.post("/api/admin/sync-models", &wrong).await;
        statuses.push(reply.status.as_u16());
        if n < 3 {
            assert!(since.elapsed() >= limits.delay * 2_u32.pow(n), "{n}: {:?}", since.elapsed());
            assert_eq!(reply.detail(), "Invalid admin secret");
        } else {
            assert!(reply.headers.contains_key("retry-after"));
        }
        assert!(!reply.text.contains("guess"));
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429, 429]);
    // From now on the right secret is delayed, too, so that guessing can't be faster. Reading needs no secret.
    let since = Instant::now();
    let right = server.ask("GET", "/api/ops/overview", &[ADMIN, wrong[1]], "").await;
    assert_eq!(right.status, 200, "{}", right.text);
    assert!(since.elapsed() >= limits.delay * 8, "{:?}", since.elapsed());
    assert_eq!(server.ask("GET", "/api/ops/overview", &wrong[1..], "").await.status, 200);
    // Other addresses are not affected.
    let overview =
        server.ask("GET", "/api/ops/overview", &[ADMIN, ("x-forwarded-for", "192.0.2.9")], "").await;
    assert_eq!(overview.status, 200);
    assert_eq!(overview.json()["wrong_admin_secrets_24h"], 6, "{}", overview.text);
    let other = [wrong[0], ("x-forwarded-for", "192.0.2.2")];
    assert_eq!(server.post("/api/admin/sync-models", &other).await.status, 401);
    assert_eq!(server.api.state.wrong_secrets(bench_clock::now(), 24).await.unwrap(), 7);
}

/// Parallel guesses are limited like sequential ones, each is counted once, and only a few are delayed.
#[tokio::test]
async fn simultaneous_wrong_admin_secrets_stay_within_the_limit() {
    use bench_web::SecretLimits;
    use std::time::Duration;
    let guess = async |server: &Server, secret: &str, address: &str| {
        let headers = [("x-admin-secret", secret), ("x-forwarded-for", address)];
        server.post("/api/admin/sync-models", &headers).await.status.as_u16()
    };
    let limits = SecretLimits { delay: Duration::from_millis(20), per_minute: 5 };
    let server = Server::with(false, &[], |config| config.secret_limits = limits).await;
    let guesses = (0..60).map(|_| guess(&server, "guess", "192.0.2.1"));
    let statuses = futures_util::future::join_all(guesses).await;
    assert_eq!((count_of(&statuses, 401), count_of(&statuses, 429)), (5, 55), "{statuses:?}");
    let right = guess(&server, "hush", "192.0.2.1").await;
    assert!(![401, 429].contains(&right), "the right one passes, whatever becomes of the request: {right}");
    assert_eq!(guess(&server, "guess", "192.0.2.3").await, 401, "and writes what was not counted yet");
    let counted = server.api.state.wrong_secrets(bench_clock::now(), 24).await.unwrap();
    assert_eq!(counted, 60 + 1);
    // With one address per guess, at most sixteen requests are delayed; the others are refused at once.
    let limits = SecretLimits { delay: Duration::from_secs(3_600), ..limits };
    let server = Server::with(false, &[], |config| config.secret_limits = limits).await;
    let addresses: Vec<String> = (0..60).map(|n| format!("198.51.100.{n}")).collect();
    let guesses = addresses.iter().map(|address| guess(&server, "guess", address));
    let mut guesses: FuturesUnordered<_> = guesses.collect();
    let refused = guesses.by_ref().take(44).collect();
    let refused = tokio::time::timeout(Duration::from_secs(120), refused).await;
    let statuses: Vec<u16> = refused.expect("too many guesses are delayed");
    assert_eq!(count_of(&statuses, 429), 44, "{statuses:?}");
    assert_eq!((guesses.next().now_or_never(), guesses.len()), (None, 16));
}

#[tokio::test]
async fn strangers_see_totals_of_operations_only() {
    let server = Server::deployed().await;
    let run = id(&server.order("/api/runs", &[ADMIN], &order("oracle")).await).to_string();
    server
        .api
        .state
        .note_heartbeat(&bench_state::ops::Heartbeat {
            worker_id: "secret-worker".into(),
            hostname: Some("secret-host".into()),
            running_runs: 1,
            max_concurrent_runs: 3,
            item_concurrency: 10,
            at: bench_clock::now(),
        })
        .await
        .unwrap();
    for headers in [&[][..], &[("authorization", "Bearer key-a")], &[("x-admin-secret", "guess")]] {
        let reply = server.ask("GET", "/api/ops/overview", headers, "").await;
        for secret in [run.as_str(), "oracle", "mmlu_pro", "secret-worker", "secret-host"] {
            assert!(!reply.text.contains(secret), "{secret}: {}", reply.text);
        }
        let view = reply.json();
        assert_eq!(view["queue_counts"]["queued"], 1);
        for list in ["workers", "queued_runs", "running_runs", "completed_runs", "unreadable_messages"] {
            assert_eq!(view[list], json!([]), "{list}");
        }
        assert!(
            view["timeseries"].as_array().unwrap().iter().any(|minute| minute["worker_count"] == 1),
            "{view}"
        );
    }
    let view = server.ask("GET", "/api/ops/overview", &[ADMIN], "").await.json();
    assert_eq!(
        (&view["queued_runs"][0]["id"], &view["workers"][0]["hostname"]),
        (&json!(run), &json!("secret-host"))
    );
}
