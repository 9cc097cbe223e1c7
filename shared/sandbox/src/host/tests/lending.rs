//! Idle sandboxes lend their slots.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fake::Fakes;
use crate::host::{ExecAsk, HostConfig, HostError, NewSandbox, SandboxHost};

fn command(text: &str) -> ExecAsk {
    ExecAsk { command: text.to_owned(), ..ExecAsk::default() }
}

async fn made(host: &SandboxHost) -> String {
    host.create(&NewSandbox::default()).await.unwrap().sandbox_id
}

#[tokio::test(start_paused = true)]
async fn an_idle_sandbox_lends_its_slot_and_gets_one_again_when_it_is_used() {
    let (host, _) = Fakes::default().host(HostConfig::with_slots(1));
    let first = made(&host).await;
    let before = Instant::now();
    let second = made(&host).await;
    // 10 s without a command, watched for 3 s, looked at each second.
    let waited = before.elapsed();
    assert!((Duration::from_secs(13)..Duration::from_secs(16)).contains(&waited), "{waited:?}");
    assert!(!host.get(&first).await.unwrap().has_slot && host.get(&second).await.unwrap().has_slot);
    // The first one waits for the second, which works for 15 s.
    let works = {
        let (host, second) = (Arc::clone(&host), second.clone());
        tokio::spawn(async move { host.exec(&second, command("sleep 4000")).await })
    };
    sleep(Duration::from_millis(1)).await;
    let before = Instant::now();
    let done = host.exec(&first, command("true")).await.unwrap();
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(14) && done.duration_ms == 0, "{waited:?}");
    works.await.unwrap().unwrap();
    assert!(host.get(&first).await.unwrap().has_slot && !host.get(&second).await.unwrap().has_slot);
}

#[tokio::test(start_paused = true)]
async fn one_that_works_in_the_background_keeps_its_slot() {
    let (host, counts) = Fakes::default().host(HostConfig::with_slots(2));
    let (busy, unknown) = (made(&host).await, made(&host).await);
    *counts.all.lock().unwrap()[0].cores.lock().unwrap() = Some(0.5);
    // Where its time cannot be told it may be working.
    *counts.all.lock().unwrap()[1].cores.lock().unwrap() = None;
    let error = host.create(&NewSandbox::default()).await.unwrap_err();
    assert!(matches!(error, HostError::Full { .. }));
    assert!(host.get(&busy).await.unwrap().has_slot && host.get(&unknown).await.unwrap().has_slot);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_its_slot_ran_nothing() {
    let (host, counts) = Fakes::default().host(HostConfig::with_slots(1));
    let first = made(&host).await;
    let second = made(&host).await;
    *counts.all.lock().unwrap()[1].cores.lock().unwrap() = Some(1.0);
    let error = host.exec(&first, command("true")).await.unwrap_err();
    assert!(
        matches!(&error, HostError::Full { reason, .. } if reason.contains("The command was not run.")),
        "{error:?}"
    );
    assert!(counts.commands.lock().unwrap().is_empty());
    // Who waits and is ended is told so at once.
    let waits = {
        let (host, first) = (Arc::clone(&host), first.clone());
        tokio::spawn(async move { host.exec(&first, command("true")).await })
    };
    sleep(Duration::from_secs(1)).await;
    host.terminate(&first).await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap_err(), HostError::Gone(first));
    host.get(&second).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fifty_idle_ones_are_held_besides_those_that_work() {
    let config = HostConfig { lend_after: Duration::ZERO, ..HostConfig::with_slots(2) };
    let (host, counts) = Fakes::default().host(config);
    for _ in 0..50 {
        made(&host).await;
    }
    assert_eq!((counts.alive(), host.resources().slots_used), (50, 2));
}
