//! Sign-in against a scripted provider: the whole way, and what goes wrong on it.

mod limit;
mod provider;
mod renewal;

use axum::body::Body;
use bench_domain::{Code, SessionId};
use serde_json::json;

use crate::server::{Reply, Server};
use provider::{Provider, Script};

const PAGE: &str = "http://localhost:8000";
const ORIGIN: (&str, &str) = ("origin", PAGE);

/// A browser, which keeps cookies.
#[derive(Default, Clone)]
struct Browser {
    cookies: Vec<(String, String)>,
}

impl Browser {
    fn header(&self) -> String {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    fn session(&self) -> Option<&str> {
        self.cookies.iter().find(|(name, _)| name == "bench_session").map(|(_, value)| value.as_str())
    }

    fn keep(&mut self, reply: &Reply) {
        for cookie in reply.headers.get_all("set-cookie") {
            let (pair, _) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    async fn get(&mut self, server: &Server, path: &str) -> Reply {
        let reply = server.ask("GET", path, &[("cookie", &self.header())], Body::empty()).await;
        self.keep(&reply);
        reply
    }

    async fn log_out(&mut self, server: &Server, body: &str) -> Reply {
        let cookie = self.header();
        let headers = [("cookie", cookie.as_str()), ORIGIN, ("content-type", "application/json")];
        let reply = server.ask("POST", "/api/auth/logout", &headers, body.to_owned()).await;
        self.keep(&reply);
        reply
    }

    /// Goes to the provider, and returns the callback that it sends the browser back to.
    async fn begin(&mut self, server: &Server, provider: &Provider, return_to: &str) -> String {
        let reply = self.get(server, &format!("/api/auth/login?return_to={return_to}")).await;
        assert_eq!(reply.status, 307, "{}", reply.text);
        provider.authorize(location(&reply))
    }

    /// Signs in, and returns the path that the browser is sent to.
    async fn sign_in(&mut self, server: &Server, provider: &Provider) -> String {
        let callback = self.begin(server, provider, "/runs").await;
        location(&self.get(server, &callback).await).to_owned()
    }

    async fn is_signed_in(&mut self, server: &Server) -> bool {
        let status = self.get(server, "/api/auth/status").await;
        status.json()["authenticated"].as_bool().unwrap()
    }
}

fn location(reply: &Reply) -> &str {
    reply.headers["location"].to_str().unwrap()
}

/// Starts a server that others can reach, with this provider.
async fn server_of(provider: &Provider) -> Server {
    let vars = [
        ("FRONTEND_URL", PAGE),
        ("CHUTES_CLIENT_ID", "bench"),
        ("CHUTES_CLIENT_SECRET", "client-secret"),
        ("CHUTES_IDP_URL", provider.url()),
    ];
    Server::new(false, &vars).await
}

async fn world(script: Script) -> (Provider, Server) {
    let provider = Provider::start(script).await;
    let server = server_of(&provider).await;
    (provider, server)
}

fn failure(path: &str) -> &str {
    let query = path.strip_prefix("/auth/error?error=").unwrap_or_else(|| panic!("not an error: {path}"));
    query.split('&').next().unwrap()
}

#[tokio::test]
async fn a_user_signs_in_and_out() {
    let (provider, server) = world(Script::default()).await;
    let mut browser = Browser::default();
    let reply = browser.get(&server, "/api/auth/login?return_to=/runs%3Fx=1").await;
    let address = location(&reply).to_owned();
    let (base, query) = address.split_once('?').unwrap();
    assert_eq!(base, format!("{}/idp/authorize", provider.url()));
    let names: Vec<&str> = query.split('&').map(|pair| pair.split_once('=').unwrap().0).collect();
    let expected =
        "response_type client_id redirect_uri scope state code_challenge code_challenge_method nonce";
    assert_eq!(names.join(" "), expected);
    assert!(query.contains("scope=openid%20profile%20chutes%3Ainvoke%20account%3Aread"), "{query}");
    let callback = provider.authorize(&address);
    let reply = browser.get(&server, &callback).await;
    assert_eq!((reply.status.as_u16(), location(&reply)), (307, "/runs?x=1"));
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Lax; Path=/; Max-Age=2592000"), "{cookie}");
    assert_eq!(browser.cookies.len(), 1, "the cookie of the attempt is gone");

    let status = browser.get(&server, "/api/auth/status").await.json();
    let user = json!({ "id": "user-1", "username": "نورة 🧪" });
    assert_eq!(
        status,
        json!({
            "idp_configured": true, "authenticated": true, "user": user, "has_invoke_scope": true, "pays": "user",
            "may_order_oracle": false,
        })
    );
    let me = browser.get(&server, "/api/auth/me").await.json();
    assert_eq!(
        me,
        json!({ "authenticated": true, "user": user, "has_invoke_scope": true, "has_valid_token": true })
    );

    let stranger = server.ask("POST", "/api/auth/logout", &[("cookie", &browser.header())], "").await;
    assert_eq!(stranger.code(), Some(Code::CrossSiteRequest));
    let header = browser.header();
    let with_key = [("cookie", header.as_str()), ("authorization", "Bearer cpk_any")];
    let stranger = server.ask("POST", "/api/auth/logout", &with_key, "").await;
    assert_eq!(stranger.code(), Some(Code::CrossSiteRequest), "a key in the request changes nothing");
    let old = browser.clone();
    let reply = browser.log_out(&server, "").await;
    assert_eq!(reply.json(), json!({ "success": true, "message": "Logged out successfully" }));
    assert_eq!((provider.revoked(), browser.cookies.len()), (2, 0));
    assert_eq!(browser.get(&server, "/api/auth/me").await.detail(), "Not authenticated");
    let mut old = old;
    assert_eq!(old.get(&server, "/api/auth/me").await.detail(), "Session expired or invalid");
    assert_eq!(old.session(), None, "a cookie without a session is removed");
    assert_eq!(browser.log_out(&server, "").await.status, 200);
}

#[tokio::test]
async fn a_state_is_good_once_and_for_its_browser() {
    let (provider, server) = world(Script::default()).await;
    let (mut victim, mut thief) = (Browser::default(), Browser::default());
    let callback = victim.begin(&server, &provider, "/").await;
    let other = thief.begin(&server, &provider, "/").await;
    assert_eq!(failure(location(&thief.get(&server, &callback).await)), "invalid_state");
    // The thief's own secret doesn't fit the state, even under its cookie's name.
    let name = victim.cookies[0].0.clone();
    let mut mixed = Browser { cookies: vec![(name, thief.cookies[0].1.clone())] };
    assert_eq!(failure(location(&mixed.get(&server, &callback).await)), "invalid_state");
    let before = victim.clone();
    assert_eq!(location(&victim.get(&server, &callback).await), "/");
    let mut replay = before;
    assert_eq!(failure(location(&replay.get(&server, &callback).await)), "invalid_state");
    assert!(victim.is_signed_in(&server).await && !replay.is_signed_in(&server).await);
    assert_eq!(location(&thief.get(&server, &other).await), "/");
}

#[tokio::test]
async fn two_tabs_sign_in_at_once() {
    let (provider, server) = world(Script::default()).await;
    let mut browser = Browser::default();
    let first = browser.begin(&server, &provider, "/a").await;
    let second = browser.begin(&server, &provider, "/b").await;
    assert_eq!(location(&browser.get(&server, &second).await), "/b");
    let kept = browser.session().unwrap().to_owned();
    assert_eq!(location(&browser.get(&server, &first).await), "/a");
    assert_ne!(browser.session().unwrap(), kept);
    // The session of the first tab ended when the second began its own.
    let mut old = Browser { cookies: vec![("bench_session".to_owned(), kept)] };
    assert!(browser.is_signed_in(&server).await && !old.is_signed_in(&server).await);
}

#[tokio::test]
async fn a_provider_that_fails_or_lies_signs_nobody_in() {
    type Change = fn(&mut Script);
    let cases: [(Change, &str); 12] = [
        (|script| script.token_status = 500, "provider_unreachable"),
        (|script| script.token_status = 400, "token_exchange_failed"),
        (|script| script.id_issuer = Some("https://evil.example".to_owned()), "invalid_id_token"),
        (|script| script.id_audience = "other".to_owned(), "invalid_id_token"),
        (|script| script.has_nonce = false, "invalid_id_token"),
        (|script| script.has_id_token = false, "invalid_id_token"),
        (|script| script.signs_with_stranger = true, "invalid_id_token"),
        (|script| script.clock_offset = -700, "invalid_id_token"),
        (|script| script.clock_offset = 400, "invalid_id_token"),
        (|script| script.user_subject = "user-2".to_owned(), "user_info_failed"),
        (|script| script.user_status = 403, "user_info_failed"),
        (|script| script.token_bytes = 300_000, "provider_invalid"),
    ];
    for (change, expected) in cases {
        let mut script = Script::default();
        change(&mut script);
        let (provider, server) = world(script).await;
        let mut browser = Browser::default();
        let path = browser.sign_in(&server, &provider).await;
        assert_eq!(failure(&path), expected);
        assert!(!path.contains("evil") && !browser.is_signed_in(&server).await, "{path}");
    }
}

#[tokio::test]
async fn clocks_may_differ_by_some_minutes() {
    for offset in [-280, 280] {
        let (provider, server) = world(Script { clock_offset: offset, ..Script::default() }).await;
        assert_eq!(Browser::default().sign_in(&server, &provider).await, "/runs", "{offset}");
    }
}

#[tokio::test]
async fn descriptions_are_of_the_issuer_or_absent() {
    let (provider, server) =
        world(Script { issuer: Some("https://evil.example".to_owned()), ..Script::default() }).await;
    let mut browser = Browser::default();
    let login = "/api/auth/login";
    assert_eq!(failure(location(&browser.get(&server, login).await)), "provider_invalid");
    provider.change(|script| {
        script.issuer = None;
        script.description_status = 503;
    });
    assert_eq!(failure(location(&browser.get(&server, login).await)), "provider_unreachable");
    // Without a description, the facts about the user count alone.
    provider.change(|script| {
        script.description_status = 404;
        script.has_id_token = false;
    });
    assert_eq!(browser.sign_in(&server, &provider).await, "/runs");
    provider.stop();
    let (_, stopped) = (provider, server_of_stopped().await);
    assert_eq!(failure(location(&browser.get(&stopped, login).await)), "provider_unreachable");
}

/// Starts a server whose provider can't be reached.
async fn server_of_stopped() -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let vars = [("FRONTEND_URL", PAGE), ("CHUTES_CLIENT_ID", "bench"), ("CHUTES_IDP_URL", url.as_str())];
    Server::new(false, &vars).await
}

#[tokio::test]
async fn new_keys_of_the_provider_are_read_once() {
    let (provider, server) = world(Script::default()).await;
    assert_eq!(Browser::default().sign_in(&server, &provider).await, "/runs");
    provider.rotate_keys();
    // Keys that were just read aren't read again, however many tokens name unknown ones.
    assert_eq!(failure(&Browser::default().sign_in(&server, &provider).await), "invalid_id_token");
    assert_eq!(provider.key_reads(), 1);
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(Browser::default().sign_in(&server, &provider).await, "/runs");
    assert_eq!(provider.key_reads(), 2);
}

#[tokio::test]
async fn callbacks_that_no_provider_sends_are_refused() {
    let (provider, server) = world(Script::default()).await;
    for (query, expected) in [
        ("", "missing_params"),
        ("?code=x", "missing_params"),
        ("?state=x", "missing_params"),
        ("?code=x&state=x", "invalid_state"),
        ("?code=x&state=%00%0d%0aSet-Cookie:", "invalid_state"),
        ("?error=access_denied&error_description=%3Cscript%3E", "access_denied"),
        ("?error=%3Cscript%3E", "provider_error"),
    ] {
        let reply = Browser::default().get(&server, &format!("/api/auth/callback{query}")).await;
        assert_eq!((reply.status.as_u16(), failure(location(&reply))), (307, expected), "{query}");
        assert!(!location(&reply).contains("%3Cscript"), "{}", location(&reply));
    }
    let mut browser = Browser::default();
    let callback = browser.begin(&server, &provider, "/").await;
    let lying = format!("{callback}&iss=https%3A%2F%2Fevil.example");
    assert_eq!(failure(location(&browser.get(&server, &lying).await)), "wrong_issuer");
}

#[tokio::test]
async fn browsers_return_to_this_site_only() {
    let (provider, server) = world(Script::default()).await;
    for target in
        ["//evil.example", "https://evil.example", "/%5Cevil.example", "%09//evil.example", "/a%0d%0ax:y"]
    {
        let mut browser = Browser::default();
        let callback = browser.begin(&server, &provider, target).await;
        assert_eq!(location(&browser.get(&server, &callback).await), "/", "{target}");
    }
}

#[tokio::test]
async fn a_cookie_from_before_the_sign_in_is_worth_nothing() {
    let (provider, server) = world(Script::default()).await;
    let planted = "p".repeat(bench_domain::SESSION_COOKIE_CHARS);
    let mut victim = Browser { cookies: vec![("bench_session".to_owned(), planted.clone())] };
    victim.sign_in(&server, &provider).await;
    assert_ne!(victim.session(), Some(planted.as_str()));
    let mut attacker = Browser { cookies: vec![("bench_session".to_owned(), planted)] };
    assert!(victim.is_signed_in(&server).await && !attacker.is_signed_in(&server).await);
    for old in ["", "short", "43 characters that no server issues, as text"] {
        let mut browser = Browser { cookies: vec![("bench_session".to_owned(), old.to_owned())] };
        let status = browser.get(&server, "/api/auth/status").await;
        assert_eq!(status.json()["authenticated"], false);
        assert_eq!(browser.session(), None, "{old:?} is removed");
    }
    // A cookie that a neighboring host planted beside the real one signs in neither its owner nor the victim.
    let own = victim.session().unwrap().to_owned();
    let real = ("bench_session".to_owned(), own);
    for cookies in [[attacker_cookie(), real.clone()], [real.clone(), attacker_cookie()]] {
        let mut browser = Browser { cookies: cookies.to_vec() };
        let status = browser.get(&server, "/api/auth/status").await;
        assert_eq!(status.json()["authenticated"], false);
        assert_eq!(browser.session(), None, "both are removed");
    }
}

fn attacker_cookie() -> (String, String) {
    ("bench_session".to_owned(), "q".repeat(bench_domain::SESSION_COOKIE_CHARS))
}

#[tokio::test]
async fn open_runs_are_ended_only_if_the_user_agrees() {
    let (provider, server) = world(Script::default()).await;
    let mut browser = Browser::default();
    browser.sign_in(&server, &provider).await;
    let body = json!({ "model_id": "chutes/a/b", "selected_benchmarks": ["mmlu_pro"], "subset_count": 1 });
    let headers = [("cookie", browser.header()), ("origin", PAGE.to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = server.order("/api/runs", &headers, &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let run: bench_domain::RunId = reply.json()["id"].as_str().unwrap().parse().unwrap();
    let record = server.api.state.run(run).await.unwrap().unwrap();
    let session = SessionId::from_cookie(browser.session().unwrap());
    assert_eq!((record.spec.auth, &record.spec.session), (bench_domain::run::AuthMode::Idp, &session));
    assert!(!reply.text.contains(session.as_ref().unwrap().as_str()), "{}", reply.text);

    let refused = browser.log_out(&server, "").await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, Some(Code::RunsOpen)));
    assert!(browser.is_signed_in(&server).await);
    // Another sign-in in this browser leaves the tokens to the run.
    let mut second = browser.clone();
    second.sign_in(&server, &provider).await;
    assert!(!browser.is_signed_in(&server).await);
    let now = bench_clock::now();
    assert!(server.api.credentials.grant(session.as_ref().unwrap(), now).await.unwrap().is_some());
    // A run of another browser's session goes on.
    let mut elsewhere = Browser::default();
    elsewhere.sign_in(&server, &provider).await;
    let cookie = elsewhere.header();
    let reply = server.order("/api/runs", &[("cookie", &cookie), ORIGIN], &body).await;
    let others: bench_domain::RunId = reply.json()["id"].as_str().unwrap().parse().unwrap();
    let refused = second.log_out(&server, "{}").await;
    assert_eq!((provider.revoked(), refused.code()), (0, Some(Code::RunsOpen)));
    assert!(refused.detail().starts_with("1 open run is"), "{}", refused.text);
    assert_eq!(second.log_out(&server, "{\"end_runs\":true}").await.status, 200);
    assert_eq!(server.api.credentials.grant(session.as_ref().unwrap(), now).await.unwrap(), None);
    for (run, is_open) in [(run, false), (others, true)] {
        let record = server.api.state.run(run).await.unwrap().unwrap();
        assert_eq!(record.state.status().is_open(), is_open);
    }
    assert_eq!(provider.revoked(), 4);

    let mut third = Browser::default();
    third.sign_in(&server, &provider).await;
    let headers = [("cookie", third.header()), ("origin", PAGE.to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = server.order("/api/runs", &headers, &body).await;
    let run: bench_domain::RunId = reply.json()["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(third.log_out(&server, "[]").await.status, 422);
    assert_eq!(third.log_out(&server, "{\"end_runs\":false}").await.status, 409);
    assert_eq!(third.log_out(&server, "{\"end_runs\":true}").await.status, 200);
    let record = server.api.state.run(run).await.unwrap().unwrap();
    assert_eq!(record.state.status(), bench_domain::RunStatus::Canceled);
}

#[tokio::test]
async fn without_the_scope_nobody_pays() {
    let (provider, server) =
        world(Script { scope: "openid profile chutes:invoker".into(), ..Script::default() }).await;
    let mut browser = Browser::default();
    browser.sign_in(&server, &provider).await;
    let status = browser.get(&server, "/api/auth/status").await.json();
    assert_eq!((&status["has_invoke_scope"], &status["pays"]), (&json!(false), &json!(null)));
    let body = json!({ "model_id": "chutes/a/b", "selected_benchmarks": ["mmlu_pro"], "subset_count": 1 });
    let cookie = browser.header();
    let reply = server.order("/api/runs", &[("cookie", &cookie), ORIGIN], &body).await;
    assert_eq!((reply.status.as_u16(), reply.code()), (403, Some(Code::ScopeMissing)));
}

#[tokio::test]
async fn a_login_at_another_name_of_this_machine_moves_once() {
    let provider = Provider::start(Script::default()).await;
    let vars = [("CHUTES_CLIENT_ID", "bench"), ("CHUTES_IDP_URL", provider.url())];
    let server = Server::new(true, &vars).await;
    server.api.set_own_address("http://127.0.0.1:8000");
    let login = "/api/auth/login?return_to=/runs";
    let reply = server.get(login).await;
    let moved = "http://127.0.0.1:8000/api/auth/login?moved=1&return_to=%2Fruns";
    assert_eq!((reply.status.as_u16(), location(&reply)), (307, moved));
    let path = moved.strip_prefix("http://127.0.0.1:8000").unwrap();
    for host in ["127.0.0.1:8000", "localhost:8000"] {
        let reply = server.ask("GET", path, &[("host", host)], Body::empty()).await;
        assert!(location(&reply).starts_with(provider.url()), "{}", location(&reply));
    }
}
