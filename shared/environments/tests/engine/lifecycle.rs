//! The whole way of an environment, from its files to its removal.

use std::time::Duration;

use bench_environments::{ComposeFiles, EnvironmentError, Exec, Leftover, MainImage, Network, Start};

use crate::support::{World, compose_task, dockerfile, environment, logs, small_task};

#[tokio::test]
async fn an_environment_is_built_started_used_and_removed() {
    let world = World::new().await;
    let running = world.start_small().await;
    let labels = "id -u; pwd; ls -d /logs/*; stat -c %a /logs/agent";
    let shown = world.shell(&running, "look", labels).await;
    assert_eq!(shown, "0\n/app\n/logs/agent\n/logs/artifacts\n/logs/verifier\n777\n");
    let left = world.host().leftovers().await.unwrap();
    let own = left.iter().find(|left| left.environment == running.environment.name.as_str()).unwrap();
    let expected = Leftover { containers: 1, networks: 0, volumes: 0, ..own.clone() };
    assert_eq!((own, own.owner.as_str(), own.sample.as_str()), (&expected, "test", "sample-1"));
    // `sleep infinity` ignores SIGTERM as first process, and podman waits for the grace period even with `rm --force`.
    let inspect = format!("docker inspect --format '{{{{.Config.StopTimeout}}}}' {}", running.main());
    assert_eq!(world.in_sandbox(&inspect).await, "1\n");
    world.remove(&running.environment).await;
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn a_removed_environment_starts_nothing() {
    let world = World::new().await;
    let task = small_task();
    let environment = environment(&task);
    let project = world.resolve(&environment, &task, &dockerfile()).await.unwrap();
    world.finish(&environment, "build", &world.build(&project)).await.unwrap();
    world.remove(&environment).await;
    let start = Start { project, log_folders: logs(), time_limit: Duration::from_secs(120) };
    assert_eq!(world.finish(&environment, "start", &start).await, Err(EnvironmentError::Removed));
    world.remove(&environment).await;
}

#[tokio::test]
async fn services_reach_each_other_by_name() {
    let world = World::new().await;
    let (task, files) = compose_task(
        "services:\n  main:\n    environment: {GREETING: 'a$$b ${WHO:-you}'}\n    depends_on: [web]\n    volumes: ['data:/data', './files:/files:ro']\n\
         \x20 web:\n    build: .\n    command: [sh, -c, 'mkdir -p /w; echo served > /w/x; exec httpd -f -p 8000 -h /w']\nvolumes: {data: {}}\n",
    );
    let mut task = task;
    task.push(crate::support::file("environment/files/a.txt", "mounted"));
    let mut files = files;
    files.variables.insert("WHO".to_owned(), "me".to_owned());
    for network in [Network::Public, Network::None] {
        let running = world.start(&task, &files, network).await.unwrap();
        assert_eq!(running.started.containers.len(), 2);
        let fetch = "for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - http://web:8000/x && break; sleep 1; done";
        assert_eq!(world.shell(&running, "fetch", fetch).await, "served\n", "{network:?}");
        assert_eq!(
            world.shell(&running, "env", "echo \"$GREETING\"; cat /files/a.txt").await,
            "a$b me\nmounted"
        );
        world.remove(&running.environment).await;
    }
}

#[tokio::test]
async fn limits_are_set_in_the_container() {
    let world = World::new().await;
    let running = world.start_small().await;
    let command = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null | head -n 1; \
        cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null | head -n 1";
    let shown = world.shell(&running, "limits", command).await;
    assert_eq!(shown, format!("{}\n200\n", 256 << 20));
    // Without a network, there is the loopback interface only.
    assert_eq!(world.shell(&running, "net", "ls /sys/class/net | wc -l").await.trim(), "1");
    let hungry = Exec::shell(running.main(), "head -c 600000000 /dev/zero | tail", Duration::from_secs(120));
    let ended = world.exec(&running, "hungry", &hungry).await;
    assert_ne!(ended.exit_code, Some(0), "{ended:?}");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn the_network_is_switched_between_phases() {
    let world = World::new().await;
    let running = world.start(&small_task(), &dockerfile(), Network::Public).await.unwrap();
    let count = "ls /sys/class/net | wc -l";
    assert_eq!(world.shell(&running, "on", count).await.trim(), "2");
    for _ in 0..2 {
        world.host().switch_network(&running.environment, "main", running.main(), false).await.unwrap();
    }
    assert_eq!(world.shell(&running, "off", count).await.trim(), "1");
    for _ in 0..2 {
        world.host().switch_network(&running.environment, "main", running.main(), true).await.unwrap();
    }
    assert_eq!(world.shell(&running, "on-again", count).await.trim(), "2");
    world.remove(&running.environment).await;
}

#[tokio::test]
async fn a_task_of_terminal_bench_1_gets_its_variables_and_log_folders() {
    const COMPOSE: &str = "services:
  client:
    build: {dockerfile: Dockerfile}
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [sh, -c, sleep infinity]
    environment: ['TEST_DIR=${T_BENCH_TEST_DIR}']
    volumes: ['${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}']
";
    let world = World::new().await;
    let mut task = small_task();
    for file in &mut task {
        file.path = file.path.replace("environment/", "");
    }
    task.push(crate::support::file("docker-compose.yaml", COMPOSE));
    let environment = environment(&task);
    let logs = environment.folders(&world.facts).other("logs");
    let variables = [
        ("T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME", "tb__task__client"),
        ("T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME", environment.name.as_str()),
        ("T_BENCH_TEST_DIR", "/tests"),
        ("T_BENCH_TASK_LOGS_PATH", &logs),
        ("T_BENCH_CONTAINER_LOGS_PATH", "/logs"),
    ];
    let files = ComposeFiles {
        service: "client".to_owned(),
        image: MainImage::Compose,
        folder: String::new(),
        files: vec!["docker-compose.yaml".to_owned()],
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    };
    let started = world.started(&environment, &task, &files, Network::None).await.unwrap();
    let client = started.container("client").unwrap();
    let exec = Exec::shell(client, "echo \"$TEST_DIR\"; echo logged > /logs/x", Duration::from_secs(120));
    let ended = world.finish(&environment, "exec", &exec).await.unwrap();
    assert_eq!((ended.exit_code, ended.stdout.text().as_str()), (Some(0), "/tests\n"));
    assert_eq!(std::fs::read_to_string(format!("{logs}/x")).unwrap(), "logged\n");
    world.remove(&environment).await;
}
