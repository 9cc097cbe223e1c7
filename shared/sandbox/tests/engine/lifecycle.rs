//! What a sandbox made in the engine ends with the sandbox, however that ends.

use std::path::Path;
use std::time::Duration;

use bench_environments::Network;
use bench_sandy::ExecRequest;

use crate::support::{
    Sandbox, World, docker, dockerfile, each_form, environment, first_form, task, with_compose,
};

/// Starts an environment with a network, a volume and a container that ignores the signal to end.
async fn fill(sandbox: &Sandbox<'_>) {
    let mut task = task("");
    let compose = "services:\n  main:\n    command: [sh, -c, \"trap '' TERM; while true; do sleep 1; done\"]\n    \
                   volumes: ['data:/data', '../../logs:/logs']\nvolumes: {data: {}}\n";
    let files = with_compose(&mut task, compose);
    sandbox.start(&environment(&task), &task, &files, Network::Public).await.unwrap();
}

/// Creates a container of another owner in the engine.
fn foreign(socket: &Path, image: &str) -> String {
    let labels = ["--label", "bench-runner.instance=foreign", "--label", "bench-runner.sandbox=sb-1"];
    let made = docker(socket, &[&["create", "--network", "none"], &labels[..], &[image, "true"]].concat());
    made.into_iter().next().unwrap()
}

async fn wait_until_gone(world: &World, sandbox: &Sandbox<'_>) {
    for _ in 0..1_200 {
        if world.left().is_empty() && world.host.get(&sandbox.id).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("still there: {:?}", world.left());
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_end_with_their_sandbox() {
    each_form(
        |config| config.idle_timeout = Duration::from_secs(8),
        |world| async move {
            let (one, two) = (world.sandbox().await, world.sandbox().await);
            // A command in progress keeps a sandbox from expiring, however slow the machine is. It ends with its sandbox.
            let hold =
                ExecRequest::new("until [ -e stop ]; do sleep 0.1; done").within(Duration::from_secs(600));
            let held = [one.sandy.exec(&one.id, &hold), two.sandy.exec(&two.id, &hold)];
            let ends_one = async {
                tokio::join!(fill(&one), fill(&two));
                let image = one.output("docker ps --format '{{.Image}}'").await;
                let other = foreign(&world.socket(), &image);
                let all = world.left().len();
                assert!(all >= 6, "{:?}", world.left());
                let began = std::time::Instant::now();
                one.end().await;
                println!("{}: a sandbox with a container ended in {:?}", world.form, began.elapsed());
                assert!((3..all - 2).contains(&world.left().len()), "{:?}", world.left());
                two.output("touch stop").await;
                other
            };
            let (other, _) = tokio::join!(ends_one, futures_util::future::join_all(held));
            // The other one isn't used, and expires.
            wait_until_gone(&world, &two).await;
            assert_eq!(docker(&world.socket(), &["rm", "--force", &other]), [other]);
            world
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_end_with_the_host() {
    first_form(
        |_| {},
        |world| async move {
            let sandbox = world.sandbox().await;
            let task = task("");
            sandbox.start(&environment(&task), &task, &dockerfile(), Network::None).await.unwrap();
            let left = world.left();
            // Besides the container, a network and images if this host has built the environment's image.
            assert_eq!(left.iter().filter(|it| it.starts_with("ps ")).count(), 1, "{left:?}");
            // `World::stop` checks that the folder of the engine is gone, which stays if anything is left.
            world
        },
    )
    .await;
}
