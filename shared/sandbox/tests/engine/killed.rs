//! Cleanup after a killed host.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench_environments::Network;

use crate::builds::{long_command, processes_with, wait_until};
use crate::support::{
    World, all_forms, config, docker, dockerfile, engine_socket, environment, folder, images, instances,
    left, task,
};

/// Variable with the folder, for a process of this test binary that acts as the host to be killed.
const VICTIM: &str = "BENCH_ENGINE_TEST_VICTIM";

/// Starts containers and waits to be killed, if started by the test below.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Some(place) = std::env::var_os(VICTIM) else { return };
    let place = Path::new(&place);
    let isolation = all_forms(place).await.remove(0);
    let world = World::start(isolation, config(place), folder()).await;
    let sandbox = world.sandbox().await;
    // Its image isn't that of another test, since it is removed together with its containers.
    let idle = task(&format!("ENV VICTIM={}\n", std::process::id()));
    sandbox.start(&environment(&idle), &idle, &dockerfile(), Network::Public).await.unwrap();
    let endless = long_command();
    let task = task(&format!("RUN {endless}\n"));
    let environment = environment(&task);
    let project = sandbox.resolve(&environment, &task, &dockerfile()).await.unwrap();
    let build = sandbox.build(&project, Duration::from_secs(600));
    let name = "build".parse().unwrap();
    sandbox.engine().advance(&environment, &name, &build, Duration::from_secs(1)).await.unwrap();
    wait_until("the build's command", || !processes_with(&endless).is_empty()).await;
    println!("\nready");
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_host_removes_what_a_killed_one_left() {
    let place = folder();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::victim", "--nocapture"])
        .env(VICTIM, place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "the host started nothing");
    let dead = instances(place.path()).remove(0);
    // Docker has no groups of builds.
    let group = std::fs::read_to_string(place.path().join("engine").join(&dead).join("build-group")).ok();
    let socket = engine_socket(&place.path().join("engine").join(&dead));
    let storage = docker(&socket, &["info", "--format", "{{.DockerRootDir}}"]).remove(0);
    let working_containers = || {
        let folders = std::fs::read_dir(Path::new(&storage).join("overlay-containers")).into_iter().flatten();
        let names_group =
            |description: String| group.as_ref().is_some_and(|group| description.contains(group));
        let descriptions = folders.flatten().map(|folder| folder.path().join("userdata/buildah.json"));
        descriptions.filter(|file| std::fs::read_to_string(file).is_ok_and(names_group)).count()
    };
    assert_eq!(working_containers(), usize::from(group.is_some()));
    victim.kill().unwrap();
    victim.wait().unwrap();

    let isolation = all_forms(place.path()).await.remove(0);
    let world = World::start(isolation, config(place.path()), place.clone()).await;
    // The new host looks for an engine by itself, since there is something to remove.
    let began = std::time::Instant::now();
    while instances(place.path()).contains(&dead) {
        assert!(began.elapsed() < Duration::from_secs(120), "the folder of the dead host is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("cleaned up after {:?}", began.elapsed());
    assert_eq!(working_containers(), 0);
    let socket = engine_socket(&place.path().join("engine").join(world.instance()));
    assert_eq!(left(&socket, &dead), Vec::<String>::new());
    for image in images(&socket, &dead) {
        docker(&socket, &["image", "rm", "--force", &image]);
    }
    world.stop().await;
}
