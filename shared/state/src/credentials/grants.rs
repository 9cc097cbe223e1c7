//! Tokens that users granted to their sessions, encrypted like callers' keys. The context of a grant begins with
//! `grant:`, so a function's role can be limited to grants.
//!
//! A grant is renewed by one process at a time: by the one that has the claim, a conditional write. A claim lapses after a
//! minute. The grant's version is in the conditions of all writes, so a late process can't undo a renewal.

use std::borrow::Cow;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use bench_domain::{Secret, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Credentials, SealedKey, secret};
use crate::StateError;
use crate::attributes::{Reader, Record, number, text, time};
use crate::client::{condition_held, expires_at};

/// Time after which another process may renew a grant.
const CLAIM_LEASE: Duration = Duration::from_secs(60);
/// Seconds that a grant is kept after its session's end.
const FORGET_AFTER_S: i64 = 3_600;

/// Tokens that a user granted to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Token that pays for calls of models.
    pub access: Secret,
    /// Token that renews the other.
    pub refresh: Option<Secret>,
    /// Time at which the access token was issued.
    pub issued_at: Timestamp,
    /// Time at which the access token expires; `None` if the provider doesn't say.
    pub expires_at: Option<Timestamp>,
    /// Number of renewals.
    pub version: u64,
    /// End of the session.
    pub ends_at: Timestamp,
}

/// Sealed part of a grant.
#[derive(Serialize, Deserialize)]
struct Tokens<'a> {
    access: Cow<'a, str>,
    #[serde(default)]
    refresh: Option<Cow<'a, str>>,
}

fn grant_key(session: &SessionId) -> Record {
    Record::from([("pk".to_owned(), text(format!("GRANT#{session}")))])
}

/// Returns the context for sealing the grant of a session.
fn context(session: &SessionId) -> String {
    format!("grant:{session}")
}

impl Credentials {
    /// Encrypts a grant, to be stored together with its session.
    pub async fn seal_grant(&self, session: &SessionId, grant: &Grant) -> Result<SealedKey, StateError> {
        let (record, tokens) = grant_record(session, grant)?;
        self.seal_record(record, &context(session), &tokens).await
    }

    /// Returns the grant of a session; `None` if there is none, if it was removed, or if the session is over at `now`.
    pub async fn grant(&self, session: &SessionId, now: Timestamp) -> Result<Option<Grant>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(grant_key(session)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the session's grant", error))?;
        let Some(record) = got.item() else { return Ok(None) };
        let reader = Reader::new(record);
        let ends_at = reader.time("ends_at")?;
        if now >= ends_at {
            return Ok(None);
        }
        let Some(tokens) = self.open_sealed(record, &context(session)).await? else { return Ok(None) };
        let tokens: Tokens<'_> = serde_json::from_str(tokens.expose())
            .map_err(|_| secret("opened", "the session's grant can't be read"))?;
        let access = Secret::new(tokens.access);
        Ok(Some(Grant {
            access: access.ok_or_else(|| secret("opened", "the session's grant has no token"))?,
            refresh: tokens.refresh.and_then(Secret::new),
            issued_at: reader.time("token_issued_at")?,
            expires_at: reader.maybe_time("token_expires_at")?,
            version: reader.number_or("version", 0)?,
            ends_at,
        }))
    }

    /// Claims the renewal of a grant. Returns false if another process has the claim, or has renewed or removed the grant.
    pub async fn claim_renewal(
        &self,
        session: &SessionId,
        grant: &Grant,
        now: Timestamp,
    ) -> Result<bool, StateError> {
        let claimed = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(grant_key(session)))
            .update_expression("SET claimed_until = :until")
            .condition_expression(
                "version = :version AND (attribute_not_exists(claimed_until) OR claimed_until <= :now)",
            )
            .expression_attribute_values(":until", time(now.plus(CLAIM_LEASE)))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":version", number(grant.version))
            .send()
            .await;
        condition_held("claim the renewal of the session's grant", claimed)
    }

    /// Shortens a claim after a failed renewal, so that any process may try again at `until`. Does nothing if the grant was renewed
    /// or removed.
    pub async fn defer_renewal(
        &self,
        session: &SessionId,
        grant: &Grant,
        until: Timestamp,
    ) -> Result<(), StateError> {
        let deferred = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(grant_key(session)))
            .update_expression("SET claimed_until = :until")
            .condition_expression("version = :version")
            .expression_attribute_values(":until", time(until))
            .expression_attribute_values(":version", number(grant.version))
            .send()
            .await;
        condition_held("defer the renewal of the session's grant", deferred).map(drop)
    }

    /// Stores a renewed grant, which ends the claim. Returns false if its predecessor was removed or renewed by another process.
    pub async fn store_renewed(&self, session: &SessionId, grant: &Grant) -> Result<bool, StateError> {
        let (record, tokens) = grant_record(session, grant)?;
        let record = self.sealed(record, &context(session), &tokens).await?;
        let sealed = record.get("sealed").cloned().unwrap_or_else(|| AttributeValue::Null(true));
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(record))
            // The second is this write, sent again after its response was lost.
            .condition_expression("version = :before OR sealed = :sealed")
            .expression_attribute_values(":before", number(grant.version.saturating_sub(1)))
            .expression_attribute_values(":sealed", sealed)
            .send()
            .await;
        condition_held("store the session's renewed grant", put)
    }

    /// Removes the grant of a session. Safe to repeat.
    pub async fn delete_grant(&self, session: &SessionId) -> Result<(), StateError> {
        let deleted =
            self.client.delete_item().table_name(&self.table).set_key(Some(grant_key(session))).send().await;
        deleted.map(drop).map_err(|error| StateError::sdk("remove the session's grant", error))
    }
}

/// Returns the record of a grant without its tokens, and the tokens to seal.
fn grant_record(session: &SessionId, grant: &Grant) -> Result<(Record, Secret), StateError> {
    let tokens = Tokens {
        access: grant.access.expose().into(),
        refresh: grant.refresh.as_ref().map(|token| token.expose().into()),
    };
    let tokens = serde_json::to_string(&tokens).ok().and_then(Secret::new);
    let tokens = tokens.ok_or_else(|| secret("sealed", "the session's grant can't be written"))?;
    let mut record = grant_key(session);
    record.insert("version".to_owned(), number(grant.version));
    record.insert("ends_at".to_owned(), time(grant.ends_at));
    record.insert("token_issued_at".to_owned(), time(grant.issued_at));
    record.insert("expires_at".to_owned(), number(expires_at(grant.ends_at, FORGET_AFTER_S)));
    if let Some(end) = grant.expires_at {
        record.insert("token_expires_at".to_owned(), time(end));
    }
    Ok((record, tokens))
}
