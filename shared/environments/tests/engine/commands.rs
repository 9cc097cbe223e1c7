//! Commands in containers.

use std::time::Duration;

use bench_environments::{CheckHealth, EnvironmentError, Exec};

use crate::support::World;

fn shell(container: &str, command: &str) -> Exec {
    Exec::shell(container, command, Duration::from_secs(120))
}

#[tokio::test]
async fn commands_have_user_folder_variables_and_bounded_output() {
    let world = World::new().await;
    let running = world.start_small().await;
    let mut exec = shell(running.main(), "id -u; pwd; echo \"$A\"; echo err >&2; exit 7");
    exec.user = Some("1234".to_owned());
    exec.workdir = Some("/tmp".to_owned());
    exec.env.insert("A".to_owned(), "x 'y' \"z\" $Q\nnext".to_owned());
    let ended = world.exec(&running, "one", &exec).await;
    assert_eq!(ended.exit_code, Some(7));
    assert_eq!(
        (ended.stdout.text().as_str(), ended.stderr.text().as_str()),
        ("1234\n/tmp\nx 'y' \"z\" $Q\nnext\n", "err\n")
    );
    let mut long = shell(running.main(), "echo begin; yes | head -c 5000000; echo end");
    long.stdout_bytes_max = 1_000;
    let ended = world.exec(&running, "long", &long).await;
    assert!(
        ended.stdout.head.starts_with("begin\ny\n") && ended.stdout.tail.ends_with("y\nend\n"),
        "{ended:?}"
    );
    assert_eq!(
        (ended.stdout.head.len() + ended.stdout.tail.len(), ended.stdout.omitted),
        (1_000, 5_000_010 - 1_000)
    );
    let ended = world
        .exec(&running, "none", &Exec { command: vec!["no-such".to_owned()], ..shell(running.main(), "") })
        .await;
    assert!(matches!(ended.exit_code, Some(126 | 127)), "{ended:?}");
    let ended = world
        .exec(
            &running,
            "place",
            &Exec { workdir: Some("/nowhere".to_owned()), ..shell(running.main(), "pwd") },
        )
        .await;
    assert!(ended.exit_code != Some(0) && !ended.started, "{ended:?}");
    let ended = world
        .exec(&running, "who", &Exec { user: Some("nobody-here".to_owned()), ..shell(running.main(), "id") })
        .await;
    assert!(ended.exit_code != Some(0) && !ended.started, "{ended:?}");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn a_timeout_kills_the_process_group() {
    let world = World::new().await;
    let running = world.start_small().await;
    let mut exec = shell(running.main(), "echo before; sleep 1234 & sleep 1234; echo after");
    exec.time_limit = Duration::from_secs(5);
    let ended = world.exec(&running, "slow", &exec).await;
    assert!(ended.is_timed_out() && ended.stdout.text() == "before\n", "{ended:?}");
    assert_eq!(world.shell(&running, "ps", "ps | grep -c '[s]leep 1234' || true").await.trim(), "0");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn a_command_runs_once_however_often_it_is_asked_for() {
    let world = World::new().await;
    let running = world.start_small().await;
    let exec = shell(running.main(), "echo run >> /tmp/runs; sleep 1; cat /tmp/runs");
    let name = "count".parse().unwrap();
    let host = world.host();
    let call = || host.advance(&running.environment, &name, &exec, Duration::ZERO);
    let (first, second) = tokio::join!(call(), call());
    first.and(second).unwrap();
    let ended = world.exec(&running, "count", &exec).await;
    assert_eq!(ended.stdout.text(), "run\n");
    assert_eq!(world.exec(&running, "count", &exec).await, ended);
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn health_is_checked_until_it_succeeds_or_fails_too_often() {
    let world = World::new().await;
    let running = world.start_small().await;
    let check = CheckHealth {
        check: shell(running.main(), "echo try >> /tmp/tries; test $(wc -l < /tmp/tries) -ge 3"),
        interval: Duration::from_millis(100),
        start_period: Duration::ZERO,
        start_interval: Duration::from_millis(100),
        retries: 3,
    };
    world.finish(&running.environment, "health", &check).await.unwrap();
    let never = CheckHealth { check: shell(running.main(), "echo not yet; exit 1"), ..check };
    let failed = world.finish(&running.environment, "never", &never).await.unwrap_err();
    assert!(
        matches!(&failed, EnvironmentError::Unhealthy { log, .. } if log.starts_with("not yet")),
        "{failed:?}"
    );
    world.remove(&running.environment).await;
}

/// Prints how long a command takes, and how much of it is the engine's own.
#[tokio::test]
async fn a_command_takes_one_call() {
    const COMMANDS: u32 = 20;
    let world = World::new().await;
    let running = world.start_small().await;
    let before = world.server.calls(bench_sandy::testing::Endpoint::Exec);
    let began = std::time::Instant::now();
    for index in 0..COMMANDS {
        world.exec(&running, &format!("c{index}"), &shell(running.main(), "true")).await;
    }
    let whole = began.elapsed() / COMMANDS;
    assert_eq!(world.server.calls(bench_sandy::testing::Endpoint::Exec) - before, u64::from(COMMANDS));
    let direct = bench_sandy::ExecRequest::new(format!("docker exec {} true", running.main()));
    let began = std::time::Instant::now();
    for _ in 0..COMMANDS {
        world.sandy.exec(&world.sandbox, &direct).await.unwrap();
    }
    println!("a command takes {whole:?}, of which `docker exec` takes {:?}", began.elapsed() / COMMANDS);
    world.remove(&running.environment).await;
}
