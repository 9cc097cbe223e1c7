//! Limits of a service: the task's own, but at most ours.

use serde_json::{Map, Value};

use crate::ContainerLimits;

/// Sets the limits of a service. A task's own limits count if they are lower.
pub(super) fn apply(service: &mut Map<String, Value>, limits: &ContainerLimits) {
    let deploy = service.remove("deploy").unwrap_or_default();
    let deployed = &deploy["resources"]["limits"];
    let lowest = |most: f64, own: [Option<&Value>; 2]| {
        let own = own.into_iter().flatten().filter_map(number).filter(|own| *own > 0.0);
        own.fold(most, f64::min)
    };
    let cpus = lowest(limits.cpus, [service.get("cpus"), deployed.get("cpus")]);
    let memory = lowest(limits.memory_bytes as f64, [service.get("mem_limit"), deployed.get("memory")]);
    let pids = lowest(f64::from(limits.pids), [service.get("pids_limit"), deployed.get("pids")]);
    // A reservation above the limit would be refused, and several containers of a service have no common limit.
    for key in
        ["mem_reservation", "mem_swappiness", "cpu_count", "cpu_percent", "cpu_quota", "cpu_period", "scale"]
    {
        service.remove(key);
    }
    let memory = (memory as u64).to_string();
    service.insert("cpus".to_owned(), cpus.into());
    service.insert("mem_limit".to_owned(), memory.clone().into());
    // The same value for memory and swap together: no swap.
    service.insert("memswap_limit".to_owned(), memory.into());
    service.insert("pids_limit".to_owned(), (pids as u64).into());
}

/// Returns a number that is written as a number or as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_can_have_lower_limits_only() {
        let limits = ContainerLimits { cpus: 2.0, memory_bytes: 1 << 30, pids: 100 };
        let ours = json!({ "cpus": 2.0, "mem_limit": "1073741824", "memswap_limit": "1073741824", "pids_limit": 100 });
        for (task, expected) in [
            (json!({}), ours.clone()),
            (json!({ "cpus": 8, "mem_limit": "99999999999", "pids_limit": -1, "scale": 3 }), ours.clone()),
            (json!({ "cpus": "x", "mem_limit": "0", "memswap_limit": "-1", "mem_reservation": "5" }), ours),
            (
                json!({ "deploy": { "resources": { "limits": { "cpus": "0.5", "memory": "1024", "pids": 7 } } } }),
                json!({ "cpus": 0.5, "mem_limit": "1024", "memswap_limit": "1024", "pids_limit": 7 }),
            ),
        ] {
            let mut service = task.as_object().unwrap().clone();
            apply(&mut service, &limits);
            assert_eq!(Value::Object(service), expected, "{task}");
        }
    }
}
