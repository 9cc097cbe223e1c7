//! Runs that a user's session pays for: tokens of its requests, their renewal, and the end of the session.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_domain::schedule::FiringState;
use bench_domain::{Code, RunId, RunStatus, ScheduleId, Secret, SessionId};
use bench_state::credentials::Grant;
use bench_state::{FiringRef, SessionRecord};
use bench_tests::model_server::Reply;
use http::{HeaderMap, StatusCode, Uri, header};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Settings, World, runtime};

const DAY: Duration = Duration::from_secs(86_400);

/// A provider with a gateway at the same address. Refresh tokens are good once.
#[derive(Default)]
struct Provider {
    renewals: u32,
    /// True to accept no refresh token.
    refuses_renewal: bool,
    /// Access token that the gateway accepts.
    accepted: String,
    /// Host and token of the requests for answers.
    asked: Vec<(String, String)>,
}

type Shared = Arc<Mutex<Provider>>;

async fn start_provider() -> (Shared, &'static str) {
    let shared = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (shared, url.leak())
}

fn lock(shared: &Shared) -> MutexGuard<'_, Provider> {
    shared.lock().unwrap()
}

async fn answer(State(shared): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let mut provider = lock(&shared);
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    match uri.path() {
        "/idp/token" => {
            let form = String::from_utf8(body.to_vec()).unwrap();
            let expected = format!("refresh_token=refresh-{}&", provider.renewals);
            if provider.refuses_renewal || !form.contains(&expected) {
                return (StatusCode::BAD_REQUEST, r#"{"error":"invalid_grant"}"#).into_response();
            }
            provider.renewals += 1;
            let number = provider.renewals;
            provider.accepted = format!("access-{number}");
            let tokens = json!({
                "access_token": provider.accepted, "refresh_token": format!("refresh-{number}"), "expires_in": 3_600,
            });
            tokens.to_string().into_response()
        }
        "/v1/chat/completions" => {
            let token = text(header::AUTHORIZATION).replace("Bearer ", "");
            provider.asked.push((text(header::HOST), token.clone()));
            if token != provider.accepted {
                return (StatusCode::UNAUTHORIZED, r#"{"detail":"invalid token"}"#).into_response();
            }
            let delta = json!({ "choices": [{ "index": 0, "delta": { "content": "The answer is (A)." } }] });
            let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
            let events = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn start(url: &'static str) -> World {
    let vars: &'static [(&str, &str)] =
        Vec::leak(vec![("CHUTES_CLIENT_ID", "bench"), ("CHUTES_IDP_URL", url), ("SKIP_MODEL_SYNC", "1")]);
    let settings = Settings { vars, concurrency: 8, ..Settings::default() };
    World::start(settings, |_| Reply::Status(500, "only the gateway is asked".to_owned(), Vec::new())).await
}

/// Starts a session with these tokens, of which the access token has this many seconds left. Returns its cookie's value.
async fn sign_in(world: &World, letter: char, number: u32, seconds: u64) -> String {
    let cookie = letter.to_string().repeat(43);
    let (id, now) = (SessionId::from_cookie(&cookie).unwrap(), bench_clock::now());
    let session = SessionRecord {
        id: id.clone(),
        subject: "user-1".to_owned(),
        name: "نورة".to_owned(),
        has_invoke_scope: true,
        created_at: now,
        ends_at: now.plus(DAY * 30),
    };
    let grant = Grant {
        access: Secret::new(format!("access-{number}")).unwrap(),
        refresh: Secret::new(format!("refresh-{number}")),
        issued_at: bench_domain::Timestamp::from_micros(now.as_micros() - 3_600_000_000),
        expires_at: Some(now.plus(Duration::from_secs(seconds))),
        version: 0,
        ends_at: session.ends_at,
    };
    let sealed = world.stack.credentials.seal_grant(&id, &grant).await.unwrap();
    world.stack.state.create_session(&session, Some(&sealed)).await.unwrap();
    cookie
}

/// Sends a request of a page with this session's cookie.
async fn post(world: &World, cookie: &str, path: &str, body: Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method("POST")
        .uri(path)
        .header("host", "localhost")
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/json")
        .header("cookie", format!("bench_session={cookie}"))
        .body(Body::from(body.to_string()))
        .unwrap();
    let response = Box::pin(world.stack.router().oneshot(request)).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn order(world: &World, cookie: &str) -> RunId {
    let body = json!({ "model_id": "chutes/a/b", "selected_benchmarks": ["mmlu_pro"], "demo": true });
    let (status, body) = post(world, cookie, "/api/runs", body).await;
    assert_eq!(status, 201, "{body}");
    body["id"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_sessions_tokens_pay_until_the_session_is_over() {
    runtime().block_on(async {
        let (provider, url) = start_provider().await;
        let world = start(url).await;
        let cookie = sign_in(&world, 'a', 0, 60).await;

        // The token ends soon, so it's renewed first, once for all samples.
        let run = order(&world, &cookie).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let asked = std::mem::take(&mut lock(&provider).asked);
        assert!(!asked.is_empty());
        let expected = ("llm.chutes.ai".to_owned(), "access-1".to_owned());
        assert!(asked.iter().all(|request| *request == expected), "{asked:?}");
        assert_eq!(lock(&provider).renewals, 1);

        // The gateway stops accepting a token that is cached and not yet over.
        lock(&provider).accepted = "access-2".to_owned();
        let run = order(&world, &cookie).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let asked = std::mem::take(&mut lock(&provider).asked);
        assert!(asked.iter().any(|(_, token)| token == "access-1"), "{asked:?}");
        assert_eq!((lock(&provider).renewals, asked.last().unwrap().1.as_str()), (2, "access-2"));

        // Then it accepts none, and the provider renews none: the session is over.
        lock(&provider).accepted = "none".to_owned();
        lock(&provider).refuses_renewal = true;
        let failed = order(&world, &cookie).await;
        assert_eq!(world.wait_for_end(failed).await, RunStatus::Failed);
        let found = world.stored_run(failed).await;
        let error = found.run.state.error().unwrap().to_owned();
        assert!(error.contains("Chutes session expired or invalid"), "{error}");
        let (old, now) = (SessionId::from_cookie(&cookie).unwrap(), bench_clock::now());
        assert_eq!(world.stack.state.session(&old, now).await.unwrap(), None);

        // After another sign-in, the new session pays.
        lock(&provider).refuses_renewal = false;
        lock(&provider).accepted = "access-2".to_owned();
        let cookie = sign_in(&world, 'b', 2, 3_600).await;
        let path = format!("/api/admin/runs/{failed}/requeue");
        let (status, body) = post(&world, &cookie, &path, json!({})).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(world.wait_for_end(failed).await, RunStatus::Succeeded);
        let new = SessionId::from_cookie(&cookie);
        assert_eq!(world.stored_run(failed).await.run.spec.session, new);
    });
}

#[test]
fn a_users_schedule_needs_a_session() {
    runtime().block_on(async {
        let (provider, url) = start_provider().await;
        let world = start(url).await;
        lock(&provider).accepted = "access-0".to_owned();
        let cookie = sign_in(&world, 'a', 0, 7_200).await;
        let body = json!({
            "name": "nightly", "cron": "0 3 * * *", "model_id": "chutes/a/b", "selected_benchmarks": ["mmlu_pro"],
            "demo": true,
        });
        let (status, body) = post(&world, &cookie, "/api/schedules", body).await;
        assert_eq!(status, 201, "{body}");
        let id: ScheduleId = body["id"].as_str().unwrap().parse().unwrap();
        let planned = world.stack.state.schedule(id).await.unwrap().unwrap().schedule.next_at.unwrap();
        assert_eq!(world.scheduler().tick(planned).await.unwrap().started, 1);
        let run = id.run_id_at(planned);
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        assert_eq!(world.stored_run(run).await.run.spec.session, SessionId::from_cookie(&cookie));
        let asked = std::mem::take(&mut lock(&provider).asked);
        assert!(!asked.is_empty() && asked.iter().all(|(_, token)| token == "access-0"), "{asked:?}");

        let (status, body) = post(&world, &cookie, "/api/auth/logout", json!({})).await;
        assert_eq!(status, 200, "{body}");
        let planned = planned.plus(DAY);
        world.scheduler().tick(planned).await.unwrap();
        world.scheduler().tick(planned.plus(Duration::from_secs(3_600))).await.unwrap();
        let firing = FiringRef { schedule: id, planned };
        let firing = world.stack.state.firing(firing).await.unwrap().unwrap().firing;
        let FiringState::NotStarted { error, code, .. } = &firing.state else { panic!("{firing:?}") };
        assert!(error.contains("sign in"), "{error}");
        assert_eq!(*code, Some(Code::SessionInvalid));
        assert!(lock(&provider).asked.is_empty());
    });
}
