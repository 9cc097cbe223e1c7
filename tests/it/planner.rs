//! A planner that is killed halfway, and one that continues after it was considered dead.

use std::time::Duration;

use bench_domain::run::Plan;
use bench_domain::{BenchmarkState, Position, RunId, SampleRef};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, PlanClaim, PlannedSample, RunWithBenchmarks, Transition};
use bench_tests::model_server::Reply;

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

const ITEMS: usize = 45;

/// Point at which the planner is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    Claimed,
    Started,
    HalfWritten,
    Written,
    Visible,
    HalfSent,
    Sent,
}

/// Plans a run as the planner does, with a different plan, and stops at `until`.
async fn plan_until(driver: &ManualDriver, world: &World, run: RunId, until: Until) -> u32 {
    let now = bench_clock::now();
    let lease = now.plus(Duration::from_secs(3_600));
    let PlanClaim::Claimed { attempt } = driver.state.claim_plan(run, 1, now, lease).await.unwrap() else {
        panic!("nobody plans the run")
    };
    if until == Until::Claimed {
        return attempt;
    }
    let found = world.stored_run(run).await;
    let started = found.run.state.start(now).unwrap();
    let event = NewEvent::new(EventKind::RunStarted, "Run started");
    let changed = driver.state.change_run(&found.run, &started, 1, &event, now).await.unwrap();
    assert_eq!(changed, Transition::Done);
    if until == Until::Started {
        return attempt;
    }
    let (plan, items) = other_plan(world, run, attempt).await;
    let name = &found.benchmarks[0].name;
    let written = if until == Until::HalfWritten { &items[..ITEMS / 2] } else { &items[..] };
    driver.state.write_plan(run, name, &plan, written, now).await.unwrap();
    if until <= Until::Written {
        return attempt;
    }
    make_visible(driver, &found, &plan).await;
    if until == Until::Visible {
        return attempt;
    }
    let messages: Vec<Message> = (0..u32::try_from(plan.items).unwrap())
        .map(|item| Message::Sample {
            sample: SampleRef {
                run,
                benchmark: name.clone(),
                plan: attempt,
                shards: plan.shards,
                position: Position { item, sample: 0 },
            },
            generation: 1,
        })
        .collect();
    let some = if until == Until::HalfSent { messages.len() / 2 } else { messages.len() };
    driver.queues.send_all(&messages[..some], Duration::ZERO).await.unwrap();
    attempt
}

/// Returns a plan like the planner's, with the dataset's items in reverse order.
async fn other_plan(world: &World, run: RunId, attempt: u32) -> (Plan, Vec<PlannedSample>) {
    let spec = world.stored_run(run).await.run.spec;
    let benchmark = bench_benchmarks::find("mmlu_pro").unwrap();
    let choice = &spec.datasets[&spec.benchmarks[0]];
    let prepared = world.stack.library.prepare(benchmark, choice, &bench_datasets::NoProgress).await.unwrap();
    let items = prepared.index.items.iter().rev().map(|entry| PlannedSample {
        item_id: entry.id.clone(),
        source_id: entry.source_id.clone(),
        group: entry.group.clone(),
        offset: entry.offset,
        length: entry.length,
    });
    let items: Vec<PlannedSample> = items.collect();
    let metadata = benchmark.metadata();
    let plan = Plan {
        attempt,
        // Differs from the planner's number, so that a mix of two plans would be detected.
        shards: 3,
        items: items.len() as u64,
        samples_per_item: 1,
        dataset_items: items.len() as u64,
        dataset: prepared.used,
        prompt_digest: benchmark.template(&bench_benchmarks::Templates::new()).digest,
        prompt_source: "official".to_owned(),
        protocol: metadata.protocol.to_owned(),
        protocol_name: metadata.protocol_name.to_owned(),
        options: Default::default(),
        generation: (metadata.generation)(),
        protocol_generation: None,
        protocol_samples: None,
        timeout: None,
        templates: Default::default(),
        judge: None,
    };
    (plan, items)
}

async fn make_visible(driver: &ManualDriver, found: &RunWithBenchmarks, plan: &Plan) -> Transition {
    let (record, now) = (&found.benchmarks[0], bench_clock::now());
    let running = BenchmarkState::Pending.start(now).unwrap();
    let event = NewEvent::new(EventKind::BenchmarkStarted, "Started").for_benchmark(&record.name);
    let run = found.run.spec.id;
    driver.state.change_benchmark(run, record, &running, Some(plan), Some(&event), now).await.unwrap()
}

/// Kills the planner at `until` and starts again: the run has exactly the plan's samples, each asked once.
fn check_survives(until: Until) {
    runtime().block_on(async {
        let world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        let dead = plan_until(&ManualDriver::new(&world, 0), &world, run, until).await;
        // The next start voids the dead planner's lease, and its message is visible again.
        let driver = ManualDriver::new(&world, 1);
        driver.scheduler.resume().await.unwrap();
        driver.drain().await;
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(samples["mmlu_pro"].len(), ITEMS);
        let plan = world.stored_run(run).await.benchmarks[0].plan.clone().unwrap();
        if until >= Until::Visible {
            assert_eq!((plan.attempt, plan.shards), (dead, 3), "what was made visible stays the plan");
        } else {
            assert!(plan.attempt > dead, "what was not made visible is never read");
        }
        assert_eq!(world.model.question_counts().len(), ITEMS);
        assert!(world.model.question_counts().values().all(|times| *times == 1));
    });
}

#[test]
fn killed_after_the_claim() {
    check_survives(Until::Claimed);
}

#[test]
fn killed_after_the_run_was_started() {
    check_survives(Until::Started);
}

#[test]
fn killed_while_the_samples_were_written() {
    check_survives(Until::HalfWritten);
}

#[test]
fn killed_after_the_samples_were_written() {
    check_survives(Until::Written);
}

#[test]
fn killed_after_the_plan_was_made_visible() {
    check_survives(Until::Visible);
}

#[test]
fn killed_while_messages_were_sent() {
    check_survives(Until::HalfSent);
}

#[test]
fn killed_after_all_messages_were_sent() {
    check_survives(Until::Sent);
}

/// A planner that was considered dead writes its plan after another one was made: it never becomes visible.
#[test]
fn the_plan_of_a_late_planner_stays_invisible() {
    runtime().block_on(async {
        let world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        let late = ManualDriver::new(&world, 0);
        let attempt = plan_until(&late, &world, run, Until::Started).await;
        let as_it_saw_it = world.stored_run(run).await;
        let driver = ManualDriver::new(&world, 1);
        assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
        let before = world.stored_run(run).await;

        let (plan, items) = other_plan(&world, run, attempt).await;
        let name = &as_it_saw_it.benchmarks[0].name;
        late.state.write_plan(run, name, &plan, &items, bench_clock::now()).await.unwrap();
        assert_eq!(make_visible(&late, &as_it_saw_it, &plan).await, Transition::Raced);
        // Messages of the plan that was rejected.
        let stray = |item| SampleRef {
            run,
            benchmark: name.clone(),
            plan: attempt,
            shards: plan.shards,
            position: Position { item, sample: 0 },
        };
        for item in 0..3 {
            assert!(late.handle(&Message::Sample { sample: stray(item), generation: 1 }).await);
            assert!(late.handle_dead_letter(&Message::Sample { sample: stray(item), generation: 1 }).await);
        }
        assert_eq!(world.model.total(), 0);
        assert_eq!(world.stored_run(run).await.benchmarks, before.benchmarks);
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(world.model.total(), ITEMS as u64);
    });
}

/// Two planners get the same message at the same time.
#[test]
fn one_of_two_planners_plans() {
    runtime().block_on(async {
        let world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        let (one, other) = (ManualDriver::new(&world, 0), ManualDriver::new(&world, 0));
        let plan = Message::Plan { run, generation: 1 };
        let both = futures_util::future::join(one.handle(&plan), other.handle(&plan)).await;
        assert_eq!(both, (true, true));
        one.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(world.stored_run(run).await.run.plan_attempts, 1);
        assert_eq!(world.model.total(), ITEMS as u64);
    });
}
