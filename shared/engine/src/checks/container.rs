//! Body of `containers/create`.

use serde_json::{Map, Value};

use super::fields::Rule::{Elsewhere, Flag, Null, Number, OneOf, Set, Text, TextMap, Texts, Unset};
use super::fields::{Rule, check_fields, join};
use super::host_config::check_host_config;
use super::network::check_endpoint;
use super::values::{check_variables, own_labels};
use crate::refusal::Refusal;
use crate::rules::{Folders, NetworkPolicy, Pin, SandboxRules};

const FIELDS: &[(&str, Rule)] = &[
    ("Hostname", Text),
    ("Domainname", Text),
    ("User", Text),
    ("AttachStdin", Flag),
    ("AttachStdout", Flag),
    ("AttachStderr", Flag),
    ("ExposedPorts", Set),
    ("Tty", Flag),
    ("OpenStdin", Flag),
    ("StdinOnce", Flag),
    ("Env", Texts),
    ("Cmd", Texts),
    ("Healthcheck", Elsewhere),
    ("ArgsEscaped", Flag),
    ("Image", Text),
    ("Volumes", Set),
    ("WorkingDir", Text),
    ("Entrypoint", Texts),
    ("NetworkDisabled", Flag),
    ("MacAddress", Unset("no address of the container's own choice")),
    ("OnBuild", Unset("no triggers")),
    ("Labels", TextMap),
    ("StopSignal", Text),
    ("StopTimeout", Number),
    ("Shell", Texts),
    ("HostConfig", Elsewhere),
    ("NetworkingConfig", Elsewhere),
];

const HEALTHCHECK: &[(&str, Rule)] = &[
    ("Test", Texts),
    ("Interval", Number),
    ("Timeout", Number),
    ("StartPeriod", Number),
    ("StartInterval", Number),
    ("Retries", Number),
];

/// Objects that a new container needs, which must be the sandbox's own.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) image: String,
    pub(crate) networks: Vec<String>,
    pub(crate) volumes: Vec<String>,
    pub(crate) pins: Vec<Pin>,
    /// The container is in the sandbox's default network.
    pub(crate) default_network: bool,
}

impl Needs {
    /// Adds a network by the name that a client used, and returns the name for the engine.
    pub(crate) fn network(&mut self, name: &str, rules: &SandboxRules) -> String {
        let is_default = matches!(name, "" | "default" | "bridge");
        match rules.network {
            NetworkPolicy::None if is_default || name == "none" => "none".to_owned(),
            _ if name == "none" => "none".to_owned(),
            _ if is_default => {
                self.default_network = true;
                rules.owner.default_network()
            }
            _ => {
                self.networks.push(name.to_owned());
                name.to_owned()
            }
        }
    }
}

/// Checks the body of `containers/create`, forces limits and labels, and returns what the container needs.
pub(crate) fn check_create(
    body: &mut Value,
    rules: &SandboxRules,
    folders: &Folders,
) -> Result<Needs, Refusal> {
    let fields = check_fields("", body, FIELDS)?;
    check_variables("", fields)?;
    own_labels("", fields, &rules.owner)?;
    if let Some(healthcheck) = fields.get_mut("Healthcheck") {
        check_fields("Healthcheck", healthcheck, HEALTHCHECK)?;
    }
    let image = fields.get("Image").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut needs = Needs { image, ..Needs::default() };
    let host_config = fields.entry("HostConfig").or_insert_with(|| Value::Object(Map::new()));
    check_host_config(host_config, rules, folders, &mut needs)?;
    if let Some(networking) = fields.get_mut("NetworkingConfig") {
        check_networking(networking, rules, &mut needs)?;
    }
    Ok(needs)
}

fn check_networking(value: &mut Value, rules: &SandboxRules, needs: &mut Needs) -> Result<(), Refusal> {
    let fields = check_fields("NetworkingConfig", value, &[("EndpointsConfig", Elsewhere)])?;
    let place = join("NetworkingConfig", "EndpointsConfig");
    let Some(endpoints) = fields.remove("EndpointsConfig") else { return Ok(()) };
    let Value::Object(endpoints) = endpoints else {
        return Err(Refusal::Malformed(format!("{place} must be a JSON object")));
    };
    let mut checked = Map::new();
    for (name, mut endpoint) in endpoints {
        let for_engine = needs.network(&name, rules);
        if !endpoint.is_null() {
            check_endpoint(&join(&place, &name), &mut endpoint)?;
        }
        // A container without a network has no endpoint.
        if for_engine != "none" {
            checked.insert(for_engine, endpoint);
        }
    }
    fields.insert("EndpointsConfig".to_owned(), Value::Object(checked));
    Ok(())
}

/// Fields of `HostConfig` that only Windows has, and others that must not be set.
pub(crate) const NOTHING: Rule = Unset("nothing");
/// A namespace of the container's own.
pub(crate) const PRIVATE: Rule = OneOf(&["", "private"]);
/// A field that must be absent.
pub(crate) const ABSENT: Rule = Null;
