//! Judging again on order, and judges of schedules: which key is used, and how long it is kept.

use std::time::Duration;

use bench_api::{compare_runs, judgings};
use bench_domain::run::{AuthMode, Owner};
use bench_domain::schedule::{Schedule, Timing};
use bench_domain::{ModelRole, Outcome, RunStatus, ScheduleId, Secret, Timestamp};
use bench_runs::{JudgeOrder, RejudgeOrder, Standing};
use bench_state::ScheduleWrite;
use bench_tests::model_server::{ModelRequest, Reply};

use super::{NAME, question_counts};
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const KEY: &str = "key-of-judge";

/// Replies as a judge that accepts every second answer if asked with a key, and all answers without one.
fn judge_rule(request: &ModelRequest) -> Reply {
    let is_strict = request.key.as_deref() == Some(KEY) && data::number(&request.item) % 2 == 1;
    match request.is_judge {
        false => Reply::Text(data::right_answer(&request.item)),
        true => Reply::Text(if is_strict { "B" } else { "A" }.into()),
    }
}

#[test]
fn another_judge_is_ordered_by_its_name_and_asked_with_its_own_key() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), judge_rule).await;
        let first = Order::aa_omniscience(8, &world).place(&world).await;
        assert_eq!(world.wait_for_end(first).await, RunStatus::Succeeded);
        let before = check(&world, first, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (8, 8));
        let old = world.stored_run(first).await.run.spec.template.judge.unwrap();
        let order = RejudgeOrder {
            judge: JudgeOrder { model: Some(old.model.qualified()), ..JudgeOrder::default() },
            base_url: old.model.base_url.clone(),
            judge_key: Some(Secret::new(KEY).unwrap()),
            ..RejudgeOrder::default()
        };
        let created = world.stack.orders.rejudge(first, order, Standing::Local, None).await.unwrap();
        let second = created.run.run.spec.id;
        assert_eq!(world.wait_for_end(second).await, RunStatus::Succeeded);
        let after = check(&world, second, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (8, 16), "the model is not asked again");
        let keys: Vec<Option<String>> = world
            .model
            .log()
            .into_iter()
            .filter(|request| request.is_judge)
            .map(|request| request.key)
            .collect();
        assert_eq!(keys.iter().filter(|key| key.as_deref() == Some(KEY)).count(), 8);
        assert_eq!(
            world.stack.credentials.get(second, ModelRole::Judge).await.unwrap(),
            None,
            "gone with the run"
        );
        for (old, new) in before[NAME].iter().zip(&after[NAME]) {
            assert_eq!(
                (&old.item_id, old.position),
                (&new.item_id, new.position),
                "the same items, in their order"
            );
        }
        let right = after[NAME].iter().filter(|sample| {
            sample.finished.as_ref().is_some_and(|finished| finished.verdict.outcome == Outcome::Correct)
        });
        assert_eq!(right.count(), 4);
        let (old, new) = (world.stored_run(first).await, world.stored_run(second).await);
        let plan = |found: &bench_state::RunWithBenchmarks| found.benchmarks[0].plan.clone().unwrap();
        let (old, new) = (plan(&old), plan(&new));
        assert_eq!(
            (&old.dataset, old.items, old.samples_per_item),
            (&new.dataset, new.items, new.samples_per_item)
        );
        assert_eq!((old.prompt_digest, old.protocol_name), (new.prompt_digest, new.protocol_name));
        assert_eq!((old.judge.unwrap().version, new.judge.unwrap().version), (1, 2));
        let compared = compare_runs(&world.stack.api, second, first).await.unwrap();
        assert_eq!(compared.benchmarks[0].paired.only_b_right, 4);
        let listed = judgings(&world.stack.api, first).await.unwrap();
        let scores: Vec<Option<f64>> =
            listed.judgings.iter().map(|judging| judging.benchmarks[0].score).collect();
        assert_eq!((listed.judgings.len(), scores[0] > scores[1]), (2, true));
    });
}

#[test]
fn a_schedules_judge_is_asked_with_the_schedules_key_for_it() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), judge_rule).await;
        let id = ScheduleId::random();
        let created_at: Timestamp = "2031-05-01T00:00:00Z".parse().unwrap();
        let run = Order::aa_omniscience(4, &world).with_judge_key(KEY).template(&world).await;
        let mut schedule = Schedule {
            id,
            name: "nightly".into(),
            owner: Owner::Local,
            timing: Timing::new("0 2 * * *", "UTC").unwrap(),
            run: run.with_fixed_seed(id),
            tasks: Vec::new(),
            auth: AuthMode::System,
            webhook: None,
            enabled: true,
            created_at,
            updated_at: created_at,
            next_at: None,
        };
        schedule.next_at = schedule.next_after(created_at);
        let credentials = &world.stack.credentials;
        let sealed =
            credentials.seal_for_schedule(id, ModelRole::Judge, &Secret::new(KEY).unwrap()).await.unwrap();
        let created = world.stack.state.create_schedule(&schedule, Some(sealed)).await.unwrap();
        assert_eq!(created, ScheduleWrite::Done);
        let night = created_at.plus(Duration::from_secs(2 * 3_600));
        assert_eq!(world.scheduler().tick(night).await.unwrap().started, 1);
        let run = id.run_id_at(night);
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        assert_eq!(question_counts(&world), (4, 4));
        for request in world.model.log() {
            assert_eq!(request.key.as_deref() == Some(KEY), request.is_judge, "each with its own");
        }
        assert_eq!(
            credentials.get(run, ModelRole::Judge).await.unwrap(),
            None,
            "the run's copy is gone with it"
        );
        assert_eq!(
            credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(),
            Some(Secret::new(KEY).unwrap())
        );
        let record = world.stack.state.schedule(id).await.unwrap().unwrap();
        let removal = credentials.removal_for_schedule(id).unwrap();
        world.stack.state.delete_schedule(&record, removal).await.unwrap();
        assert_eq!(credentials.get_for_schedule(id, ModelRole::Judge).await.unwrap(), None);
    });
}
