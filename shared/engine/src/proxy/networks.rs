//! Calls on networks.

use http::{Method, Response};
use hyper::body::Incoming;

use super::Shared;
use super::dispatch::Call;
use super::forward::json_response;
use crate::checks::{check_connect, check_disconnect, check_network, default_network};
use crate::cleanup::{OwnKind, own_ids};
use crate::client::AnyBody;
use crate::context::Builder;
use crate::firewall::Reach;
use crate::refusal::Refusal;
use crate::rules::NetworkPolicy;

impl Shared {
    /// Creates a network with the sandbox's label, and limits its reach before a container can join it.
    pub(super) async fn create_network(
        &self,
        call: Call,
        mut body: Incoming,
    ) -> Result<Response<AnyBody>, Refusal> {
        let mut body = self.read_json(&mut body).await?;
        check_network(&mut body, &self.rules)?;
        let _creating = self.creating.lock().await;
        self.count_networks().await?;
        let is_internal = body["Internal"] == true;
        let (status, created) = self.client.call(Method::POST, &call.address(""), Some(&body)).await?;
        if let Some(id) = created["Id"].as_str().filter(|_| status.is_success()) {
            self.limit_network(id, is_internal).await?;
        }
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

    /// Limits the reach of a new network. Removes the network if that fails.
    async fn limit_network(&self, id: &str, is_internal: bool) -> Result<(), Refusal> {
        let reach = match self.rules.network {
            NetworkPolicy::Unfiltered => return Ok(()),
            NetworkPolicy::Public if !is_internal => Reach::Public,
            NetworkPolicy::Public | NetworkPolicy::None => Reach::Closed,
        };
        let limited = async {
            let Some(firewall) = &self.firewall else {
                return Err("nftables are not available to the host".to_owned());
            };
            let interface = self.interface_of(id).await?;
            // Podman's name server is on this machine, and also answers for names outside a closed network.
            let has_dns = self.builder == Builder::Buildah && reach == Reach::Public;
            firewall.limit(&interface, reach, has_dns).await?;
            self.interfaces.lock().await.insert(id.to_owned(), interface);
            Ok(())
        };
        if let Err(reason) = limited.await {
            self.client.expect(Method::DELETE, &format!("/networks/{id}"), None).await?;
            return Err(Refusal::field(
                "network",
                format!("no networks, since they can't be limited: {reason}"),
            ));
        }
        Ok(())
    }

    /// Returns the name of a network's interface on this machine.
    async fn interface_of(&self, id: &str) -> Result<String, String> {
        if self.builder == Builder::Classic {
            // The name that dockerd gives to a network without options.
            return Ok(format!("br-{}", id.get(..12).unwrap_or_default()));
        }
        let address = format!("/v4.0.0/libpod/networks/{id}/json");
        let found =
            self.client.expect(Method::GET, &address, None).await.map_err(|error| error.to_string())?;
        let interface = found["network_interface"].as_str().map(str::to_owned);
        interface.ok_or_else(|| "podman doesn't name the network's interface".to_owned())
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
                let (status, answer) =
                    self.client.call(Method::POST, "/networks/create", Some(&body)).await?;
                if let Some(id) = answer["Id"].as_str().filter(|_| status.is_success()) {
                    return self.limit_network(id, self.rules.network == NetworkPolicy::None).await;
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
