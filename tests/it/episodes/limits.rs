//! Limits of agents and runs, which end an episode between turns.

use bench_domain::{Outcome, RunStatus};
use bench_tests::model_server::Reply;

use super::{host, json_reply, only_sample, settings, works};
use crate::support::{Expected, ManualDriver, Order, World, check, runtime};

#[test]
fn an_agent_that_never_finishes_ends_by_its_options_and_is_graded() {
    runtime().block_on(async {
        let goes_on = |_: &_| Reply::Text(json_reply(&["ls\n"], false));
        for (options, calls, end, exception) in [
            (("max_turns", "4"), 4, "turn_limit", None),
            // Each command takes a second of the scripted host's time.
            (("max_time_sec", "3"), 2, "time_limit", Some("AgentTimeoutError")),
            (("max_tokens", "1"), 1, "token_limit", Some("BudgetExceededError")),
        ] {
            let world = World::open(settings(), goes_on).await;
            let run = Order::tasks(1, "terminus-2", &[options]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = only_sample(&world, run).await;
            let outcome = body.episode.unwrap().steps[0].agent.clone().unwrap();
            let raised = outcome.exception.map(|exception| exception.name);
            assert_eq!(
                (outcome.end.as_str(), raised.as_deref(), world.model.total()),
                (end, exception, calls)
            );
            assert_eq!(sample.finished.unwrap().verdict.outcome, Outcome::Correct, "its work is graded");
        }
    });
}

#[test]
fn a_terminal_that_ends_ends_the_agent() {
    runtime().block_on(async {
        let world = World::open(settings(), |_| Reply::Text(json_reply(&["exit\n"], false))).await;
        let run = Order::tasks(1, "terminus-2", &[]).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let outcome = only_sample(&world, run).await.1.episode.unwrap().steps[0].agent.clone().unwrap();
        assert_eq!((outcome.end.as_str(), world.model.total()), ("terminal_ended", 1));
    });
}

#[test]
fn a_budget_stops_a_run_between_turns() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let run = Order::tasks(1, "bash", &[]).with_budget_tokens(1).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let found = world.stored_run(run).await;
        assert_eq!(found.run.state.status(), RunStatus::Failed);
        assert_eq!((world.model.total(), host(&world).acts().len()), (1, 1));
        assert_eq!(host(&world).open_sandboxes(), 0);
    });
}
