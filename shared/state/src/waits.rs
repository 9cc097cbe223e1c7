//! Shared backpressure: times at which providers may be called again.
//!
//! While a wait lasts, only *probes* are sent: single requests, whose answers end the wait early. A probe is taken by a
//! conditional write, so that one process sends it for all.

use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::{ModelRole, Timestamp};

use crate::attributes::{Reader, number, text, time};
use crate::client::{condition_held, expires_at};
use crate::keys::key;
use crate::{State, StateError, WaitKind};

/// Seconds that a wait is kept after its end.
const FORGET_AFTER_S: i64 = 3_600;

/// Requests that share a wait: those with one credential to one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitKey {
    /// Name or keyed hash of the key that pays. Never the key itself.
    pub credential: String,
    /// Model and base URL.
    pub model: String,
}

impl WaitKey {
    /// Creates the key of the requests of an owner's runs to a model.
    pub fn new(model: &ModelRef, role: ModelRole, auth: AuthMode, owner: &Owner) -> Self {
        let credential = match (auth, role) {
            (AuthMode::System, _) => "system".to_owned(),
            // The user's account, whichever token of it is sent, and for whichever role.
            (AuthMode::Idp, _) => owner.key_name(),
            (AuthMode::ApiKey, ModelRole::Model) => owner_name(owner),
            // The owner is identified by the model's key; these are bound to it.
            (AuthMode::ApiKey, ModelRole::Judge) => format!("judge:{}", owner_name(owner)),
            (AuthMode::ApiKey, ModelRole::UserModel) => format!("user:{}", owner_name(owner)),
        };
        let address = model.base_url.as_deref().unwrap_or_default();
        Self { credential, model: format!("{}@{address}", model.qualified()) }
    }
}

fn owner_name(owner: &Owner) -> String {
    match owner {
        Owner::Key(hash) => hash.clone(),
        Owner::Local | Owner::User(_) => owner.key_name(),
    }
}

/// Wait that a provider asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedWait {
    /// Earliest time at which the provider may be called again, except for probes.
    pub until: Timestamp,
    /// Reason for the wait.
    pub kind: WaitKind,
    /// Time of the latest refusal or probe.
    pub asked_at: Timestamp,
    /// True if the response to the latest probe isn't known yet.
    pub is_probing: bool,
}

impl State {
    /// Returns the wait of all requests with this key; `None` if no wait is known. Its end may have passed.
    pub async fn shared_wait(&self, shared: &WaitKey) -> Result<Option<SharedWait>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(record_key(shared)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the provider's wait", error))?;
        let Some(record) = got.item() else { return Ok(None) };
        let reader = Reader::new(record);
        // Older versions stored no reason and no time of the latest request.
        let kind = match reader.maybe_text("wait_kind") == Some(WaitKind::Unavailable.as_str()) {
            true => WaitKind::Unavailable,
            false => WaitKind::RateLimited,
        };
        Ok(Some(SharedWait {
            until: reader.time("not_before")?,
            kind,
            asked_at: reader.maybe_time("asked_at")?.unwrap_or_default(),
            is_probing: reader.number_or("probing", 0_u8)? == 1,
        }))
    }

    /// Makes all requests with this key wait until `until`, because the provider refused one at `now`. Changes nothing if
    /// they already wait longer.
    pub async fn extend_wait(
        &self,
        shared: &WaitKey,
        until: Timestamp,
        kind: WaitKind,
        now: Timestamp,
    ) -> Result<(), StateError> {
        let put = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(record_key(shared)))
            .update_expression(
                "SET not_before = :until, wait_kind = :kind, asked_at = :now, expires_at = :expires REMOVE probing",
            )
            .condition_expression("attribute_not_exists(not_before) OR not_before < :until")
            .expression_attribute_values(":until", time(until))
            .expression_attribute_values(":kind", text(kind.as_str()))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":expires", number(expires_at(until, FORGET_AFTER_S)))
            .send()
            .await;
        condition_held("note the provider's wait", put).map(drop)
    }

    /// Takes the probe of a wait. Returns false if another process took it or the wait has changed: then the caller must
    /// not send a request.
    pub async fn take_probe(
        &self,
        shared: &WaitKey,
        wait: &SharedWait,
        now: Timestamp,
    ) -> Result<bool, StateError> {
        let never_asked = wait.asked_at == Timestamp::default();
        let put = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(record_key(shared)))
            .update_expression("SET asked_at = :now, probing = :yes")
            .condition_expression(match never_asked {
                true => "not_before = :until AND attribute_not_exists(asked_at)",
                false => "not_before = :until AND asked_at = :last",
            })
            .expression_attribute_values(":until", time(wait.until))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":yes", number(1));
        let put = match never_asked {
            true => put,
            false => put.expression_attribute_values(":last", time(wait.asked_at)),
        };
        condition_held("take the provider's probe", put.send().await)
    }

    /// Sets the end of a wait after the probe that was taken at `probed_at`: later, if the provider refused it, or `now`
    /// if the provider answers again. Changes nothing if another request has extended the wait meanwhile.
    pub async fn end_probe(
        &self,
        shared: &WaitKey,
        probed_at: Timestamp,
        until: Timestamp,
        kind: WaitKind,
    ) -> Result<(), StateError> {
        let put = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(record_key(shared)))
            .update_expression(
                "SET not_before = :until, wait_kind = :kind, expires_at = :expires REMOVE probing",
            )
            .condition_expression("asked_at = :probed")
            .expression_attribute_values(":until", time(until))
            .expression_attribute_values(":kind", text(kind.as_str()))
            .expression_attribute_values(":probed", time(probed_at))
            .expression_attribute_values(":expires", number(expires_at(until, FORGET_AFTER_S)))
            .send()
            .await;
        condition_held("end the provider's probe", put).map(drop)
    }
}

fn record_key(shared: &WaitKey) -> crate::attributes::Record {
    key(format!("WAIT#{}#{}", shared.credential, shared.model), "WAIT")
}
