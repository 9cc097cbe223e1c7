//! Containers that stop, start badly, or are lost.

use std::time::Duration;

use bench_environments::{EnvironmentError, ErrorKind, Exec, Network, Progress};

use crate::builds::new_task;
use crate::relay::Relay;
use crate::support::{Running, World, compose_task, dockerfile, small_task};

/// Command that notes its start and doesn't end within any test's time.
fn endless(running: &Running) -> Exec {
    Exec::shell(running.main(), "touch /tmp/begun; sleep 3600", Duration::from_secs(3_600))
}

/// Starts an endless command and waits until it runs in the container.
async fn begin(world: &World, running: &Running, name: &str, exec: &Exec) {
    let progress =
        world.host().advance(&running.environment, &name.parse().unwrap(), exec, Duration::ZERO).await;
    assert_eq!(progress, Ok(Progress::Running));
    let begun = format!(
        "for i in $(seq 600); do docker exec {} ls /tmp/begun && break; sleep 0.1; done",
        running.main()
    );
    assert_eq!(world.in_sandbox(&begun).await, "/tmp/begun\n");
}

#[tokio::test]
async fn a_container_that_stops_is_reported() {
    let world = World::new().await;
    let running = world.start_small().await;
    begin(&world, &running, "kill", &endless(&running)).await;
    let kill = bench_sandy::ExecRequest::new(format!("docker kill {}", running.main()));
    assert_eq!(world.sandy.exec(&world.sandbox, &kill).await.unwrap().exit_code, 0);
    let ended = world.finish(&running.environment, "kill", &endless(&running)).await;
    assert!(matches!(ended, Err(EnvironmentError::ContainerGone { .. })), "{ended:?}");
    let late = Exec::shell(running.main(), "echo late", Duration::from_secs(120));
    let ended = world.finish(&running.environment, "late", &late).await;
    assert!(matches!(ended, Err(EnvironmentError::ContainerGone { .. })), "{ended:?}");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn only_a_cut_connection_is_the_engine_s_fault() {
    let relay = Relay::start();
    let world = World::with_engine(Some(relay.host())).await;
    let running = world.start_small().await;
    begin(&world, &running, "cut", &endless(&running)).await;
    relay.cut();
    let failed = world.finish(&running.environment, "cut", &endless(&running)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Infrastructure, "{failed:?}");
    // What a command prints, or a shell that takes the place of the container's.
    let fault = "echo connection reset by peer >&2";
    let fakes = [
        (format!("case \"$2\" in *kill*) exit 0;; esac; echo 12; {fault}; exit 255"), true, 255),
        (format!("case \"$2\" in *exec*) {fault}; exit 1;; esac; exec busybox sh \"$@\""), false, 1),
    ];
    let pretend = Exec::shell(running.main(), format!("{fault}; exit 255"), Duration::from_secs(120));
    let ended = world.exec(&running, "pretend", &pretend).await;
    assert_eq!((ended.started, ended.exit_code), (true, Some(255)), "{ended:?}");
    for (at, (fake, is_started, status)) in fakes.into_iter().enumerate() {
        let line = format!(
            "printf '#!/bin/busybox sh\\n%s\\n' '{fake}' > /fake{at}; chmod +x /fake{at}; mv /fake{at} /bin/sh"
        );
        let command = ["busybox", "sh", "-c", &line].map(str::to_owned).to_vec();
        let copy = format!("docker exec {} {}", running.main(), quoted(&command));
        let copied = world.sandy.exec(&world.sandbox, &bench_sandy::ExecRequest::new(copy)).await.unwrap();
        assert_eq!(copied.exit_code, 0);
        let ended = world.exec(&running, &format!("fake-{at}"), &pretend).await;
        assert_eq!((ended.started, ended.exit_code), (is_started, Some(status)), "{ended:?}");
    }
    world.remove(&running.environment).await;
}

fn quoted(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    quoted.join(" ")
}

#[tokio::test]
async fn a_container_that_ends_at_once_is_the_task_s_fault() {
    let world = World::new().await;
    let (task, files) = compose_task("services:\n  main:\n    command: [sh, -c, 'echo bye; exit 3']\n");
    let failed = world.start(&task, &files, Network::None).await.err().unwrap();
    assert_eq!(failed.kind(), ErrorKind::Task, "{failed:?}");
}

#[tokio::test]
async fn a_shell_that_does_not_run_is_the_image_s_fault() {
    let world = World::new().await;
    let task = new_task("RUN printf '#!/nowhere\\n' > /bin/bash && chmod +x /bin/bash\n");
    let failed = world.start(&task, &dockerfile(), Network::None).await.err().unwrap();
    assert!(matches!(failed, EnvironmentError::Start { .. }), "{failed:?}");
    assert!(failed.to_string().contains("`bash` does not run"), "{failed}");
}

#[tokio::test]
async fn an_invalid_compose_file_is_the_task_s_fault() {
    let world = World::new().await;
    for compose in [
        "services: [",
        "services:\n  main:\n    nonsense: 1\n",
        "services:\n  main:\n    image: ${MISSING:?set it}\n",
    ] {
        let (task, files) = compose_task(compose);
        let failed = world.start(&task, &files, Network::None).await.err().unwrap();
        assert!(matches!(&failed, EnvironmentError::Project { log, .. } if !log.is_empty()), "{failed:?}");
    }
}

#[tokio::test]
async fn compose_sees_no_variable_of_the_sandbox() {
    let world = World::new().await;
    let (task, files) = compose_task(
        "services:\n  main:\n    environment: {A: '${SANDY_SANDBOX_ID:-unset}', B: '${TMPDIR-unset}', SANDY_SANDBOX_ID: null}\n",
    );
    let running = world.start(&task, &files, Network::None).await.unwrap();
    let shown = world.shell(&running, "env", "echo $A $B; env").await;
    assert!(shown.starts_with("unset unset\n") && !shown.contains("SANDY"), "{shown}");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn another_sandbox_removes_what_a_lost_one_left() {
    let world = World::new().await;
    let running = world.start(&small_task(), &dockerfile(), Network::Public).await.unwrap();
    world.server.lose(&world.sandbox);
    let late = Exec::shell(running.main(), "true", Duration::from_secs(120));
    let lost =
        world.host().advance(&running.environment, &"late".parse().unwrap(), &late, Duration::ZERO).await;
    assert_eq!(lost, Err(EnvironmentError::SandboxLost));
    let reaper =
        World { sandbox: world.sandy.create(&bench_sandy::NewSandbox::default()).await.unwrap(), ..world };
    let left = reaper.host().leftovers().await.unwrap();
    let own = left.iter().find(|left| left.environment == running.environment.name.as_str()).unwrap();
    assert_eq!((own.containers, own.networks), (1, 1));
    reaper.remove(&running.environment).await;
}
