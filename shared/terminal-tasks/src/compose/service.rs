//! Services of a project.

use serde_json::Value;

use super::rules::{Element, is_number_up_to, is_plain_table, is_text_or_texts, is_texts};
use super::{Names, ServicePlan, build, mounts};
use crate::refusal::Refusal;

/// Maximum number of open files that `ulimits` may ask for.
const OPEN_FILES_MAX: f64 = 1_048_576.0;
/// Maximum number of processes that `ulimits` and `pids_limit` may ask for.
const PROCESSES_MAX: f64 = 65_536.0;
/// Numbers of processors and bytes are limited by the runner, not here: above this they are nonsense.
const NUMBER_MAX: f64 = 1e15;
/// Labels by which engines and compose find what belongs to a project.
const RESERVED_LABELS: [&str; 4] = ["com.docker.", "io.podman.", "io.buildah.", "io.containers."];
/// Advice for keys that reach the engine's host.
pub(super) const LEAVE_OUT: &str = "leave it out";

/// Keys of a service's entry for a network.
pub(super) const NETWORK_KEYS: [&str; 2] = ["aliases", "priority"];

/// Keys of a service that may be meant by another: those for which [`check_entry`] has a rule that more than one value
/// fulfills.
pub(super) const KEYS: [&str; 49] = [
    "attach",
    "build",
    "cap_drop",
    "command",
    "configs",
    "container_name",
    "cpu_count",
    "cpu_percent",
    "cpu_shares",
    "cpus",
    "depends_on",
    "deploy",
    "domainname",
    "entrypoint",
    "environment",
    "expose",
    "extra_hosts",
    "healthcheck",
    "hostname",
    "image",
    "init",
    "labels",
    "links",
    "logging",
    "mem_limit",
    "mem_reservation",
    "network_mode",
    "networks",
    "pids_limit",
    "platform",
    "profiles",
    "pull_policy",
    "read_only",
    "restart",
    "scale",
    "secrets",
    "security_opt",
    "shm_size",
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "tmpfs",
    "tty",
    "ulimits",
    "user",
    "volumes",
    "working_dir",
    "env_file",
    "extends",
];

/// Keys of the Compose Specification that tasks must not use. Some are similar to others, which aren't meant.
pub(super) const FORBIDDEN: &[&str] = &[
    "annotations",
    "blkio_config",
    "cap_add",
    "cgroup_parent",
    "credential_spec",
    "cpu_period",
    "cpu_quota",
    "cpu_rt_period",
    "cpu_rt_runtime",
    "cpuset",
    "develop",
    "device_cgroup_rules",
    "devices",
    "dns",
    "dns_opt",
    "dns_search",
    "external_links",
    "gpus",
    "group_add",
    "isolation",
    "label_file",
    "mac_address",
    "mem_swappiness",
    "memswap_limit",
    "models",
    "oom_score_adj",
    "pid",
    "post_start",
    "pre_stop",
    "provider",
    "runtime",
    "storage_opt",
    "sysctls",
    "userns_mode",
    "uts",
    "volumes_from",
];

/// Checks a service.
pub(super) fn check(service: &Element<'_>, names: &Names<'_>) -> Result<ServicePlan, Refusal> {
    for (key, value) in service.entries() {
        if !key.starts_with("x-") {
            check_entry(service, key, value, names)?;
        }
    }
    let build = service.get("build").filter(|value| !value.is_null());
    let build = build.map(|value| build::check(service, value)).transpose()?;
    let image = service.text("image");
    if build.is_some() {
        let prefix = service.policy.image_prefix.as_str();
        service.expect_text(
            "image",
            |image| image.starts_with(prefix),
            "leave `image` out, or the build would replace an image of this name",
        )?;
    }
    Ok(ServicePlan {
        image: image.map(str::to_owned),
        build,
        container_name: service.text("container_name").map(str::to_owned),
    })
}

/// Checks an entry of a service.
pub(super) fn check_entry(
    service: &Element<'_>,
    key: &str,
    value: &Value,
    names: &Names<'_>,
) -> Result<(), Refusal> {
    let is = |is_allowed: fn(&Value) -> bool, advice| service.expect(key, value, is_allowed, advice);
    let is_no = |value: &Value| matches!(value, Value::Bool(false));
    let up_to = |max: f64| {
        service.expect(key, value, |value| is_number_up_to(value, max), "use a number within the limits")
    };
    match key {
        "build" => Ok(()),
        "image" => {
            service.expect_text(key, |image| !image.is_empty() && !image.starts_with('-'), "name an image")
        }
        "command" | "entrypoint" => is(is_text_or_texts, "write a string or a list of strings"),
        "environment" => is(is_plain_table, "write a table of strings"),
        "labels" => is(are_labels, "leave out labels of the engine"),
        "working_dir" | "user" | "hostname" | "domainname" | "stop_signal" | "stop_grace_period" => {
            is(Value::is_string, "write a string")
        }
        "container_name" => {
            let project = service.policy.project.as_str();
            let is_own = |name: &str| {
                name.strip_prefix(project).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
            };
            service.expect_text(key, is_own, "leave it out, or other episodes can't start")
        }
        "tty" | "stdin_open" | "init" | "read_only" | "attach" => {
            is(Value::is_boolean, "write true or false")
        }
        "privileged" | "oom_kill_disable" | "use_api_socket" => service.expect(key, value, is_no, LEAVE_OUT),
        "restart" => service.expect_text(
            key,
            |policy| matches!(policy, "no" | "always" | "unless-stopped") || policy.starts_with("on-failure"),
            "use `no` or `on-failure`",
        ),
        "pull_policy" => service.expect_text(
            key,
            |policy| matches!(policy, "always" | "missing" | "if_not_present" | "never" | "build"),
            "use `missing`",
        ),
        "platform" => service.expect_text(
            key,
            |name| build::PLATFORMS.contains(&name),
            "use `linux/amd64` or `linux/arm64`",
        ),
        "expose" | "profiles" | "cap_drop" | "tmpfs" => is(is_text_or_texts, "write a list of strings"),
        "depends_on" => check_dependencies(service, key, value, names),
        "links" => is(is_texts, "write a list of strings"),
        "healthcheck" => {
            let keys =
                ["test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"];
            service.inner(key, value)?.expect_keys(&keys, LEAVE_OUT)
        }
        "networks" => check_networks(service, key, value, names),
        "network_mode" => {
            let is_own = |mode: &str| {
                mode == "none"
                    || mode.strip_prefix("service:").is_some_and(|name| names.services.contains(name))
            };
            service.expect_text(key, is_own, "leave it out, or use `none` or `service:NAME`")
        }
        "ipc" => service.expect_text(key, |mode| mode == "private", LEAVE_OUT),
        "cgroup" => service.expect_text(key, |mode| mode == "private", LEAVE_OUT),
        "volumes" => mounts::check(service, value, names),
        "configs" | "secrets" => {
            for file in service.inner_list(key, value)? {
                file.expect_keys(&["source", "target", "uid", "gid", "mode"], LEAVE_OUT)?;
                file.expect_text("source", |name| names.files.contains(name), "declare it in the file")?;
            }
            Ok(())
        }
        "extra_hosts" => is(are_hosts, "name addresses other than the engine's host"),
        "ports" => Err(service.refuse_key(key, value, "use `expose`; services reach each other by name")),
        "security_opt" => {
            let is_allowed = |value: &Value| {
                let options = value.as_array().map(Vec::as_slice).unwrap_or_default();
                is_texts(value)
                    && options.iter().all(|option| {
                        matches!(
                            option.as_str(),
                            Some("no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true")
                        )
                    })
            };
            service.expect(key, value, is_allowed, LEAVE_OUT)
        }
        "cpus" | "mem_limit" | "mem_reservation" | "cpu_count" | "cpu_percent" | "cpu_shares" => {
            up_to(NUMBER_MAX)
        }
        "pids_limit" => up_to(PROCESSES_MAX),
        "shm_size" => up_to(service.policy.shm_bytes_max as f64),
        "scale" => up_to(1.0),
        "ulimits" => check_ulimits(service, key, value),
        "deploy" => check_deploy(service, key, value, |amount| is_number_up_to(amount, NUMBER_MAX)),
        "logging" => check_logging(service, key, value),
        key if FORBIDDEN.contains(&key) => Err(service.refuse_key(key, value, LEAVE_OUT)),
        _ => Err(service.refuse_other_key(key, &KEYS, LEAVE_OUT)),
    }
}

fn check_dependencies(
    service: &Element<'_>,
    key: &str,
    value: &Value,
    names: &Names<'_>,
) -> Result<(), Refusal> {
    let dependencies = service.inner(key, value)?;
    for (name, value) in dependencies.entries() {
        if !names.services.contains(name) {
            return Err(dependencies.refuse_key(name, value, "name a service of the file"));
        }
        dependencies.inner(name, value)?.expect_keys(&["condition", "required", "restart"], LEAVE_OUT)?;
    }
    Ok(())
}

fn check_networks(service: &Element<'_>, key: &str, value: &Value, names: &Names<'_>) -> Result<(), Refusal> {
    let Value::Object(table) = value else { return Err(service.refuse_value(key, value, "write a table")) };
    let networks = service.inner(key, value)?;
    for (name, value) in table {
        if !names.networks.contains(name.as_str()) {
            return Err(networks.refuse_key(name, value, "declare the network in the file"));
        }
        if !value.is_null() {
            networks.inner(name, value)?.expect_keys(&NETWORK_KEYS, LEAVE_OUT)?;
        }
    }
    Ok(())
}

fn check_ulimits(service: &Element<'_>, key: &str, value: &Value) -> Result<(), Refusal> {
    let limits = service.inner(key, value)?;
    for (name, value) in limits.entries() {
        let max = match name {
            "nofile" => OPEN_FILES_MAX,
            "nproc" => PROCESSES_MAX,
            "core" => 0.0,
            _ => return Err(limits.refuse_other_key(name, &["nofile", "nproc", "core"], LEAVE_OUT)),
        };
        let is_allowed = |value: &Value| match value {
            Value::Object(pair) => pair.values().all(|value| is_number_up_to(value, max)),
            value => is_number_up_to(value, max),
        };
        limits.expect(name, value, is_allowed, "use a number within the limits")?;
    }
    Ok(())
}

/// Checks `deploy`: limits and reservations of processors, memory and processes. Devices aren't allowed.
pub(super) fn check_deploy(
    service: &Element<'_>,
    key: &str,
    value: &Value,
    is_amount: impl Fn(&Value) -> bool,
) -> Result<(), Refusal> {
    let deploy = service.inner(key, value)?;
    deploy.expect_keys(&["resources", "replicas", "restart_policy"], LEAVE_OUT)?;
    if let Some(replicas) = deploy.get("replicas") {
        deploy.expect("replicas", replicas, |value| is_number_up_to(value, 1.0), "use 1")?;
    }
    if let Some((key, value)) = deploy.entries().find(|(key, _)| *key == "resources") {
        let resources = deploy.inner(key, value)?;
        resources.expect_keys(&["limits", "reservations"], LEAVE_OUT)?;
        for (key, value) in resources.entries() {
            let amounts = resources.inner(key, value)?;
            amounts.expect_keys(&["cpus", "memory", "pids"], LEAVE_OUT)?;
            for (key, value) in amounts.entries() {
                amounts.expect(key, value, &is_amount, "use a number")?;
            }
        }
    }
    Ok(())
}

/// Checks `logging`: other drivers send from the engine's host, and other options name its files.
fn check_logging(service: &Element<'_>, key: &str, value: &Value) -> Result<(), Refusal> {
    let logging = service.inner(key, value)?;
    logging.expect_keys(&["driver", "options"], LEAVE_OUT)?;
    logging.expect_text(
        "driver",
        |driver| matches!(driver, "json-file" | "local" | "none"),
        "use `json-file`",
    )?;
    match logging.entries().find(|(key, _)| *key == "options") {
        Some((key, value)) => logging.inner(key, value)?.expect_keys(&["max-size", "max-file"], LEAVE_OUT),
        None => Ok(()),
    }
}

/// Returns true for labels that neither engine nor compose reads.
pub(super) fn are_labels(value: &Value) -> bool {
    let is_free =
        |key: &str| !RESERVED_LABELS.iter().any(|prefix| key.to_ascii_lowercase().starts_with(prefix));
    is_plain_table(value) && value.as_object().is_some_and(|labels| labels.keys().all(|key| is_free(key)))
}

/// Returns true for hosts with plain addresses, as `NAME=ADDRESS` or as a table.
fn are_hosts(value: &Value) -> bool {
    let is_address = |address: &str| {
        let address = address.trim().trim_start_matches('[').trim_end_matches(']');
        address.parse::<core::net::IpAddr>().is_ok()
    };
    match value {
        Value::Array(hosts) => hosts.iter().all(|host| {
            let pair = host.as_str().and_then(|host| host.split_once(['=', ':']));
            pair.is_some_and(|(_, address)| is_address(address))
        }),
        Value::Object(hosts) => hosts.values().all(|address| match address {
            Value::String(address) => is_address(address),
            Value::Array(all) => all.iter().all(|address| address.as_str().is_some_and(is_address)),
            _ => false,
        }),
        _ => false,
    }
}
