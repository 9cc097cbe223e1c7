//! Volumes of services: folders of the task, volumes of the project, and memory.

use serde_json::Value;

use super::Names;
use super::rules::{Element, is_inside};
use crate::refusal::Refusal;

/// Options of the short form of bind mounts that change the host's mounts.
pub(super) const PROPAGATION: [&str; 6] = ["shared", "slave", "private", "rshared", "rslave", "rprivate"];

/// Checks the list `volumes` of a service.
pub(super) fn check(service: &Element<'_>, value: &Value, names: &Names<'_>) -> Result<(), Refusal> {
    let Value::Array(mounts) = value else {
        return Err(service.refuse_value("volumes", value, "write a list"));
    };
    for (index, mount) in mounts.iter().enumerate() {
        let Value::Object(table) = mount else {
            return Err(service.refuse_value("volumes", mount, "write a list of tables"));
        };
        check_mount(&service.below("volumes", table).at(index), names)?;
    }
    Ok(())
}

fn check_mount(mount: &Element<'_>, names: &Names<'_>) -> Result<(), Refusal> {
    const KEYS: [&str; 8] =
        ["type", "source", "target", "read_only", "consistency", "bind", "volume", "tmpfs"];
    mount.expect_keys(&KEYS, "leave it out")?;
    mount.expect_text("target", |target| target.starts_with('/'), "write an absolute path")?;
    let source = mount.text("source");
    match mount.text("type") {
        Some("bind") => {
            let folders = || mount.policy.mount_folders.iter().chain([&mount.policy.task_folder]);
            if !source.is_some_and(|source| folders().any(|folder| is_inside(source, folder))) {
                let value = mount.get("source").unwrap_or(&Value::Null);
                return Err(mount.refuse_value("source", value, "mount a folder of the task"));
            }
        }
        Some("volume") => {
            if let Some(value) = mount.get("source")
                && !source.is_some_and(|source| names.volumes.contains(source))
            {
                return Err(mount.refuse_value("source", value, "declare the volume in the file"));
            }
        }
        Some("tmpfs") => {}
        _ => {
            let value = mount.get("type").unwrap_or(&Value::Null);
            return Err(mount.refuse_value("type", value, "use `bind`, `volume` or `tmpfs`"));
        }
    }
    check_options(mount)
}

/// Checks the options of a mount. Propagation and labels of bind mounts change the host's mounts and files.
pub(super) fn check_options(mount: &Element<'_>) -> Result<(), Refusal> {
    for (key, allowed) in
        [("bind", &["create_host_path"][..]), ("volume", &["nocopy"]), ("tmpfs", &["size", "mode"])]
    {
        if let Some(Value::Object(table)) = mount.get(key) {
            mount.below(key, table).expect_keys(allowed, "leave it out")?;
        }
    }
    Ok(())
}
