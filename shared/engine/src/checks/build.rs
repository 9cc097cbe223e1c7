//! Query parameters of `build`: the classic builder only, on contexts that the client sends.

use serde_json::{Map, Value};

use super::fields::is_unset;
use super::values::{check_extra_hosts, check_ulimits};
use crate::labels::is_reserved;
use crate::refusal::Refusal;
use crate::request::Query;
use crate::rules::{NetworkPolicy, SandboxRules};

/// Parameters that must not be set, with what is allowed instead.
const UNSET: [(&str, &str); 14] = [
    ("remote", "a context that is sent with the request"),
    ("session", "the classic builder: set `DOCKER_BUILDKIT=0`"),
    ("outputs", "images"),
    ("securityopt", "the engine's default"),
    ("cgroupparent", "the cgroup that the host chooses"),
    ("squash", "`0`"),
    ("isolation", "the engine's default"),
    ("cachefrom", "the engine's own cache"),
    ("cpuperiod", "the host's limit"),
    ("cpuquota", "the host's limit"),
    ("cpusetcpus", "the host's limit"),
    ("cpusetmems", "the host's limit"),
    ("cpushares", "the host's limit"),
    ("buildid", "nothing"),
];
/// Period over which processors are limited, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// Checks the parameters of a build, and forces limits, labels and network.
///
/// Returns the arguments of the build. The caller sets `dockerfile`.
pub(crate) fn check_build(query: &mut Query, rules: &SandboxRules) -> Result<Map<String, Value>, Refusal> {
    let refuse =
        |name: &str, allowed: &str| Refusal::Query { name: name.to_owned(), allowed: allowed.to_owned() };
    for (name, allowed) in UNSET {
        let is_unset = |text: &str| matches!(text, "0" | "false") || is_unset(&json_or_text(text));
        if !query.get(name).is_none_or(is_unset) {
            return Err(refuse(name, allowed));
        }
        query.remove(name);
    }
    if !matches!(query.get("version"), None | Some("" | "1")) {
        return Err(refuse("version", "`1`, the classic builder: set `DOCKER_BUILDKIT=0`"));
    }
    query.set("version", "1");
    for name in query.get_all("t").filter(|name| !name.is_empty()) {
        rules.images.check_own(name)?;
    }
    match (rules.network, query.get("networkmode").unwrap_or_default()) {
        (NetworkPolicy::None, "" | "default" | "none") => query.set("networkmode", "none"),
        (_, "" | "default" | "none") => {}
        _ => return Err(refuse("networkmode", "`default` or `none`")),
    }
    let text_map = |name: &str, query: &Query| match query.get(name).map_or(Value::Null, json_or_text) {
        value if is_unset(&value) => Ok(Map::new()),
        Value::Object(map) if map.values().all(Value::is_string) => Ok(map),
        _ => Err(refuse(name, "a JSON object of texts")),
    };
    let arguments = text_map("buildargs", query)?;
    let mut labels = text_map("labels", query)?;
    if labels.keys().any(|name| is_reserved(name)) {
        return Err(refuse("labels", "labels that no program of the host reads"));
    }
    rules.owner.write_into(&mut labels);
    query.set("labels", Value::Object(labels).to_string());
    let ulimits = query.get("ulimits").map_or(Value::Null, json_or_text);
    if !is_unset(&ulimits) {
        check_ulimits("ulimits", &ulimits)?;
    }
    let hosts: Vec<Value> = query
        .get("extrahosts")
        .unwrap_or_default()
        .split(',')
        .filter(|host| !host.is_empty())
        .map(Value::from)
        .collect();
    check_extra_hosts("extrahosts", &hosts)?;
    force_limits(query, rules)?;
    // Containers of a build are removed also after a failure.
    query.set("rm", "1");
    query.set("forcerm", "1");
    Ok(arguments)
}

fn force_limits(query: &mut Query, rules: &SandboxRules) -> Result<(), Refusal> {
    let limits = &rules.limits;
    let wanted = query.get("memory").filter(|text| !text.is_empty()).unwrap_or("0");
    let memory = match wanted.parse::<u64>() {
        Ok(0) => limits.memory_bytes_default.min(limits.memory_bytes_max),
        Ok(memory) if memory <= limits.memory_bytes_max => memory,
        _ => {
            return Err(Refusal::Limit {
                what: "memory".to_owned(),
                limit: limits.memory_bytes_max.to_string(),
            });
        }
    };
    query.set("memory", memory.to_string());
    query.set("memswap", memory.to_string());
    let nano_cpus = limits.nano_cpus_default.min(limits.nano_cpus_max);
    query.set("cpuperiod", CPU_PERIOD_US.to_string());
    query.set("cpuquota", (nano_cpus / (1_000_000_000 / CPU_PERIOD_US)).to_string());
    let shared = query.get("shmsize").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    match shared.min(memory) {
        0 => query.remove("shmsize"),
        bytes => query.set("shmsize", bytes.to_string()),
    }
    Ok(())
}

/// Returns the JSON in a text, or the text itself.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
