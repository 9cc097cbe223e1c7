//! Compact index of the samples of closed benchmarks.

use bench_blobs::{IndexOf, unpack_index_part};
use bench_domain::RunStatus;
use bench_state::{EventKind, NewEvent, Transition};
use serde_json::{Value, json};

use crate::world::{Run, World, correct, error, wrong};

/// Returns a part of the current index of the run's benchmark.
async fn part(world: &World, run: &Run, number: u32) -> Option<Value> {
    let found = run.found(world).await;
    let record = &found.benchmarks[0];
    let index = record.current_index()?;
    let (generation, items) = (index.generation, index.items);
    let of = IndexOf { run: run.id, generation, benchmark: &record.name, items };
    let stored = world.finisher.blobs.get_index_part(&of, number).await.unwrap()?;
    Some(serde_json::from_slice(&unpack_index_part(&stored).unwrap()).unwrap())
}

async fn objects(world: &World, run: &Run) -> Vec<String> {
    let (objects, _) = world.finisher.blobs.list(&format!("indexes/{}/", run.id), None).await.unwrap();
    objects.into_iter().map(|object| object.key).collect()
}

#[tokio::test]
async fn a_closed_benchmark_has_an_index_of_its_samples() {
    let world = World::new().await;
    let run = Run::planned(&world, 3).await;
    for (item, verdict) in [correct(), wrong(), correct()].into_iter().enumerate() {
        run.answer(&world, u32::try_from(item).unwrap(), verdict).await;
    }
    assert_eq!(run.found(&world).await.benchmarks[0].current_index(), None);
    assert!(world.finish(&run, 1).await);
    let index = part(&world, &run, 0).await.unwrap();
    assert_eq!((&index["items"], &index["parts"], &index["generation"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!(index["outcomes"], json!(["correct", "incorrect"]));
    assert_eq!(index["rows"][0], json!([0, 0, "0", null, null, 0, 1, "7", 1_000, 10, 5, 1, "000000000000"]));
    assert_eq!(index["rows"][1], json!([1, 0, "1", null, null, 1, 0, null, 1_000, 10, 5, 1, "000000000001"]));
    assert_eq!(objects(&world, &run).await.len(), 1);
}

#[tokio::test]
async fn a_run_that_ended_early_has_rows_for_all_its_samples() {
    let world = World::new().await;
    let run = Run::planned(&world, 3).await;
    run.answer(&world, 0, correct()).await;
    let attempt = run.claim(&world, 1).await;
    run.stop(&world).await;
    assert!(world.finish(&run, 1).await);
    assert_eq!(objects(&world, &run).await, [""; 0], "an answer is under way");
    run.end(&world, 1, attempt, correct()).await;
    assert!(world.finish(&run, 1).await);
    let index = part(&world, &run, 0).await.unwrap();
    assert_eq!(index["rows"][2], json!([2, 0, "2", null, null, null, null, null, null, null, null, 0, null]));
}

#[tokio::test]
async fn a_requeue_replaces_the_index() {
    let world = World::new().await;
    let run = Run::planned(&world, 2).await;
    run.answer(&world, 0, error()).await;
    run.answer(&world, 1, correct()).await;
    assert!(world.finish(&run, 1).await);
    let first = part(&world, &run, 0).await.unwrap();
    assert_eq!(first["outcomes"], json!(["infrastructure-error", "correct"]));

    let found = run.found(&world).await;
    assert_eq!(found.run.state.status(), RunStatus::Failed);
    let (state, now) = (world.state(), bench_clock::now());
    let event = NewEvent::new(EventKind::RunRequeued, "Run requeued");
    let next = found.run.state.requeue().unwrap();
    let changed = state.change_run(&found.run, &next, 2, &event, now).await.unwrap();
    assert_eq!(changed, Transition::Done);
    run.reopen(&world).await;
    assert_eq!(part(&world, &run, 0).await, None, "an open benchmark has none");
    run.answer(&world, 0, wrong()).await;
    assert!(world.finish(&run, 2).await);
    let second = part(&world, &run, 0).await.unwrap();
    assert_eq!((&second["generation"], &second["outcomes"]), (&json!(2), &json!(["incorrect", "correct"])));
    let keys = objects(&world, &run).await;
    assert!(keys.len() == 1 && keys[0].contains("/2/"), "{keys:?}");
}
