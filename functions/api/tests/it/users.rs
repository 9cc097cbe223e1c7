//! Signed-in users: what belongs to them, what they may order, and who pays.

use bench_domain::run::{AuthMode, Owner};
use bench_domain::{Code, RunId};
use bench_state::access::{AccessKind, user_entry};
use serde_json::{Value, json};

use crate::server::{Reply, Server};

pub(crate) const PAGE: (&str, &str) = ("origin", "https://bench.example");
pub(crate) const ADMIN: (&str, &str) = ("x-admin-secret", "hush");

/// Starts a server with sign-in that others can reach.
pub(crate) async fn site(vars: &[(&str, &str)]) -> Server {
    let all = [&[("CHUTES_CLIENT_ID", "cid"), ("FRONTEND_URL", "https://bench.example")], vars].concat();
    Server::new(false, &all).await
}

fn order(model: &str) -> Value {
    json!({ "model_id": model, "selected_benchmarks": ["mmlu_pro"], "subset_count": 2 })
}

pub(crate) async fn list_user(server: &Server, subject: &str) {
    server
        .list_with(AccessKind::User, subject, |entry| {
            entry.owner = user_entry(subject);
            entry.subject = Some(subject.to_owned());
            entry.oracle = true;
        })
        .await;
}

pub(crate) fn id(reply: &Reply) -> RunId {
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_run_belongs_to_the_user_in_every_session() {
    let server = site(&[]).await;
    list_user(&server, "s|1").await;
    let (first, second) = (server.sign_in('a', "s|1", true).await, server.sign_in('b', "s|1", false).await);
    let other = server.sign_in('c', "s|2", true).await;
    let run = id(&server.order("/api/runs", &[("cookie", &first), PAGE], &order("oracle")).await);
    let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!(
        (spec.owner, spec.auth),
        (Owner::User("s|1".into()), AuthMode::System),
        "the oracle costs nothing"
    );
    let path = format!("/api/runs/{run}");
    let is_mine = async |cookie: &str| {
        let view = server.ask("GET", &path, &[("cookie", cookie)], "").await.json();
        assert!(!view.to_string().contains("s|1"), "owners are never shown: {view}");
        (view["is_mine"].clone(), view["can"]["cancel"].clone())
    };
    assert_eq!(is_mine(&second).await, (json!(true), json!(true)));
    assert_eq!(is_mine(&other).await, (json!(false), json!(false)));
    let cancel = format!("{path}/cancel");
    let refused = server.post(&cancel, &[("cookie", &other), PAGE]).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (403, Some(Code::NotOwner)));
    assert_eq!(server.post(&cancel, &[("cookie", &second), PAGE]).await.status, 200);
    // A session that is over is none.
    server
        .api
        .state
        .end_session(&bench_domain::SessionId::from_cookie(&"a".repeat(43)).unwrap())
        .await
        .unwrap();
    assert_eq!(server.ask("DELETE", &path, &[("cookie", &first), PAGE], "").await.status, 401);
    assert_eq!(server.ask("DELETE", &path, &[("cookie", &second), PAGE], "").await.status, 200);
}

#[tokio::test]
async fn explicit_credentials_count_more_than_the_cookie() {
    let server = site(&[]).await;
    list_user(&server, "s1").await;
    let cookie = server.sign_in('a', "s1", true).await;
    let own = server.list(AccessKind::Token, "bra_a", true, true).await.owner;
    // With credentials of its own, a request needs no page.
    let both = [("cookie", cookie.as_str()), ("authorization", "Bearer bra_a")];
    let run = id(&server.order("/api/runs", &both, &order("oracle")).await);
    assert_eq!(server.api.state.run(run).await.unwrap().unwrap().spec.owner, Owner::Key(own));
    let admin = [("cookie", cookie.as_str()), ADMIN];
    let run = id(&server.order("/api/runs", &admin, &order("oracle")).await);
    assert_eq!(server.api.state.run(run).await.unwrap().unwrap().spec.owner, Owner::Local);
    // Invalid ones don't fall back to the cookie.
    for bad in
        [("authorization", "Bearer bra_revoked"), ("x-admin-secret", "guess"), ("authorization", "Basic x")]
    {
        let headers = [("cookie", cookie.as_str()), PAGE, bad];
        assert_eq!(server.order("/api/runs", &headers, &order("oracle")).await.status, 401, "{bad:?}");
        let listed = server.ask("GET", "/api/runs?mine=true", &headers, "").await.json();
        assert_eq!(listed["total"], 0, "{bad:?}");
    }
}

#[tokio::test]
async fn the_scope_decides_whose_account_pays() {
    let code = async |server: &Server, cookie: &str, model: &str| {
        let reply = server.order("/api/runs", &[("cookie", cookie), PAGE], &order(model)).await;
        (reply.status.as_u16(), reply.code())
    };
    let refused = |code| (403, Some(code));
    for local in [false, true] {
        let vars = [
            ("CHUTES_CLIENT_ID", "cid"),
            ("FRONTEND_URL", "https://bench.example"),
            ("CHUTES_API_KEY", "sk-operator"),
            ("OPENROUTER_API_KEY", "sk-operator"),
        ];
        let server = Server::new(local, &vars).await;
        let page = if local { "http://localhost:8000" } else { "https://bench.example" };
        let without = server.sign_in('a', "s1", false).await;
        let with = server.sign_in('b', "s1", true).await;
        let ask = async |cookie: &str, model: &str| {
            let headers = [("cookie", cookie), ("origin", page)];
            let reply = server.order("/api/runs", &headers, &order(model)).await;
            (reply.status.as_u16(), reply.code())
        };
        assert_eq!(ask(&without, "chutes/a/b").await, refused(Code::ScopeMissing), "local: {local}");
        assert_eq!(ask(&with, "openrouter/a/b").await, refused(Code::OrderNotAllowed), "local: {local}");
        let headers = [("cookie", without.as_str()), ("origin", page)];
        let reply = server.order("/api/runs", &headers, &order("chutes/a/b")).await;
        assert_eq!(reply.detail(), "Chutes session missing chutes:invoke scope");
        assert!(reply.json()["hint"].as_str().unwrap().contains("sign in again"));
    }
    let vars = [("BENCH_SESSION_PAYER", "operator-allowed"), ("CHUTES_API_KEY", "sk-operator")];
    let generous = site(&vars).await;
    let without = generous.sign_in('a', "s1", false).await;
    let run = id(&generous.order("/api/runs", &[("cookie", &without), PAGE], &order("chutes/a/b")).await);
    let spec = generous.api.state.run(run).await.unwrap().unwrap().spec;
    assert_eq!((spec.auth, spec.session), (AuthMode::System, None), "the operator pays");
    assert_eq!(spec.owner, Owner::User("s1".into()));
    let closed = site(&[("BENCH_ACCESS", "admin,token")]).await;
    let with = closed.sign_in('a', "s1", true).await;
    assert_eq!(code(&closed, &with, "chutes/a/b").await, refused(Code::OrderNotAllowed));
}

#[tokio::test]
async fn users_can_be_admins_and_have_limits_of_their_own() {
    let server = site(&[("ADMIN_SUBJECTS", "boss"), ("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "1")]).await;
    let (boss, user) = (server.sign_in('a', "boss", false).await, server.sign_in('b', "s1", true).await);
    let as_boss = [("cookie", boss.as_str()), PAGE];
    let entry = json!({ "name": "ann", "user": "s1", "oracle": true });
    let listed = server.order("/api/admin/access", &as_boss, &entry).await;
    assert_eq!(listed.status, 201, "{}", listed.text);
    let listed = listed.json();
    assert_eq!(
        (&listed["kind"], &listed["subject"], &listed["token"]),
        (&json!("user"), &json!("s1"), &json!(null))
    );
    let again = json!({ "name": "again", "user": " s1 " });
    assert_eq!(
        server.order("/api/admin/access", &as_boss, &again).await.code(),
        Some(Code::AccessEntryExists)
    );
    let as_user = [("cookie", user.as_str()), PAGE];
    assert_eq!(server.order("/api/admin/access", &as_user, &entry).await.status, 401);
    // Admins have the trusted limits, users the exposed ones.
    for _ in 0..3 {
        id(&server.order("/api/runs", &as_boss, &order("oracle")).await);
    }
    let run = id(&server.order("/api/runs", &as_user, &order("oracle")).await);
    let limited = server.order("/api/runs", &as_user, &order("oracle")).await;
    assert_eq!(limited.code(), Some(Code::OrderRateLimit));
    assert_eq!(server.post(&format!("/api/runs/{run}/cancel"), &as_boss).await.status, 200);
    let path = format!("/api/admin/access/{}", listed["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, &as_boss, "").await.status, 200);
    assert!(server.api.state.access_of_user("s1", bench_clock::now()).await.unwrap().is_none());
}

#[tokio::test]
async fn the_status_says_who_may_order_the_oracle() {
    for (rows, user_may) in [("", true), ("admin,token,provider-key", false)] {
        let server = site(&[("ADMIN_SUBJECTS", "s|admin"), ("BENCH_ACCESS", rows)]).await;
        list_user(&server, "s|listed").await;
        server.list(AccessKind::Token, "bra_with", true, false).await;
        server.list(AccessKind::Token, "bra_without", false, true).await;
        let listed = server.sign_in('a', "s|listed", false).await;
        let other = server.sign_in('b', "s|other", true).await;
        let admin = server.sign_in('c', "s|admin", false).await;
        for (headers, may) in [
            (vec![], false),
            (vec![("cookie", listed.as_str()), PAGE], user_may),
            (vec![("cookie", other.as_str()), PAGE], false),
            (vec![("cookie", admin.as_str()), PAGE], true),
            (vec![ADMIN], true),
            (vec![("x-admin-secret", "wrong")], false),
            (vec![("authorization", "Bearer bra_with")], true),
            (vec![("authorization", "Bearer bra_without")], false),
            (vec![("authorization", "Bearer sk-unlisted")], false),
        ] {
            let status = server.ask("GET", "/api/auth/status", &headers, "").await;
            assert_eq!(status.status, 200, "{headers:?}");
            assert_eq!(status.json()["may_order_oracle"], may, "{rows} {headers:?}");
            let ordered = server.order("/api/runs", &headers, &order("oracle")).await;
            assert_eq!(ordered.status == 201, may, "{rows} {headers:?}: {}", ordered.text);
        }
    }
}
