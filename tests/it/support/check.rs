//! Checks the invariants of everything stored about a run.

use std::collections::BTreeMap;

use bench_domain::report::ReportBuilder;
use bench_domain::run::BenchmarkState;
use bench_domain::{BenchmarkStatus, Outcome, Position, ReportedModels, RunId, RunState, RunStatus, Stage};
use bench_queue::Depth;
use bench_state::{BenchmarkRecord, EventKind, RunFilter, RunWithBenchmarks, SampleRecord, ShardCount};

use super::World;

/// Expectations of a test beyond the general invariants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Final status of the run.
    pub(crate) status: RunStatus,
    /// Its generation.
    pub(crate) generation: u32,
    /// True if no other run is active: all queues must then be empty at the end, including dead-letter queues.
    pub(crate) queues_empty: bool,
}

impl Expected {
    pub(crate) const SUCCEEDED: Self = Self::with_status(RunStatus::Succeeded);
    pub(crate) const FAILED: Self = Self::with_status(RunStatus::Failed);
    pub(crate) const CANCELED: Self = Self::with_status(RunStatus::Canceled);

    const fn with_status(status: RunStatus) -> Self {
        Self { status, generation: 1, queues_empty: true }
    }

    pub(crate) const fn generation(self, generation: u32) -> Self {
        Self { generation, ..self }
    }

    /// Allows other active runs.
    pub(crate) const fn among_others(self) -> Self {
        Self { queues_empty: false, ..self }
    }
}

/// Samples by name of their benchmark.
pub(crate) type Samples = BTreeMap<String, Vec<SampleRecord>>;

/// Checks the invariants of a run that is over. Returns its samples for further checks.
pub(crate) async fn check(world: &World, run: RunId, expected: Expected) -> Samples {
    let found = world.stored_run(run).await;
    assert_eq!(found.run.state.status(), expected.status, "{:?}", found.run.state);
    assert_eq!(found.run.generation, expected.generation);
    let mut all = Samples::new();
    for benchmark in &found.benchmarks {
        let samples = world.samples(&found, benchmark.name.as_str()).await;
        check_samples(benchmark, &samples, &found.run.state);
        check_counters(world, run, benchmark, &samples).await;
        check_report(&found, benchmark, &samples);
        check_bodies(world, &found, benchmark, &samples).await;
        all.insert(benchmark.name.to_string(), samples);
    }
    check_states(&found);
    check_events(world, &found).await;
    let key = world.retry_until_ok("look for the keys", || world.stack.credentials.has(run)).await;
    assert!(!key, "a caller's key outlived its run");
    if expected.queues_empty {
        check_run_counts(world).await;
        let empty = |depth: &Depth| *depth == Depth::default();
        world
            .wait_until("empty queues", || async {
                world.depths().await.iter().all(|(_, live, dead)| empty(live) && empty(dead))
            })
            .await;
    }
    all
}

/// Checks that the stored counts of runs by status match the runs.
async fn check_run_counts(world: &World) {
    let state = &world.stack.state;
    let counts = world.retry_until_ok("read the counts of runs", || state.run_counts()).await;
    for status in
        [RunStatus::Queued, RunStatus::Running, RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled]
    {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let listed = world.retry_until_ok("list runs", || state.list_runs(&filter, 0, 1)).await;
        assert_eq!(counts.get(status), listed.total, "runs that are {status}");
    }
}

/// Checks that each planned sample is stored once, and is over unless the run ended early.
fn check_samples(benchmark: &BenchmarkRecord, samples: &[SampleRecord], run: &RunState) {
    let Some(plan) = &benchmark.plan else {
        assert!(samples.is_empty());
        return;
    };
    let planned = (0..u32::try_from(plan.items).unwrap())
        .flat_map(|item| (0..plan.samples_per_item).map(move |sample| Position { item, sample }));
    let stored: Vec<Position> = samples.iter().map(|sample| sample.position).collect();
    assert_eq!(stored, planned.collect::<Vec<_>>(), "{}: other samples than planned", benchmark.name);
    let over = samples.iter().filter(|sample| sample.finished.is_some()).count();
    // If the run ended early, a report is about the samples that ended until then.
    let ended_early = run.is_stopped() || benchmark.state.status() == BenchmarkStatus::Skipped;
    if benchmark.state.report().is_some() && !ended_early {
        assert_eq!(over, samples.len(), "{}: closed with open samples", benchmark.name);
        assert_eq!(benchmark.shards_done, plan.shards);
    }
    if run.status() == RunStatus::Succeeded {
        assert!(benchmark.state.report().is_some());
    }
    for finished in samples.iter().filter_map(|sample| sample.finished.as_ref()) {
        let verdict = &finished.verdict;
        assert_eq!(verdict.score.is_some(), verdict.outcome.is_graded());
        // Every outcome without a grade has a code.
        let has_code = !verdict.outcome.is_graded() || verdict.outcome == Outcome::Refused;
        assert!(verdict.code.is_none() || has_code, "{verdict:?}");
        assert!(verdict.code.is_some() || verdict.outcome.is_graded(), "{verdict:?}");
        // Every outcome except `correct` has a reason.
        assert_eq!(verdict.reason.is_empty(), verdict.outcome == Outcome::Correct, "{verdict:?}");
    }
}

/// Checks that the shards' counters are the sums of their records.
async fn check_counters(world: &World, run: RunId, benchmark: &BenchmarkRecord, samples: &[SampleRecord]) {
    let Some(plan) = &benchmark.plan else { return };
    let state = &world.stack.state;
    let stored = world
        .retry_until_ok("read counters", || {
            state.shard_counts(run, &benchmark.name, plan.attempt, plan.shards)
        })
        .await;
    let mut counted = vec![ShardCount::default(); plan.shards as usize];
    for sample in samples {
        let count = &mut counted[(sample.position.item % plan.shards) as usize];
        count.expected += 1;
        if let Some(finished) = &sample.finished {
            let usage = finished.usage.unwrap_or_default();
            count.done += 1;
            count.graded += u64::from(finished.verdict.outcome.is_graded());
            count.correct += u64::from(finished.verdict.outcome == Outcome::Correct);
            count.input_tokens += usage.input_tokens;
            count.output_tokens += usage.output_tokens;
            let judge = finished.judge_usage.unwrap_or_default();
            count.judge_spent_input += judge.input_tokens;
            count.judge_spent_output += judge.output_tokens;
        }
    }
    for (count, stored) in counted.iter_mut().zip(&stored) {
        // Never less than in the records; more after a requeue or after attempts without an answer.
        assert!(stored.spent_input >= count.input_tokens && stored.spent_output >= count.output_tokens);
        (count.spent_input, count.spent_output) = (stored.spent_input, stored.spent_output);
        (count.spent_estimated, count.judge_spent_estimated) =
            (stored.spent_estimated, stored.judge_spent_estimated);
        assert!(stored.judge_spent().total() >= count.judge_spent().total());
        (count.judge_spent_input, count.judge_spent_output) =
            (stored.judge_spent_input, stored.judge_spent_output);
        // Records of samples don't have the user simulator's tokens; reports of conversations do.
        (count.user_spent_input, count.user_spent_output, count.user_spent_estimated) =
            (stored.user_spent_input, stored.user_spent_output, stored.user_spent_estimated);
    }
    assert_eq!(stored, counted, "{}: counters differ from records", benchmark.name);
    let closed = counted.iter().filter(|count| count.done == count.expected).count();
    assert_eq!(benchmark.shards_done as usize, closed, "{}: closed shards", benchmark.name);
}

/// Checks that the report matches the records.
fn check_report(found: &RunWithBenchmarks, benchmark: &BenchmarkRecord, samples: &[SampleRecord]) {
    let (Some(report), Some(plan)) = (benchmark.state.report(), &benchmark.plan) else { return };
    let mut builder = ReportBuilder::new(found.run.spec.model.is_asked());
    samples.iter().filter_map(SampleRecord::summary).for_each(|summary| builder.add(&summary));
    let mut again = builder
        .finish(plan.items, plan.samples_per_item, found.run.spec.coverage_min, found.run.spec.price)
        .with_judge_price(found.run.spec.prices().judge);
    let known = bench_benchmarks::find_for_run(&found.run.spec, &benchmark.name);
    again = match known.is_some_and(|known| !known.scores_are_shares()) {
        true => again.without_share_interval(),
        false => again.with_clamped_interval(),
    };
    let mut models = ReportedModels::default();
    samples.iter().filter_map(SampleRecord::reported_model).for_each(|model| models.add(model));
    again = again.with_reported_models(models);
    again.judge_spent = report.judge_spent;
    (again.user_spent, again.user_cost) = (report.user_spent, report.user_cost);
    again.error_causes = report.error_causes.clone();
    again.extra = report.extra.clone();
    again.spent = report.spent;
    // Compared as JSON, since the stored report was read from JSON.
    let again = serde_json::to_value(&again).unwrap();
    assert_eq!(
        serde_json::to_value(report).unwrap(),
        again,
        "{}: report differs from records",
        benchmark.name
    );
}

/// Checks that every record's body exists, is the committed one, and belongs to the item.
async fn check_bodies(
    world: &World,
    found: &RunWithBenchmarks,
    benchmark: &BenchmarkRecord,
    samples: &[SampleRecord],
) {
    for sample in samples {
        let Some(body) = sample.finished.as_ref().and_then(|finished| finished.body.as_ref()) else {
            continue;
        };
        let address = World::sample_ref(found, benchmark.name.as_str(), sample.position);
        let blobs = &world.stack.blobs;
        let stored = world
            .retry_until_ok("read a body", || blobs.get_body(&address, body.attempt, Some(&body.sha256)))
            .await;
        let (stored, _) = stored.unwrap_or_else(|| panic!("{address}: no body"));
        assert_eq!(stored.item_id, sample.item_id);
        let graded = sample.finished.as_ref().is_some_and(|finished| finished.verdict.outcome.is_graded());
        match sample.turn.as_ref().filter(|_| graded).map(|turn| turn.stage) {
            // A body graded by a judge has the judge's reply, and one run in a sandbox has its execution.
            Some(Stage::Judge) => {
                assert!(stored.judge_reply.is_some(), "{address}: a verdict without a reply")
            }
            Some(Stage::Sandbox) => {
                assert!(stored.execution.is_some(), "{address}: a verdict without a report")
            }
            Some(Stage::Episode) => {
                assert!(stored.episode.is_some(), "{address}: a verdict without an episode")
            }
            Some(Stage::Verification) => {
                assert!(stored.verification.is_some(), "{address}: a verdict without a verification")
            }
            Some(Stage::Answer) | None => {}
        }
    }
}

/// Checks that a run that is over has no open benchmarks.
fn check_states(found: &RunWithBenchmarks) {
    for benchmark in &found.benchmarks {
        let open = matches!(benchmark.state, BenchmarkState::Pending | BenchmarkState::Running { .. });
        assert!(!open, "{} is {}", benchmark.name, benchmark.state.status());
    }
}

/// Checks that events are numbered without gaps, and that each end has one event.
async fn check_events(world: &World, found: &RunWithBenchmarks) {
    let run = found.run.spec.id;
    let events = world.retry_until_ok("read events", || world.stack.state.events(run, 0, 1_000)).await;
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let count = |kind: EventKind| events.iter().filter(|event| event.event_type == kind).count();
    assert_eq!(count(EventKind::RunCreated), 1);
    let ends = [EventKind::RunCompleted, EventKind::RunFailed, EventKind::RunCanceled];
    let ended: usize = ends.into_iter().map(count).sum();
    assert_eq!(ended, found.run.generation as usize, "each generation ends once");
    assert_eq!(count(EventKind::RunRequeued), found.run.generation as usize - 1);
    for benchmark in &found.benchmarks {
        let completed = events.iter().filter(|event| {
            event.event_type == EventKind::BenchmarkCompleted
                && event.benchmark_name.as_ref() == Some(&benchmark.name)
        });
        let succeeded = matches!(benchmark.state, BenchmarkState::Succeeded { .. });
        // Events end with the run, so a benchmark that the finisher closes later has none.
        let before_end = benchmark.state.completed_at() <= found.run.state.completed_at();
        let least = usize::from(succeeded && before_end);
        // A benchmark whose errors were asked again may have succeeded in an earlier generation.
        let most = if found.run.errors_only { found.run.generation as usize } else { least };
        assert!((least..=most).contains(&completed.count()), "{}", benchmark.name);
    }
}
