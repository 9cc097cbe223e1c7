//! `HostConfig` of a new container.

use serde_json::{Value, json};

use super::container::{ABSENT, NOTHING, Needs, PRIVATE};
use super::fields::Rule::{Elsewhere, Flag, Number, OneOf, Text, Texts, Unset};
use super::fields::{Rule, check_fields, is_unset, join};
use super::mounts::{check_binds, check_mounts, check_tmpfs};
use super::values::{check_extra_hosts, check_ulimits, force_resources};
use crate::refusal::Refusal;
use crate::rules::{Folders, SandboxRules};

const PLACE: &str = "HostConfig";
const NO_DEVICES: Rule = Unset("no devices of the machine");
const NO_PORTS: Rule = Unset("no ports of the machine; other containers reach all ports in a common network");

const FIELDS: &[(&str, Rule)] = &[
    ("Binds", Texts),
    ("ContainerIDFile", NOTHING),
    ("LogConfig", Elsewhere),
    ("NetworkMode", Text),
    ("PortBindings", NO_PORTS),
    ("PublishAllPorts", NO_PORTS),
    ("RestartPolicy", Elsewhere),
    ("AutoRemove", Flag),
    ("VolumeDriver", OneOf(&["", "local"])),
    ("VolumesFrom", Unset("volumes by name, in `Binds` or `Mounts`")),
    ("ConsoleSize", Elsewhere),
    ("Annotations", NOTHING),
    ("CapAdd", Unset("no added capabilities")),
    ("CapDrop", Texts),
    ("CgroupnsMode", PRIVATE),
    ("Cgroup", NOTHING),
    ("CgroupParent", Unset("the cgroup that the host chooses")),
    ("Dns", Unset("the engine's name server")),
    ("DnsOptions", Texts),
    ("DnsSearch", Texts),
    ("ExtraHosts", Elsewhere),
    ("GroupAdd", Elsewhere),
    ("IpcMode", PRIVATE),
    ("PidMode", PRIVATE),
    ("UTSMode", PRIVATE),
    ("UsernsMode", Unset("the user namespace that the engine chooses")),
    ("Links", Unset("no links; use a network")),
    ("OomScoreAdj", Number),
    ("OomKillDisable", Unset("`false`")),
    ("Privileged", Unset("`false`")),
    ("ReadonlyRootfs", Flag),
    ("SecurityOpt", Elsewhere),
    ("StorageOpt", NOTHING),
    ("Tmpfs", Elsewhere),
    ("ShmSize", Number),
    ("Sysctls", Unset("no kernel parameters")),
    ("Runtime", Unset("the engine's default runtime")),
    ("Isolation", OneOf(&["", "default"])),
    ("Mounts", Elsewhere),
    ("MaskedPaths", ABSENT),
    ("ReadonlyPaths", ABSENT),
    ("Init", Flag),
    ("Ulimits", Elsewhere),
    ("Memory", Elsewhere),
    ("MemorySwap", Elsewhere),
    ("MemoryReservation", Number),
    ("MemorySwappiness", Elsewhere),
    ("KernelMemory", NOTHING),
    ("KernelMemoryTCP", NOTHING),
    ("NanoCpus", Elsewhere),
    ("CpuShares", Number),
    ("CpuPeriod", Unset("`NanoCpus`")),
    ("CpuQuota", Unset("`NanoCpus`")),
    ("CpuRealtimePeriod", NOTHING),
    ("CpuRealtimeRuntime", NOTHING),
    ("CpusetCpus", Unset("`NanoCpus`")),
    ("CpusetMems", NOTHING),
    ("CpuCount", NOTHING),
    ("CpuPercent", NOTHING),
    ("PidsLimit", Elsewhere),
    ("BlkioWeight", NOTHING),
    ("BlkioWeightDevice", NO_DEVICES),
    ("BlkioDeviceReadBps", NO_DEVICES),
    ("BlkioDeviceWriteBps", NO_DEVICES),
    ("BlkioDeviceReadIOps", NO_DEVICES),
    ("BlkioDeviceWriteIOps", NO_DEVICES),
    ("Devices", NO_DEVICES),
    ("DeviceCgroupRules", NO_DEVICES),
    ("DeviceRequests", NO_DEVICES),
    ("IOMaximumIOps", NOTHING),
    ("IOMaximumBandwidth", NOTHING),
];

/// Checks `HostConfig`, forces limits, and adds what the container needs.
pub(crate) fn check_host_config(
    value: &mut Value,
    rules: &SandboxRules,
    folders: &Folders,
    needs: &mut Needs,
) -> Result<(), Refusal> {
    let fields = check_fields(PLACE, value, FIELDS)?;
    force_resources(PLACE, fields, &rules.limits)?;
    // -1 is the default. Swap isn't available anyway.
    fields.remove("MemorySwappiness");
    fields.remove("ConsoleSize");
    if let Some(ulimits) = fields.get("Ulimits") {
        check_ulimits(&join(PLACE, "Ulimits"), ulimits)?;
    }
    if let Some(hosts) = fields.get("ExtraHosts") {
        let field = join(PLACE, "ExtraHosts");
        check_extra_hosts(
            &field,
            hosts.as_array().ok_or_else(|| Refusal::field(&field, "a list of texts"))?,
        )?;
    }
    check_list(fields.get("GroupAdd"), "GroupAdd", "names and numbers of groups", |group| {
        group != "keep-groups"
            && group.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    })?;
    check_list(fields.get("SecurityOpt"), "SecurityOpt", "`no-new-privileges`", |option| {
        matches!(option, "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true")
    })?;
    // Containers don't outlive their sandbox, so the engine must not start them again.
    fields.insert("RestartPolicy".to_owned(), json!({ "Name": "no" }));
    check_log(fields.get("LogConfig"))?;
    let log_bytes = rules.limits.log_bytes_max.to_string();
    fields
        .insert("LogConfig".to_owned(), json!({ "Type": "json-file", "Config": { "max-size": log_bytes } }));
    if let Some(tmpfs) = fields.get_mut("Tmpfs") {
        check_tmpfs(tmpfs)?;
    }
    if let Some(binds) = fields.get_mut("Binds") {
        check_binds(binds, folders, needs)?;
    }
    if let Some(mounts) = fields.get_mut("Mounts") {
        check_mounts(mounts, folders, needs)?;
    }
    let mode = fields.get("NetworkMode").and_then(Value::as_str).unwrap_or_default().to_owned();
    if mode.contains(':') || matches!(mode.as_str(), "host" | "private" | "slirp4netns" | "pasta") {
        let allowed = "`none`, `default`, and networks that this sandbox created";
        return Err(Refusal::field(format!("HostConfig.NetworkMode: {mode}"), allowed));
    }
    fields.insert("NetworkMode".to_owned(), needs.network(&mode, rules).into());
    Ok(())
}

fn check_list(
    value: Option<&Value>,
    name: &str,
    allowed: &str,
    is_allowed: impl Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let list = value.map_or(Some(&[][..]), |value| value.as_array().map(Vec::as_slice));
    if list.is_some_and(|list| list.iter().all(|entry| entry.as_str().is_some_and(&is_allowed))) {
        return Ok(());
    }
    Err(Refusal::field(join(PLACE, name), allowed))
}

/// Checks the log's settings, which are replaced: other drivers write to files and addresses of the host.
fn check_log(value: Option<&Value>) -> Result<(), Refusal> {
    let Some(value) = value else { return Ok(()) };
    let is_known = matches!(value["Type"].as_str(), None | Some("" | "json-file" | "local"));
    let config = &value["Config"];
    let is_plain = is_unset(config)
        || config.as_object().is_some_and(|options| {
            options.keys().all(|name| matches!(name.as_str(), "max-size" | "max-file" | "compress"))
        });
    if is_known && is_plain {
        return Ok(());
    }
    Err(Refusal::field("HostConfig.LogConfig", "type `json-file` with `max-size` and `max-file`"))
}
