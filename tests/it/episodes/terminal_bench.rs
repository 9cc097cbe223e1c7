//! Terminal-Bench Hard: tasks from the rows of a dataset.

use std::path::PathBuf;

use bench_domain::{Code, Outcome};
use serde_json::{Value, json};

use super::{acts_by_sandbox, expected_acts, host, settings, works};
use crate::support::{Expected, ManualDriver, Order, World, check, runtime, terminal_bench};

const NAME: &str = "terminal_bench_hard";

/// Writes the demo tasks; only the first `hard` ones are hard.
fn rows(world: &World, hard: usize) -> PathBuf {
    terminal_bench::rows(world.files(), |number, row| {
        if number >= hard {
            row["difficulty"] = json!("medium");
        }
    })
}

/// Checks that nothing of the tests or the solution was copied into a container before the agent had ended. Only the
/// oracle, which is the solution, gets it earlier.
fn check_order_of_jobs(jobs: &[String], agent: &str) {
    let tests = jobs.iter().position(|job| job.contains("-tests")).unwrap();
    let agents: Vec<usize> = (0..jobs.len()).filter(|at| jobs[*at].contains("-do-")).collect();
    match agent {
        "oracle" => {
            let solution = jobs.iter().position(|job| job.contains("-solution")).unwrap();
            assert!(agents.is_empty() && solution < tests, "{jobs:?}");
        }
        _ => {
            assert!(agents.last().is_some_and(|last| *last < tests), "{jobs:?}");
            assert!(!jobs.iter().any(|job| job.contains("-solution")), "{jobs:?}");
        }
    }
}

#[test]
fn agents_and_the_oracle_work_on_hard_tasks() {
    runtime().block_on(async {
        for agent in ["terminus-2", "bash", "oracle"] {
            let world = World::open(settings(), works).await;
            let run = Order::terminal_bench(rows(&world, 1), agent, &[]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            let samples = check(&world, run, Expected::SUCCEEDED).await.remove(NAME).unwrap();
            assert_eq!(samples.len(), 1, "one task is hard");
            let finished = samples[0].finished.as_ref().unwrap();
            assert_eq!(finished.verdict.outcome, Outcome::Correct, "{:?}", finished.verdict);
            assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
            check_order_of_jobs(&host(&world).jobs(), agent);
            match agent {
                "oracle" => assert_eq!(world.model.total(), 0),
                _ => assert_eq!(acts_by_sandbox(&world), [expected_acts(agent)]),
            }
        }
    });
}

#[test]
fn a_list_selects_tasks_of_any_difficulty() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let options = [("tasks", "schedule-jobs,total-invoices")];
        let run = Order::terminal_bench(rows(&world, 1), "oracle", &options).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let samples = check(&world, run, Expected::SUCCEEDED).await.remove(NAME).unwrap();
        assert_eq!(samples.len(), 2);
    });
}

#[test]
fn a_list_with_an_unknown_task_fails_the_run() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let options = [("tasks", "schedule-jobs,unknown")];
        let run = Order::terminal_bench(rows(&world, 1), "oracle", &options).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let record = world.stored_run(run).await;
        assert!(format!("{record:?}").contains("the dataset has no item unknown"), "{record:?}");
    });
}

#[test]
fn a_refused_row_is_an_error_of_its_item() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let path = terminal_bench::rows(world.files(), |number, row| match number {
            0 => row["tar_sha256"] = "0".repeat(64).into(),
            1 => row["archive"] = Value::Null,
            _ => {}
        });
        let run = Order::terminal_bench(path, "bash", &[]).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        // One of three tasks is too few for a score, so the run has none; its samples are what they are.
        let samples = check(&world, run, Expected::FAILED).await.remove(NAME).unwrap();
        let verdicts = samples.iter().map(|sample| sample.finished.as_ref().unwrap().verdict.clone());
        for (verdict, part) in verdicts.zip(["SHA-256", "`archive`", ""]) {
            match part {
                "" => assert_eq!(verdict.outcome, Outcome::Correct),
                part => {
                    assert_eq!(verdict.code, Some(Code::InvalidItem), "{verdict:?}");
                    assert!(verdict.reason.contains(part), "{verdict:?}");
                }
            }
        }
        assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
    });
}
