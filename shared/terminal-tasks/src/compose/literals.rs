//! Check of what compose files state literally, so that an upload is refused for what its runs would be refused for.
//!
//! Only the output of `docker compose config` is complete. In the sources, variables have no values yet, and many keys
//! have short forms; the check of the output decides on those.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::rules::Element;
use super::service::{LEAVE_OUT, NETWORK_KEYS, are_labels, check_deploy, check_entry};
use super::source::resolve;
use super::{ComposePolicy, ComposeSource, Names, build, shared};
use crate::node;
use crate::refusal::Refusal;

/// Keys of services that `docker compose config` replaces by what they name.
const RESOLVED: [&str; 3] = ["env_file", "extends", "label_file"];
/// Keys of services that can't reach the engine's host, whose values the output has in another form.
const HARMLESS: [&str; 31] = [
    "attach",
    "cap_drop",
    "command",
    "configs",
    "cpu_count",
    "cpu_percent",
    "cpu_shares",
    "cpus",
    "depends_on",
    "domainname",
    "entrypoint",
    "environment",
    "expose",
    "hostname",
    "init",
    "links",
    "mem_limit",
    "mem_reservation",
    "pids_limit",
    "profiles",
    "read_only",
    "restart",
    "secrets",
    "shm_size",
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "tmpfs",
    "tty",
    "user",
    "working_dir",
];
/// Keys that have booleans in the output, and may have texts in a source.
const BOOLEANS: [&str; 7] =
    ["attachable", "enable_ipv6", "external", "internal", "oom_kill_disable", "privileged", "use_api_socket"];

/// Checks the source at a position. The first one is the project's own file, the others are those of `extends`.
pub(super) fn check(sources: &[ComposeSource], at: usize) -> Result<(), Refusal> {
    let Some(source) = sources.get(at) else { return Ok(()) };
    let node::Value::Table(_) = &source.root.value else { return Ok(()) };
    let Value::Object(root) = literal(source.root.value.to_json()) else { return Ok(()) };
    // Names and folders of a project that doesn't exist yet: nothing literal can be inside.
    let policy = ComposePolicy {
        project: String::new(),
        task_folder: String::new(),
        mount_folders: Vec::new(),
        image_prefix: String::new(),
        service: String::new(),
        shm_bytes_max: u64::MAX,
    };
    let project =
        Element::new(&policy, std::slice::from_ref(source), "the project".to_owned(), Vec::new(), &root);
    let folder = sources.first().map_or("", |first| folder_of(&first.file));
    let files = Files { file: &source.file, folder };
    if at == 0 {
        for (key, value) in project.entries() {
            let is_known = matches!(key, "name" | "services" | "version")
                || shared::CHECKS.iter().any(|(kind, _)| *kind == key);
            if !is_known && !key.starts_with("x-") {
                return Err(project.refuse_key(key, value, LEAVE_OUT));
            }
        }
        for (kind, check) in shared::CHECKS {
            for (name, element) in super::section(&project, kind, super::ELEMENTS_MAX)? {
                check_shared(&element, name, check, &files)?;
            }
        }
    }
    let names = Names {
        services: sources.iter().flat_map(ComposeSource::service_names).collect(),
        networks: BTreeSet::new(),
        volumes: BTreeSet::new(),
        files: BTreeSet::new(),
    };
    for (_, service) in super::section(&project, "services", super::SERVICES_MAX)? {
        for (key, value) in service.entries().filter(|(key, _)| !key.starts_with("x-")) {
            check_service_entry(&service, key, value, &names, &files)?;
        }
    }
    Ok(())
}

/// Place of a source, to which the paths in it are relative.
struct Files<'a> {
    file: &'a str,
    /// Folder of the project's own file, in which all paths must stay.
    folder: &'a str,
}

impl Files<'_> {
    /// Returns true if a path stays in the project's folder.
    fn has(&self, path: &str) -> bool {
        let inner = resolve(self.file, path);
        inner.is_some_and(|inner| {
            let rest = inner.strip_prefix(self.folder);
            rest.is_some_and(|rest| self.folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Removes the texts with variables.
fn literal(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('$') => Value::Null,
        Value::Array(values) => {
            let is_variable = |value: &Value| value.as_str().is_some_and(|text| text.contains('$'));
            values.into_iter().filter(|value| !is_variable(value)).map(literal).collect()
        }
        Value::Object(table) => {
            let is_undecided = |key: &str, value: &Value| BOOLEANS.contains(&key) && value.is_string();
            let entries = table.into_iter().filter(|(key, value)| !is_undecided(key, value));
            entries.map(|(key, value)| (key, literal(value))).collect()
        }
        value => value,
    }
}

fn check_service_entry(
    service: &Element<'_>,
    key: &str,
    value: &Value,
    names: &Names<'_>,
    files: &Files<'_>,
) -> Result<(), Refusal> {
    match key {
        key if RESOLVED.contains(&key) || HARMLESS.contains(&key) => Ok(()),
        "build" => check_build(service, value, files),
        "deploy" => check_deploy(service, key, value, |amount| amount.is_string() || amount.is_number()),
        "labels" => {
            service.expect(key, value, |value| are_labels(&table_of(value)), "leave out labels of the engine")
        }
        "networks" => match value {
            Value::Object(_) => {
                let networks = service.inner(key, value)?;
                for (name, network) in networks.entries().filter(|(_, network)| network.is_object()) {
                    networks.inner(name, network)?.expect_keys(&NETWORK_KEYS, LEAVE_OUT)?;
                }
                Ok(())
            }
            _ => Ok(()),
        },
        "volumes" => check_volumes(service, value, files),
        _ => check_entry(service, key, value, names),
    }
}

/// Returns a list of `KEY=VALUE` as a table.
fn table_of(value: &Value) -> Value {
    let Value::Array(values) = value else { return value.clone() };
    let pairs =
        values.iter().filter_map(Value::as_str).map(|text| text.split_once('=').unwrap_or((text, "")));
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value.into())).collect())
}

fn check_build(service: &Element<'_>, value: &Value, files: &Files<'_>) -> Result<(), Refusal> {
    const ELSEWHERE: &str = "build from a folder of the task";
    service.expect_text("image", |_| false, build::NO_IMAGE)?;
    let Value::Object(table) = value else {
        return service.expect(
            "build",
            value,
            |value| value.as_str().is_none_or(|path| files.has(path)),
            ELSEWHERE,
        );
    };
    let build = service.below("build", table);
    build.expect_keys(&build::KEYS, LEAVE_OUT)?;
    build.expect_text("context", |path| files.has(path), ELSEWHERE)?;
    let is_below = |path: &str| !path.starts_with('/') && path.split('/').all(|part| part != "..");
    build.expect_text("dockerfile", is_below, "use a Dockerfile of the task")?;
    build.expect_text("network", |mode| matches!(mode, "default" | "none"), LEAVE_OUT)
}

fn check_volumes(service: &Element<'_>, value: &Value, files: &Files<'_>) -> Result<(), Refusal> {
    const ELSEWHERE: &str = "mount a folder of the task";
    let volumes = service.below("volumes", shared::empty());
    for (index, mount) in value.as_array().into_iter().flatten().enumerate() {
        match mount {
            Value::String(text) => {
                let source = text.split_once(':').map(|(source, _)| source);
                // Others are names of volumes.
                let path = source.filter(|source| source.starts_with(['/', '.', '~']));
                if path.is_some_and(|path| !files.has(path)) {
                    return Err(volumes.refuse_value(&index.to_string(), mount, ELSEWHERE));
                }
            }
            Value::Object(table) => {
                let mount = service.below("volumes", table).at(index);
                match mount.text("type") {
                    Some("bind") => mount.expect_text("source", |path| files.has(path), ELSEWHERE)?,
                    Some("volume" | "tmpfs") | None => {}
                    Some(_) => mount.expect_text("type", |_| false, "use `bind`, `volume` or `tmpfs`")?,
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a network, a volume, a config or a secret of the project.
fn check_shared(
    element: &Element<'_>,
    name: &str,
    check: shared::Check,
    files: &Files<'_>,
) -> Result<(), Refusal> {
    element.expect_text("file", |path| files.has(path), "use a file of the task")?;
    let mut table: Map<String, Value> = element
        .entries()
        .filter(|(key, _)| *key != "file")
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    if let Some(labels) = table.get_mut("labels") {
        *labels = table_of(labels);
    }
    check(&element.with(&table), name)
}
