//! Runs whose samples have all ended.

use bench_domain::run::BenchmarkState;
use bench_domain::{Outcome, RunStatus};

use crate::world::{Run, World, correct, error, wrong};

#[tokio::test]
async fn a_complete_run_gets_its_score_and_loses_its_key() {
    let world = World::new().await;
    let run = Run::planned(&world, 4).await;
    for item in 0..4 {
        run.answer(&world, item, if item == 3 { wrong() } else { correct() }).await;
    }
    assert!(run.has_key(&world).await);
    assert!(world.finish(&run, 1).await);

    let found = run.found(&world).await;
    assert_eq!(found.run.state.status(), RunStatus::Succeeded);
    assert_eq!(found.run.state.overall_score(), Some(0.75));
    let state = &found.benchmarks[0].state;
    assert!(matches!(state, BenchmarkState::Succeeded { .. }), "{state:?}");
    let report = state.report().unwrap();
    assert_eq!((report.planned, report.graded, report.score), (4, 4, Some(0.75)));
    let models = report.reported_models.as_ref().unwrap();
    assert_eq!(models.iter().collect::<Vec<_>>(), ["m-1"]);
    assert_eq!((report.outcomes.get(Outcome::Correct), report.outcomes.get(Outcome::Incorrect)), (3, 1));
    assert!(!run.has_key(&world).await);

    let before = found;
    assert!(world.finish(&run, 1).await, "a second message changes nothing");
    assert_eq!(run.found(&world).await, before);
}

#[tokio::test]
async fn too_many_errors_leave_no_score() {
    let world = World::new().await;
    let run = Run::planned(&world, 4).await;
    for item in 0..4 {
        run.answer(&world, item, if item == 0 { error() } else { correct() }).await;
    }
    assert!(world.finish(&run, 1).await);
    let found = run.found(&world).await;
    assert_eq!(found.run.state.status(), RunStatus::Failed);
    let report = found.benchmarks[0].state.report().unwrap();
    assert_eq!((report.graded, report.score), (3, None), "three of four are less than 90 %");
    let causes = format!("{:?}", report.error_causes);
    assert!(causes.contains("HTTP 500: down"), "{causes}");
    assert!(!run.has_key(&world).await);
}

#[tokio::test]
async fn a_run_with_open_samples_or_of_another_generation_is_left_alone() {
    let world = World::new().await;
    let run = Run::planned(&world, 2).await;
    run.answer(&world, 0, correct()).await;
    let before = run.found(&world).await;
    assert!(world.finish(&run, 1).await);
    assert_eq!(run.found(&world).await, before, "one sample is open");

    run.answer(&world, 1, correct()).await;
    let before = run.found(&world).await;
    assert!(world.finish(&run, 2).await);
    assert_eq!(run.found(&world).await, before, "no such generation");
    assert!(run.has_key(&world).await);
}
