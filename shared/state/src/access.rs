//! Access to ordering: the entries that operators issue, the access policy, and the limits of orders.

mod policy;

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::run::Owner;
use bench_domain::{Secret, Timestamp};
use ring::rand::{SecureRandom, SystemRandom};

use crate::attributes::{Reader, Record, number, text, time};
use crate::client::{condition_held, expires_at};
use crate::keys::{ACCESS, OPEN, key};
use crate::{State, StateError};

pub use self::policy::{AccessPolicy, AccessRow, admin_subjects};

/// Prefix of every access token. Keys of providers never begin with it.
pub const TOKEN_PREFIX: &str = "bra_";
/// Maximum number of entries in the list of callers.
pub const ENTRIES_MAX: usize = 1_000;
/// Length of an entry's id in characters.
const ID_CHARS: usize = 12;
/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Sort key of the counter of all open runs.
const EVERYBODY: &str = "ALL";
/// Seconds that a minute's counter is kept after its minute.
const FORGET_RATE_AFTER_S: i64 = 3_600;
const MINUTE_US: i64 = 60_000_000;

/// Returns true if a bearer text is an access token rather than a provider's key.
pub fn is_access_token(key: &Secret) -> bool {
    key.expose().starts_with(TOKEN_PREFIX)
}

/// Returns the key of a user's entry. It doesn't depend on the operator's keys: a subject is no secret.
pub fn user_entry(subject: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("user:{subject}").as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Generates an access token with 256 random bits.
///
/// # Errors
/// If the system provides no random numbers.
pub fn new_access_token() -> Result<Secret, StateError> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let none = || StateError::Secret {
        verb: "generated",
        problem: "the system provides no random numbers".to_owned(),
    };
    SystemRandom::new().fill(&mut bytes).map_err(|_| none())?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Secret::new(format!("{TOKEN_PREFIX}{digits}")).ok_or_else(none)
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Access token: its holder's orders are paid for with the operator's keys.
    Token,
    /// Caller's own key at a provider, which pays for its holder's orders.
    Key,
    /// Signed-in user, who needs no secret.
    User,
}

impl AccessKind {
    /// Returns the name in JSON and storage.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Key => "key",
            Self::User => "user",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Token, Self::Key, Self::User].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Caller that the operator has listed. Only the keyed hash of the secret is stored, not the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessEntry {
    /// Keyed hash of the secret; also the owner of the holder's runs and schedules. For a user, [`user_entry`].
    pub owner: String,
    /// Name that the operator chose.
    pub name: String,
    /// Kind of the entry.
    pub kind: AccessKind,
    /// Subject of the user; `None` for other kinds.
    pub subject: Option<String>,
    /// Permission to order runs of the oracle and of stored responses.
    pub oracle: bool,
    /// Permission to order runs of gated benchmarks.
    pub gated: bool,
    /// Permission to upload terminal tasks and to order runs of them.
    pub tasks: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which the entry expires.
    pub ends_at: Option<Timestamp>,
}

impl AccessEntry {
    /// Returns the public id: the first characters of the keyed hash.
    pub fn id(&self) -> &str {
        self.owner.get(..ID_CHARS).unwrap_or(&self.owner)
    }

    /// Returns true if the entry is valid at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }

    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let kind = AccessKind::from_name(reader.text("kind")?);
        Ok(Self {
            owner: reader.text("sk")?.to_owned(),
            name: reader.text("name")?.to_owned(),
            kind: kind.ok_or_else(|| StateError::damaged(reader.key(), "it has an unknown kind"))?,
            subject: reader.maybe_text("subject").map(str::to_owned),
            oracle: reader.number_or::<u8>("oracle", 0)? == 1,
            gated: reader.number_or::<u8>("gated", 0)? == 1,
            tasks: reader.number_or::<u8>("tasks", 0)? == 1,
            created_at: reader.time("created_at")?,
            ends_at: reader.maybe_time("ends_at")?,
        })
    }

    fn record(&self) -> Record {
        let mut record = key(ACCESS, &self.owner);
        record.insert("name".into(), text(&self.name));
        record.insert("kind".into(), text(self.kind.as_str()));
        record.insert("oracle".into(), number(u8::from(self.oracle)));
        record.insert("gated".into(), number(u8::from(self.gated)));
        record.insert("tasks".into(), number(u8::from(self.tasks)));
        record.insert("created_at".into(), time(self.created_at));
        if let Some(end) = self.ends_at {
            record.insert("ends_at".into(), time(end));
        }
        if let Some(subject) = &self.subject {
            record.insert("subject".into(), text(subject));
        }
        record
    }
}

impl State {
    /// Writes an entry. Returns `false` if its secret is already listed.
    pub async fn add_access(&self, entry: &AccessEntry) -> Result<bool, StateError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(entry.record()))
            .condition_expression("attribute_not_exists(pk)")
            .send()
            .await;
        condition_held("store the access entry", put)
    }

    /// Reads the entry of the secret with this keyed hash, even if it's no longer valid.
    pub async fn access(&self, owner: &str) -> Result<Option<AccessEntry>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(ACCESS, owner)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the access entry", error))?;
        got.item().map(AccessEntry::read).transpose()
    }

    /// Reads the entry of a signed-in user, if it's valid at `now`.
    pub async fn access_of_user(
        &self,
        subject: &str,
        now: Timestamp,
    ) -> Result<Option<AccessEntry>, StateError> {
        let entry = self.access(&user_entry(subject)).await?;
        Ok(entry.filter(|entry| entry.kind == AccessKind::User && entry.is_valid(now)))
    }

    /// Lists all entries, oldest first.
    pub async fn list_access(&self) -> Result<Vec<AccessEntry>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :access")
            .expression_attribute_values(":access", text(ACCESS))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut entries = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list the access entries", error))?;
            entries.push(AccessEntry::read(&record)?);
        }
        entries.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.owner.cmp(&b.owner)));
        Ok(entries)
    }

    /// Removes an entry, after which its secret is no longer accepted. Safe to repeat.
    pub async fn revoke_access(&self, owner: &str) -> Result<(), StateError> {
        let deleted =
            self.client.delete_item().table_name(&self.table).set_key(Some(key(ACCESS, owner))).send().await;
        deleted.map(drop).map_err(|error| StateError::sdk("revoke the access entry", error))
    }
}

/// Limits of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderLimits {
    /// Maximum planned samples of one order, over all of its benchmarks.
    pub samples_per_order: u64,
    /// Maximum open runs of one owner.
    pub open_runs_per_owner: u64,
    /// Maximum open runs of all owners.
    pub open_runs: u64,
    /// Maximum orders of one owner in a minute.
    pub orders_per_minute_per_owner: u64,
    /// Maximum orders of all owners in a minute.
    pub orders_per_minute: u64,
}

impl OrderLimits {
    /// Limits of admins and of the user of this machine: high enough for any work, so that they only stop accidents.
    pub const TRUSTED: Self = Self {
        samples_per_order: 100_000_000,
        open_runs_per_owner: 1_000,
        open_runs: 1_000,
        orders_per_minute_per_owner: 600,
        orders_per_minute: 600,
    };
    /// Limits of all other callers.
    pub const EXPOSED: Self = Self {
        samples_per_order: 100_000,
        open_runs_per_owner: 10,
        open_runs: 100,
        orders_per_minute_per_owner: 10,
        orders_per_minute: 60,
    };

    /// Reads `BENCH_LIMIT_…`. `local` selects the defaults: [`OrderLimits::TRUSTED`] for a server that is bound to
    /// loopback, otherwise [`OrderLimits::EXPOSED`].
    ///
    /// # Errors
    /// One sentence that names the variable whose value isn't a whole number from 1.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>, local: bool) -> Result<Self, String> {
        let defaults = if local { Self::TRUSTED } else { Self::EXPOSED };
        let read = |name: &str, default: u64| {
            let Some(given) = var(name).filter(|value| !value.trim().is_empty()) else { return Ok(default) };
            let number = given.trim().parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("{name}: `{}` is not a whole number from 1", given.trim()))
        };
        Ok(Self {
            samples_per_order: read("BENCH_LIMIT_SAMPLES_PER_ORDER", defaults.samples_per_order)?,
            open_runs_per_owner: read("BENCH_LIMIT_OPEN_RUNS_PER_OWNER", defaults.open_runs_per_owner)?,
            open_runs: read("BENCH_LIMIT_OPEN_RUNS", defaults.open_runs)?,
            orders_per_minute_per_owner: read(
                "BENCH_LIMIT_ORDERS_PER_MINUTE_PER_OWNER",
                defaults.orders_per_minute_per_owner,
            )?,
            orders_per_minute: read("BENCH_LIMIT_ORDERS_PER_MINUTE", defaults.orders_per_minute)?,
        })
    }

    /// Returns the limits that apply to this owner's runs on a server with these limits. Runs that an exposed server
    /// itself owns are an admin's.
    #[must_use]
    pub fn for_owner(self, owner: &Owner, local: bool) -> Self {
        if *owner == Owner::Local && !local { Self::TRUSTED } else { self }
    }
}

/// Limit that an order reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitScope {
    /// The limit of one owner.
    Owner,
    /// The limit of all owners together.
    Total,
}

impl State {
    /// Counts an order in the current minute, for its owner and in total. Returns the limit that rejects it, if any.
    pub async fn count_order(
        &self,
        owner: &Owner,
        limits: &OrderLimits,
        now: Timestamp,
    ) -> Result<Option<LimitScope>, StateError> {
        // The owner is counted first, so that rejected callers don't use up the total that others share.
        if !self.count_in_minute(&owner.key_name(), limits.orders_per_minute_per_owner, now).await? {
            return Ok(Some(LimitScope::Owner));
        }
        let counted = self.count_in_minute(EVERYBODY, limits.orders_per_minute, now).await?;
        Ok((!counted).then_some(LimitScope::Total))
    }

    async fn count_in_minute(&self, whose: &str, limit: u64, now: Timestamp) -> Result<bool, StateError> {
        let minute = now.as_micros().div_euclid(MINUTE_US);
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(format!("RATE#{whose}"), format!("{minute:010}"))))
            .update_expression("ADD orders :one SET expires_at = :expires")
            .condition_expression("attribute_not_exists(orders) OR orders < :limit")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":limit", number(limit))
            .expression_attribute_values(":expires", number(expires_at(now, FORGET_RATE_AFTER_S)))
            .send()
            .await;
        condition_held("count the order", update)
    }

    /// Returns the number of open runs of this owner, and of all owners.
    pub async fn open_runs(&self, owner: &Owner) -> Result<(u64, u64), StateError> {
        let count = |sort: String| async move {
            let got = self
                .client
                .get_item()
                .table_name(&self.table)
                .set_key(Some(key(OPEN, sort)))
                .consistent_read(true)
                .send()
                .await
                .map_err(|error| StateError::sdk("read the count of open runs", error))?;
            let runs =
                got.item().map(|record| Reader::new(record).number_or::<i64>("runs", 0)).transpose()?;
            Ok::<_, StateError>(u64::try_from(runs.unwrap_or(0)).unwrap_or(0))
        };
        Ok((count(owner.key_name()).await?, count(EVERYBODY.to_owned()).await?))
    }

    /// Counts a run as open, in the transaction that opens it: first for its owner, then in total.
    pub(crate) fn open_items(
        &self,
        owner: &Owner,
        limits: Option<&OrderLimits>,
    ) -> Result<[TransactWriteItem; 2], StateError> {
        Ok([
            self.open_item(owner.key_name(), 1, limits.map(|limits| limits.open_runs_per_owner))?,
            self.open_item(EVERYBODY.to_owned(), 1, limits.map(|limits| limits.open_runs))?,
        ])
    }

    /// Stops counting a run as open, in the transaction that ends it.
    pub(crate) fn close_items(&self, owner: &Owner) -> Result<[TransactWriteItem; 2], StateError> {
        Ok([self.open_item(owner.key_name(), -1, None)?, self.open_item(EVERYBODY.to_owned(), -1, None)?])
    }

    fn open_item(
        &self,
        whose: String,
        added: i32,
        limit: Option<u64>,
    ) -> Result<TransactWriteItem, StateError> {
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(OPEN, whose)))
            .update_expression("ADD runs :added")
            .expression_attribute_values(":added", number(added));
        if let Some(limit) = limit {
            update = update
                .condition_expression("attribute_not_exists(runs) OR runs < :limit")
                .expression_attribute_values(":limit", number(limit));
        }
        let update = update.build().map_err(|error| StateError::damaged("count of open runs", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(name: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
        move |wanted| (wanted == name).then(|| value.to_owned())
    }

    #[test]
    fn tokens_are_long_and_distinct() {
        let (one, other) = (new_access_token().unwrap(), new_access_token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.expose().len(), TOKEN_PREFIX.len() + 64);
        assert!(is_access_token(&one) && !is_access_token(&Secret::new("sk-bra_").unwrap()));
    }

    #[test]
    fn limits_have_defaults_for_each_kind_of_server() {
        let none = |_: &str| None;
        let local = OrderLimits::from_vars(none, true).unwrap();
        assert!(local.open_runs >= 75 && local.samples_per_order >= 28_000);
        let exposed = OrderLimits::from_vars(var("BENCH_LIMIT_OPEN_RUNS", "3"), false).unwrap();
        assert_eq!(exposed, OrderLimits { open_runs: 3, ..OrderLimits::EXPOSED });
        assert_eq!(exposed.for_owner(&Owner::Local, false), OrderLimits::TRUSTED);
        assert_eq!(exposed.for_owner(&Owner::Key("x".into()), false), exposed);
        for bad in ["0", "-1", "many"] {
            let error = OrderLimits::from_vars(var("BENCH_LIMIT_OPEN_RUNS", bad), true).unwrap_err();
            assert!(error.starts_with("BENCH_LIMIT_OPEN_RUNS"), "{error}");
        }
    }
}
