//! Networks, volumes, configs and secrets of a project.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::rules::{Element, is_inside};
use crate::refusal::Refusal;

/// Check of an element with its name.
pub(super) type Check = fn(&Element<'_>, &str) -> Result<(), Refusal>;

/// Sections of a project with the checks of their elements.
pub(super) const CHECKS: [(&str, Check); 4] = [
    ("networks", check_network),
    ("volumes", check_volume),
    ("configs", check_file),
    ("secrets", check_file),
];

/// Keys of a network that may be meant by another.
const NETWORK_KEYS: [&str; 4] = ["driver", "internal", "labels", "name"];
/// Keys of a volume that may be meant by another.
const VOLUME_KEYS: [&str; 3] = ["driver", "labels", "name"];
/// Keys of a config or a secret that may be meant by another.
const FILE_KEYS: [&str; 4] = ["content", "file", "labels", "name"];

/// Returns a table without entries.
pub(super) fn empty() -> &'static Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    &EMPTY
}

/// Checks that the element belongs to the project: a name of its own could be that of another project's element.
fn check_name(element: &Element<'_>, name: &str) -> Result<(), Refusal> {
    let own = format!("{}_{name}", element.policy.project);
    element.expect_text("name", |name| name == own, "leave `name` out")
}

fn check_network(network: &Element<'_>, name: &str) -> Result<(), Refusal> {
    check_name(network, name)?;
    for (key, value) in network.entries() {
        match key {
            "name" | "labels" => {}
            "driver" => {
                network.expect_text(key, |driver| matches!(driver, "bridge" | "default"), "use `bridge`")?
            }
            "internal" => network.expect(key, value, Value::is_boolean, "write true or false")?,
            "external" | "attachable" | "enable_ipv6" => {
                network.expect(key, value, |value| *value == Value::Bool(false), "leave it out")?;
            }
            "ipam" => network.expect(key, value, super::rules::is_unset, "leave it out")?,
            key if key.starts_with("x-") => {}
            _ => return Err(network.refuse_other_key(key, &NETWORK_KEYS, "leave it out")),
        }
    }
    check_labels(network)
}

fn check_volume(volume: &Element<'_>, name: &str) -> Result<(), Refusal> {
    check_name(volume, name)?;
    for (key, value) in volume.entries() {
        match key {
            "name" | "labels" => {}
            // Options of the local driver can mount any folder of the host.
            "driver" => volume.expect_text(key, |driver| driver == "local", "use `local`")?,
            "external" => volume.expect(key, value, |value| *value == Value::Bool(false), "leave it out")?,
            key if key.starts_with("x-") => {}
            _ => return Err(volume.refuse_other_key(key, &VOLUME_KEYS, "leave it out")),
        }
    }
    check_labels(volume)
}

/// Checks a config or a secret: a file of the task, or a text.
fn check_file(file: &Element<'_>, name: &str) -> Result<(), Refusal> {
    check_name(file, name)?;
    let folder = file.policy.task_folder.as_str();
    for (key, value) in file.entries() {
        match key {
            "name" | "labels" => {}
            "content" => file.expect(key, value, Value::is_string, "write a string")?,
            "file" => file.expect_text(key, |path| is_inside(path, folder), "use a file of the task")?,
            "external" => file.expect(key, value, |value| *value == Value::Bool(false), "leave it out")?,
            key if key.starts_with("x-") => {}
            _ => return Err(file.refuse_other_key(key, &FILE_KEYS, "use `file` or `content`")),
        }
    }
    check_labels(file)
}

fn check_labels(element: &Element<'_>) -> Result<(), Refusal> {
    match element.get("labels") {
        None | Some(Value::Null) => Ok(()),
        Some(value) => {
            element.expect("labels", value, super::service::are_labels, "leave out labels of the engine")
        }
    }
}
