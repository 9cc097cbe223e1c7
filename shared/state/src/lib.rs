//! Run state in DynamoDB: keys, claims, commits, queries.
//!
//! One table contains everything but callers' keys, which are in a separate table without backups
//! ([`credentials`]). The crate never uses Scan; every list is paged.
//!
//! | record | `pk` | `sk` | read by |
//! | --- | --- | --- | --- |
//! | run | `RUN#id` | `RUN` | get by id |
//! | name and tags of a run that has some | `LABELS` | `created_at#id` | query of the partition, for lists by name or tag |
//! | run in its owner's list | `OWNER#owner` | `created_at#id` | query of the partition, newest first |
//! | mark that all runs are in their owners' lists | `OWNERS` | `COMPLETE` | by key |
//! | run that isn't public | `HIDDEN` | `created_at#id` | query of the partition, for lists |
//! | benchmark of a run | `RUN#id` | `BENCH#position#name` | query of the partition, with the run |
//! | judging of a run's answers by another judge | `RUN#id` | `JUDGING#version` | query of the partition |
//! | samples rejected with the same message | `RUN#id` | `REFUSED#generation#stage#digest` | the write that adds to it; expires |
//! | number of failures, if the run limits it | `RUN#id` | `FAILURES#since` | the write that adds to it; expires |
//! | counters of a shard | `RUN#id#name#plan#shard` | `COUNT` | batch get by computed keys |
//! | sample | `RUN#id#name#plan#shard` | `S#item.sample` | batch get by computed keys; query of the partition |
//! | event | `RUN#id#EVENTS` | sequence number | query from a number on |
//! | run over, not settled | `UNSETTLED` | run id | query of the partition by reconciliation |
//! | claim on closing a run | `FINISHING#id` | generation | conditional writes; expires |
//! | backpressure | `WAIT#credential#model` | `WAIT` | get; expires |
//! | next slot for a request, if runs limit their requests | `WAIT#credential#model` | `SLOT` | get, then a conditional write; expires |
//! | sandbox in the ledger | `SANDBOXES` | id at its host | query of the partition by the reaper; expires |
//! | message that can't be parsed | `UNREADABLE` | time of sending, message id | query of the partition; expires |
//! | idempotency key | `IDEM#owner#key` | `IDEM` | get; expires |
//! | model | `MODELS` | `provider#slug` | query of the partition |
//! | session of a signed-in user | `SESSION#id` | `SESSION` | get; expires |
//! | session in its user's list | `USER#subject` | `created_at#id` | query of the partition, newest first; expires |
//! | attempt to sign in | `SIGNIN#digest of the state` | `SIGNIN` | one conditional delete; expires |
//! | counts of runs by status | `OPS#RUNS` | shard of the run's id | query of the partition |
//! | worker in a minute | `OPS#HOUR#hour` | `minute#worker` | query of an hour or its end; expires |
//! | tokens of an hour | `OPS#TOKENS` | hour | query of the last hours; expires |
//! | wrong admin secrets of an hour | `OPS#SECRETS` | hour | query of the last hours; expires |
//! | listed caller | `ACCESS` | keyed hash of the secret, or hash of the user's subject | get; query of the partition: there are few |
//! | open runs | `OPEN` | owner, or `ALL` | get; counted in the transactions that open and end runs |
//! | orders in a minute | `RATE#owner` | minute | conditional writes; expires |
//! | schedule | `SCHEDULES` | schedule id | get; query of the partition: there are few |
//! | name of a schedule | `SCHEDULE#NAMES` | owner, name | written and removed with the schedule, on condition |
//! | planned time of a schedule | `SCHEDULE#id` | `FIRE#time` | get; query of the partition, newest first; expires |
//! | uploaded terminal task | `TASKS` | id | get; query of the partition, newest first |
//! | uploaded custom agent | `AGENTS` | content hash, owner | query of the partition, or of a content |
//! | run of a task alone | `TASK#id` | `RUN#round#first episode` | query of the partition |
//! | run of tasks by their names | `TASK#id` | `ORDER#run` | query of the partition |
//! | number of tasks with an archive | `TASK#ARCHIVES` | content hash | conditional writes |
//! | last id of tasks or episodes | `COUNTERS` | `TASK` or `EPISODE` | the write that counts |
//! | planned time that is open | `FIRINGS` | `time#schedule` | query of the partition by the scheduler |
//!
//! | index | partition | sort | holds | for |
//! | --- | --- | --- | --- | --- |
//! | `by-time` | `RUNS` | `created_at#id` | runs | lists, newest first |
//! | `by-status` | `STATUS#status` | `created_at#id` | runs | lists by status, reconciliation, queue position |
//!
//! **Shards.** A sample's partition is its item's position modulo the number of shards that the
//! planner chose, so commits spread over partitions and a page by offset is a batch get.
//!
//! **Fencing.** The planner's attempt is part of its samples' keys, and a worker's attempt is in the
//! condition of its commit, so writes of a late process have no effect.
//!
//! **Stages.** A sample is answered and, if its benchmark requires it, judged or run in a sandbox. Once the answer is
//! stored, the sample is open again with the attribute `stage`, and only workers of that stage can claim it
//! ([`State::hand_over`]). An item with several steps is handed over to its next question in the same way.
//!
//! **Ambiguous responses.** A write whose response was lost is sent again. If it then fails because it
//! already happened, it counts as success (as in [`Commit::Done`]).

pub mod access;
mod agents;
mod attributes;
mod body_ref;
mod calls;
mod client;
mod compare;
mod conflict;
pub mod credentials;
mod direct;
mod error;
mod events;
mod failures;
mod finishing;
mod idempotency;
mod judgings;
mod keys;
mod models;
pub mod ops;
mod origin;
mod plans;
mod refusals;
mod reopen;
mod request_slots;
mod run_facts;
mod runs;
mod samples;
mod sandboxes;
mod schedules;
mod scope;
mod sessions;
mod settle;
mod setup;
mod spending;
mod tasks;
mod unreadable;
mod usage;
mod waits;

pub use agents::AgentRecord;
pub use body_ref::BodyRef;
pub use client::{Scope, State};
pub use compare::{COMPARED_SAMPLES_MAX, CompareError, ComparisonResult};
pub use direct::DirectTable;
pub use error::StateError;
pub use events::{Event, EventKind, NewEvent};
pub use idempotency::Idempotency;
pub use judgings::{JudgingRecord, RejudgingCreation};
pub use models::ModelRecord;
pub use origin::Origin;
pub use plans::{PlanClaim, PlannedSample, planned_samples};
pub use refusals::Refusals;
pub use request_slots::RequestSlot;
pub use run_facts::RunFacts;
pub use runs::{
    BenchmarkRecord, Creation, ItemIndex, ProviderWait, Renewal, Results, Resumption, RunFilter, RunPage,
    RunRecord, RunWithBenchmarks, SampleChoice, SearchedLabels, Transition, WaitKind, WaitNoted,
};
pub use samples::{
    AnswerRecord, Claim, ClaimedRecord, Commit, Commits, EndedSample, Handover, ReplyWithoutVerdict,
    SampleExcerpt, SampleRecord, SampleResult, ShardCount, Turn,
};
pub use sandboxes::LedgerEntry;
pub use schedules::{FiringRecord, FiringRef, ScheduleRecord, ScheduleWrite};
pub use sessions::{SESSIONS_LISTED_MAX, SessionRecord, SignInRecord};
pub use settle::UnsettledRun;
pub use spending::Shards;
pub use tasks::{ArchiveRemoval, NewTask, TaskOrder, TaskRecord, TaskRun, TaskRunWrite};
pub use unreadable::{UNREADABLE_TEXT_BYTES_MAX, UnreadableRecord};
pub use waits::{SharedWait, WaitKey};
