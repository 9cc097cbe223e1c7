//! Calls on volumes.

use http::{Method, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Shared;
use super::dispatch::Call;
use crate::checks::check_volume;
use crate::cleanup::{OwnKind, own_ids};
use crate::client::AnyBody;
use crate::refusal::Refusal;

impl Shared {
    /// Creates a volume with the sandbox's label.
    pub(super) async fn create_volume(
        &self,
        call: Call,
        mut body: Incoming,
    ) -> Result<Response<AnyBody>, Refusal> {
        let mut body = self.read_json(&mut body).await?;
        let name = check_volume(&mut body, &self.rules.owner)?;
        let _creating = self.creating.lock().await;
        if name.is_empty() || !self.is_own_volume(&name).await? {
            self.count_volumes().await?;
        }
        self.short(&call, &call.address(""), Some(&body)).await
    }

    /// Shows or removes a volume of this sandbox.
    pub(super) async fn volume(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let name = self.own_volume(&call.name).await?;
        self.short(&call, &call.address(&name), None).await
    }

    /// Creates a volume that a container names, unless it exists. The engine would create it without a label.
    pub(super) async fn ensure_volume(&self, name: &str) -> Result<(), Refusal> {
        if self.is_own_volume(name).await? {
            return Ok(());
        }
        self.count_volumes().await?;
        let mut body = json!({ "Name": name, "Driver": "local" });
        check_volume(&mut body, &self.rules.owner)?;
        self.client.expect(Method::POST, "/volumes/create", Some(&body)).await?;
        // Creation of a volume that exists succeeds, whoever owns it.
        self.own_volume(name).await.map(drop)
    }

    /// Returns false if there is no such volume, and an error if it belongs to someone else.
    async fn is_own_volume(&self, name: &str) -> Result<bool, Refusal> {
        match self.own_volume(name).await {
            Ok(_) => Ok(true),
            Err(Refusal::NotFound { kind, name }) => {
                let exists = self.client.call(Method::GET, &format!("/volumes/{name}"), None).await?.1;
                if matches!(exists["Name"], Value::String(_)) {
                    return Err(Refusal::NotFound { kind, name });
                }
                Ok(false)
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn count_volumes(&self) -> Result<(), Refusal> {
        let max = self.rules.limits.volumes_max;
        if own_ids(&self.client, OwnKind::Volume, &self.rules.owner).await?.len() >= max {
            return Err(Refusal::Limit { what: "volumes".to_owned(), limit: max.to_string() });
        }
        Ok(())
    }
}
