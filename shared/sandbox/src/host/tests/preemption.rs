//! Who gives way to whom.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fake::Fakes;
use crate::host::{ExecAsk, HostConfig, HostError, NewSandbox};

fn asked(priority: u64, preemptable: bool) -> NewSandbox {
    NewSandbox { priority: Some(priority), preemptable: Some(preemptable), ..NewSandbox::default() }
}

#[tokio::test(start_paused = true)]
async fn the_youngest_preemptable_sandbox_of_lower_priority_gives_way() {
    let (host, counts) = Fakes::default().host(HostConfig::with_slots(4));
    let kept = host.create(&asked(3, false)).await.unwrap().sandbox_id;
    let old = host.create(&asked(3, true)).await.unwrap().sandbox_id;
    let young = host.create(&asked(2, true)).await.unwrap().sandbox_id;
    let equal = host.create(&asked(1, true)).await.unwrap().sandbox_id;
    let first = host.create(&asked(1, false)).await.unwrap().sandbox_id;
    assert!(matches!(host.get(&young).await, Err(HostError::Gone(_))));
    let second = host.create(&asked(1, false)).await.unwrap().sandbox_id;
    assert!(host.get(&old).await.is_err());
    // All of them work: nobody lends.
    for fake in counts.all.lock().unwrap().iter() {
        *fake.cores.lock().unwrap() = Some(1.0);
    }
    // What is left is not preemptable, or not of lower priority.
    let error = host.create(&asked(1, false)).await.unwrap_err();
    assert!(matches!(error, HostError::Full { .. }));
    for id in [&kept, &equal, &first, &second] {
        host.get(id).await.unwrap();
    }
    assert_eq!(counts.most.load(Ordering::SeqCst), 4);
    let told = host.resources();
    assert_eq!(told.priority_breakdown["high"], 3);
    assert_eq!((told.priority_breakdown["low"], told.priority_breakdown["critical"]), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_preempted_command_is_told_that_its_sandbox_is_gone() {
    let fakes = Fakes { ending: Duration::from_secs(2), ..Fakes::default() };
    let (host, counts) = fakes.host(HostConfig::with_slots(1));
    let id = host.create(&asked(3, true)).await.unwrap().sandbox_id;
    let runs = {
        let (host, id) = (Arc::clone(&host), id.clone());
        tokio::spawn(async move {
            let ended =
                host.exec(&id, ExecAsk { command: "sleep 20000".to_owned(), ..ExecAsk::default() }).await;
            (ended, Instant::now())
        })
    };
    sleep(Duration::from_secs(1)).await;
    let before = Instant::now();
    let first = host.create(&asked(0, false)).await.unwrap();
    // Not before the other one is really gone.
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!((counts.alive(), counts.most.load(Ordering::SeqCst)), (1, 1));
    let (ended, at) = runs.await.unwrap();
    assert_eq!((ended.unwrap_err(), at), (HostError::Gone(id), before));
    assert!(host.get(&first.sandbox_id).await.unwrap().has_slot);
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_ends_one_sandbox_and_no_more() {
    let fakes = Fakes { ending: Duration::from_secs(5), ..Fakes::default() };
    let (host, _) = fakes.host(HostConfig::with_slots(3));
    for _ in 0..3 {
        host.create(&asked(3, true)).await.unwrap();
    }
    let waits = {
        let host = Arc::clone(&host);
        tokio::spawn(async move { host.create(&asked(1, false)).await })
    };
    sleep(Duration::from_secs(1)).await;
    // Others who come and go do not make it two.
    let gives_up = tokio::time::timeout(Duration::from_secs(1), host.create(&asked(3, true))).await;
    assert!(gives_up.is_err());
    assert_eq!(host.stats(None).await.len(), 2);
    waits.await.unwrap().unwrap();
    assert_eq!(host.stats(None).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn room_is_made_as_slots_are() {
    let config = HostConfig { sandboxes_max: 1, ..HostConfig::with_slots(4) };
    let (host, _) = Fakes::default().host(config);
    let first = host.create(&asked(3, true)).await.unwrap().sandbox_id;
    let error = host.create(&asked(3, true)).await.unwrap_err();
    assert!(error.to_string().contains("All 1 sandboxes are in use."), "{error}");
    host.create(&asked(2, true)).await.unwrap();
    assert!(host.get(&first).await.is_err());
}
