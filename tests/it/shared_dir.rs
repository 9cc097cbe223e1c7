//! Stacks that share a data directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bench_embedded::Durability;
use bench_runs::{Order, Orderer};
use bench_stack::{HoldEvent, Stack, StackOptions};
use bench_state::Scope;

async fn open(dir: &Path) -> Stack {
    let options = StackOptions {
        durability: Durability::Normal,
        scope: Scope::Foreground,
        shares: true,
        works: true,
        vars: BTreeMap::from([("HF_HUB_OFFLINE".to_owned(), "1".to_owned())]),
        ..StackOptions::new(dir)
    };
    Stack::open(options).await.unwrap()
}

#[tokio::test]
async fn a_run_that_is_ordered_while_the_owner_changes_is_held_by_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).await;
    assert!(first.owner().is_none());
    let attached = open(dir.path()).await;
    assert_eq!(attached.owner().map(|owner| owner.pid), Some(std::process::id()));
    first.stop(Duration::ZERO).await;
    let next = open(dir.path()).await;
    assert!(next.owner().is_none());

    // The order reaches the next owner, which doesn't work on a run of the first one.
    let order = Order {
        model: "oracle".into(),
        benchmarks: Some(vec!["mmlu_pro".into()]),
        demo: true,
        ..Order::default()
    };
    let created = attached.orders.create(order, Orderer::local()).await.unwrap();
    let run = created.run.run.spec.id;
    assert!(next.state.run(run).await.unwrap().is_some());
    let mut hold = attached.hold(&[run], 1).await.unwrap();
    assert_eq!(hold.event().await, HoldEvent::Ended);
    attached.stop(Duration::ZERO).await;

    // A command that opens the directory again resumes the run, and the owner works on it.
    let again = open(dir.path()).await;
    bench_api::requeue_run(&again.api, run, None).await.unwrap();
    let mut hold = again.hold(&[run], 1).await.unwrap();
    let event = tokio::time::timeout(Duration::from_millis(300), hold.event()).await;
    assert!(event.is_err(), "{event:?}");
    assert_eq!(next.runs_of_others(), 1);
    drop(hold);
    again.stop(Duration::ZERO).await;
    next.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn calls_go_on_when_the_owner_ends() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).await;
    let attached = open(dir.path()).await;
    first.stop(Duration::ZERO).await;
    // This process opens the services itself.
    attached.blobs.put_json("a.json.zst", &"kept".to_owned()).await.unwrap();
    attached.stop(Duration::ZERO).await;
    let next = open(dir.path()).await;
    let kept: Option<String> = next.blobs.get_json("a.json.zst").await.unwrap();
    assert_eq!(kept.as_deref(), Some("kept"));
    next.stop(Duration::ZERO).await;
}
