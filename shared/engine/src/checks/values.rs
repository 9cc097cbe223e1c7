//! Checks of values that several bodies contain: variables, labels, resources.

use serde_json::{Map, Value};

use super::fields::join;
use crate::labels::{Owner, is_reserved};
use crate::refusal::Refusal;
use crate::rules::Limits;

/// Names of resource limits of processes that a container may set. Those of priorities would let it take more than its share.
const ULIMITS: [&str; 13] = [
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nofile",
    "nproc",
    "rss",
    "sigpending",
    "stack",
    "as",
];

/// Checks a list of variables. A name without a value would take the value from the engine's own environment.
pub(crate) fn check_variables(place: &str, fields: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(variables) = fields.get("Env").and_then(Value::as_array) else { return Ok(()) };
    for variable in variables.iter().filter_map(Value::as_str) {
        let is_pair =
            variable.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('*'));
        if !is_pair {
            let name = variable.chars().take(100).collect::<String>();
            return Err(Refusal::field(join(place, &format!("Env: {name}")), "variables as `NAME=VALUE`"));
        }
    }
    Ok(())
}

/// Checks the labels of an object and adds the owner's.
pub(crate) fn own_labels(place: &str, fields: &mut Map<String, Value>, owner: &Owner) -> Result<(), Refusal> {
    let labels = fields.entry("Labels").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(labels) = labels else {
        return Err(Refusal::field(join(place, "Labels"), "an object of texts"));
    };
    if let Some(name) = labels.keys().find(|name| is_engine_label(name) || is_reserved(name)) {
        return Err(Refusal::field(
            join(place, &format!("Labels.{name}")),
            "labels that no program of the host reads",
        ));
    }
    owner.write_into(labels);
    Ok(())
}

/// Returns true for labels that change what an engine does.
fn is_engine_label(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["io.podman.", "io.containers.", "run.oci.", "com.docker.network."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Checks memory, processors and processes, and writes defaults for those that aren't set.
pub(crate) fn force_resources(
    place: &str,
    fields: &mut Map<String, Value>,
    limits: &Limits,
) -> Result<(), Refusal> {
    let mut force = |name: &str, default: u64, max: u64| {
        let wanted = match fields.get(name) {
            None => 0,
            // Negative numbers mean "unlimited".
            Some(value) => value.as_u64().unwrap_or(if value.as_i64() == Some(-1) { 0 } else { u64::MAX }),
        };
        if wanted > max {
            return Err(Refusal::Limit { what: join(place, name), limit: max.to_string() });
        }
        let value = if wanted == 0 { default.min(max) } else { wanted };
        fields.insert(name.to_owned(), value.into());
        Ok(value)
    };
    let memory = force("Memory", limits.memory_bytes_default, limits.memory_bytes_max)?;
    force("PidsLimit", limits.pids_default, limits.pids_max)?;
    // More processors than there are is no error: the container has fewer.
    let cpus = fields.get("NanoCpus").and_then(Value::as_u64).filter(|cpus| *cpus > 0);
    let cpus = cpus.unwrap_or(limits.nano_cpus_default).min(limits.nano_cpus_max);
    fields.insert("NanoCpus".to_owned(), cpus.into());
    // Equal to the memory: no swap.
    fields.insert("MemorySwap".to_owned(), memory.into());
    let shared = fields.get("ShmSize").and_then(Value::as_u64).unwrap_or(0);
    if shared > memory {
        return Err(Refusal::Limit { what: join(place, "ShmSize"), limit: memory.to_string() });
    }
    Ok(())
}

/// Checks limits of a container's processes.
pub(crate) fn check_ulimits(field: &str, value: &Value) -> Result<(), Refusal> {
    let refuse =
        || Refusal::field(field, format!("a list of Name, Soft and Hard; names: {}", ULIMITS.join(", ")));
    let Value::Array(list) = value else { return Err(refuse()) };
    for limit in list {
        let fields = limit.as_object().ok_or_else(refuse)?;
        let is_allowed = fields.iter().all(|(name, value)| match name.as_str() {
            "Name" => value.as_str().is_some_and(|name| ULIMITS.contains(&name)),
            "Soft" | "Hard" => value.is_u64() || value.as_i64() == Some(-1),
            _ => false,
        });
        if !is_allowed {
            return Err(refuse());
        }
    }
    Ok(())
}

/// Checks additional host names. The engine replaces `host-gateway` by the machine's address.
pub(crate) fn check_extra_hosts(field: &str, hosts: &[Value]) -> Result<(), Refusal> {
    let is_allowed = |host: &Value| {
        host.as_str().is_some_and(|host| {
            let (_, address) = host.split_once([':', '=']).unwrap_or_default();
            let address = address.trim_start_matches('[').trim_end_matches(']');
            address.parse::<std::net::IpAddr>().is_ok()
        })
    };
    if hosts.iter().all(is_allowed) {
        return Ok(());
    }
    Err(Refusal::field(field, "names with an IP address, as `NAME:ADDRESS`, without `host-gateway`"))
}
