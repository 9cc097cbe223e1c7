//! Sessions among many others: calls, and the units that they read and write, which don't depend on the number of sessions.
//! `BENCH_TEST_SESSIONS=100000` makes that many, which takes a minute without optimizations.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use bench_domain::{SESSION_COOKIE_CHARS, SessionId, Timestamp};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_state::{SESSIONS_LISTED_MAX, SessionRecord, State};
use futures_util::{StreamExt, stream};

use crate::meter::Meter;

const TABLE: &str = "bench";
/// Sessions, without the variable.
const SESSIONS_DEFAULT: usize = 5_000;
/// Sessions of the user who has the most.
const OF_ONE_USER: usize = 1_000;
/// Sessions that ended a long time ago. Each session has two records.
const EXPIRED: usize = 700;
/// Records in a batch write, by DynamoDB's limit.
const BATCH: usize = 25;
/// Concurrent batch writes.
const BATCHES_IN_FLIGHT: usize = 8;

type Item = HashMap<String, AttributeValue>;

fn session(number: usize, subject: &str, ends_at: Timestamp) -> SessionRecord {
    SessionRecord {
        id: SessionId::from_cookie(&format!("{number:0>SESSION_COOKIE_CHARS$}")).unwrap(),
        subject: subject.to_owned(),
        name: "نورة 🧪".to_owned(),
        has_invoke_scope: true,
        created_at: Timestamp::from_micros(1_000_000),
        ends_at,
    }
}

/// Returns the two records of a stored session.
async fn records_of(client: &Client, session: &SessionRecord) -> Vec<Item> {
    let mut records = Vec::new();
    for partition in [format!("SESSION#{}", session.id), format!("USER#{}", session.subject)] {
        let query = client.query().table_name(TABLE).key_condition_expression("pk = :pk");
        let found = query.expression_attribute_values(":pk", AttributeValue::S(partition)).send().await;
        records.extend(found.unwrap().items.unwrap());
    }
    assert_eq!(records.len(), 2);
    records
}

/// Returns the record of another session, which differs by its id and its user.
fn copied(record: &Item, from: &SessionRecord, to: &SessionRecord) -> Item {
    let copied = record.iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::S(text) => {
                let text = text.replace(from.id.as_str(), to.id.as_str());
                AttributeValue::S(text.replace(&from.subject, &to.subject))
            }
            other => other.clone(),
        };
        (name.clone(), value)
    });
    copied.collect()
}

/// Writes copies of a stored session in batches: one transaction for each, as at a sign-in, would take minutes.
async fn copy_sessions(client: &Client, from: &SessionRecord, to: impl Iterator<Item = SessionRecord>) {
    let originals = records_of(client, from).await;
    let copies: Vec<Item> = to
        .flat_map(|to| originals.iter().map(move |record| copied(record, from, &to)).collect::<Vec<_>>())
        .collect();
    let batches = copies.chunks(BATCH).map(|batch| {
        let puts = batch.iter().map(|item| {
            let put = PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        client.batch_write_item().request_items(TABLE, puts.collect()).send()
    });
    let mut written = stream::iter(batches).buffer_unordered(BATCHES_IN_FLIGHT);
    while let Some(written) = written.next().await {
        assert!(written.unwrap().unprocessed_items.is_none_or(|left| left.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_reads_other_sessions() {
    let sessions = std::env::var("BENCH_TEST_SESSIONS")
        .map_or(SESSIONS_DEFAULT, |number| number.parse().expect("BENCH_TEST_SESSIONS is a number"));
    assert!(sessions >= SESSIONS_DEFAULT);
    let directory = tempfile::tempdir().unwrap();
    let meter = Meter::default();
    let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
    let embedded = Embedded::open(options.recorder(meter.recorder())).unwrap();
    let (state, client) = (State::new(&embedded.sdk_config(), TABLE, 1), Client::new(&embedded.sdk_config()));
    state.ensure_table().await.unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = Timestamp::from_micros(i64::try_from(now.as_micros()).unwrap());
    let (later, earlier) = (now.plus(Duration::from_secs(86_400)), Timestamp::from_micros(2_000_000));

    let (busy, expired) = (session(0, "busy-user", later), session(1, "expired-user", earlier));
    for session in [&busy, &expired] {
        state.create_session(session, None).await.unwrap();
    }
    let valid = sessions - EXPIRED;
    let copies = (2..valid + 1).map(|number| match number {
        ..=OF_ONE_USER => session(number, "busy-user", later),
        _ => session(number, &format!("user-{number}"), later),
    });
    copy_sessions(&client, &busy, copies).await;
    let copies = (valid + 1..sessions).map(|number| session(number, &format!("user-{number}"), earlier));
    copy_sessions(&client, &expired, copies).await;

    // A look-up is one read of one record, and its copy is a session like any other.
    let ordinary = session(2_500, "user-2500", later);
    meter.take();
    assert_eq!(state.session(&ordinary.id, now).await.unwrap().as_ref(), Some(&ordinary));
    let usage = meter.take();
    assert_eq!((usage.actions.as_slice(), usage.read_units), (["GetItem".to_owned()].as_slice(), 1.0));

    // A list reads the newest sessions of its user.
    assert_eq!(state.sessions_of("user-2500", now).await.unwrap(), std::slice::from_ref(&ordinary));
    let usage = meter.take();
    assert_eq!((usage.actions.as_slice(), usage.read_units), (["Query".to_owned()].as_slice(), 1.0));
    let listed = usize::try_from(SESSIONS_LISTED_MAX).unwrap();
    assert_eq!(state.sessions_of("busy-user", now).await.unwrap().len(), listed);
    let usage = meter.take();
    assert_eq!(usage.actions, ["Query"]);
    assert!(usage.read_units < 15.0, "{usage:?}");

    // A sign-in and a sign-out write two records each, in a transaction.
    let new = session(sessions, "busy-user", later);
    state.create_session(&new, None).await.unwrap();
    let usage = meter.take();
    assert_eq!(
        (usage.actions.as_slice(), usage.write_units),
        (["TransactWriteItems".to_owned()].as_slice(), 4.0)
    );
    assert!(state.end_session(&ordinary.id).await.unwrap());
    let usage = meter.take();
    assert_eq!(usage.actions, ["GetItem", "TransactWriteItems"]);
    assert_eq!((usage.read_units, usage.write_units), (1.0, 4.0));
    assert_eq!(state.session(&ordinary.id, now).await.unwrap(), None);
    assert_eq!(state.sessions_of("user-2500", now).await.unwrap(), []);

    // The table's time to live removes the expired sessions and no others.
    assert_eq!(state.session(&expired.id, now).await.unwrap(), None);
    assert_eq!(embedded.sweep_ttl().await.unwrap(), 2 * EXPIRED);
    let last = session(sessions - 1, &format!("user-{}", sessions - 1), earlier);
    assert_eq!(state.sessions_of(&last.subject, Timestamp::from_micros(1_500_000)).await.unwrap(), []);
    assert_eq!(state.sessions_of("busy-user", now).await.unwrap().len(), listed);
    assert_eq!(embedded.sweep_ttl().await.unwrap(), 0);
}
