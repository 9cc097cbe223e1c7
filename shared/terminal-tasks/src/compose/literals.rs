//! Check of the values that a compose file states literally: refuses at upload what every run would refuse later.
//!
//! Only the output of `docker compose config` is complete. In the source, variables have no values yet, and many keys
//! have short forms; the check of the output decides on those, and on the files of `extends`, of which not everything
//! need have an effect.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::rules::Element;
use super::service::{LEAVE_OUT, NETWORK_KEYS, are_labels, check_deploy, check_entry};
use super::source::resolve;
use super::{ComposePolicy, ComposeSource, Names, SHM_BYTES_MAX, build, mounts, shared};
use crate::refusal::Refusal;

/// Keys of services that `docker compose config` replaces with the contents of the files they name.
const RESOLVED: [&str; 3] = ["env_file", "extends", "label_file"];
/// Keys of services that can't reach the engine's host, whose values the output has in another form.
const HARMLESS: [&str; 30] = [
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
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "tmpfs",
    "tty",
    "user",
    "working_dir",
];
/// Maximum length of a service's name, with which names of images and containers begin.
const NAME_CHARS_MAX: usize = 60;
/// Units of sizes, as powers of two.
const UNITS: [(&str, i32); 4] = [("k", 10), ("m", 20), ("g", 30), ("t", 40)];
/// Keys that have booleans in the output, and may have texts in a source.
const BOOLEANS: [&str; 7] =
    ["attachable", "enable_ipv6", "external", "internal", "oom_kill_disable", "privileged", "use_api_socket"];

/// Checks the project's own file.
pub(super) fn check(source: &ComposeSource) -> Result<(), Refusal> {
    let Some(Value::Object(root)) = literal(source.root.value.to_json()) else { return Ok(()) };
    // Names and folders of a project that doesn't exist yet: nothing literal can be inside.
    let policy = ComposePolicy {
        project: String::new(),
        task_folder: String::new(),
        mount_folders: Vec::new(),
        image_prefix: String::new(),
        service: String::new(),
        shm_bytes_max: SHM_BYTES_MAX,
    };
    let sources = std::slice::from_ref(source);
    let project = Element::new(&policy, sources, "the project".to_owned(), Vec::new(), &root);
    let sections = shared::CHECKS.iter().map(|(section, _)| *section);
    let keys: Vec<&str> = ["name", "services", "version"].into_iter().chain(sections).collect();
    project.expect_keys(&keys, LEAVE_OUT)?;
    let services = super::section(&project, "services", super::SERVICES_MAX)?;
    // The output has services with profiles only where somebody asks for them.
    let services: Vec<_> =
        services.into_values().filter(|service| service.get("profiles").is_none()).collect();
    let names = Names {
        services: source.service_names().collect(),
        networks: BTreeSet::new(),
        volumes: BTreeSet::new(),
        files: BTreeSet::new(),
    };
    for service in &services {
        check_name(&project, service.name())?;
        for (key, value) in service.entries().filter(|(key, _)| !key.starts_with("x-")) {
            check_service_entry(service, key, value, &names, &source.file)?;
        }
    }
    for (section, check) in shared::CHECKS {
        let used: BTreeSet<&str> =
            services.iter().flat_map(|service| names_in(service.get(section))).collect();
        for (name, element) in super::section(&project, section, usize::MAX)? {
            // The output has no element that isn't used. All services use the default network.
            if used.contains(name) || name == "default" {
                check_shared(&element, name, check, &source.file)?;
            }
        }
    }
    Ok(())
}

/// Returns the names of networks, volumes, configs or secrets that an entry of a service uses.
fn names_in(entry: Option<&Value>) -> Vec<&str> {
    match entry {
        Some(Value::Array(values)) => values
            .iter()
            .filter_map(|value| match value {
                Value::String(text) => text.split(':').next(),
                value => value.get("source").and_then(Value::as_str),
            })
            .collect(),
        Some(Value::Object(table)) => table.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a path is inside the task. `file` is the one that names it.
fn is_in_task(file: &str, path: &str) -> bool {
    let is_remote = path.contains("://") || path.starts_with("git@");
    !is_remote && resolve(file, &path.replace(':', "_")).is_some()
}

/// Returns true for texts that become true in the output.
fn is_true(text: &str) -> bool {
    ["true", "yes", "on", "y", "t", "1"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns what has an effect whatever the variables are: not texts with variables, nor values that mean the default.
fn literal(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(text) => (!text.is_empty() && !text.contains('$')).then_some(Value::String(text)),
        // The elements keep their positions, by which lines are found.
        Value::Array(values) => {
            let kept: Vec<Value> =
                values.into_iter().map(|value| literal(value).unwrap_or_default()).collect();
            kept.iter().any(|value| !value.is_null()).then_some(Value::Array(kept))
        }
        Value::Object(table) => {
            let entries = table.into_iter().map(|(key, value)| match value {
                Value::String(text) if BOOLEANS.contains(&key.as_str()) => (key, is_true(&text).into()),
                value => (key, value),
            });
            let kept: Map<String, Value> =
                entries.filter_map(|(key, value)| Some((key, literal(value)?))).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        value => Some(value),
    }
}

fn check_service_entry(
    service: &Element<'_>,
    key: &str,
    value: &Value,
    names: &Names<'_>,
    file: &str,
) -> Result<(), Refusal> {
    match key {
        key if RESOLVED.contains(&key) || HARMLESS.contains(&key) => Ok(()),
        "build" => check_build(service, value, file),
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
        "shm_size" => check_shm_size(service, value),
        "volumes" => check_volumes(service, value, file),
        _ => match value {
            Value::Array(values) => {
                let values = values.iter().filter(|value| !value.is_null()).cloned().collect();
                check_entry(service, key, &Value::Array(values), names)
            }
            value => check_entry(service, key, value, names),
        },
    }
}

/// Returns a list of `KEY=VALUE` as a table.
fn table_of(value: &Value) -> Value {
    let Value::Array(values) = value else { return value.clone() };
    let pairs =
        values.iter().filter_map(Value::as_str).map(|text| text.split_once('=').unwrap_or((text, "")));
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value.into())).collect())
}

fn check_build(service: &Element<'_>, value: &Value, file: &str) -> Result<(), Refusal> {
    const ELSEWHERE: &str = "build from a folder of the task";
    let Value::Object(table) = value else {
        return service.expect(
            "build",
            value,
            |value| value.as_str().is_none_or(|path| is_in_task(file, path)),
            ELSEWHERE,
        );
    };
    let build = service.below("build", table);
    build.expect_keys(&build::KEYS, LEAVE_OUT)?;
    build.expect_text("context", |path| is_in_task(file, path), ELSEWHERE)?;
    let is_below = |path: &str| !path.starts_with('/') && path.split('/').all(|part| part != "..");
    build.expect_text("dockerfile", is_below, "use a Dockerfile of the task")?;
    if let Some(size) = build.get("shm_size") {
        check_shm_size(&build, size)?;
    }
    build.expect_text("network", |mode| matches!(mode, "default" | "none"), LEAVE_OUT)
}

/// Checks that containers and images can be named after a service.
fn check_name(project: &Element<'_>, name: &str) -> Result<(), Refusal> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_valid = name.len() <= NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain);
    match is_valid {
        true => Ok(()),
        false => Err(project.below("services", shared::empty()).refuse_value(
            name,
            &name.into(),
            "use at most 60 letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
        )),
    }
}

/// Checks `shm_size`, which may have a unit in a source.
fn check_shm_size(element: &Element<'_>, value: &Value) -> Result<(), Refusal> {
    let bytes = match value {
        Value::String(text) => bytes_of(text),
        value => value.as_f64(),
    };
    // What isn't a size is refused by `config` itself.
    element.expect(
        "shm_size",
        value,
        |_| bytes.is_none_or(|bytes| bytes <= SHM_BYTES_MAX as f64),
        "use 2 GiB or less",
    )
}

/// Returns the number of bytes of a size such as `64m`, `1.5gb` or `2GiB`.
fn bytes_of(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let power = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        unit => UNITS.iter().find(|(name, _)| unit == *name)?.1,
    };
    Some(number.trim().parse::<f64>().ok()? * f64::from(power).exp2())
}

fn check_volumes(service: &Element<'_>, value: &Value, file: &str) -> Result<(), Refusal> {
    const ELSEWHERE: &str = "mount a folder of the task";
    let volumes = service.below("volumes", shared::empty());
    for (index, mount) in value.as_array().into_iter().flatten().enumerate() {
        match mount {
            Value::String(text) => {
                let source = text.split_once(':').map(|(source, _)| source);
                // Others are names of volumes.
                let path = source.filter(|source| source.starts_with(['/', '.', '~']));
                if path.is_some_and(|path| !is_in_task(file, path)) {
                    return Err(volumes.refuse_value(&index.to_string(), mount, ELSEWHERE));
                }
                let options = text.rsplit(':').next().into_iter().flat_map(|options| options.split(','));
                if path.is_some() && options.into_iter().any(|option| mounts::PROPAGATION.contains(&option)) {
                    return Err(volumes.refuse_value(&index.to_string(), mount, "leave the propagation out"));
                }
            }
            Value::Object(table) => {
                let mount = service.below("volumes", table).at(index);
                mounts::check_options(&mount)?;
                match mount.text("type") {
                    Some("bind") => mount.expect_text("source", |path| is_in_task(file, path), ELSEWHERE)?,
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
fn check_shared(element: &Element<'_>, name: &str, check: shared::Check, file: &str) -> Result<(), Refusal> {
    element.expect_text("file", |path| is_in_task(file, path), "use a file of the task")?;
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
