//! Lending: idle sandboxes lend their slots.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fake_isolation::FakeIsolation;
use crate::host::{ExecRequest, HostConfig, HostError, NewSandbox, SandboxHost};

fn command(text: &str) -> ExecRequest {
    ExecRequest { command: text.to_owned(), ..ExecRequest::default() }
}

async fn create(host: &SandboxHost) -> String {
    host.create(&NewSandbox::default()).await.unwrap().sandbox_id
}

#[tokio::test(start_paused = true)]
async fn an_idle_sandbox_lends_its_slot_and_gets_one_again_when_it_is_used() {
    let (host, _) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let first = create(&host).await;
    let before = Instant::now();
    let second = create(&host).await;
    // 10 s without a command, then 3 s of measurement, checked every second.
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
async fn a_sandbox_with_background_work_keeps_its_slot() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(2));
    let (busy, unknown) = (create(&host).await, create(&host).await);
    *counts.all.lock().unwrap()[0].cores.lock().unwrap() = Some(0.5);
    // Without its CPU time, it may be working.
    *counts.all.lock().unwrap()[1].cores.lock().unwrap() = None;
    let error = host.create(&NewSandbox::default()).await.unwrap_err();
    assert!(matches!(error, HostError::Full { .. }));
    assert!(host.get(&busy).await.unwrap().has_slot && host.get(&unknown).await.unwrap().has_slot);
}

#[tokio::test(start_paused = true)]
async fn a_command_without_a_slot_is_not_run() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let first = create(&host).await;
    let second = create(&host).await;
    *counts.all.lock().unwrap()[1].cores.lock().unwrap() = Some(1.0);
    let error = host.exec(&first, command("true")).await.unwrap_err();
    assert!(
        matches!(&error, HostError::Full { reason, .. } if reason.contains("The command was not run.")),
        "{error:?}"
    );
    assert!(counts.commands.lock().unwrap().is_empty());
    // A waiting command fails at once when its sandbox is ended.
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
async fn fifty_idle_sandboxes_exist_beside_the_working_ones() {
    let config = HostConfig { lend_after: Duration::ZERO, ..HostConfig::with_slots(2) };
    let (host, counts) = FakeIsolation::default().host(config);
    for _ in 0..50 {
        create(&host).await;
    }
    assert_eq!((counts.alive(), host.resources().slots_used), (50, 2));
}
