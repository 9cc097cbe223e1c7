//! Compares the state machine of a sample with the condition expressions that implement it, over random sequences of
//! steps.

use std::time::Duration;

use bench_domain::sample::{AttemptHistory, SampleState};
use bench_domain::{Code, Outcome, SampleRef, Stage, Timestamp, Usage, Verdict};
use bench_state::{AnswerRecord, BodyRef, Claim, Commit, Handover, SampleRecord, SampleResult, State};
use proptest::prelude::*;

use crate::table::{PlannedRun, table};

/// Two shards, one with two of the samples.
const SAMPLES: u32 = 3;
const SHARDS: u32 = 2;

#[derive(Debug, Clone)]
enum Action {
    /// Handling of a message, by a host with this start count.
    Claim {
        stage: Stage,
        lease_s: u64,
        epoch: u64,
    },
    /// A planned wait.
    Release {
        back: u32,
        delay_s: u64,
    },
    HandOver {
        back: u32,
        to: Stage,
    },
    Finish {
        back: u32,
        outcome: Outcome,
        /// True if it stores another object, such as the judge's reply.
        stores: bool,
    },
    Reopen,
}

#[derive(Debug, Clone)]
struct Step {
    item: u32,
    /// Seconds since the step before.
    after_s: u64,
    action: Action,
}

fn action() -> impl Strategy<Value = Action> {
    // Usually the last attempt, sometimes one that lost its lease.
    let back = || prop_oneof![5 => Just(0_u32), 1 => 1..3_u32];
    let stage = || (0..Stage::ALL.len()).prop_map(|at| Stage::ALL[at]);
    let outcome = (0..Outcome::ALL.len()).prop_map(|at| Outcome::ALL[at]);
    prop_oneof![
        4 => (stage(), 1..6_u64, 1..3_u64)
            .prop_map(|(stage, lease_s, epoch)| Action::Claim { stage, lease_s, epoch }),
        1 => (back(), 0..4_u64).prop_map(|(back, delay_s)| Action::Release { back, delay_s }),
        2 => (back(), stage()).prop_map(|(back, to)| Action::HandOver { back, to }),
        2 => (back(), outcome, any::<bool>())
            .prop_map(|(back, outcome, stores)| Action::Finish { back, outcome, stores }),
        2 => Just(Action::Reopen),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    // Usually the same item, so that many steps happen to it; another item closes its shard.
    let item = prop_oneof![4 => Just(0), 1 => 1..SAMPLES];
    (item, 0..4_u64, action()).prop_map(|(item, after_s, action)| Step { item, after_s, action })
}

/// Expected state of a sample.
#[derive(Debug, Clone)]
struct Model {
    state: SampleState,
    stage: Stage,
    attempts: u32,
    /// Number of attempts that neither ended nor released the sample, including the one that holds it.
    unended: u32,
    cleared: u32,
    /// Attempt that handed it over last.
    handed_over_by: Option<u32>,
    /// Attempt that stored the answer, once it was handed over.
    stored_by: Option<u32>,
}

impl Model {
    fn new() -> Self {
        Self {
            state: SampleState::Open { due_at: Timestamp::from_micros(0) },
            stage: Stage::Answer,
            attempts: 0,
            unended: 0,
            cleared: 0,
            handed_over_by: None,
            stored_by: None,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.state, SampleState::Done { .. })
    }

    fn lost(&self) -> u32 {
        self.unended - u32::from(matches!(self.state, SampleState::Claimed(_)))
    }

    /// Returns the expected result of a claim.
    fn claim(&mut self, stage: Stage, now: Timestamp, until: Timestamp, epoch: u64) -> ExpectedClaim {
        match &self.state {
            SampleState::Done { .. } => return ExpectedClaim::Over,
            SampleState::Open { .. } if stage.is_turn() != self.stage.is_turn() => {
                return ExpectedClaim::Elsewhere(self.stage);
            }
            SampleState::Claimed(_) if stage.is_turn() != self.stage.is_turn() => return ExpectedClaim::Busy,
            _ => {}
        }
        match self.state.claim(self.attempts, now, until, epoch) {
            Ok(claimed) => {
                self.state = claimed;
                self.attempts += 1;
                self.unended += 1;
                ExpectedClaim::Claimed(self.attempts)
            }
            Err(_) => match self.state {
                SampleState::Open { due_at } => ExpectedClaim::NotDue(due_at),
                _ => ExpectedClaim::Busy,
            },
        }
    }

    fn release(&mut self, attempt: u32, due_at: Timestamp) -> bool {
        let Ok(open) = self.state.release(attempt, due_at) else {
            // A retry after a lost response.
            return matches!(self.state, SampleState::Open { .. }) && self.attempts == attempt;
        };
        self.unended = self.lost();
        (self.state, self.cleared) = (open, attempt);
        true
    }

    fn hand_over(&mut self, attempt: u32, to: Stage, now: Timestamp) -> Handover {
        let Ok(open) = self.state.hand_over(attempt, now) else {
            return if self.handed_over_by == Some(attempt) { Handover::Done } else { Handover::Lost };
        };
        (self.state, self.stage, self.cleared) = (open, to, attempt);
        (self.handed_over_by, self.stored_by, self.unended) = (Some(attempt), Some(attempt), 0);
        Handover::Done
    }

    /// Returns true if this attempt ends the sample.
    fn finish(&mut self, attempt: u32, outcome: Outcome, stores: bool) -> bool {
        let Ok(done) = self.state.finish(attempt, outcome) else {
            return matches!(self.state, SampleState::Done { attempt: by, .. } if by == attempt);
        };
        self.unended = self.lost();
        self.state = done;
        if stores && self.stored_by.is_some() {
            self.stored_by = Some(attempt);
        }
        true
    }

    fn reopen(&mut self, now: Timestamp) -> bool {
        let Ok(open) = self.state.reopen(now) else { return false };
        // The objects stored after the answer were read, and contained no verdict.
        self.cleared = self.cleared.max(self.stored_by.unwrap_or(0));
        (self.state, self.unended) = (open, 0);
        true
    }
}

/// [`Claim`] without the record.
#[derive(Debug, PartialEq)]
enum ExpectedClaim {
    Claimed(u32),
    NotDue(Timestamp),
    Busy,
    Elsewhere(Stage),
    Over,
}

impl From<Claim> for ExpectedClaim {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Claimed(claimed) => Self::Claimed(claimed.attempt),
            Claim::NotDue(due_at) => Self::NotDue(due_at),
            Claim::Busy => Self::Busy,
            Claim::Elsewhere(stage) => Self::Elsewhere(stage),
            Claim::Over => Self::Over,
            Claim::Gone => panic!("the sample is gone"),
        }
    }
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome.is_graded() {
        true => Verdict { score: Some(0.5), ..Verdict::wrong(outcome, "why") },
        false => Verdict { code: Some(Code::ProviderError), ..Verdict::wrong(outcome, "why") },
    }
}

/// One run, in the table and as expected.
struct TableAndModel<'a> {
    states: &'a [State; 2],
    planned: PlannedRun,
    sort: String,
    models: Vec<Model>,
    now: Timestamp,
}

impl TableAndModel<'_> {
    async fn apply(&mut self, step: &Step) {
        self.now = self.now.plus(Duration::from_secs(step.after_s));
        let (now, sample) = (self.now, self.planned.sample(step.item));
        let state = &self.states[0];
        let record = state.sample(&sample).await.unwrap().unwrap();
        let others = self.others_are_done(step.item);
        let model = &mut self.models[step.item as usize];
        let attempt = |back: u32| model.attempts.saturating_sub(back).max(1);
        match step.action {
            Action::Claim { stage, lease_s, epoch } => {
                let until = now.plus(Duration::from_secs(lease_s));
                let host = &self.states[epoch as usize - 1];
                let claimed = host.claim(stage, &sample, now, until).await.unwrap();
                assert_eq!(ExpectedClaim::from(claimed), model.claim(stage, now, until, epoch));
            }
            Action::Release { back, delay_s } => {
                let (attempt, due_at) = (attempt(back), now.plus(Duration::from_secs(delay_s)));
                let history = AttemptHistory { lost: model.lost(), ..record.history };
                let released = state.release(&sample, attempt, attempt, due_at, history).await.unwrap();
                assert_eq!(released, model.release(attempt, due_at));
            }
            Action::HandOver { back, to } => {
                let attempt = attempt(back);
                let answered = answered(attempt);
                let handed = state.hand_over(&sample, attempt, to, &answered, Usage::default(), now);
                assert_eq!(handed.await.unwrap(), model.hand_over(attempt, to, now));
            }
            Action::Finish { back, outcome, stores } => {
                let attempt = attempt(back);
                let was_done = model.is_done();
                let mut finished = record.to_finished(verdict(outcome), now);
                if stores {
                    finished.body = Some(stored(attempt));
                }
                let committed = state
                    .commit(&sample, &self.sort, attempt, &finished, finished.usage.unwrap_or_default())
                    .await
                    .unwrap();
                let expected = match model.finish(attempt, outcome, stores) {
                    // A retry can't distinguish the cases, so it makes the caller check.
                    true => Commit::Done { closed: was_done || others },
                    false => Commit::Lost,
                };
                assert_eq!(committed, expected);
            }
            Action::Reopen => {
                let reopened = state.reopen(&sample, &self.sort, &record, now).await.unwrap();
                assert_eq!(reopened, model.reopen(now));
            }
        }
        self.compare(&sample, step).await;
    }

    /// Returns true if all other samples of this sample's shard are over.
    fn others_are_done(&self, item: u32) -> bool {
        let others = (0..SAMPLES).filter(|other| *other != item && other % SHARDS == item % SHARDS);
        others.map(|other| &self.models[other as usize]).all(Model::is_done)
    }

    async fn compare(&self, sample: &SampleRef, step: &Step) {
        let record: SampleRecord = self.states[0].sample(sample).await.unwrap().unwrap();
        let model = &self.models[step.item as usize];
        assert_eq!(record.state, model.state, "{step:?}");
        assert_eq!(record.stage(), model.stage, "{step:?}");
        assert_eq!(
            (record.history.attempts, record.history.lost),
            (model.attempts, model.lost()),
            "{step:?}"
        );
        assert_eq!(record.cleared, model.cleared, "{step:?}");
        assert_eq!(record.finished.is_some(), model.is_done(), "{step:?}");
        if let Some(SampleResult { verdict, .. }) = &record.finished {
            assert_eq!(verdict.code.is_some(), !verdict.outcome.is_graded(), "{step:?}");
        }
    }

    /// Checks that the counters are the sums over the samples.
    async fn compare_counts(&self) {
        let (run, benchmark) = (self.planned.run, &self.planned.benchmark);
        let counts = self.states[0].shard_counts(run, benchmark, 1, SHARDS).await.unwrap();
        let mut full = 0;
        for (count, shard) in counts.iter().zip(0..SHARDS) {
            let of_shard = (0..SAMPLES).filter(|item| item % SHARDS == shard);
            let models: Vec<&Model> = of_shard.map(|item| &self.models[item as usize]).collect();
            let outcomes = models.iter().filter_map(|model| match model.state {
                SampleState::Done { outcome, .. } => Some(outcome),
                _ => None,
            });
            let outcomes: Vec<Outcome> = outcomes.collect();
            let of = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
            let counted = (count.expected, count.done, count.graded, count.correct);
            let expected = (
                models.len() as u64,
                outcomes.len() as u64,
                of(|outcome| outcome.is_graded()) as u64,
                of(|outcome| *outcome == Outcome::Correct) as u64,
            );
            assert_eq!(counted, expected, "shard {shard}");
            full += u32::from(outcomes.len() == models.len());
        }
        let found = self.states[0].run_with_benchmarks(run).await.unwrap().unwrap();
        assert_eq!(found.benchmarks[0].shards_done, full);
    }
}

fn stored(attempt: u32) -> BodyRef {
    BodyRef { attempt, sha256: "ef".repeat(32) }
}

fn answered(attempt: u32) -> AnswerRecord {
    AnswerRecord {
        body: stored(attempt),
        item_hash: None,
        truncated: false,
        latency_ms: None,
        usage: None,
        model: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_table_matches_the_state_machine(steps in prop::collection::vec(step(), 10..80)) {
        let table = table();
        let states = [table.direct_state(1), table.state(2)];
        table.block_on(async {
            let planned = PlannedRun::write(&states[0], SAMPLES, SHARDS).await;
            let found = states[0].run_with_benchmarks(planned.run).await.unwrap().unwrap();
            let sort = found.benchmarks[0].sort();
            let models = (0..SAMPLES).map(|_| Model::new()).collect();
            let mut both = TableAndModel { states: &states, planned, sort, models, now: Timestamp::from_micros(0) };
            for step in &steps {
                both.apply(step).await;
            }
            both.compare_counts().await;
        });
    }
}
