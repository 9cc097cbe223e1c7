//! Sessions and attempts to sign in.

use bench_domain::{SESSION_COOKIE_CHARS, SessionId, Timestamp};
use bench_state::{SessionRecord, SignInRecord};

use crate::table::table;

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

fn session(cookie: char, subject: &str, from: i64, until: i64) -> SessionRecord {
    let cookie = cookie.to_string().repeat(SESSION_COOKIE_CHARS);
    SessionRecord {
        id: SessionId::from_cookie(&cookie).unwrap(),
        subject: subject.to_owned(),
        name: "نورة 🧪".to_owned(),
        has_invoke_scope: true,
        created_at: at(from),
        ends_at: at(until),
    }
}

#[test]
fn a_session_is_valid_until_it_ends_or_is_ended() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let (old, new) = (session('a', "s-1#x", 10, 100), session('b', "s-1#x", 20, 110));
        let other = session('c', "s-1", 15, 100);
        for session in [&old, &new, &other] {
            state.create_session(session, None).await.unwrap();
        }
        assert_eq!(state.session(&old.id, at(99)).await.unwrap(), Some(old.clone()));
        assert_eq!(state.session(&old.id, at(100)).await.unwrap(), None);
        assert_eq!(state.sessions_of("s-1#x", at(50)).await.unwrap(), [new.clone(), old.clone()]);
        assert_eq!(state.sessions_of("s-1#x", at(100)).await.unwrap(), std::slice::from_ref(&new));
        assert_eq!(state.sessions_of("s-1", at(50)).await.unwrap(), [other]);
        assert!(state.end_session(&new.id).await.unwrap());
        assert!(!state.end_session(&new.id).await.unwrap());
        assert_eq!(state.session(&new.id, at(50)).await.unwrap(), None);
        assert_eq!(state.sessions_of("s-1#x", at(50)).await.unwrap(), [old]);
    });
}

#[test]
fn an_attempt_is_taken_once_by_its_browser_and_in_time() {
    let table = table();
    table.block_on(async {
        let state = table.state(1);
        let attempt = |digest: &str| SignInRecord {
            state_digest: digest.to_owned(),
            browser_digest: "mine".to_owned(),
            return_to: "/runs".to_owned(),
            ends_at: at(600),
        };
        for digest in ["one", "late"] {
            state.begin_sign_in(&attempt(digest)).await.unwrap();
        }
        let take = async |digest, browser, second| state.take_sign_in(digest, browser, at(second)).await;
        assert_eq!(take("one", "stolen", 1).await.unwrap(), None);
        assert_eq!(take("one", "mine", 599).await.unwrap(), Some(attempt("one")));
        assert_eq!(take("one", "mine", 599).await.unwrap(), None);
        assert_eq!(take("late", "mine", 600).await.unwrap(), None);
        assert_eq!(take("never", "mine", 1).await.unwrap(), None);
    });
}
