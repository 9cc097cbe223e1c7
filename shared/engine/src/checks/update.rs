//! Body of `containers/{id}/update`.

use serde_json::Value;

use super::container::NOTHING;
use super::fields::Rule::{Elsewhere, Number, Unset};
use super::fields::{Rule, check_fields};
use crate::refusal::Refusal;
use crate::rules::Limits;

const FIELDS: &[(&str, Rule)] = &[
    ("Memory", Number),
    ("MemorySwap", Elsewhere),
    ("MemoryReservation", Number),
    ("KernelMemory", NOTHING),
    ("NanoCpus", Number),
    ("CpuShares", Number),
    ("CpuPeriod", Unset("`NanoCpus`")),
    ("CpuQuota", Unset("`NanoCpus`")),
    ("CpuRealtimePeriod", NOTHING),
    ("CpuRealtimeRuntime", NOTHING),
    ("CpusetCpus", Unset("`NanoCpus`")),
    ("CpusetMems", NOTHING),
    ("PidsLimit", Number),
    ("BlkioWeight", NOTHING),
    ("BlkioWeightDevice", NOTHING),
    ("BlkioDeviceReadBps", NOTHING),
    ("BlkioDeviceWriteBps", NOTHING),
    ("BlkioDeviceReadIOps", NOTHING),
    ("BlkioDeviceWriteIOps", NOTHING),
    ("Devices", NOTHING),
    ("DeviceCgroupRules", NOTHING),
    ("DeviceRequests", NOTHING),
    ("CgroupParent", NOTHING),
    ("CpuCount", NOTHING),
    ("CpuPercent", NOTHING),
    ("IOMaximumIOps", NOTHING),
    ("IOMaximumBandwidth", NOTHING),
    ("KernelMemoryTCP", NOTHING),
    ("MemorySwappiness", Elsewhere),
    ("OomKillDisable", NOTHING),
    ("Ulimits", NOTHING),
    ("RestartPolicy", Elsewhere),
];

/// Checks the body of `containers/{id}/update`: limits may change within the sandbox's own.
pub(crate) fn check_update(body: &mut Value, limits: &Limits) -> Result<(), Refusal> {
    let fields = check_fields("", body, FIELDS)?;
    fields.remove("MemorySwap");
    fields.remove("MemorySwappiness");
    if fields
        .remove("RestartPolicy")
        .is_some_and(|policy| !matches!(policy["Name"].as_str(), None | Some("" | "no")))
    {
        return Err(Refusal::field("RestartPolicy", "`no`: containers end with their sandbox"));
    }
    // Zero means "no change" for all of them, except that some engines take it as "unlimited".
    fields.retain(|_, value| value.as_u64() != Some(0));
    let maxima = [
        ("Memory", limits.memory_bytes_max),
        ("NanoCpus", limits.nano_cpus_max),
        ("PidsLimit", limits.pids_max),
    ];
    for (name, max) in maxima {
        if fields.get(name).and_then(Value::as_u64).is_some_and(|wanted| wanted > max) {
            return Err(Refusal::Limit { what: name.to_owned(), limit: max.to_string() });
        }
    }
    if let Some(memory) = fields.get("Memory").cloned() {
        fields.insert("MemorySwap".to_owned(), memory);
    }
    Ok(())
}
