//! Samples that end at the same time: each is counted once, whatever fails, and together they need fewer writes.

use std::time::Duration;

use bench_domain::{Outcome, Spending, Stage, Timestamp, Usage, Verdict};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Faults};
use bench_state::{Claim, ClaimedRecord, Commit, Commits, EndedSample, ShardCount, State, planned_samples};
use futures_util::future::join_all;
use tempfile::TempDir;

use crate::meter::Meter;
use crate::table::{PlannedRun, with_direct_table};

const ITEMS: u32 = 90;
const SHARDS: u32 = 4;
const BENCHMARK_SORT: &str = "BENCH#000#mmlu_pro";

struct World {
    state: State,
    planned: PlannedRun,
    meter: Meter,
    _embedded: Embedded,
    _directory: TempDir,
}

impl World {
    async fn new(faults: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let meter = Meter::default();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let options = options.recorder(meter.recorder()).faults(faults.parse::<Faults>().unwrap());
        let embedded = Embedded::open(options).unwrap();
        let state = State::new(&embedded.sdk_config(), "bench", 1);
        state.ensure_table().await.unwrap();
        let planned = PlannedRun::write(&state, ITEMS, SHARDS).await;
        Self { state, planned, meter, _embedded: embedded, _directory: directory }
    }

    /// Creates a world whose table is called without HTTP. Nothing is measured.
    async fn direct(faults: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal);
        let embedded = Embedded::open(options.faults(faults.parse::<Faults>().unwrap())).unwrap();
        let state = with_direct_table(State::new(&embedded.sdk_config(), "bench", 1), &embedded);
        state.ensure_table().await.unwrap();
        let planned = PlannedRun::write(&state, ITEMS, SHARDS).await;
        Self { state, planned, meter: Meter::default(), _embedded: embedded, _directory: directory }
    }

    async fn claim(&self, item: u32) -> ClaimedRecord {
        let (now, until) = (Timestamp::from_micros(0), Timestamp::from_micros(60_000_000));
        match self.state.claim(Stage::Answer, &self.planned.sample(item), now, until).await.unwrap() {
            Claim::Claimed(claimed) => *claimed,
            other => panic!("{item}: {other:?}"),
        }
    }

    async fn ended(&self, item: u32) -> EndedSample {
        let claimed = self.claim(item).await;
        let outcome = if item.is_multiple_of(3) { Outcome::Correct } else { Outcome::Incorrect };
        let mut result = claimed.record.to_finished(
            Verdict { score: Some(0.5), ..Verdict::wrong(outcome, "why") },
            Timestamp::from_micros(1),
        );
        result.usage = Some(Usage::counted(10, u64::from(item), 0));
        let sample = self.planned.sample(item);
        let planned = planned_samples(&self.planned.plan, sample.shard());
        let spent = Spending::from(Usage::counted(100, 1, 0));
        EndedSample {
            sample,
            benchmark_sort: BENCHMARK_SORT.to_owned(),
            attempt: claimed.attempt,
            result,
            spent,
            planned,
        }
    }

    async fn all_ended(&self) -> Vec<EndedSample> {
        let mut ended = Vec::new();
        for item in 0..ITEMS {
            ended.push(self.ended(item).await);
        }
        self.meter.take();
        ended
    }

    async fn sum(&self) -> ShardCount {
        let PlannedRun { run, benchmark, plan } = &self.planned;
        let counts = self.state.shard_counts(*run, benchmark, plan.attempt, plan.shards).await.unwrap();
        counts.into_iter().fold(ShardCount::default(), ShardCount::plus)
    }

    /// Checks that all samples are over and were counted once, and that all shards are closed.
    async fn check_complete(&self) {
        let items = u64::from(ITEMS);
        let expected = ShardCount {
            expected: items,
            done: items,
            graded: items,
            correct: items / 3,
            input_tokens: 10 * items,
            output_tokens: (0..items).sum(),
            spent_input: 100 * items,
            spent_output: items,
            ..ShardCount::default()
        };
        assert_eq!(self.sum().await, expected);
        let found = self.state.run_with_benchmarks(self.planned.run).await.unwrap().unwrap();
        assert_eq!(found.benchmarks[0].shards_done, SHARDS);
    }
}

/// Commits all samples at once. Returns how many said that their shard may be closed.
async fn commit_all(commits: &Commits, ended: Vec<EndedSample>) -> usize {
    let results = join_all(ended.into_iter().map(|ended| commits.commit(ended))).await;
    results.into_iter().filter(|result| *result.as_ref().unwrap() == Commit::Done { closed: true }).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_that_end_together_share_writes() {
    let world = World::new("").await;
    let ended = world.all_ended().await;
    let commits = Commits::new(world.state.clone(), true);
    let closed = commit_all(&commits, ended).await;
    let together = world.meter.take();
    assert_eq!(closed, SHARDS as usize);
    world.check_complete().await;
    // The samples at the ends of shards fail together and are committed alone.
    assert!(together.actions.len() < ITEMS as usize, "{} transactions", together.actions.len());
    world.meter.take();

    let alone = World::new("").await;
    for EndedSample { sample, benchmark_sort, attempt, result, spent, .. } in alone.all_ended().await {
        alone.state.commit(&sample, &benchmark_sort, attempt, &result, spent).await.unwrap();
    }
    alone.check_complete().await;
    assert!(together.write_units < alone.meter.take().write_units);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_that_was_taken_over_holds_up_no_other() {
    for world in [World::new("").await, World::direct("").await] {
        takes_over_samples(&world).await;
    }
}

async fn takes_over_samples(world: &World) {
    let ended = world.all_ended().await;
    for item in [3, 50] {
        let stolen = &ended[item];
        let history = world.state.sample(&stolen.sample).await.unwrap().unwrap().history;
        let now = Timestamp::from_micros(0);
        assert!(world.state.release(&stolen.sample, stolen.attempt, 0, now, history).await.unwrap());
    }
    let commits = Commits::new(world.state.clone(), true);
    let results = join_all(ended.iter().map(|ended| commits.commit(ended.clone()))).await;
    for (item, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap() == Commit::Lost, [3, 50].contains(&item), "{item}");
    }
    assert_eq!(world.sum().await.done, u64::from(ITEMS) - 2);
    for item in [3, 50] {
        let ended = world.ended(item).await;
        commits.commit(ended).await.unwrap();
    }
    world.check_complete().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_counted_once_when_responses_are_lost_and_writes_conflict() {
    for seed in 0..3 {
        let faults = "lost-response@TransactWriteItems=0.3,conflict@TransactWriteItems=0.2,throttle=0.05";
        let faults = format!("seed={seed},{faults},lost-response@UpdateItem=0.1,unprocessed=0.2");
        for world in [World::new(&faults).await, World::direct(&faults).await] {
            let ended = world.all_ended().await;
            let commits = Commits::new(world.state.clone(), true);
            let closed = commit_all(&commits, ended).await;
            assert!(closed >= SHARDS as usize, "{closed}");
            world.check_complete().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_number_of_planned_samples_closes_every_shard() {
    for wrong in [0, 1, 2, 22, 1_000] {
        let world = World::new("").await;
        let mut ended = world.all_ended().await;
        ended.iter_mut().for_each(|ended| ended.planned = wrong);
        let commits = Commits::new(world.state.clone(), true);
        assert_eq!(commit_all(&commits, ended).await, SHARDS as usize);
        world.check_complete().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_are_gone_take_no_other_sample_with_them() {
    let world = World::new("").await;
    let ended = world.all_ended().await;
    let commits = Commits::new(world.state.clone(), true);
    let mut kept = Vec::new();
    for (item, ended) in ended.iter().cloned().enumerate() {
        let commits = commits.clone();
        let task = tokio::spawn(async move { commits.commit(ended).await });
        if item.is_multiple_of(2) {
            task.abort();
        } else {
            kept.push(task);
        }
    }
    for task in kept {
        assert!(matches!(task.await.unwrap().unwrap(), Commit::Done { .. }));
    }
    // The same attempt ends the others later, as a redelivered message would.
    for ended in ended.into_iter().step_by(2) {
        assert!(matches!(commits.commit(ended).await.unwrap(), Commit::Done { .. }));
    }
    world.check_complete().await;
}

#[test]
fn a_runtime_that_ends_leaves_commits_that_go_on_in_another() {
    let (first, second) = (tokio::runtime::Runtime::new().unwrap(), tokio::runtime::Runtime::new().unwrap());
    let world = second.block_on(World::new(""));
    let ended = second.block_on(world.all_ended());
    let commits = Commits::new(world.state.clone(), true);
    first.spawn({
        let (commits, ended) = (commits.clone(), ended.clone());
        async move { join_all(ended.into_iter().map(|ended| commits.commit(ended))).await }
    });
    first.shutdown_background();
    second.block_on(async {
        // Some were committed in the first runtime, which the same attempt may repeat.
        let done = join_all(ended.into_iter().map(|ended| commits.commit(ended)));
        let done = tokio::time::timeout(Duration::from_secs(120), done).await.unwrap();
        assert!(done.into_iter().all(|result| matches!(result.unwrap(), Commit::Done { .. })));
        world.check_complete().await;
    });
}
