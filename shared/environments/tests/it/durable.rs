//! Every operation runs exactly once, whatever happens to the calls that ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bench_environments::{EnvironmentError, FetchFiles, PutFiles, SkipReason, TaskFile};
use bench_sandy::testing::{Endpoint, Fault};

use crate::support::{World, build, environment, shell, start};

/// Calls of the whole way that change something.
const WHOLE_WAY: [&str; 10] = [
    "config",
    "pull bench__lock:1",
    "lock",
    "build /c/Dockerfile /c",
    "rm",
    "up",
    "exec sh -c echo ran >> runs; echo done",
    "exec /in",
    "put /in",
    "fetch /in",
];

async fn whole_way(world: &World) -> Result<(), EnvironmentError> {
    let environment = environment("ep1");
    let project = world.project(&environment).await?;
    world.finish(&environment, "build", &build(&project)).await?;
    let started = world.finish(&environment, "start", &start(&project)).await?;
    let ended = world.finish(&environment, "exec", &shell(&started, "echo ran >> runs; echo done")).await?;
    assert_eq!((ended.exit_code, ended.stdout.text().as_str()), (Some(0), "done\n"));
    let container = started.container("main").unwrap().to_owned();
    let files = vec![TaskFile { path: "a".to_owned(), is_executable: true, bytes: b"b".to_vec() }];
    let put = PutFiles { container: container.clone(), folder: "/in".to_owned(), replace: false, files };
    // The pretended container is the machine itself, where the folder is made, too.
    world.finish(&environment, "put", &put).await?;
    let fetched = world.finish(&environment, "fetch", &FetchFiles::new(container, "/in")).await?;
    assert_eq!(fetched.unwrap().get("a"), Some(b"b".as_slice()));
    Ok(())
}

fn assert_once(world: &World, what: &str) {
    let calls: Vec<String> =
        world.calls().iter().map(|call| call.replace("mkdir -p -- \"$1\" sh ", "")).collect();
    let calls: Vec<String> = calls.iter().map(|call| call.replace("exec sh -c /in", "exec /in")).collect();
    assert_eq!(calls, WHOLE_WAY, "{what}");
    assert_eq!(std::fs::read_to_string(world.engine("runs")).unwrap(), "ran\n", "{what}");
}

#[tokio::test]
async fn every_operation_runs_once() {
    let world = World::new().await;
    whole_way(&world).await.unwrap();
    assert_once(&world, "no fault");
    // All messages are delivered again.
    whole_way(&world).await.unwrap();
    assert_once(&world, "again");
}

#[tokio::test]
async fn a_folder_or_a_pipe_in_place_of_a_file_is_reported() {
    let world = World::new().await;
    let environment = environment("ep1");
    let project = world.project(&environment).await.unwrap();
    world.finish(&environment, "build", &build(&project)).await.unwrap();
    let started = world.finish(&environment, "start", &start(&project)).await.unwrap();
    let folder = world.engine("put");
    std::fs::create_dir_all(folder.join("reward.txt/inside")).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.join("reward.json")).status().unwrap();
    assert!(made.success());
    let first = vec!["reward.txt".to_owned(), "reward.json".to_owned()];
    let fetch = FetchFiles { first, ..FetchFiles::new(started.container("main").unwrap(), "/in") };
    let fetched = world.finish(&environment, "fetch", &fetch).await.unwrap().unwrap();
    let mut skipped: Vec<_> = fetched.skipped.iter().map(|file| (file.path.as_str(), file.why)).collect();
    skipped.sort_by_key(|(path, _)| *path);
    assert_eq!(skipped, [("reward.json", SkipReason::NotAFile), ("reward.txt", SkipReason::NotAFile)]);
}

#[tokio::test]
async fn a_fault_of_any_call_repeats_nothing() {
    let world = World::new().await;
    whole_way(&world).await.unwrap();
    let calls = world.server.log().len() as u64;
    drop(world);
    for fault in [Fault::DropAfter, Fault::Twice, Fault::Drop, Fault::NoExitCode, Fault::NotReady] {
        // Each fault hits every third call, and all calls are hit by one of the offsets.
        for offset in 0..3 {
            let injected = fault.clone();
            let hits = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&hits);
            let world = World::with_rule(move |call| match call.endpoint {
                Endpoint::Exec | Endpoint::Write if call.total_before % 3 == offset => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    injected.clone()
                }
                _ => Fault::None,
            })
            .await;
            whole_way(&world).await.unwrap();
            assert_once(&world, &format!("{fault:?} {offset}"));
            assert!(hits.load(Ordering::Relaxed) >= calls / 3 - 1, "{fault:?} {offset}");
        }
    }
}

#[tokio::test]
async fn a_process_killed_at_any_moment_repeats_nothing() {
    let world = World::new().await;
    let mut killed = 0;
    // Each try gets a little further before it is cut off, as with a process that is killed.
    for millis in (0..2_000).step_by(60) {
        match tokio::time::timeout(Duration::from_millis(millis), whole_way(&world)).await {
            Ok(ended) => ended.unwrap(),
            Err(_) => killed += 1,
        }
    }
    whole_way(&world).await.unwrap();
    assert!(killed > 3, "{killed}");
    assert_once(&world, "killed");
}

#[tokio::test]
async fn concurrent_deliveries_of_a_operation_share_its_result() {
    let world = World::new().await;
    let environment = environment("ep1");
    let started = world.start(&environment).await.unwrap();
    let exec = shell(&started, "echo ran >> runs; sleep 0.3; cat runs");
    let one = || world.finish(&environment, "exec", &exec);
    let (a, b, c) = tokio::join!(one(), one(), one());
    let a = a.unwrap();
    assert_eq!(a.stdout.text(), "ran\n");
    assert_eq!((b.unwrap(), c.unwrap()), (a.clone(), a));
    assert_eq!(world.count("exec"), 1);
}
