//! Payers of stored orders: schedules that change, runs that go on after the operator's policy changed, and what belongs to
//! another owner.

use bench_domain::run::{AuthMode, Owner};
use bench_domain::schedule::Schedule;
use bench_domain::{Code, Outcome, RunId, RunSpec, ScheduleId, SessionId};
use bench_runs::ScheduledRunError;
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::users::{ADMIN, PAGE, id, list_user, site};

const KEYS: [(&str, &str); 2] = [("CHUTES_API_KEY", "sk-operator"), ("OPENROUTER_API_KEY", "sk-operator")];
const SITE: [(&str, &str); 2] = [("CHUTES_CLIENT_ID", "cid"), ("FRONTEND_URL", "https://bench.example")];
const ORDERS: (&str, &str) = ("BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER", "100");
const GENEROUS: (&str, &str) = ("BENCH_SESSION_PAYER", "operator-allowed");

/// Starts a site with the operator's keys and these variables.
async fn site_with_keys(vars: &[(&str, &str)]) -> Server {
    site(&[&KEYS[..], &[ORDERS], vars].concat()).await
}

async fn spec(server: &Server, run: RunId) -> RunSpec {
    server.api.state.run(run).await.unwrap().unwrap().spec
}

fn session(letter: char) -> SessionId {
    SessionId::from_cookie(&letter.to_string().repeat(43)).unwrap()
}

/// Creates a schedule of a model and returns its path.
async fn schedule_of(server: &Server, headers: &[(&str, &str)], model: &str) -> String {
    let body = json!({
        "name": model, "cron": "0 3 * * *", "model_id": model, "selected_benchmarks": ["mmlu_pro"], "demo": true,
    });
    let reply = server.order("/api/schedules", headers, &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    format!("/api/schedules/{}", reply.json()["id"].as_str().unwrap())
}

async fn change(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> Schedule {
    let headers = [headers, &[("content-type", "application/json")]].concat();
    let reply = server.ask("PATCH", path, &headers, body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    stored(server, path).await
}

async fn stored(server: &Server, path: &str) -> Schedule {
    let id: ScheduleId = path.rsplit('/').next().unwrap().parse().unwrap();
    server.api.state.schedule(id).await.unwrap().unwrap().schedule
}

/// Makes the schedule's run for the present time, as the scheduler does.
async fn fire(server: &Server, schedule: &Schedule) -> Result<RunSpec, ScheduledRunError> {
    let now = bench_clock::now();
    let run = server.api.orders.runs.create_scheduled(schedule, now, now, None).await?;
    Ok(spec(server, run).await)
}

fn payer(spec: &RunSpec) -> (AuthMode, Option<SessionId>) {
    (spec.auth, spec.session.clone())
}

fn refused(reply: &Reply, part: &str) {
    assert_eq!((reply.status.as_u16(), reply.code()), (403, Some(Code::OrderNotAllowed)), "{}", reply.text);
    assert!(reply.detail().contains(part), "{part}: {}", reply.text);
}

#[tokio::test]
async fn a_changed_schedule_has_the_payer_of_its_new_model() {
    let server = site_with_keys(&[]).await;
    list_user(&server, "s1").await;
    let cookie = server.sign_in('a', "s1", true).await;
    let user = [("cookie", cookie.as_str()), PAGE];
    let path = schedule_of(&server, &user, "oracle").await;
    assert_eq!(stored(&server, &path).await.auth, AuthMode::System);
    let changed = change(&server, &path, &user, &json!({ "model_id": "chutes/a/b" })).await;
    assert_eq!(changed.auth, AuthMode::Idp, "the operator's key doesn't step in");
    assert_eq!(payer(&fire(&server, &changed).await.unwrap()), (AuthMode::Idp, Some(session('a'))));
    let renamed = change(&server, &path, &user, &json!({ "name": "n", "subset_count": 3 })).await;
    assert_eq!(renamed.auth, AuthMode::Idp);
    let oracle = change(&server, &path, &user, &json!({ "model_id": "oracle" })).await;
    assert_eq!(payer(&fire(&server, &oracle).await.unwrap()), (AuthMode::System, None));
    // A schedule of an older version whose payer wasn't changed.
    let old = Schedule { run: changed.run.clone(), id: ScheduleId::random(), ..oracle };
    let refused = fire(&server, &old).await.unwrap_err();
    assert!(matches!(refused, ScheduledRunError::OperatorPays(_)), "{refused}");
}

#[tokio::test]
async fn a_schedule_that_leaves_chutes_leaves_the_users_account() {
    let server = site_with_keys(&[GENEROUS]).await;
    let cookie = server.sign_in('a', "s1", true).await;
    let user = [("cookie", cookie.as_str()), PAGE];
    let path = schedule_of(&server, &user, "chutes/a/b").await;
    assert_eq!(stored(&server, &path).await.auth, AuthMode::Idp);
    let changed = change(&server, &path, &user, &json!({ "model_id": "openrouter/a/b" })).await;
    assert_eq!(payer(&fire(&server, &changed).await.unwrap()), (AuthMode::System, None));
    // A schedule of an older version would make runs that fail.
    let old = Schedule { auth: AuthMode::Idp, id: ScheduleId::random(), ..changed };
    let refused = fire(&server, &old).await.unwrap_err();
    assert_eq!(refused.code(), Code::ProviderNotConfigured, "{refused}");
}

#[tokio::test]
async fn the_operators_key_pays_for_stored_runs_only_as_long_as_it_may() {
    let server =
        site_with_keys(&[GENEROUS, ("ADMIN_SUBJECTS", "boss"), ("BENCH_JUDGE_MODEL", "openrouter/d")]).await;
    let strict = server.again(&[&SITE[..], &[ORDERS]].concat());
    let (without, boss) = (server.sign_in('a', "s1", false).await, server.sign_in('b', "boss", false).await);
    let (with, boss_with) = (server.sign_in('c', "s1", true).await, server.sign_in('d', "boss", true).await);
    let judged = |judge: Value| json!({ "selected_benchmarks": ["aa_omniscience"], "judge": judge });
    let simulated = json!({
        "selected_benchmarks": ["tau_bench_telecom"], "user_model": { "model_id": "openrouter/u" },
    });
    let none = json!({});
    for (first, then, changes, part) in [
        (&without, &with, &none, Some("the model `chutes/a/b`")),
        (&boss, &boss_with, &none, Some("the model `chutes/a/b`")),
        (&with, &with, &judged(json!({ "model_id": "openrouter/j" })), Some("the judge `openrouter/j`")),
        (&with, &with, &simulated, Some("the user model `openrouter/u`")),
        // The user's account pays, also for the judge, or the operator offers the judge to all.
        (&with, &with, &none, None),
        (&with, &with, &judged(json!({ "model_id": "chutes/j" })), None),
        (&with, &with, &judged(json!(null)), None),
    ] {
        let mut body = json!({ "model_id": "chutes/a/b", "selected_benchmarks": ["mmlu_pro"], "demo": true });
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let run = id(&server.order("/api/runs", &[("cookie", first), PAGE], &body).await);
        let cancel = format!("/api/runs/{run}/cancel");
        let requeue = format!("/api/admin/runs/{run}/requeue");
        let headers = [("cookie", then.as_str()), PAGE];
        assert_eq!(server.post(&cancel, &headers).await.status, 200);
        let view = strict.ask("GET", &format!("/api/runs/{run}"), &headers, "").await.json();
        assert_eq!(view["can"]["requeue"], json!(part.is_none()), "{body}");
        let reply = strict.post(&requeue, &headers).await;
        let Some(part) = part else {
            assert_eq!(reply.status, 200, "{body}: {}", reply.text);
            assert_eq!(server.post(&cancel, &headers).await.status, 200);
            continue;
        };
        refused(&reply, part);
        // The operator may still let the keys pay: by the policy, or as an admin.
        for (server, headers) in [(&server, &headers[..]), (&strict, &[ADMIN][..])] {
            let reply = server.post(&requeue, headers).await;
            assert_eq!(reply.status, 200, "{body}: {}", reply.text);
            assert_eq!(server.post(&cancel, headers).await.status, 200);
        }
    }
}

#[tokio::test]
async fn the_operators_key_pays_for_schedules_only_as_long_as_it_may() {
    let server = site_with_keys(&[GENEROUS]).await;
    let strict = server.again(&[&SITE[..], &[ORDERS]].concat());
    let cookie = server.sign_in('a', "s1", false).await;
    let path = schedule_of(&server, &[("cookie", &cookie), PAGE], "chutes/a/b").await;
    let cookie = server.sign_in('b', "s1", true).await;
    let user = [("cookie", cookie.as_str()), PAGE];
    let schedule = stored(&server, &path).await;
    assert_eq!(schedule.auth, AuthMode::System);
    refused(&strict.post(&format!("{path}/run-now"), &user).await, "the model `chutes/a/b`");
    let stopped = fire(&strict, &schedule).await.unwrap_err();
    assert_eq!(stopped.code(), Code::OrderNotAllowed);
    assert!(stopped.to_string().contains("pays for its model"), "{stopped}");
    assert_eq!(payer(&fire(&server, &schedule).await.unwrap()), (AuthMode::System, None));
    // Naming the model again makes the user's account pay.
    let again = change(&strict, &path, &user, &json!({ "model_id": "chutes/a/b" })).await;
    assert_eq!(payer(&fire(&strict, &again).await.unwrap()), (AuthMode::Idp, Some(session('b'))));
}

#[tokio::test]
async fn on_loopback_the_operators_key_does_not_pay_for_a_users_other_models() {
    let server = Server::new(true, &[&KEYS[..], &SITE].concat()).await;
    let (with, without) = (server.sign_in('a', "s1", true).await, server.sign_in('b', "s1", false).await);
    let page = ("origin", "http://localhost:8000");
    let judged = |model: &str, judge: &str| {
        json!({
            "model_id": model, "selected_benchmarks": ["aa_omniscience"], "demo": true,
            "judge": { "model_id": judge },
        })
    };
    let simulated = |model: &str, user: &str| {
        json!({
            "model_id": model, "selected_benchmarks": ["tau_bench_telecom"], "demo": true,
            "user_model": { "model_id": user },
        })
    };
    for (cookie, body, code) in [
        (&with, judged("chutes/a/b", "openrouter/j"), Code::JudgeKeyRequired),
        (&without, judged("oracle", "chutes/j"), Code::JudgeKeyRequired),
        (&with, simulated("chutes/a/b", "openrouter/u"), Code::UserKeyRequired),
    ] {
        let reply = server.order("/api/runs", &[("cookie", cookie), page], &body).await;
        assert_eq!((reply.status.as_u16(), reply.code()), (400, Some(code)), "{body}: {}", reply.text);
        // The user of this machine has the operator's keys.
        assert_eq!(server.order("/api/runs", &[], &body).await.status, 201, "{body}");
    }
    let body = judged("chutes/a/b", "chutes/j");
    let run = id(&server.order("/api/runs", &[("cookie", &with), page], &body).await);
    let spec = spec(&server, run).await;
    assert_eq!(
        (spec.judge.as_ref().unwrap().auth, payer(&spec)),
        (AuthMode::Idp, (AuthMode::Idp, Some(session('a'))))
    );
}

#[tokio::test]
async fn a_rejudge_is_paid_by_no_session_but_its_owners() {
    let server = site_with_keys(&[("ADMIN_SUBJECTS", "boss")]).await;
    server.sign_in('z', "nobody", true).await;
    let (user, boss) = (server.sign_in('a', "s1", true).await, server.sign_in('b', "boss", true).await);
    server
        .list_with(bench_state::access::AccessKind::User, "s1", |entry| {
            entry.owner = bench_state::access::user_entry("s1");
            entry.subject = Some("s1".to_owned());
            (entry.oracle, entry.gated) = (true, true);
        })
        .await;
    let (as_user, as_boss) = ([("cookie", user.as_str()), PAGE], [("cookie", boss.as_str()), PAGE]);
    let body = json!({ "model_id": "oracle", "selected_benchmarks": ["hle"], "demo": true });
    let run = id(&server.order("/api/runs", &as_user, &body).await);
    server.finish_judged(run, &[Outcome::Correct], |judge| judge.version = 1).await;
    let judge = json!({ "judge": { "model_id": "chutes/j" } });
    for (headers, auth, paid_by) in
        [(as_user, AuthMode::Idp, Some(session('a'))), (as_boss, AuthMode::System, None)]
    {
        let rejudge = id(&server.order(&format!("/api/runs/{run}/rejudge"), &headers, &judge).await);
        let spec = spec(&server, rejudge).await;
        assert_eq!(spec.owner, Owner::User("s1".into()));
        assert_eq!((spec.judge.as_ref().unwrap().auth, spec.session.clone()), (auth, paid_by));
    }
}

#[tokio::test]
async fn an_admins_account_does_not_pay_for_another_owners_schedule() {
    let server = site_with_keys(&[("ADMIN_SUBJECTS", "boss")]).await;
    let (user, boss) = (server.sign_in('a', "s1", true).await, server.sign_in('b', "boss", true).await);
    let as_boss = [("cookie", boss.as_str()), PAGE];
    // The operator's schedule.
    let path = schedule_of(&server, &[ADMIN], "oracle").await;
    let judged = json!({
        "model_id": "chutes/a/b", "selected_benchmarks": ["aa_omniscience"], "judge": { "model_id": "chutes/j" },
    });
    let changed = change(&server, &path, &as_boss, &judged).await;
    assert_eq!((&changed.owner, changed.auth), (&Owner::Local, AuthMode::System));
    assert_eq!(changed.run.judge.as_ref().unwrap().auth, AuthMode::System);
    assert_eq!(payer(&fire(&server, &changed).await.unwrap()), (AuthMode::System, None));
    // A user's schedule, which the user's account keeps paying for.
    let path = schedule_of(&server, &[("cookie", &user), PAGE], "chutes/a/b").await;
    let changed = change(&server, &path, &as_boss, &judged).await;
    assert_eq!(changed.run.judge.as_ref().unwrap().auth, AuthMode::Idp);
    assert_eq!(payer(&fire(&server, &changed).await.unwrap()), (AuthMode::Idp, Some(session('a'))));
}
