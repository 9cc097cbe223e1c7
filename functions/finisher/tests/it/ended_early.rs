//! Runs that end before all their samples have.

use bench_domain::RunStatus;
use bench_domain::run::BenchmarkState;

use crate::world::{Run, World, correct};

#[tokio::test]
async fn a_canceled_run_keeps_its_results_and_leaves_no_open_benchmark_and_no_key() {
    let world = World::new().await;
    let run = Run::planned(&world, 2).await;
    run.answer(&world, 0, correct()).await;
    run.cancel(&world).await;
    assert!(world.finish(&run, 1).await);
    let found = run.found(&world).await;
    assert_eq!(found.run.state.status(), RunStatus::Canceled);
    let state = &found.benchmarks[0].state;
    assert!(matches!(state, BenchmarkState::Skipped { .. }), "{state:?}");
    let report = state.report().unwrap();
    assert_eq!((report.planned, report.graded, report.score), (2, 1, None), "its answers are kept");
    assert!(found.benchmarks[0].current_index().is_some());
    assert!(!run.has_key(&world).await);
    assert_eq!(world.finishes_later().await, 0);
}

#[tokio::test]
async fn a_run_that_its_budget_stopped_keeps_its_results_once_no_answer_is_under_way() {
    let world = World::new().await;
    let run = Run::planned(&world, 3).await;
    run.answer(&world, 0, correct()).await;
    let attempt = run.claim(&world, 1).await;
    run.stop(&world).await;

    assert!(world.finish(&run, 1).await);
    let found = run.found(&world).await;
    assert!(matches!(found.benchmarks[0].state, BenchmarkState::Running { .. }), "an answer is under way");
    assert!(run.has_key(&world).await, "a judge may need it");
    assert_eq!(world.finishes_later().await, 1, "the finisher looks again");

    run.end(&world, 1, attempt, correct()).await;
    assert!(world.finish(&run, 1).await);
    let found = run.found(&world).await;
    let state = &found.benchmarks[0].state;
    let report = state.report().unwrap();
    assert_eq!((report.planned, report.graded), (3, 2));
    assert!(state.error().unwrap().starts_with("The budget of the run was reached"), "{state:?}");
    assert_eq!(found.run.state.status(), RunStatus::Failed);
    assert!(!run.has_key(&world).await);
}
