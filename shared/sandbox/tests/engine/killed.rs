//! Cleanup after a killed host.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use bench_environments::Network;

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
    let place = std::path::Path::new(&place);
    let isolation = all_forms(place).await.remove(0);
    let world = World::start(isolation, config(place), folder()).await;
    let sandbox = world.sandbox().await;
    let task = task("");
    sandbox.start(&environment(&task), &task, &dockerfile(), Network::Public).await.unwrap();
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
    victim.kill().unwrap();
    victim.wait().unwrap();

    let isolation = all_forms(place.path()).await.remove(0);
    let world = World::start(isolation, config(place.path()), place.clone()).await;
    // The new host looks for an engine by itself, since there is something to remove.
    let began = std::time::Instant::now();
    while instances(place.path()).contains(&dead) {
        assert!(began.elapsed() < Duration::from_secs(60), "the folder of the dead host is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("cleaned up after {:?}", began.elapsed());
    let socket = engine_socket(&place.path().join("engine").join(world.instance()));
    assert_eq!(left(&socket, &dead), Vec::<String>::new());
    for image in images(&socket, &dead) {
        docker(&socket, &["image", "rm", "--force", &image]);
    }
    world.stop().await;
}
