//! Creating and ending sandboxes, with paused time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};

use super::fake_isolation::FakeIsolation;
use crate::host::{ExecRequest, HostConfig, HostError, NewSandbox, SandboxHost, unavailable_isolation};
use crate::isolation::IsolationError;

fn command(command: &str) -> ExecRequest {
    ExecRequest { command: command.to_owned(), ..ExecRequest::default() }
}

fn batch() -> NewSandbox {
    NewSandbox { priority: Some(3), preemptable: Some(true), ..NewSandbox::default() }
}

#[tokio::test(start_paused = true)]
async fn creations_wait_in_order_until_their_time_is_up() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let first = host.create(&batch()).await.unwrap();
    let spawn_create = |host: &Arc<SandboxHost>| {
        let host = Arc::clone(host);
        tokio::spawn(async move { host.create(&batch()).await })
    };
    let second = spawn_create(&host);
    yield_now().await;
    let third = spawn_create(&host);
    yield_now().await;
    assert!(!second.is_finished() && counts.alive() == 1);
    host.terminate(&first.sandbox_id).await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert!(!third.is_finished());
    let before = Instant::now();
    // The second sandbox works, so that it doesn't lend its slot.
    host.exec(&second.sandbox_id, ExecRequest { timeout_ms: Some(60_000), ..command("sleep 30000") })
        .await
        .unwrap();
    let error = third.await.unwrap().unwrap_err();
    assert!(before.elapsed() < Duration::from_secs(31));
    let HostError::Full { reason, retry_after } = error else { panic!("{error:?}") };
    assert!(reason.contains("within 20 s. The only slot is in use."), "{reason}");
    assert_eq!(retry_after, Duration::from_secs(5));
    assert_eq!(counts.max_alive.load(Ordering::SeqCst), 1);
    assert_eq!(host.resources().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_higher_priority_is_served_first_regardless_of_arrival() {
    let (host, _) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let first = host.create(&NewSandbox::default()).await.unwrap();
    let spawn_create = |priority| {
        let host = Arc::clone(&host);
        tokio::spawn(async move {
            let request = NewSandbox { priority: Some(priority), ..NewSandbox::default() };
            let made = host.create(&request).await.unwrap();
            host.terminate(&made.sandbox_id).await.unwrap();
            Instant::now()
        })
    };
    let creations: Vec<_> = [3, 2, 0, 1].map(|priority| (priority, spawn_create(priority))).into();
    sleep(Duration::from_millis(1)).await;
    host.terminate(&first.sandbox_id).await.unwrap();
    let mut served = Vec::new();
    let mut creations = creations;
    // Time is paused while they finish one after the other; the order of finished tasks is the order of service.
    while !creations.is_empty() {
        yield_now().await;
        let done = creations.extract_if(.., |(_, task)| task.is_finished());
        let mut done: Vec<_> = done.map(|(priority, _)| priority).collect();
        done.sort_unstable();
        served.extend(done);
    }
    assert_eq!(served, [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_canceled_creation_releases_its_slot_and_its_sandbox() {
    let isolation = FakeIsolation { creation_time: Duration::from_millis(100), ..FakeIsolation::default() };
    let (host, counts) = isolation.host(HostConfig::with_slots(1));
    let first = host.create(&batch()).await.unwrap();
    // Canceled while it waits.
    let waits = tokio::time::timeout(Duration::from_secs(1), host.create(&batch())).await;
    assert!(waits.is_err() && host.resources().waiting == 0);
    host.terminate(&first.sandbox_id).await.unwrap();
    // Canceled while the sandbox is being created.
    let made = tokio::time::timeout(Duration::from_millis(50), host.create(&batch())).await;
    assert!(made.is_err());
    sleep(Duration::from_millis(200)).await;
    assert_eq!((counts.created.load(Ordering::SeqCst), counts.alive()), (2, 0));
    assert!(host.resources().can_create_sandbox);
    host.create(&batch()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_creation_canceled_at_any_point_leaves_nothing_behind() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    for polls in 0..6 {
        let request = batch();
        let mut creation = Box::pin(host.create(&request));
        for _ in 0..polls {
            if futures_util::poll!(&mut creation).is_ready() {
                break;
            }
            yield_now().await;
        }
        drop(creation);
        sleep(Duration::from_millis(1)).await;
        let remaining = host.stats(None).await;
        for made in &remaining {
            host.terminate(&made.sandbox_id).await.unwrap();
        }
        // The sandbox exists only if the call was polled to its end.
        assert!(remaining.len() <= usize::from(polls > 1), "{polls}");
        assert_eq!(counts.alive(), 0, "{polls}");
        assert!(host.resources().can_create_sandbox, "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn unused_and_old_sandboxes_are_ended() {
    let config = HostConfig { lease_max: Duration::from_secs(3_600), ..HostConfig::with_slots(3) };
    let (host, counts) = FakeIsolation::default().host(config);
    let unused = host.create(&batch()).await.unwrap();
    let used = host.create(&batch()).await.unwrap();
    let working = host.create(&batch()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let long = {
        let (host, id) = (Arc::clone(&host), working.sandbox_id.clone());
        tokio::spawn(async move {
            host.exec(&id, ExecRequest { timeout_ms: Some(u64::MAX), ..command("sleep 7200000") }).await
        })
    };
    for _ in 0..6 {
        sleep(Duration::from_secs(299)).await;
        host.exec(&used.sandbox_id, command("true")).await.unwrap();
    }
    assert!(host.get(&unused.sandbox_id).await.is_ok());
    sleep(Duration::from_secs(10)).await;
    // The first is unused for half an hour; of the others, one was used and one is in use.
    assert_eq!(host.get(&unused.sandbox_id).await.unwrap_err(), HostError::Gone(unused.sandbox_id.clone()));
    assert!(host.get(&used.sandbox_id).await.is_ok() && host.get(&working.sandbox_id).await.is_ok());
    for _ in 0..10 {
        sleep(Duration::from_secs(300)).await;
        let _ = host.write_file(&used.sandbox_id, "x", b"").await;
    }
    // Their lease of an hour is over.
    assert!(host.get(&used.sandbox_id).await.is_err());
    assert_eq!(long.await.unwrap().unwrap_err(), HostError::Gone(working.sandbox_id));
    assert_eq!(counts.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_was_killed_from_inside_is_gone() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let made = host.create(&batch()).await.unwrap();
    counts.all.lock().unwrap()[0].kill();
    let gone = HostError::Gone(made.sandbox_id.clone());
    assert_eq!(host.exec(&made.sandbox_id, command("true")).await.unwrap_err(), gone);
    // Its slot is released, even if no request uses the sandbox again.
    host.create(&batch()).await.unwrap();
    counts.all.lock().unwrap()[1].kill();
    advance(Duration::from_secs(2)).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!((counts.alive(), host.stats(None).await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_ended_for_a_limit_has_its_own_error() {
    let isolation = FakeIsolation { end_time: Duration::from_millis(300), ..FakeIsolation::default() };
    let (host, counts) = isolation.host(HostConfig::with_slots(2));
    let (over, terminated) = (host.create(&batch()).await.unwrap(), host.create(&batch()).await.unwrap());
    for sandbox in counts.all.lock().unwrap().iter() {
        sandbox.limit.set("it used too much".to_owned()).unwrap();
    }
    // A sandbox that its host ended wasn't ended for the limit.
    host.terminate(&terminated.sandbox_id).await.unwrap();
    let gone = HostError::Gone(terminated.sandbox_id.clone());
    assert_eq!(host.exec(&terminated.sandbox_id, command("true")).await.unwrap_err(), gone);

    // The command that was running waits for the guard's report; later ones get the error at once.
    let runs = tokio::spawn({
        let (host, id) = (host.clone(), over.sandbox_id.clone());
        async move { host.exec(&id, command("sleep 1000")).await }
    });
    sleep(Duration::from_millis(100)).await;
    counts.all.lock().unwrap()[0].kill();
    let id = over.sandbox_id.clone();
    let limit = HostError::OverLimit { id: id.clone(), limit: "it used too much".to_owned() };
    assert_eq!(runs.await.unwrap().unwrap_err(), limit);
    assert_eq!(host.exec(&id, command("true")).await.unwrap_err(), limit);
    assert_eq!(host.get(&id).await.unwrap_err(), limit);
    assert_eq!(limit.to_string(), format!("The sandbox `{id}` was ended: it used too much."));
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_command_has_an_exit_code() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let made = host.create(&batch()).await.unwrap();
    let done = host.exec(&made.sandbox_id, command("sleep 1000000")).await.unwrap();
    assert_eq!((done.exit_code, done.timed_out, done.duration_ms), (124, true, 30_000));
    assert_eq!(done.stderr, "\u{fffd}\u{fffd}");
    let env = [("A".to_owned(), "1".to_owned()), ("SANDY_SANDBOX_ID".to_owned(), "another".to_owned())];
    let request = ExecRequest {
        env: Some(env.into()),
        cwd: Some("x".to_owned()),
        timeout_ms: Some(5),
        ..command("true")
    };
    host.exec(&made.sandbox_id, request).await.unwrap();
    let ran = counts.commands.lock().unwrap().pop().unwrap();
    assert_eq!((ran.env["A"].as_str(), ran.timeout), ("1", Duration::from_millis(5)));
    assert_eq!((&ran.env["SANDY_SANDBOX_ID"], ran.cwd.as_deref()), (&made.sandbox_id, Some("x")));
    assert_eq!((ran.env["SANDY_ISOLATION"].as_str(), ran.output_bytes_max), ("fake", 1 << 20));
    let failed = host.exec(&made.sandbox_id, command("fail")).await.unwrap_err();
    assert!(matches!(failed, HostError::Failed(_)), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn commands_per_sandbox_are_limited_and_continue_without_their_caller() {
    let config = HostConfig { execs_max: 2, ..HostConfig::with_slots(1) };
    let (host, _) = FakeIsolation::default().host(config);
    let id = host.create(&batch()).await.unwrap().sandbox_id;
    for _ in 0..2 {
        let call = host.exec(&id, command("sleep 5000"));
        assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    }
    assert_eq!(host.get(&id).await.unwrap().commands, 2);
    let error = host.exec(&id, command("true")).await.unwrap_err();
    assert!(matches!(error, HostError::TooManyRequests(_)), "{error:?}");
    sleep(Duration::from_secs(5)).await;
    host.exec(&id, command("true")).await.unwrap();
    assert_eq!(host.get(&id).await.unwrap().commands, 0);
}

#[tokio::test(start_paused = true)]
async fn too_many_waiting_requests_are_rejected() {
    let config = HostConfig { waiting_max: 1, ..HostConfig::with_slots(1) };
    let (host, _) = FakeIsolation::default().host(config);
    host.create(&batch()).await.unwrap();
    let waits = {
        let host = Arc::clone(&host);
        tokio::spawn(async move { host.create(&batch()).await })
    };
    sleep(Duration::from_millis(1)).await;
    let error = host.create(&batch()).await.unwrap_err();
    assert!(matches!(error, HostError::TooManyRequests(_)), "{error:?}");
    assert!(!waits.is_finished());
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_all_sandboxes_and_requests() {
    let isolation = FakeIsolation {
        creation_time: Duration::from_secs(1),
        end_time: Duration::from_secs(1),
        ..FakeIsolation::default()
    };
    let (host, counts) = isolation.host(HostConfig::with_slots(2));
    let id = host.create(&batch()).await.unwrap().sandbox_id;
    let spawned = |id: Option<&str>| {
        let (host, id) = (Arc::clone(&host), id.map(str::to_owned));
        tokio::spawn(async move {
            match id {
                Some(id) => host.exec(&id, command("sleep 20000")).await.map(|_| ()),
                None => host.create(&batch()).await.map(|_| ()),
            }
        })
    };
    let (runs, is_made, waits) = (spawned(Some(&id)), spawned(None), spawned(None));
    sleep(Duration::from_millis(500)).await;
    host.shut_down().await;
    assert_eq!(counts.alive(), 0);
    assert_eq!(runs.await.unwrap().unwrap_err(), HostError::Gone(id));
    for call in [is_made, waits] {
        let error = call.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, HostError::Full { reason, .. } if reason.contains("shut down")),
            "{error:?}"
        );
    }
    assert!(matches!(host.create(&batch()).await, Err(HostError::Full { .. })));
    assert!(!host.resources().can_create_sandbox);
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_releases_its_slot() {
    let failure = Some(IsolationError::Failed("out of user namespaces".to_owned()));
    let (host, _) = FakeIsolation { failure, ..FakeIsolation::default() }.host(HostConfig::with_slots(1));
    for _ in 0..3 {
        let error = host.create(&batch()).await.unwrap_err();
        assert_eq!(error.to_string(), "The sandbox failed: out of user namespaces.");
        assert!(matches!(error, HostError::Full { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_isolation_reports_the_reason_each_time() {
    let reason = IsolationError::Unsafe("the kernel has no landlock".to_owned());
    let host = SandboxHost::new(unavailable_isolation(&reason), HostConfig::with_slots(1));
    let error = host.create(&batch()).await.unwrap_err();
    let text = "This machine cannot keep programs apart: the kernel has no landlock.";
    assert_eq!(error, HostError::Unavailable(text.to_owned()));
    let resources = host.resources();
    assert_eq!((resources.can_create_sandbox, resources.isolation.form), (false, "none"));
    assert!(resources.reject_reason.unwrap().contains("the kernel has no landlock"));
}

#[tokio::test(start_paused = true)]
async fn without_free_memory_no_sandbox_is_created() {
    let isolation = FakeIsolation::default();
    let config = HostConfig { memory_reserve_bytes: u64::MAX, ..HostConfig::with_slots(1) };
    let host = SandboxHost::new(Arc::new(isolation), config);
    let error = host.create(&batch()).await.unwrap_err();
    assert!(matches!(&error, HostError::Full { reason, .. } if reason.contains("MiB of memory left")));
    assert!(host.resources().reject_reason.unwrap().contains("memory"));
}

#[tokio::test(start_paused = true)]
async fn when_memory_runs_out_the_sandbox_that_uses_most_is_ended() {
    let isolation = FakeIsolation::default();
    let counts = Arc::clone(&isolation.counts);
    // Any machine has this much memory, so sandboxes can be created.
    let config = HostConfig { memory_reserve_bytes: 1 << 20, ..HostConfig::with_slots(3) };
    let host = SandboxHost::new(Arc::new(isolation), config);
    let mut made = Vec::new();
    for bytes in [1 << 20, 8 << 20, 100 << 10] {
        made.push(host.create(&batch()).await.unwrap().sandbox_id);
        *counts.all.lock().unwrap().last().unwrap().memory_bytes.lock().unwrap() = bytes;
    }
    let alive = async || {
        let mut alive = Vec::new();
        for id in &made {
            alive.push(host.get(id).await.is_ok());
        }
        alive
    };
    host.enforce_memory_reserve(None).await;
    host.enforce_memory_reserve(Some(512 << 10)).await;
    assert_eq!(alive().await, [true, true, true]);
    host.enforce_memory_reserve(Some((512 << 10) - 1)).await;
    assert_eq!((alive().await, counts.alive()), (vec![true, false, true], 2));
    host.enforce_memory_reserve(Some(0)).await;
    // Ending the last sandbox, which uses little, wouldn't help.
    host.enforce_memory_reserve(Some(0)).await;
    assert_eq!(alive().await, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn metrics_are_taken_once_a_minute() {
    let (host, _) = FakeIsolation::default().host(HostConfig::with_slots(1));
    sleep(Duration::from_secs(601)).await;
    assert_eq!(host.metrics(1).unwrap().len(), 11);
    assert!(host.metrics(0).is_err() && host.metrics(49).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_host_stops_its_maintenance_task() {
    let (host, _) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let weak = Arc::downgrade(&host);
    drop(host);
    sleep(Duration::from_secs(2)).await;
    assert!(weak.upgrade().is_none());
}
