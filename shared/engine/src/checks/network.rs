//! Bodies of `networks/create`, `connect` and `disconnect`, and settings of a container in a network.

use serde_json::{Value, json};

use super::container::NOTHING;
use super::fields::Rule::{Elsewhere, Flag, OneOf, Text, TextMap, Texts, Unset};
use super::fields::{Rule, check_fields, is_unset, join};
use super::values::own_labels;
use super::volume::is_name;
use crate::refusal::Refusal;
use crate::rules::{NetworkPolicy, SandboxRules};

const NETWORK: &[(&str, Rule)] = &[
    ("Name", Text),
    ("CheckDuplicate", Flag),
    ("Driver", OneOf(&["", "bridge", "default"])),
    ("Scope", OneOf(&["", "local"])),
    ("Internal", Flag),
    ("Attachable", Flag),
    ("Ingress", Unset("`false`")),
    ("ConfigOnly", Unset("`false`")),
    ("ConfigFrom", Elsewhere),
    ("EnableIPv4", Flag),
    ("EnableIPv6", Unset("`false`")),
    ("IPAM", Elsewhere),
    ("Options", Unset("no options of the driver")),
    ("Labels", TextMap),
];
const IPAM: &[(&str, Rule)] = &[
    ("Driver", OneOf(&["", "default"])),
    ("Options", NOTHING),
    ("Config", Unset("addresses that the engine chooses")),
];
const ENDPOINT: &[(&str, Rule)] = &[
    ("IPAMConfig", Unset("addresses that the engine chooses")),
    ("Links", Unset("no links")),
    ("Aliases", Texts),
    ("DNSNames", Texts),
    ("DriverOpts", NOTHING),
    ("NetworkID", Elsewhere),
    ("EndpointID", NOTHING),
    ("Gateway", NOTHING),
    ("IPAddress", NOTHING),
    ("IPPrefixLen", NOTHING),
    ("IPv6Gateway", NOTHING),
    ("GlobalIPv6Address", NOTHING),
    ("GlobalIPv6PrefixLen", NOTHING),
    ("MacAddress", NOTHING),
    ("GwPriority", Elsewhere),
];

/// Option of both engines that names the interface of a network on this machine.
pub(crate) const INTERFACE_OPTION: &str = "com.docker.network.bridge.name";

/// A container that is connected to a network or disconnected from it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) container: String,
}

/// Checks the body of `networks/create`, and forces labels and, without a network, isolation from the outside.
pub(crate) fn check_network(body: &mut Value, rules: &SandboxRules) -> Result<String, Refusal> {
    let fields = check_fields("", body, NETWORK)?;
    own_labels("", fields, &rules.owner)?;
    if let Some(ipam) = fields.get_mut("IPAM") {
        check_fields("IPAM", ipam, IPAM)?;
    }
    if fields
        .remove("ConfigFrom")
        .is_some_and(|from| !from["Network"].is_null() && !is_unset(&from["Network"]))
    {
        return Err(Refusal::field("ConfigFrom", "no other network's configuration"));
    }
    if rules.network == NetworkPolicy::None {
        // The firewall closes the gap to this machine.
        fields.insert("Internal".to_owned(), true.into());
    }
    fields.insert("Driver".to_owned(), "bridge".into());
    let name = fields.get("Name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_special = matches!(name.as_str(), "none" | "host" | "bridge" | "default" | "podman" | "private");
    if is_special || !is_name(&name) {
        return Err(Refusal::field(
            "Name",
            "letters, digits and `_.-`, other than names that engines reserve",
        ));
    }
    Ok(name)
}

/// Returns the body that creates the default network of a sandbox.
pub(crate) fn default_network(rules: &SandboxRules) -> Value {
    let mut labels = serde_json::Map::new();
    rules.owner.write_into(&mut labels);
    json!({
        "Name": rules.owner.default_network(),
        "Driver": "bridge",
        "Internal": rules.network == NetworkPolicy::None,
        "Labels": labels,
    })
}

/// Names the interface of a checked network, which has no other options.
pub(crate) fn name_interface(body: &mut Value, interface: &str) {
    body["Options"] = json!({ INTERFACE_OPTION: interface });
}

/// Checks the settings of a container in a network.
pub(super) fn check_endpoint(place: &str, value: &mut Value) -> Result<(), Refusal> {
    let fields = check_fields(place, value, ENDPOINT)?;
    // The network is named by its key; an id could name another one.
    fields.remove("NetworkID");
    fields.remove("GwPriority");
    Ok(())
}

/// Checks the body of `networks/{id}/connect`.
pub(crate) fn check_connect(body: &mut Value) -> Result<Connection, Refusal> {
    let fields = check_fields("", body, &[("Container", Text), ("EndpointConfig", Elsewhere)])?;
    if let Some(endpoint) = fields.get_mut("EndpointConfig") {
        check_endpoint(&join("", "EndpointConfig"), endpoint)?;
    }
    container_of(body)
}

/// Checks the body of `networks/{id}/disconnect`.
pub(crate) fn check_disconnect(body: &mut Value) -> Result<Connection, Refusal> {
    check_fields("", body, &[("Container", Text), ("Force", Flag)])?;
    container_of(body)
}

fn container_of(body: &Value) -> Result<Connection, Refusal> {
    let container = body["Container"].as_str().unwrap_or_default();
    if !is_name(container) {
        return Err(Refusal::field("Container", "the id or name of a container"));
    }
    Ok(Connection { container: container.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Owner;

    #[test]
    fn networks_of_a_closed_sandbox_are_internal() {
        let rules = SandboxRules::new(Owner::new("i1", "s1").unwrap());
        let mut body = json!({ "Name": "n1", "Internal": false });
        assert_eq!(check_network(&mut body, &rules).unwrap(), "n1");
        name_interface(&mut body, "bx0");
        assert_eq!((&body["Internal"], &body["Driver"]), (&json!(true), &json!("bridge")));
        assert_eq!(body["Options"], json!({ "com.docker.network.bridge.name": "bx0" }));
        assert_eq!(default_network(&rules)["Internal"], true);
        // A sandbox names no interface.
        let mut body = json!({ "Name": "n1", "Options": { "com.docker.network.bridge.name": "eth0" } });
        assert!(check_network(&mut body, &rules).is_err());
    }
}
