//! Judgings of a run: each further judging of its answers is a separate run.
//!
//! A judging gets its number from the write that creates its run, on condition that the number is free. The number
//! stays in use after that run is deleted, and is removed with the run whose answers are judged.

use bench_domain::run::{JudgeSpec, RejudgedRun};
use bench_domain::{RunId, RunSpec, Timestamp};

use crate::access::{LimitScope, OrderLimits};
use crate::attributes::{Reader, Record, json, number, text};
use crate::credentials::SealedKey;
use crate::keys::{JUDGING, judging_sort, key, run_partition};
use crate::runs::new_run_limit;
use crate::{Idempotency, NewEvent, State, StateError};

/// Number of the first judging that is a separate run.
const FIRST_VERSION: u32 = 2;
/// Maximum number of tries to get a number while others take numbers.
const RACES_MAX: u32 = 50;

/// One judging of a run's answers.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgingRecord {
    /// Number of the judging, from 2.
    pub version: u32,
    /// Run that contains the results. It may have been deleted.
    pub run: RunId,
    /// Judge of the judging.
    pub judge: JudgeSpec,
    /// Time of the order.
    pub created_at: Timestamp,
}

/// Result of ordering a judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejudgingCreation {
    /// The run was created, with this number.
    Created(RejudgedRun),
    /// An earlier order with the same idempotency key created a run; this one created none.
    KeyTaken,
    /// The run whose answers should be judged is gone.
    Gone,
    /// A limit of open runs rejected it; nothing was written.
    Limited(LimitScope),
}

impl JudgingRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let version = reader.text("sk")?.strip_prefix(JUDGING).and_then(|digits| digits.parse().ok());
        Ok(Self {
            version: version.ok_or_else(|| StateError::damaged(reader.key(), "it has no version"))?,
            run: reader.text("run")?.parse().map_err(|error| StateError::damaged(reader.key(), error))?,
            judge: reader.json("judge")?,
            created_at: reader.time("created_at")?,
        })
    }
}

impl State {
    /// Creates a run that judges the answers of `original` again, with the next free number. This function sets
    /// `spec.rejudges` and makes the run at most as visible as the original; the caller sets the judge. `limits` are those of
    /// open runs, and are checked by the write itself.
    pub async fn create_rejudging(
        &self,
        original: RunId,
        spec: &mut RunSpec,
        idempotency: Option<&Idempotency>,
        sealed: Option<SealedKey>,
        limits: Option<&OrderLimits>,
    ) -> Result<RejudgingCreation, StateError> {
        let judge = spec.judge.clone();
        let judge = judge.ok_or_else(|| StateError::damaged("run", "it has no judge"))?;
        for _ in 0..RACES_MAX {
            let Some(judged) = self.run(original).await? else { return Ok(RejudgingCreation::Gone) };
            let judged = judged.spec.labels.clone();
            spec.labels.visibility = spec.labels.visibility.stricter(judged.visibility);
            let last = self.last_judging(original).await?;
            let version = last.map_or(FIRST_VERSION, |version| version.saturating_add(1));
            let rejudges = RejudgedRun { run: original, version };
            spec.rejudges = Some(rejudges);
            let event = NewEvent::run_created(spec, &[]);
            let mut items =
                self.new_run_items(spec, &event, idempotency, spec.created_at, sealed.clone(), limits)?;
            let first_extra = items.len();
            items.push(self.unchanged_labels_check(original, &judged)?);
            let mut record = key(run_partition(original), judging_sort(version));
            record.insert("run".into(), text(spec.id.to_string()));
            record.insert("judge".into(), json("judging", &judge)?);
            record.insert("created_at".into(), number(spec.created_at.as_micros()));
            items.push(self.put_new(record)?);
            match self.transact("create the run", items).await? {
                Ok(()) => return Ok(RejudgingCreation::Created(rejudges)),
                // The run's id is new, so the first try succeeded and its response was lost.
                Err(canceled) if canceled.condition_failed(0) => {
                    let made = self.run(spec.id).await?.and_then(|run| run.spec.rejudges);
                    return Ok(made.map_or(RejudgingCreation::Gone, RejudgingCreation::Created));
                }
                // The original was deleted, or got other labels.
                Err(canceled) if canceled.condition_failed(first_extra) => {}
                Err(canceled) if canceled.condition_failed(first_extra + 1) => {
                    if let Some(idempotency) = idempotency
                        && self.run_for_key(idempotency).await?.is_some()
                    {
                        return Ok(RejudgingCreation::KeyTaken);
                    }
                }
                Err(canceled) => {
                    return Ok(match new_run_limit(&canceled) {
                        Some(reached) if !self.is_key_taken(idempotency).await? => {
                            RejudgingCreation::Limited(reached)
                        }
                        _ => RejudgingCreation::KeyTaken,
                    });
                }
            }
        }
        Err(StateError::Service { verb: "create the run", problem: "others always took the version".into() })
    }

    async fn last_judging(&self, run: RunId) -> Result<Option<u32>, StateError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :run AND begins_with(sk, :judging)")
            .expression_attribute_values(":run", text(run_partition(run)))
            .expression_attribute_values(":judging", text(JUDGING))
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(1)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the judgings of the run", error))?;
        let last = found.items().first().map(JudgingRecord::read).transpose()?;
        Ok(last.map(|last| last.version))
    }

    /// Returns the further judgings of a run's answers, in the order of their numbers.
    pub async fn judgings(&self, run: RunId) -> Result<Vec<JudgingRecord>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :run AND begins_with(sk, :judging)")
            .expression_attribute_values(":run", text(run_partition(run)))
            .expression_attribute_values(":judging", text(JUDGING))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut judgings = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read the judgings of the run", error))?;
            judgings.push(JudgingRecord::read(&record)?);
        }
        Ok(judgings)
    }
}
