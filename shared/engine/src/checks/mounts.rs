//! Mounts of a new container: folders that the sandbox shares, its volumes, and file systems in memory.

use serde_json::Value;

use super::container::{NOTHING, Needs};
use super::fields::Rule::{Elsewhere, Flag, Number, OneOf, Text, TextMap, Unset};
use super::fields::{Rule, check_fields, join};
use crate::refusal::Refusal;
use crate::rules::Folders;

const MOUNT: &[(&str, Rule)] = &[
    ("Type", OneOf(&["bind", "volume", "tmpfs"])),
    ("Source", Text),
    ("Target", Text),
    ("ReadOnly", Flag),
    ("Consistency", OneOf(&["", "default", "consistent", "cached", "delegated"])),
    ("BindOptions", Elsewhere),
    ("VolumeOptions", Elsewhere),
    ("TmpfsOptions", Elsewhere),
    ("ImageOptions", NOTHING),
    ("ClusterOptions", NOTHING),
];
const BIND_OPTIONS: &[(&str, Rule)] = &[
    ("Propagation", OneOf(&["", "private", "rprivate"])),
    ("NonRecursive", Flag),
    // The folder must exist, so nothing is created.
    ("CreateMountpoint", Flag),
    ("ReadOnlyNonRecursive", Flag),
    ("ReadOnlyForceRecursive", Flag),
];
const VOLUME_OPTIONS: &[(&str, Rule)] = &[
    ("NoCopy", Flag),
    ("Labels", TextMap),
    ("Subpath", Unset("whole volumes")),
    ("DriverConfig", Unset("volumes without driver options")),
];
const TMPFS_OPTIONS: &[(&str, Rule)] = &[("SizeBytes", Number), ("Mode", Number), ("Options", NOTHING)];

/// Checks `Binds`, and replaces their sources by fixed paths.
pub(crate) fn check_binds(value: &mut Value, folders: &Folders, needs: &mut Needs) -> Result<(), Refusal> {
    let refuse = |bind: &str| {
        let allowed = "`SOURCE:TARGET` with the options `ro`, `rw`, `z`, `nocopy`, `private`, `rprivate`";
        Refusal::field(format!("HostConfig.Binds: {bind}"), allowed)
    };
    let Some(binds) = value.as_array_mut() else { return Err(refuse("")) };
    for entry in binds {
        let bind = entry.as_str().unwrap_or_default().to_owned();
        let mut parts = bind.split(':');
        let (Some(source), Some(target), options, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse(&bind));
        };
        let options: Vec<_> =
            options.unwrap_or_default().split(',').filter(|option| !option.is_empty()).collect();
        let is_known =
            |option: &&str| matches!(*option, "ro" | "rw" | "z" | "nocopy" | "private" | "rprivate");
        if !options.iter().all(is_known) || !is_target(target) {
            return Err(refuse(&bind));
        }
        let mut is_read_only = options.contains(&"ro");
        let source = if source.starts_with('/') {
            let pin = folders.pin("HostConfig.Binds", source)?;
            is_read_only |= !pin.writable;
            let path = pin.path();
            needs.pins.push(pin);
            path
        } else {
            add_volume("HostConfig.Binds", source, needs)?;
            source.to_owned()
        };
        *entry = format!("{source}:{target}:{}", if is_read_only { "ro" } else { "rw" }).into();
    }
    Ok(())
}

/// Checks `Mounts`, and replaces the sources of folders by fixed paths.
pub(crate) fn check_mounts(value: &mut Value, folders: &Folders, needs: &mut Needs) -> Result<(), Refusal> {
    let Some(mounts) = value.as_array_mut() else {
        return Err(Refusal::Malformed("HostConfig.Mounts must be a list".to_owned()));
    };
    for (number, mount) in mounts.iter_mut().enumerate() {
        let place = format!("HostConfig.Mounts[{number}]");
        let fields = check_fields(&place, mount, MOUNT)?;
        for (name, table) in [
            ("BindOptions", BIND_OPTIONS),
            ("VolumeOptions", VOLUME_OPTIONS),
            ("TmpfsOptions", TMPFS_OPTIONS),
        ] {
            if let Some(options) = fields.get_mut(name) {
                check_fields(&join(&place, name), options, table)?;
            }
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !is_target(&text("Target")) {
            return Err(Refusal::field(join(&place, "Target"), "an absolute path inside the container"));
        }
        let source = text("Source");
        match text("Type").as_str() {
            "bind" => {
                let pin = folders.pin(&join(&place, "Source"), &source)?;
                fields.insert("Source".to_owned(), pin.path().into());
                if !pin.writable {
                    fields.insert("ReadOnly".to_owned(), true.into());
                }
                needs.pins.push(pin);
            }
            "volume" if source.is_empty() => {}
            "volume" => add_volume(&join(&place, "Source"), &source, needs)?,
            "tmpfs" if source.is_empty() => {}
            _ => return Err(Refusal::field(join(&place, "Type"), "`bind`, `volume` or `tmpfs`")),
        }
    }
    Ok(())
}

/// Checks file systems in memory, whose pages count as the container's memory.
pub(crate) fn check_tmpfs(value: &Value) -> Result<(), Refusal> {
    let is_option = |option: &str| {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        matches!(name, "" | "rw" | "ro" | "exec" | "noexec" | "suid" | "nosuid" | "nodev" | "noatime")
            || matches!(name, "size" | "mode" | "uid" | "gid" | "nr_inodes")
    };
    let is_allowed = value.as_object().is_some_and(|paths| {
        paths.iter().all(|(path, options)| {
            is_target(path) && options.as_str().is_some_and(|options| options.split(',').all(is_option))
        })
    });
    if is_allowed {
        return Ok(());
    }
    let allowed = "paths with the options rw, ro, exec, noexec, suid, nosuid, nodev, size, mode, uid, gid";
    Err(Refusal::field("HostConfig.Tmpfs", allowed))
}

fn is_target(target: &str) -> bool {
    target.starts_with('/') && !target.contains(['\0', ':', ','])
}

fn add_volume(field: &str, name: &str, needs: &mut Needs) -> Result<(), Refusal> {
    if !super::volume::is_name(name) {
        return Err(Refusal::field(format!("{field}: {name}"), "an absolute path, or the name of a volume"));
    }
    needs.volumes.push(name.to_owned());
    Ok(())
}
