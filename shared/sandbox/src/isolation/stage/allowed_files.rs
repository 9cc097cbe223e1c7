//! Files of the machine that a sandbox may access.

use std::path::{Path, PathBuf};

use crate::isolation::wire::FormKind;

/// Configuration that programs need and that reveals nothing about the machine's users.
pub(super) const CONFIGURATION: [&str; 12] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
];

/// Harmless devices that programs need.
pub(super) const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// The machine's programs and libraries.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Further files that programs without a mount namespace may read: information on users and on the machine. Not all of
/// `/proc`, which shows the command lines of others.
const SYSTEM_INFO: [&str; 14] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// Files of a sandbox by permitted access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedFiles {
    pub(crate) home: PathBuf,
    pub(crate) temporary: PathBuf,
    /// Readable and executable.
    pub(crate) read: Vec<PathBuf>,
    /// Full access.
    pub(crate) write: Vec<PathBuf>,
    /// Readable and writable.
    pub(crate) devices: Vec<PathBuf>,
}

/// Returns the files that a sandbox of this kind may access. `folder` contains its files if it has no file system of
/// its own, and `shared` are the folders that all sandboxes may read.
pub(crate) fn allowed_files<'a>(
    kind: FormKind,
    folder: &Path,
    shared: impl Iterator<Item = &'a Path>,
    network: bool,
) -> AllowedFiles {
    let devices = DEVICES.map(PathBuf::from).to_vec();
    match kind {
        // The sandbox has its own file system, which contains nothing that it must not see.
        FormKind::Namespaces => AllowedFiles {
            home: "/workspace".into(),
            temporary: "/tmp".into(),
            read: vec!["/".into()],
            write: ["/workspace", "/tmp", "/dev/shm"].map(PathBuf::from).to_vec(),
            devices,
        },
        FormKind::Confined => {
            let (home, temporary) = (folder.join("work"), folder.join("tmp"));
            let mut read: Vec<PathBuf> =
                SYSTEM.iter().chain(&CONFIGURATION).chain(&SYSTEM_INFO).map(PathBuf::from).collect();
            read.extend(shared.map(Path::to_owned));
            if network {
                read.push("/etc/resolv.conf".into());
            }
            AllowedFiles { write: vec![home.clone(), temporary.clone()], home, temporary, read, devices }
        }
    }
}
