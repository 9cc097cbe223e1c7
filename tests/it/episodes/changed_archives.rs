//! Archives of uploaded tasks that were changed in the object store after their admission.

use bench_domain::{Code, Outcome};
use bench_tests::scripted_host::task;

use super::outages::drain;
use super::{host, result, settings, works};
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

/// Returns the key and the bytes of the only task's archive.
async fn stored_archive(world: &World) -> (String, Vec<u8>) {
    let (objects, _) = world.stack.blobs.list("tasks/", None).await.unwrap();
    let mut keys = objects.into_iter().map(|object| object.key).filter(|key| key.ends_with(".zip"));
    let key = keys.next().unwrap();
    assert_eq!(keys.next(), None);
    let bytes = world.stack.blobs.get(&key).await.unwrap().unwrap();
    (key, bytes.to_vec())
}

/// Replaces the archive, or deletes it.
async fn replace(world: &World, key: &str, archive: Option<Vec<u8>>) {
    match archive {
        Some(archive) => world.stack.blobs.put(key, archive.into(), "application/zip").await.unwrap(),
        None => world.stack.blobs.delete(key).await.unwrap(),
    }
}

/// Contents of the archive that replace the admitted ones, by what they are, with the result's code and sentence.
fn changes(admitted: &[u8]) -> [(Option<Vec<u8>>, Code, &'static str); 5] {
    let changed = |path, content| Some(task::changed_archive(0, path, content).unwrap());
    let half = admitted.len() / 2;
    [
        (
            changed("tests/test.sh", "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"),
            Code::InvalidItem,
            "the task's archive has other files than the order",
        ),
        (
            changed("tests/answer.txt", "42\n"),
            Code::InvalidItem,
            "the task's archive has other files than the order",
        ),
        (
            changed("task.toml", "[environment]\ngpus = 1\n"),
            Code::InvalidItem,
            "`task.toml` line 2: `environment.gpus`",
        ),
        (admitted.get(..half).map(<[u8]>::to_vec), Code::InvalidItem, "archive"),
        (None, Code::StoredDataMissing, "the task's archive is gone"),
    ]
}

#[test]
fn a_changed_archive_is_not_run() {
    runtime().block_on(async {
        let admitted = task::archive(0).unwrap();
        for (archive, code, sentence) in changes(&admitted) {
            let world = World::open(settings(), works).await;
            let run = Order::tasks(1, "oracle", &[]).place(&world).await;
            let (key, stored) = stored_archive(&world).await;
            assert_eq!(stored, admitted);
            replace(&world, &key, archive).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::FAILED).await;
            let verdict = result(&world, run).await.verdict;
            assert_eq!((verdict.outcome, verdict.code), (Outcome::InfrastructureError, Some(code)));
            assert!(verdict.reason.contains(sentence), "{verdict:?}");
            assert_eq!((host(&world).created(), host(&world).problem()), (0, None), "{sentence}");
        }
    });
}

/// Each process reads the archive for itself, so a sandbox may be there.
#[test]
fn an_archive_that_changes_during_an_episode_ends_it_with_its_sandbox() {
    runtime().block_on(async {
        let admitted = task::archive(0).unwrap();
        let [(archive, code, sentence), ..] = changes(&admitted);
        let world = World::open(Settings { scripted: Some(1), ..settings() }, works).await;
        let run = Order::tasks(1, "oracle", &[]).place(&world).await;
        let (key, _) = stored_archive(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        assert_eq!(host(&world).open_sandboxes(), 1, "an operation is running");
        replace(&world, &key, archive).await;
        drain(&world, &ManualDriver::new(&world, 1), run).await;
        let verdict = result(&world, run).await.verdict;
        assert_eq!((verdict.code, verdict.reason.as_str()), (Some(code), sentence));
        let host = host(&world);
        assert_eq!((host.created(), host.open_sandboxes(), host.problem()), (1, 0, None));
    });
}
