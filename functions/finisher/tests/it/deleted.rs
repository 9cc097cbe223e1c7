//! Runs that were deleted.

use bench_blobs::{bodies_prefix, exports_prefix};
use bytes::Bytes;

use crate::world::{Run, World, correct};

#[tokio::test]
async fn nothing_is_left_of_a_deleted_run() {
    let world = World::new().await;
    let responses = "uploads/responses.json.zst";
    let run = Run::planned_with_responses(&world, 1, Some(responses)).await;
    run.answer(&world, 0, correct()).await;
    assert!(world.finish(&run, 1).await);
    let blobs = &world.finisher.blobs;
    let of_run = [format!("{}0/a", bodies_prefix(run.id)), format!("{}a.zip", exports_prefix(run.id))];
    let keys = [of_run.as_slice(), &[responses.to_owned()]].concat();
    for key in &keys {
        blobs.put(key, Bytes::from_static(b"x"), "text/plain").await.unwrap();
    }
    let found = run.found(&world).await;
    world.state().mark_deleted(&found.run).await.unwrap();
    assert!(world.finish(&run, 1).await);
    assert_eq!(world.state().any_run_with_benchmarks(run.id).await.unwrap(), None);
    assert_eq!(world.state().sample(&run.sample(0)).await.unwrap(), None);
    for key in &keys {
        assert!(blobs.get(key).await.unwrap().is_none(), "{key}");
    }
    assert!(world.finish(&run, 1).await, "a second message finds nothing to do");
}

#[tokio::test]
async fn a_run_that_was_not_deleted_is_left_alone() {
    let world = World::new().await;
    let run = Run::planned(&world, 1).await;
    run.answer(&world, 0, correct()).await;
    assert!(world.finish(&run, 1).await);
    let before = run.found(&world).await;
    world.finisher.clear_up_deleted(run.id).await.unwrap();
    assert_eq!(run.found(&world).await, before);
    world.state().mark_deleted(&before.run).await.unwrap();
    world.finisher.clear_up_deleted(run.id).await.unwrap();
    assert_eq!(world.state().any_run_with_benchmarks(run.id).await.unwrap(), None);
    world.finisher.clear_up_deleted(run.id).await.unwrap();
}

/// An answer that arrives after the removal would be stored and never removed.
#[tokio::test]
async fn a_deleted_run_waits_for_answers_that_are_under_way() {
    let world = World::new().await;
    let run = Run::planned(&world, 2).await;
    let attempt = run.claim(&world, 1).await;
    run.cancel(&world).await;
    let found = run.found(&world).await;
    world.state().mark_deleted(&found.run).await.unwrap();
    let body = format!("{}0/late", bodies_prefix(run.id));

    assert!(world.finish(&run, 1).await);
    assert_eq!(world.finishes_later().await, 1, "the finisher looks again");
    world.finisher.blobs.put(&body, Bytes::from_static(b"x"), "text/plain").await.unwrap();
    run.end(&world, 1, attempt, correct()).await;
    assert!(world.finish(&run, 1).await);
    assert!(world.finisher.blobs.get(&body).await.unwrap().is_none());
    assert_eq!(world.state().any_run_with_benchmarks(run.id).await.unwrap(), None);
}
