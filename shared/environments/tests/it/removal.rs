//! Stopping and removal.

use std::time::Duration;

use bench_environments::{EnvironmentError, Progress};

use crate::support::{World, build, environment, shell, start};

#[tokio::test]
async fn a_removed_environment_leaves_nothing_and_starts_nothing() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let left = world.host().leftovers().await.unwrap();
    assert_eq!((left[0].environment.as_str(), left[0].run.as_str(), left[0].containers), ("ep1", "run-1", 1));
    assert_eq!(world.host().remove(&environment.name).await, Ok(1));
    assert_eq!(world.host().remove(&environment.name).await, Ok(0));
    assert_eq!(world.host().leftovers().await, Ok(Vec::new()));
    let late = world.finish(&environment, "late", &shell(&started, "true")).await;
    assert_eq!(late, Err(EnvironmentError::Removed));
    let folder = world.server.folder(&world.sandbox).unwrap().join("environments/ep1");
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["removed"]);
}

#[tokio::test]
async fn a_operation_that_is_stopped_before_its_start_does_not_run() {
    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.host().stop(&environment.name, &"build".parse().unwrap()).await.unwrap();
    let late =
        world.host().advance(&environment, &"build".parse().unwrap(), &build(&project), Duration::ZERO).await;
    assert!(!matches!(late, Ok(Progress::Done(_))), "{late:?}");
    assert_eq!(world.count("build"), 0);
}

#[tokio::test]
async fn what_a_stopped_operation_was_starting_is_removed() {
    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.finish(&environment, "build", &build(&project)).await.unwrap();
    world.set("hold-up", "");
    let name = "start".parse().unwrap();
    world.host().advance(&environment, &name, &start(&project), Duration::ZERO).await.unwrap();
    world.wait_for_call("up").await;
    world.host().stop(&environment.name, &name).await.unwrap();
    world.host().remove(&environment.name).await.unwrap();
    world.unset("hold-up");
    // The pretended docker command was ended with its operation.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.host().leftovers().await, Ok(Vec::new()));
    let ended = world.finish(&environment, "start", &start(&project)).await;
    assert!(matches!(ended, Err(EnvironmentError::Vanished { .. })), "{ended:?}");
}
