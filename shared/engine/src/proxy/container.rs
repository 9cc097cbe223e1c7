//! Calls on containers.

use std::path::Path;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::Shared;
use super::dispatch::Call;
use super::forward::{Stream, json_response, limited};
use super::serve::Caller;
use super::size::asks_for_size;
use crate::checks::{check_create, check_exec, check_update};
use crate::cleanup::{OwnKind, own_ids};
use crate::client::{AnyBody, ClientError, full};
use crate::context::Builder;
use crate::emptying::{empty, folder_of};
use crate::refusal::Refusal;
use crate::request::ContainerCall;

impl Shared {
    /// Creates a container from objects that the sandbox may use.
    pub(super) async fn create_container(
        &self,
        call: Call,
        mut body: Incoming,
    ) -> Result<Response<AnyBody>, Refusal> {
        check_name(&call)?;
        let mut body = self.read_json(&mut body).await?;
        let needs = check_create(&mut body, &self.rules, &self.folders)?;
        let _creating = self.creating.lock().await;
        let existing = own_ids(&self.client, OwnKind::Container, &self.rules.owner).await?;
        let max = self.rules.limits.containers_max;
        if existing.len() >= max {
            return Err(Refusal::Limit { what: "containers".to_owned(), limit: max.to_string() });
        }
        self.forget_pins(|container| existing.contains(container));
        body["Image"] = self.check_image(&needs.image).await?.into();
        self.touch_image(&needs.image);
        for network in &needs.networks {
            let id = self.needed(self.own_network(network).await)?;
            self.ensure_limited(&id).await?;
        }
        for volume in &needs.volumes {
            self.needed(self.ensure_volume(volume).await)?;
        }
        if needs.default_network {
            self.ensure_default_network().await?;
        }
        let (status, created) = self.client.call(Method::POST, &call.address(""), Some(&body)).await?;
        if let Some(id) = created["Id"].as_str() {
            self.keep_pins(id, needs.pins);
            self.look_at_created(id).await?;
        }
        let mut response = json_response(&created);
        *response.status_mut() = status;
        Ok(response)
    }

    /// Removes a new container if the engine would give it the machine's own groups, and has its pipes watched.
    async fn look_at_created(&self, id: &str) -> Result<(), Refusal> {
        let address = match self.builder {
            Builder::Classic if self.pipes.is_none() => return Ok(()),
            Builder::Buildah => format!("/v4.0.0/libpod/containers/{id}/json"),
            Builder::Classic => format!("/containers/{id}/json"),
        };
        let (_, found) = self.client.call(Method::GET, &address, None).await?;
        if found["Config"]["SystemdMode"] == true {
            self.client.expect(Method::DELETE, &format!("/containers/{id}?force=1&v=1"), None).await?;
            self.forget_pins(|container| container != id);
            return Err(Refusal::field("Cmd", "any command but systemd or an `init` in its place"));
        }
        if let Some(pipes) = &self.pipes
            && let Some(layer) = folder_of(&found).as_deref().and_then(Path::parent)
        {
            pipes.add(layer);
        }
        Ok(())
    }

    /// Makes a call on a container of this sandbox.
    pub(super) async fn container(
        self: &Arc<Self>,
        mut call: Call,
        kind: ContainerCall,
        mut request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let id = self.own_container(&call.name).await?;
        match kind {
            ContainerCall::Short if asks_for_size(&call) => self.inspect_with_size(call, &id).await,
            ContainerCall::Start => {
                // A restart waits for the container's end.
                let limits = if call.path.ends_with("/restart") { self.stream() } else { Stream::short() };
                let response =
                    self.forward(call.method.clone(), &call.address(&id), full(""), limits).await?;
                if response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED {
                    self.check_health(id).await;
                }
                Ok(response)
            }
            ContainerCall::Short => {
                check_name(&call)?;
                self.short(&call, &call.address(&id), None).await
            }
            ContainerCall::Stream => {
                self.forward(call.method.clone(), &call.address(&id), full(""), self.stream()).await
            }
            ContainerCall::Upload => {
                let body = limited(request.into_body(), self.stream());
                self.forward(call.method.clone(), &call.address(&id), body, self.stream()).await
            }
            ContainerCall::Attach => {
                self.hijack(&call, &call.address(&id), request, None, caller.permit).await
            }
            ContainerCall::CreateExec => {
                let mut body = self.read_json(request.body_mut()).await?;
                check_exec(&mut body)?;
                self.short(&call, &call.address(&id), Some(&body)).await
            }
            ContainerCall::Update => {
                let mut body = self.read_json(request.body_mut()).await?;
                check_update(&mut body, &self.rules.limits)?;
                self.short(&call, &call.address(&id), Some(&body)).await
            }
            ContainerCall::Remove => {
                // Volumes without a name have no owner's label; they go with their container.
                call.query.set("v", "1");
                if call.query.is_set("force") {
                    // A client that has given up may try again.
                    let _emptying = self.emptying.lock().await;
                    empty(&self.client, &id).await?;
                }
                let response = self.short(&call, &call.address(&id), None).await?;
                if matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::OK) {
                    self.forget_pins(|container| container != id);
                }
                Ok(response)
            }
        }
    }
}

impl Shared {
    /// Returns the CPU time of all running containers of this sandbox, in seconds.
    pub(super) async fn cpu_seconds(&self) -> Result<f64, ClientError> {
        let mut seconds = 0.0;
        for id in own_ids(&self.client, OwnKind::Container, &self.rules.owner).await? {
            let address = format!("/containers/{id}/stats?stream=false&one-shot=true");
            // Those that have ended have no statistics.
            let (_, stats) = self.client.call(Method::GET, &address, None).await?;
            let nanoseconds = stats["cpu_stats"]["cpu_usage"]["total_usage"].as_f64();
            seconds += nanoseconds.unwrap_or_default() / 1e9;
        }
        Ok(seconds)
    }
}

/// Checks the parameter `name`, which becomes the name of a container.
fn check_name(call: &Call) -> Result<(), Refusal> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    match call.query.get("name") {
        Some(name) if name.len() > 128 || !name.bytes().all(is_allowed) => {
            Err(Refusal::Query { name: "name".to_owned(), allowed: "letters, digits and `_.-`".to_owned() })
        }
        _ => Ok(()),
    }
}

/// Reads a response that is JSON, with its status.
pub(super) async fn json_of(response: Response<AnyBody>) -> Result<(StatusCode, Value), Refusal> {
    let status = response.status();
    let bytes = response.into_body().collect().await;
    let bytes =
        bytes.map_err(|error| Refusal::Malformed(format!("the engine's response was cut off: {error}")))?;
    Ok((status, serde_json::from_slice(&bytes.to_bytes()).unwrap_or(Value::Null)))
}
