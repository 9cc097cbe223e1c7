//! Preemption by requests of higher priority.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fake_isolation::FakeIsolation;
use crate::host::{ExecRequest, HostConfig, HostError, NewSandbox};

fn new_sandbox(priority: u64, preemptable: bool) -> NewSandbox {
    NewSandbox { priority: Some(priority), preemptable: Some(preemptable), ..NewSandbox::default() }
}

#[tokio::test(start_paused = true)]
async fn the_youngest_preemptable_sandbox_of_lower_priority_is_ended() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(4));
    let kept = host.create(&new_sandbox(3, false)).await.unwrap().sandbox_id;
    let old = host.create(&new_sandbox(3, true)).await.unwrap().sandbox_id;
    let young = host.create(&new_sandbox(2, true)).await.unwrap().sandbox_id;
    let equal = host.create(&new_sandbox(1, true)).await.unwrap().sandbox_id;
    let first = host.create(&new_sandbox(1, false)).await.unwrap().sandbox_id;
    assert!(matches!(host.get(&young).await, Err(HostError::Gone(_))));
    let second = host.create(&new_sandbox(1, false)).await.unwrap().sandbox_id;
    assert!(host.get(&old).await.is_err());
    // All of them work, so none lends its slot.
    for sandbox in counts.all.lock().unwrap().iter() {
        *sandbox.cores.lock().unwrap() = Some(1.0);
    }
    // The remaining ones aren't preemptable, or aren't of lower priority.
    let error = host.create(&new_sandbox(1, false)).await.unwrap_err();
    assert!(matches!(error, HostError::Full { .. }));
    for id in [&kept, &equal, &first, &second] {
        host.get(id).await.unwrap();
    }
    assert_eq!(counts.max_alive.load(Ordering::SeqCst), 4);
    let resources = host.resources();
    assert_eq!(resources.priority_breakdown["high"], 3);
    assert_eq!((resources.priority_breakdown["low"], resources.priority_breakdown["critical"]), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_command_in_a_preempted_sandbox_fails_with_gone() {
    let isolation = FakeIsolation { end_time: Duration::from_secs(2), ..FakeIsolation::default() };
    let (host, counts) = isolation.host(HostConfig::with_slots(1));
    let id = host.create(&new_sandbox(3, true)).await.unwrap().sandbox_id;
    let runs = {
        let (host, id) = (Arc::clone(&host), id.clone());
        tokio::spawn(async move {
            let ended = host
                .exec(&id, ExecRequest { command: "sleep 20000".to_owned(), ..ExecRequest::default() })
                .await;
            (ended, Instant::now())
        })
    };
    sleep(Duration::from_secs(1)).await;
    let before = Instant::now();
    let first = host.create(&new_sandbox(0, false)).await.unwrap();
    // The other sandbox must be gone first.
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!((counts.alive(), counts.max_alive.load(Ordering::SeqCst)), (1, 1));
    let (ended, at) = runs.await.unwrap();
    assert_eq!((ended.unwrap_err(), at), (HostError::Gone(id), before));
    assert!(host.get(&first.sandbox_id).await.unwrap().has_slot);
}

#[tokio::test(start_paused = true)]
async fn one_waiting_request_preempts_only_one_sandbox() {
    let isolation = FakeIsolation { end_time: Duration::from_secs(5), ..FakeIsolation::default() };
    let (host, _) = isolation.host(HostConfig::with_slots(3));
    for _ in 0..3 {
        host.create(&new_sandbox(3, true)).await.unwrap();
    }
    let waits = {
        let host = Arc::clone(&host);
        tokio::spawn(async move { host.create(&new_sandbox(1, false)).await })
    };
    sleep(Duration::from_secs(1)).await;
    // Other requests that come and go don't cause a second preemption.
    let gives_up = tokio::time::timeout(Duration::from_secs(1), host.create(&new_sandbox(3, true))).await;
    assert!(gives_up.is_err());
    assert_eq!(host.stats(None).await.len(), 2);
    waits.await.unwrap().unwrap();
    assert_eq!(host.stats(None).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn preemption_also_makes_room_at_the_limit_of_sandboxes() {
    let config = HostConfig { sandboxes_max: 1, ..HostConfig::with_slots(4) };
    let (host, _) = FakeIsolation::default().host(config);
    let first = host.create(&new_sandbox(3, true)).await.unwrap().sandbox_id;
    let error = host.create(&new_sandbox(3, true)).await.unwrap_err();
    assert!(error.to_string().contains("All 1 sandboxes are in use."), "{error}");
    host.create(&new_sandbox(2, true)).await.unwrap();
    assert!(host.get(&first).await.is_err());
}
