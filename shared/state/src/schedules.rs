//! Schedules, and the firings of their planned times.
//!
//! A planned time fires in one transaction, which moves the schedule to its next time, if the schedule hasn't changed
//! meanwhile, and writes the firing, if it doesn't exist. So each planned time fires once, even if several processes
//! read the schedule concurrently. The firing is listed as open until no work remains; any process that reads that list
//! continues where another stopped.
//!
//! An owner's schedules have different names. Each name has its own record, written and removed in the transaction that
//! writes the schedule, so two concurrent requests can't take the same name. Schedules of older versions have no such
//! record until they are renamed; callers check for their names in the list.

use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, Select, TransactWriteItem, Update,
};
use bench_domain::run::Owner;
use bench_domain::schedule::{Firing, SCHEDULES_MAX, Schedule};
use bench_domain::{ScheduleId, Timestamp};

use crate::attributes::{Reader, Record, json, number, text};
use crate::client::{claim_token, expires_at};
use crate::credentials::{RemovedKey, SealedKey};
use crate::keys::{FIRINGS, SCHEDULE_NAMES, SCHEDULES, key, schedule_partition};
use crate::{State, StateError, Transition};

/// Seconds that a firing is kept: 400 days.
const FIRING_KEPT_S: i64 = 400 * 86_400;
/// Maximum number of firings in one transaction: DynamoDB takes 100 records, and each firing may need two.
const FIRINGS_MAX: usize = 40;
/// Maximum number of tries to take a name whose record turns out to be stale.
const NAME_TRIES_MAX: u32 = 5;

/// Stored schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRecord {
    /// The schedule itself.
    pub schedule: Schedule,
    /// Revision, raised by every write: the condition of the next write.
    revision: u64,
}

/// Result of writing a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleWrite {
    /// The schedule was written.
    Done,
    /// Another process changed the schedule first; read it again.
    Raced,
    /// Another schedule of its owner has the name; nothing was written.
    NameTaken,
    /// There are already [`SCHEDULES_MAX`] schedules; nothing was written.
    TooMany,
}

/// Stored firing.
#[derive(Debug, Clone, PartialEq)]
pub struct FiringRecord {
    /// The firing itself.
    pub firing: Firing,
    /// Time until which a process is working on it.
    pub lease_until: Option<Timestamp>,
    /// Revision, raised by every write: the condition of the next write.
    revision: u64,
    /// Random token that identifies the last write to its writer: two processes may write the same values at the same
    /// time.
    token: Option<u64>,
}

/// Key of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiringRef {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Planned time.
    pub planned: Timestamp,
}

impl ScheduleRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        Ok(Self { schedule: reader.json("schedule")?, revision: reader.number("revision")? })
    }
}

impl FiringRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        Ok(Self {
            firing: reader.json("firing")?,
            lease_until: reader.maybe_time("lease_until")?,
            revision: reader.number("revision")?,
            token: reader.maybe_number("write_token")?,
        })
    }
}

impl FiringRef {
    /// Returns the key of a firing.
    pub const fn new(firing: &Firing) -> Self {
        Self { schedule: firing.schedule, planned: firing.planned }
    }

    fn key(self) -> Record {
        key(schedule_partition(self.schedule), firing_sort(self.planned))
    }

    fn open_key(self) -> Record {
        key(FIRINGS, format!("{}#{}", time_text(self.planned), self.schedule))
    }
}

fn schedule_key(schedule: ScheduleId) -> Record {
    key(SCHEDULES, schedule.to_string())
}

/// Returns the key of a name's record, which is unique per owner.
fn name_key(schedule: &Schedule) -> Record {
    let owner = match &schedule.owner {
        Owner::Local => "local".to_owned(),
        Owner::Key(hash) => format!("key:{hash}"),
        Owner::User(subject) => format!("user:{subject}"),
    };
    key(SCHEDULE_NAMES, format!("{owner}#{}", schedule.name))
}

/// Formats a time so that text order is time order.
fn time_text(time: Timestamp) -> String {
    format!("{:020}", time.as_micros())
}

fn firing_sort(planned: Timestamp) -> String {
    format!("FIRE#{}", time_text(planned))
}

impl State {
    /// Writes a new schedule together with its name and its own key, all or none.
    pub async fn create_schedule(
        &self,
        schedule: &Schedule,
        sealed: Option<SealedKey>,
    ) -> Result<ScheduleWrite, StateError> {
        if self.count_schedules().await? >= SCHEDULES_MAX {
            return Ok(ScheduleWrite::TooMany);
        }
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(schedule_key(schedule.id)))
            .item("schedule", json("schedule", schedule)?)
            .item("revision", number(1))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(|error| StateError::damaged("schedule", error))?;
        let put = TransactWriteItem::builder().put(put).build();
        let keys = sealed.map(|sealed| sealed.0).unwrap_or_default();
        let mut holder = schedule.id;
        for _ in 0..NAME_TRIES_MAX {
            let mut items = vec![put.clone(), self.name_put(schedule, holder)?];
            items.extend(keys.clone());
            let Err(canceled) = self.transact("create the schedule", items).await? else {
                return Ok(ScheduleWrite::Done);
            };
            // The schedule's id is new, so its record can only exist because the first try succeeded.
            if canceled.condition_failed(0) {
                return Ok(ScheduleWrite::Done);
            }
            match self.stale_name_holder(schedule, canceled.record(1)).await? {
                Some(stale) => holder = stale,
                None => break,
            }
        }
        Ok(ScheduleWrite::NameTaken)
    }

    /// Takes a schedule's name, if it's free or belongs to `holder`.
    fn name_put(&self, schedule: &Schedule, holder: ScheduleId) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(name_key(schedule)))
            .item("schedule_id", text(schedule.id.to_string()))
            .condition_expression("attribute_not_exists(pk) OR schedule_id IN (:own, :holder)")
            .expression_attribute_values(":own", text(schedule.id.to_string()))
            .expression_attribute_values(":holder", text(holder.to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| StateError::damaged("schedule's name", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Releases a schedule's name.
    fn name_delete(&self, schedule: &Schedule) -> Result<TransactWriteItem, StateError> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(name_key(schedule)))
            .condition_expression("attribute_not_exists(pk) OR schedule_id = :own")
            .expression_attribute_values(":own", text(schedule.id.to_string()))
            .build()
            .map_err(|error| StateError::damaged("schedule's name", error))?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Returns the schedule in the record of a name if it no longer has that name, because older versions rename and
    /// delete schedules without updating the names' records.
    async fn stale_name_holder(
        &self,
        schedule: &Schedule,
        name: Option<&Record>,
    ) -> Result<Option<ScheduleId>, StateError> {
        let Some(name) = name else { return Ok(None) };
        let reader = Reader::new(name);
        let holder = reader.text("schedule_id")?.parse();
        let holder: ScheduleId =
            holder.map_err(|_| StateError::damaged(reader.key(), "it names no schedule"))?;
        let found = self.schedule(holder).await?.map(|record| record.schedule);
        let has_name =
            found.is_some_and(|found| found.owner == schedule.owner && found.name == schedule.name);
        Ok((!has_name).then_some(holder))
    }

    async fn count_schedules(&self) -> Result<usize, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :schedules")
            .expression_attribute_values(":schedules", text(SCHEDULES))
            .select(Select::Count)
            .into_paginator()
            .send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| StateError::sdk("count the schedules", error))?;
            count += usize::try_from(page.count).unwrap_or(0);
        }
        Ok(count)
    }

    /// Returns a schedule; `None` if it doesn't exist.
    pub async fn schedule(&self, schedule: ScheduleId) -> Result<Option<ScheduleRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(schedule_key(schedule)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the schedule", error))?;
        got.item().map(ScheduleRecord::read).transpose()
    }

    /// Lists all schedules, oldest first. There are at most [`SCHEDULES_MAX`].
    pub async fn list_schedules(&self) -> Result<Vec<ScheduleRecord>, StateError> {
        let mut records = self.query_all(text(SCHEDULES), "list the schedules").await?;
        let mut schedules = Vec::with_capacity(records.len());
        for record in records.drain(..) {
            match ScheduleRecord::read(&record) {
                Ok(record) => schedules.push(record),
                // One record of another version must not keep the others from running.
                Err(error) => tracing::error!(%error, "A schedule was passed over: {error}"),
            }
        }
        schedules.sort_by_key(|record| (record.schedule.created_at, record.schedule.id));
        Ok(schedules)
    }

    /// Replaces a schedule, its name if changed, and its own key if given, unless the schedule has changed since it was
    /// read.
    pub async fn update_schedule(
        &self,
        record: &ScheduleRecord,
        changed: &Schedule,
        sealed: Option<SealedKey>,
    ) -> Result<ScheduleWrite, StateError> {
        let old = &record.schedule;
        let is_renamed = old.name != changed.name;
        let keys = sealed.map(|sealed| sealed.0).unwrap_or_default();
        let (mut holder, mut gives_back) = (changed.id, true);
        for _ in 0..NAME_TRIES_MAX {
            let mut items = vec![self.schedule_update(record, changed)?];
            if is_renamed {
                items.push(self.name_put(changed, holder)?);
            }
            if is_renamed && gives_back {
                items.push(self.name_delete(old)?);
            }
            items.extend(keys.clone());
            let Err(canceled) = self.transact("change the schedule", items).await? else {
                return Ok(ScheduleWrite::Done);
            };
            if canceled.condition_failed(0) {
                // The response to this call's first try may have been lost.
                let found = self.schedule(old.id).await?;
                let is_ours = found
                    .is_some_and(|found| found.revision == record.revision + 1 && found.schedule == *changed);
                return Ok(if is_ours { ScheduleWrite::Done } else { ScheduleWrite::Raced });
            }
            if is_renamed && canceled.condition_failed(1) {
                match self.stale_name_holder(changed, canceled.record(1)).await? {
                    Some(stale) => holder = stale,
                    None => return Ok(ScheduleWrite::NameTaken),
                }
            } else if is_renamed && canceled.condition_failed(2) {
                // An older version gave both schedules this name, and the record belongs to the other one.
                gives_back = false;
            } else {
                return Ok(ScheduleWrite::Raced);
            }
        }
        Ok(ScheduleWrite::Raced)
    }

    /// Removes a schedule together with its name and its own key, then its firings. Its runs stay.
    ///
    /// # Errors
    /// Even if only removing the firings fails, the schedule is gone; the firings expire.
    pub async fn delete_schedule(
        &self,
        record: &ScheduleRecord,
        key: RemovedKey,
    ) -> Result<Transition, StateError> {
        let schedule = record.schedule.id;
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(schedule_key(schedule)))
            .condition_expression("attribute_not_exists(pk) OR revision = :revision")
            .expression_attribute_values(":revision", number(record.revision))
            .build()
            .map_err(|error| StateError::damaged("schedule", error))?;
        let mut items = vec![TransactWriteItem::builder().delete(delete).build()];
        items.extend(key.0);
        let name = items.len();
        items.push(self.name_delete(&record.schedule)?);
        if let Err(canceled) = self.transact("delete the schedule", items.clone()).await? {
            if !canceled.condition_failed(name) || canceled.condition_failed(0) {
                return Ok(Transition::Raced);
            }
            // The name belongs to another schedule by now.
            items.truncate(name);
            if self.transact("delete the schedule", items).await?.is_err() {
                return Ok(Transition::Raced);
            }
        }
        self.purge_partition(schedule_partition(schedule)).await?;
        Ok(Transition::Done)
    }

    /// Fires planned times: moves the schedule to `next` and writes the firings, all or nothing. Firings that already
    /// exist stay unchanged.
    pub async fn fire(
        &self,
        record: &ScheduleRecord,
        next: Option<Timestamp>,
        firings: &[Firing],
        now: Timestamp,
    ) -> Result<Transition, StateError> {
        let changed = Schedule { next_at: next, ..record.schedule.clone() };
        let mut firings: Vec<&Firing> = firings.iter().rev().take(FIRINGS_MAX).collect();
        loop {
            let mut items = vec![self.schedule_update(record, &changed)?];
            for firing in &firings {
                items.push(self.firing_put(firing, now)?);
            }
            for firing in firings.iter().filter(|firing| firing.is_open()) {
                let open = Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(FiringRef::new(firing).open_key()))
                    .build()
                    .map_err(|error| StateError::damaged("firing", error))?;
                items.push(TransactWriteItem::builder().put(open).build());
            }
            let Err(canceled) = self.transact("take up a planned time", items).await? else {
                return Ok(Transition::Done);
            };
            // If the first try succeeded and its response was lost, the firings are open, and any process continues
            // them.
            if canceled.condition_failed(0) || firings.is_empty() {
                return Ok(Transition::Raced);
            }
            let mut index = 0;
            firings.retain(|_| {
                index += 1;
                !canceled.condition_failed(index)
            });
        }
    }

    fn schedule_update(
        &self,
        record: &ScheduleRecord,
        changed: &Schedule,
    ) -> Result<TransactWriteItem, StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(schedule_key(record.schedule.id)))
            .update_expression("SET schedule = :schedule, revision = revision + :one")
            .condition_expression("revision = :revision")
            .expression_attribute_values(":schedule", json("schedule", changed)?)
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":revision", number(record.revision))
            .build()
            .map_err(|error| StateError::damaged("schedule", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    fn firing_put(&self, firing: &Firing, now: Timestamp) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(FiringRef::new(firing).key()))
            .item("firing", json("firing", firing)?)
            .item("revision", number(1))
            .item("expires_at", number(expires_at(now, FIRING_KEPT_S)))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(|error| StateError::damaged("firing", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Returns at most `limit` firings that still have work to do, oldest first.
    pub async fn open_firings(&self, limit: usize) -> Result<Vec<FiringRef>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :firings")
            .expression_attribute_values(":firings", text(FIRINGS))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut open = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list open firings", error))?;
            let reader = Reader::new(&record);
            let parts = reader.text("sk")?.split_once('#');
            let planned = parts.and_then(|(time, _)| time.parse().ok()).map(Timestamp::from_micros);
            let schedule = parts.and_then(|(_, id)| id.parse().ok());
            let (Some(planned), Some(schedule)) = (planned, schedule) else {
                return Err(StateError::damaged(reader.key(), "its key names no firing"));
            };
            open.push(FiringRef { schedule, planned });
            if open.len() == limit {
                break;
            }
        }
        Ok(open)
    }

    /// Returns a firing; `None` if it doesn't exist.
    pub async fn firing(&self, firing: FiringRef) -> Result<Option<FiringRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(firing.key()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the firing", error))?;
        got.item().map(FiringRecord::read).transpose()
    }

    /// Returns at most `limit` firings of a schedule before a time, newest first.
    pub async fn firings(
        &self,
        schedule: ScheduleId,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<Firing>, StateError> {
        let before = before.unwrap_or(Timestamp::from_micros(i64::MAX));
        let until = Timestamp::from_micros(before.as_micros().saturating_sub(1));
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :schedule AND sk BETWEEN :first AND :until")
            .expression_attribute_values(":schedule", text(schedule_partition(schedule)))
            .expression_attribute_values(":first", text(firing_sort(Timestamp::default())))
            .expression_attribute_values(":until", text(firing_sort(until)))
            .scan_index_forward(false)
            .limit(i32::try_from(limit.clamp(1, 1_000)).unwrap_or(1_000))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut firings = Vec::new();
        while firings.len() < limit {
            let Some(record) = pages.next().await else { break };
            let record = record.map_err(|error| StateError::sdk("list firings", error))?;
            firings.push(FiringRecord::read(&record)?.firing);
        }
        Ok(firings)
    }

    /// Writes a firing if it hasn't changed since it was read. It's listed as open as long as it is open. `lease_until`
    /// is the time until which the caller works on it.
    ///
    /// Returns the new record; `None` if another process wrote the firing first.
    pub async fn save_firing(
        &self,
        record: &FiringRecord,
        changed: Firing,
        lease_until: Option<Timestamp>,
    ) -> Result<Option<FiringRecord>, StateError> {
        let (firing, token) = (FiringRef::new(&record.firing), claim_token());
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(firing.key()))
            .condition_expression("revision = :revision")
            .expression_attribute_values(":firing", json("firing", &changed)?)
            .expression_attribute_values(":token", number(token))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":revision", number(record.revision));
        let set = "SET firing = :firing, write_token = :token, revision = revision + :one";
        let update = match lease_until {
            Some(until) => update
                .update_expression(format!("{set}, lease_until = :until"))
                .expression_attribute_values(":until", number(until.as_micros())),
            None => update.update_expression(format!("{set} REMOVE lease_until")),
        };
        let update = update.build().map_err(|error| StateError::damaged("firing", error))?;
        let mut items = vec![TransactWriteItem::builder().update(update).build()];
        if !changed.is_open() {
            let delete = Delete::builder().table_name(&self.table).set_key(Some(firing.open_key())).build();
            let delete = delete.map_err(|error| StateError::damaged("firing", error))?;
            items.push(TransactWriteItem::builder().delete(delete).build());
        }
        let saved =
            FiringRecord { firing: changed, lease_until, revision: record.revision + 1, token: Some(token) };
        if self.transact("write the firing", items).await?.is_ok() {
            return Ok(Some(saved));
        }
        // The response to this call's first try may have been lost.
        Ok(self.firing(firing).await?.filter(|found| found.token == saved.token))
    }

    /// Removes a firing that is gone from the list of open ones. Safe to repeat.
    pub async fn forget_firing(&self, firing: FiringRef) -> Result<(), StateError> {
        let deleted =
            self.client.delete_item().table_name(&self.table).set_key(Some(firing.open_key())).send().await;
        deleted.map(drop).map_err(|error| StateError::sdk("forget a firing", error))
    }

    async fn query_all(
        &self,
        partition: AttributeValue,
        verb: &'static str,
    ) -> Result<Vec<Record>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :partition")
            .expression_attribute_values(":partition", partition)
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut records = Vec::new();
        while let Some(record) = pages.next().await {
            records.push(record.map_err(|error| StateError::sdk(verb, error))?);
        }
        Ok(records)
    }
}
