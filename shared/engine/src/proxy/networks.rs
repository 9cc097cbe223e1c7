//! Calls on networks.

use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;

use super::Shared;
use super::dispatch::Call;
use super::forward::json_response;
use crate::checks::{
    INTERFACE_OPTION, check_connect, check_disconnect, check_network, default_network, name_interface,
};
use crate::cleanup::{OwnKind, own_ids};
use crate::client::AnyBody;
use crate::context::Builder;
use crate::firewall::{INTERFACE_CHARS_MAX, Reach};
use crate::network_traces::INTERFACE_PREFIX;
use crate::refusal::Refusal;
use crate::rules::NetworkPolicy;

impl Shared {
    /// Creates a network with the sandbox's label. Its reach is limited before it exists.
    pub(super) async fn create_network(
        &self,
        call: Call,
        mut body: Incoming,
    ) -> Result<Response<AnyBody>, Refusal> {
        let mut body = self.read_json(&mut body).await?;
        check_network(&mut body, &self.rules)?;
        let _creating = self.creating.lock().await;
        self.count_networks().await?;
        let (status, created) = self.create_limited(&call.address(""), body).await?;
        let mut response = json_response(&created);
        *response.status_mut() = status;
        Ok(response)
    }

    /// Shows or removes a network of this sandbox.
    pub(super) async fn network(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let id = self.own_network(&call.name).await?;
        let response = self.short(&call, &call.address(&id), None).await?;
        if call.method == Method::DELETE
            && response.status().is_success()
            && let Some(interface) = self.interfaces.lock().await.remove(&id)
            && let Some(firewall) = &self.firewall
        {
            firewall.forget(&interface).await;
        }
        Ok(response)
    }

    /// Limits the reach of a network that an earlier proxy of this sandbox created.
    pub(super) async fn ensure_limited(&self, id: &str) -> Result<(), Refusal> {
        if self.interfaces.lock().await.contains_key(id) {
            return Ok(());
        }
        let found = self.client.expect(Method::GET, &format!("/networks/{id}"), None).await?;
        self.limit_network(id, found["Internal"] == true).await
    }

    /// Limits the reach of a new interface, and has the engine create a checked network on it. Returns the engine's
    /// answer.
    async fn create_limited(&self, address: &str, mut body: Value) -> Result<(StatusCode, Value), Refusal> {
        let interface = new_interface();
        name_interface(&mut body, &interface);
        self.limit(&interface, body["Internal"] == true).await?;
        let answer = self.client.call(Method::POST, address, Some(&body)).await;
        let created = answer.as_ref().ok().filter(|(status, _)| status.is_success());
        match created.and_then(|(_, created)| created["Id"].as_str()) {
            Some(id) => {
                self.interfaces.lock().await.insert(id.to_owned(), interface);
            }
            None => {
                if let Some(firewall) = &self.firewall {
                    firewall.forget(&interface).await;
                }
            }
        }
        Ok(answer?)
    }

    /// Limits the reach of a network that an earlier proxy created. Removes the network if that fails.
    async fn limit_network(&self, id: &str, is_internal: bool) -> Result<(), Refusal> {
        let limited = async {
            let interface = self.interface_of(id).await?;
            self.limit(&interface, is_internal).await?;
            self.interfaces.lock().await.insert(id.to_owned(), interface);
            Ok(())
        };
        if let Err(refusal) = limited.await {
            self.client.expect(Method::DELETE, &format!("/networks/{id}"), None).await?;
            return Err(refusal);
        }
        Ok(())
    }

    /// Limits the reach of an interface by the sandbox's rules.
    async fn limit(&self, interface: &str, is_internal: bool) -> Result<(), Refusal> {
        let reach = match self.rules.network {
            NetworkPolicy::Unfiltered => return Ok(()),
            NetworkPolicy::Public if !is_internal => Reach::Public,
            NetworkPolicy::Public | NetworkPolicy::None => Reach::Closed,
        };
        let Some(firewall) = &self.firewall else {
            return Err(unlimited("nftables are not available to the host"));
        };
        // Podman's name server is on this machine, and also answers for names outside a closed network.
        let has_dns = self.builder == Builder::Buildah && reach == Reach::Public;
        firewall.limit(interface, reach, has_dns).await.map_err(|reason| unlimited(&reason))
    }

    /// Returns the name of a network's interface on this machine.
    async fn interface_of(&self, id: &str) -> Result<String, Refusal> {
        if self.builder == Builder::Classic {
            let found = self.client.expect(Method::GET, &format!("/networks/{id}"), None).await?;
            if let Some(interface) = found["Options"][INTERFACE_OPTION].as_str() {
                return Ok(interface.to_owned());
            }
            // The name that dockerd gives to a network without options.
            return Ok(format!("br-{}", id.get(..12).unwrap_or_default()));
        }
        let found =
            self.client.expect(Method::GET, &format!("/v4.0.0/libpod/networks/{id}/json"), None).await?;
        let interface = found["network_interface"].as_str().map(str::to_owned);
        interface.ok_or_else(|| unlimited("podman doesn't name the network's interface"))
    }

    /// Removes the limits of all networks, which no longer exist.
    pub(super) async fn forget_interfaces(&self) {
        let interfaces = std::mem::take(&mut *self.interfaces.lock().await);
        if let Some(firewall) = &self.firewall {
            for interface in interfaces.values() {
                firewall.forget(interface).await;
            }
        }
    }

    /// Connects a container of this sandbox to one of its networks, or disconnects it.
    pub(super) async fn connect(
        &self,
        call: Call,
        mut body: Incoming,
        connects: bool,
    ) -> Result<Response<AnyBody>, Refusal> {
        let mut body = self.read_json(&mut body).await?;
        let connection = if connects { check_connect(&mut body)? } else { check_disconnect(&mut body)? };
        let network = self.own_network(&call.name).await?;
        if connects {
            self.ensure_limited(&network).await?;
        }
        body["Container"] = self.own_container(&connection.container).await?.into();
        self.short(&call, &call.address(&network), Some(&body)).await
    }

    /// Creates the network that containers without a choice use, unless it exists.
    pub(super) async fn ensure_default_network(&self) -> Result<(), Refusal> {
        let name = self.rules.owner.default_network();
        match self.own_network(&name).await {
            Ok(id) => self.ensure_limited(&id).await,
            Err(Refusal::NotFound { .. }) => {
                let body = default_network(&self.rules);
                let (status, answer) = self.create_limited("/networks/create", body).await?;
                if status.is_success() {
                    return Ok(());
                }
                let message = answer["message"].as_str().unwrap_or("no message");
                Err(Refusal::Malformed(format!("the sandbox's network can't be created: {message}")))
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn count_networks(&self) -> Result<(), Refusal> {
        let max = self.rules.limits.networks_max;
        if own_ids(&self.client, OwnKind::Network, &self.rules.owner).await?.len() >= max {
            return Err(Refusal::Limit { what: "networks".to_owned(), limit: max.to_string() });
        }
        Ok(())
    }
}

/// Returns a name for a network's interface that no other network has. Engines number their own names and use them again,
/// which would apply the rules that a killed process left behind to another network.
fn new_interface() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("{INTERFACE_PREFIX}{}", &id[..INTERFACE_CHARS_MAX - INTERFACE_PREFIX.len()])
}

fn unlimited(reason: &str) -> Refusal {
    Refusal::field("network", format!("no networks, since they can't be limited: {reason}"))
}
