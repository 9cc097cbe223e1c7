//! A worker that outlives its lease, and answers left by an earlier attempt.

use std::time::Duration;

use bench_domain::sample::AttemptHistory;
use bench_domain::{Answer, Outcome, Position, Prompt, RunId, SampleBody, SampleRef, Stage, Verdict};
use bench_exports::ExportFormat;
use bench_pipeline::PipelineConfig;
use bench_queue::Message;
use bench_state::{BodyRef, Claim, Commit, SampleResult};
use bench_tests::model_server::Reply;

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

const FIRST: Position = Position { item: 0, sample: 0 };

/// Creates a planned run of three items without workers, and returns its first sample, too.
async fn planned_run() -> (World, ManualDriver, RunId, SampleRef) {
    let world =
        World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
    let driver = ManualDriver::new(&world, 0);
    let run = Order::mmlu_pro(3).place(&world).await;
    assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
    let sample = World::sample_ref(&world.stored_run(run).await, "mmlu_pro", FIRST);
    (world, driver, run, sample)
}

/// Claims the sample with a lease that has ended when this returns.
async fn expired_claim(driver: &ManualDriver, sample: &SampleRef) -> u32 {
    let now = bench_clock::now();
    let Claim::Claimed(claimed) =
        driver.state.claim(Stage::Answer, sample, now, now.plus(Duration::from_millis(5))).await.unwrap()
    else {
        panic!("the sample is free")
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    claimed.attempt
}

async fn sample_body(world: &World, run: RunId, text: &str) -> SampleBody {
    let found = world.stored_run(run).await;
    let samples = world.samples(&found, "mmlu_pro").await;
    SampleBody::new(samples[0].item_id.clone(), Prompt::user("?"), Answer::local(text), "")
}

fn invalid_result(attempt: u32, sha256: String) -> SampleResult {
    SampleResult {
        verdict: Verdict::incorrect("Z", "Late."),
        body: Some(BodyRef { attempt, sha256 }),
        item_hash: None,
        truncated: false,
        latency_ms: Some(1),
        usage: None,
        model: None,
        judge_usage: None,
        judge_latency_ms: None,
        judge_model: None,
        at: bench_clock::now(),
    }
}

#[test]
fn a_late_commit_and_its_body_change_nothing() {
    runtime().block_on(async {
        let (world, driver, run, sample) = planned_run().await;
        let late = expired_claim(&driver, &sample).await;
        driver.drain().await;
        let before = check(&world, run, Expected::SUCCEEDED).await;
        let report = world.stored_run(run).await.benchmarks;

        let body = sample_body(&world, run, "Too late: the answer is (J).").await;
        let sha256 = world.stack.blobs.put_body(&sample, late, &body).await.unwrap();
        let sort = report[0].sort();
        let finished = invalid_result(late, sha256);
        assert_eq!(
            driver
                .state
                .commit(&sample, &sort, late, &finished, finished.usage.unwrap_or_default())
                .await
                .unwrap(),
            Commit::Lost
        );
        let now = bench_clock::now();
        assert!(!driver.state.release(&sample, late, late, now, AttemptHistory::default()).await.unwrap());

        assert_eq!(check(&world, run, Expected::SUCCEEDED).await, before);
        assert_eq!(world.stored_run(run).await.benchmarks, report);
        let kept = before["mmlu_pro"][0].finished.as_ref().unwrap().body.clone().unwrap();
        assert_eq!(kept.attempt, late + 1);
        let (kept, _) =
            world.stack.blobs.get_body(&sample, kept.attempt, Some(&kept.sha256)).await.unwrap().unwrap();
        assert_eq!(kept.answer.text, data::right_answer("0"));
        let table = world.stack.exports.build(run, ExportFormat::Csv).await.unwrap();
        let table = world.stack.blobs.get(&table.key).await.unwrap().unwrap();
        let table = String::from_utf8(table.to_vec()).unwrap();
        assert!(table.contains(&data::right_answer("0")) && !table.contains("Too late"), "{table}");
    });
}

#[test]
fn a_late_commit_does_not_end_what_another_attempt_holds() {
    runtime().block_on(async {
        let (world, driver, run, sample) = planned_run().await;
        let late = expired_claim(&driver, &sample).await;
        let now = bench_clock::now();
        let until = now.plus(Duration::from_secs(600));
        let Claim::Claimed(claimed) = driver.state.claim(Stage::Answer, &sample, now, until).await.unwrap()
        else {
            panic!("the lease is over")
        };
        let sort = world.stored_run(run).await.benchmarks[0].sort();
        let finished = invalid_result(late, "0".repeat(64));
        assert_eq!(
            driver
                .state
                .commit(&sample, &sort, late, &finished, finished.usage.unwrap_or_default())
                .await
                .unwrap(),
            Commit::Lost
        );
        // A duplicate message finds a live lease and is dropped.
        assert!(driver.handle(&Message::Sample { sample: sample.clone(), generation: 1 }).await);
        assert_eq!(world.model.total(), 0);
        let history = claimed.record.history;
        assert!(driver.state.release(&sample, claimed.attempt, claimed.attempt, now, history).await.unwrap());
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert!(world.model.question_counts().values().all(|times| *times == 1));
    });
}

#[test]
fn a_commit_that_is_repeated_counts_once() {
    runtime().block_on(async {
        let (world, driver, run, sample) = planned_run().await;
        let now = bench_clock::now();
        let Claim::Claimed(claimed) = driver
            .state
            .claim(Stage::Answer, &sample, now, now.plus(Duration::from_secs(600)))
            .await
            .unwrap()
        else {
            panic!("the sample is free")
        };
        let body = sample_body(&world, run, &data::wrong_answer("0")).await;
        let sha256 = world.stack.blobs.put_body(&sample, claimed.attempt, &body).await.unwrap();
        let sort = world.stored_run(run).await.benchmarks[0].sort();
        let finished = invalid_result(claimed.attempt, sha256);
        for _ in 0..3 {
            let committed = driver
                .state
                .commit(&sample, &sort, claimed.attempt, &finished, finished.usage.unwrap_or_default())
                .await
                .unwrap();
            assert!(matches!(committed, Commit::Done { .. }));
        }
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(world.model.total(), 2);
    });
}

/// The next attempt grades a stored answer instead of asking again.
#[test]
fn an_answer_that_was_stored_and_not_committed_is_not_asked_for_again() {
    runtime().block_on(async {
        let (world, driver, run, sample) = planned_run().await;
        let attempt = expired_claim(&driver, &sample).await;
        let body = sample_body(&world, run, &data::wrong_answer("0")).await;
        world.stack.blobs.put_body(&sample, attempt, &body).await.unwrap();
        driver.drain().await;
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let finished = samples["mmlu_pro"][0].finished.as_ref().unwrap();
        assert_eq!(finished.body.as_ref().unwrap().attempt, attempt);
        assert!(!world.model.question_counts().contains_key("0"), "it was paid for already");
        assert_eq!(world.model.total(), 2);
    });
}

/// Kills this number of processes that hold the sample, then lets another one finish the run.
async fn kill_attempts(kills: u32) -> (World, bench_state::SampleRecord) {
    let (world, _, run, sample) = planned_run().await;
    for start in 1..=u64::from(kills) {
        let state = ManualDriver::new(&world, start).state;
        let now = bench_clock::now();
        let claim =
            state.claim(Stage::Answer, &sample, now, now.plus(Duration::from_secs(600))).await.unwrap();
        assert!(matches!(claim, Claim::Claimed(_)), "the lease of an earlier start is void");
    }
    let driver = ManualDriver::new(&world, u64::from(kills) + 1);
    driver.drain().await;
    if !world.stored_run(run).await.run.state.status().is_open() {
        check(
            &world,
            run,
            Expected { status: world.stored_run(run).await.run.state.status(), ..Expected::FAILED },
        )
        .await;
    }
    let record = driver.state.sample(&sample).await.unwrap().unwrap();
    (world, record)
}

#[test]
fn killed_attempts_count_and_are_bounded() {
    runtime().block_on(async {
        let most = PipelineConfig::default().lost_max();
        assert_eq!(most, 20);
        let (world, record) = kill_attempts(most - 1).await;
        assert_eq!(
            (record.history.lost, record.history.attempts, record.history.failures),
            (most - 1, most, 0)
        );
        assert_eq!(record.finished.unwrap().verdict.outcome, Outcome::Correct, "once more it is asked");
        assert_eq!(world.model.question_counts()["0"], 1);

        let (world, record) = kill_attempts(most).await;
        let verdict = record.finished.unwrap().verdict;
        assert_eq!(verdict.outcome, Outcome::InfrastructureError);
        assert!(verdict.reason.starts_with("20 attempts were cut off"), "{}", verdict.reason);
        assert_eq!((record.history.lost, record.history.attempts), (most, most + 1));
        assert!(!world.model.question_counts().contains_key("0"), "nothing more is paid for it");
    });
}

/// Attempts that released, failed or ended the sample don't count as lost.
#[test]
fn only_killed_attempts_are_lost() {
    runtime().block_on(async {
        let (_world, driver, _, sample) = planned_run().await;
        for _ in 0..3 {
            let now = bench_clock::now();
            let Claim::Claimed(claimed) = driver
                .state
                .claim(Stage::Answer, &sample, now, now.plus(Duration::from_secs(600)))
                .await
                .unwrap()
            else {
                panic!("the sample is free")
            };
            let history = claimed.record.history;
            assert_eq!(history.lost, 0);
            assert!(
                driver.state.release(&sample, claimed.attempt, claimed.attempt, now, history).await.unwrap()
            );
        }
        expired_claim(&driver, &sample).await;
        let now = bench_clock::now();
        let Claim::Claimed(claimed) = driver
            .state
            .claim(Stage::Answer, &sample, now, now.plus(Duration::from_secs(600)))
            .await
            .unwrap()
        else {
            panic!("the lease is over")
        };
        assert_eq!((claimed.record.history.lost, claimed.attempt), (1, 5));
        let failed = AttemptHistory { failures: 1, ..claimed.record.history };
        assert!(driver.state.release(&sample, claimed.attempt, claimed.attempt, now, failed).await.unwrap());
        let record = driver.state.sample(&sample).await.unwrap().unwrap();
        assert_eq!((record.history.lost, record.history.failures), (1, 1));
    });
}
