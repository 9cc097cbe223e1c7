//! Finds objects by name or id, if they belong to the sandbox.
//!
//! Objects of others are reported like objects that don't exist. Calls go on with the full id, so a name that moves to
//! another object after the check has no effect.

use http::{Method, StatusCode};
use serde_json::Value;

use super::Shared;
use super::images::id_of;
use crate::client::ClientError;
use crate::refusal::Refusal;
use crate::rules::{is_image_id, tagged_name};

impl Shared {
    /// Returns the full id of a container of this sandbox.
    pub(super) async fn own_container(&self, name: &str) -> Result<String, Refusal> {
        let found = self.inspect("container", &format!("/containers/{name}/json"), name).await?;
        self.own_id("container", name, &found["Config"]["Labels"], &found["Id"])
    }

    /// Returns the full id of a network of this sandbox.
    pub(super) async fn own_network(&self, name: &str) -> Result<String, Refusal> {
        let found = self.inspect("network", &format!("/networks/{name}"), name).await?;
        self.own_id("network", name, &found["Labels"], &found["Id"])
    }

    /// Returns the name of a volume of this sandbox.
    pub(super) async fn own_volume(&self, name: &str) -> Result<String, Refusal> {
        let found = self.inspect("volume", &format!("/volumes/{name}"), name).await?;
        self.own_id("volume", name, &found["Labels"], &found["Name"])
    }

    /// Returns the id of a command in a container of this sandbox.
    pub(super) async fn own_exec(&self, id: &str) -> Result<String, Refusal> {
        let found = self.inspect("exec instance", &format!("/exec/{id}/json"), id).await?;
        let not_found = || Refusal::NotFound { kind: "exec instance", name: id.to_owned() };
        let container = found["ContainerID"].as_str().ok_or_else(not_found)?;
        self.own_container(container).await.map_err(|refusal| match refusal {
            Refusal::NotFound { .. } => not_found(),
            refusal => refusal,
        })?;
        Ok(found["ID"].as_str().filter(|full| is_id(full)).ok_or_else(not_found)?.to_owned())
    }

    /// Returns the description of an image that this sandbox may use, by its name, or by its id if the sandbox built it.
    ///
    /// The engine is asked for the full name: it would take a short one for the beginning of an id, too, and podman for a place
    /// on this machine.
    pub(super) async fn usable_image(&self, reference: &str) -> Result<Value, Refusal> {
        let not_found = || Refusal::NotFound { kind: "image", name: reference.to_owned() };
        let name = tagged_name(reference);
        let asked = match &name {
            Some(name) => name.as_str(),
            None if is_image_id(reference) => reference,
            None => return Err(not_found()),
        };
        let found = self.inspect("image", &format!("/images/{asked}/json"), reference).await?;
        let is_usable = name.is_some_and(|name| self.rules.images.is_usable(&name));
        match is_usable || self.rules.owner.owns(&found["Config"]["Labels"]) {
            true => Ok(found),
            false => Err(not_found()),
        }
    }

    /// Checks that the sandbox may run an image or build on it, also if it has to be pulled. Returns the full name or the id by
    /// which the engine finds no other image.
    pub(super) async fn check_image(&self, reference: &str) -> Result<String, Refusal> {
        // The engine would ask this machine for an image of `localhost` that it doesn't have.
        if let Some(name) = tagged_name(reference)
            && self.rules.images.is_usable(&name)
            && !name.starts_with("localhost/")
        {
            return Ok(name);
        }
        match self.usable_image(reference).await {
            Ok(found) => Ok(id_of(&found)),
            Err(Refusal::NotFound { .. }) => Err(self.rules.images.refuse_use(reference)),
            Err(refusal) => Err(refusal),
        }
    }

    /// Checks a name that the sandbox gives to an image: it may replace only its own images, since others are used by other
    /// sandboxes.
    pub(super) async fn check_new_name(&self, reference: &str) -> Result<(), Refusal> {
        self.rules.images.check_own(reference)?;
        match self.usable_image(reference).await {
            Ok(found) if !self.rules.owner.owns(&found["Config"]["Labels"]) => {
                Err(Refusal::NameTaken { image: reference.to_owned() })
            }
            Ok(_) | Err(Refusal::NotFound { .. }) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Checks a network or volume that a new container names. Clients take "not found" for a missing image.
    pub(super) fn needed<T>(&self, found: Result<T, Refusal>) -> Result<T, Refusal> {
        found.map_err(|refusal| match refusal {
            Refusal::NotFound { kind, name } => {
                Refusal::field(format!("{kind}: {name}"), format!("a {kind} that this sandbox created"))
            }
            refusal => refusal,
        })
    }

    async fn inspect(&self, kind: &'static str, address: &str, name: &str) -> Result<Value, Refusal> {
        let not_found = || Refusal::NotFound { kind, name: name.to_owned() };
        // Names from bodies didn't pass the check of paths.
        crate::request::ApiPath::parse(address).map_err(|_| not_found())?;
        let (status, found) = self.client.call(Method::GET, address, None).await?;
        match status {
            StatusCode::OK => Ok(found),
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => Err(not_found()),
            status => Err(Refusal::Engine(ClientError::Refused {
                call: format!("GET {address}"),
                status: status.as_u16(),
                message: found["message"].as_str().unwrap_or("no message").to_owned(),
            })),
        }
    }

    fn own_id(&self, kind: &'static str, name: &str, labels: &Value, id: &Value) -> Result<String, Refusal> {
        match id.as_str() {
            Some(id) if self.rules.owner.owns(labels) && is_id(id) => Ok(id.to_owned()),
            _ => Err(Refusal::NotFound { kind, name: name.to_owned() }),
        }
    }
}

/// Returns true for ids and names that are one part of a path.
fn is_id(id: &str) -> bool {
    !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && id != ".."
}
