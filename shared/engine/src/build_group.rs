//! Cgroups of podman's builds: limits on everything that a build runs, and a way to end it.
//!
//! Podman's builder doesn't limit processes, goes on when its client has gone, and does part of the work in its own
//! process. So each build has a group of its own, with one part for podman and one for the Dockerfile's commands.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::probe::HELPER_FOLDERS;

/// Prefix of the group's name.
const NAME_PREFIX: &str = "bench-builds-";
/// Folder in which the machine's cgroups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// Controllers of version 1 that limit builds.
const V1_CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Part of a build's group for podman's process.
const SERVICE: &str = "service";
/// Part of a build's group for the Dockerfile's commands.
const COMMANDS: &str = "commands";
/// Maximum memory of podman's process, in bytes, with the pages of the files that it writes.
const SERVICE_MEMORY_BYTES: u64 = 2 << 30;
/// Maximum number of threads of podman and of the programs that it starts.
const SERVICE_THREADS: u64 = 1024;
/// Podman's server of names, which the first network starts and all networks share.
const NAME_SERVER: &str = "aardvark-dns";
/// Maximum time to wait until killed processes are gone.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);
/// File with the ids of a group's processes.
const PROCESSES: &str = "cgroup.procs";

/// A group, in every hierarchy that limits something.
#[derive(Debug, Clone)]
pub(crate) struct BuildGroup {
    name: String,
    folders: Vec<PathBuf>,
}

impl BuildGroup {
    /// Creates the group of all builds, in place of the one that an earlier process left behind. `run_folder` records its
    /// name.
    pub(crate) fn create(run_folder: &Path) -> io::Result<Self> {
        remove_recorded(run_folder);
        let name = format!("{NAME_PREFIX}{}", uuid::Uuid::new_v4().simple());
        std::fs::write(record(run_folder), &name)?;
        let group = Self { folders: folders(Path::new(ROOT), &name)?, name };
        for folder in &group.folders {
            if let Err(error) = std::fs::create_dir(folder) {
                group.remove();
                return Err(error);
            }
        }
        Ok(group)
    }

    /// Creates the group of one build, with limits on the memory, in bytes, and the processes of its commands.
    pub(crate) fn create_build(&self, memory_bytes: u64, processes: u64) -> io::Result<Self> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let folders = self.folders.iter().map(|folder| folder.join(&id)).collect();
        let build = Self { name: format!("{}/{id}", self.name), folders };
        build.create_parts(memory_bytes, processes).inspect_err(|_| build.remove())?;
        Ok(build)
    }

    fn create_parts(&self, memory_bytes: u64, processes: u64) -> io::Result<()> {
        for folder in &self.folders {
            std::fs::create_dir(folder)?;
            for above in folder.parent().into_iter().chain([folder.as_path()]) {
                write_if_there(above, "cgroup.subtree_control", "+memory +pids")?;
            }
            let parts =
                [(SERVICE, SERVICE_MEMORY_BYTES, SERVICE_THREADS), (COMMANDS, memory_bytes, processes)];
            for (part, memory_bytes, processes) in parts {
                let part = folder.join(part);
                std::fs::create_dir(&part)?;
                write_if_there(&part, "memory.limit_in_bytes", &memory_bytes.to_string())?;
                write_if_there(&part, "memory.max", &memory_bytes.to_string())?;
                write_if_there(&part, "memory.swap.max", "0")?;
                write_if_there(&part, "pids.max", &processes.to_string())?;
            }
        }
        Ok(())
    }

    /// Returns the group's name, which is also the beginning of the names of groups below it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the files into which a process of this build's podman writes its id.
    pub(crate) fn service_files(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.join(SERVICE).join(PROCESSES))
    }

    /// Returns the parent group for this build's commands, as the engine wants it.
    pub(crate) fn parent(&self) -> String {
        // One level below, since the runtime removes the group of each command.
        format!("/{}/{COMMANDS}/run", self.name)
    }

    /// Kills everything in the group and waits briefly for its end. Blocks.
    fn kill(&self) {
        let until = Instant::now() + END_TIMEOUT;
        let name_servers = name_servers();
        while self.folders.iter().any(|folder| kill_all(folder, &name_servers)) {
            if Instant::now() > until {
                tracing::warn!(group = self.name, "Processes of a build can't be killed");
                break;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Kills everything in the group and removes it. Blocks.
    pub(crate) fn remove(&self) {
        self.kill();
        // The runtime makes a group in every hierarchy.
        let hierarchies = std::fs::read_dir(ROOT).into_iter().flatten().flatten();
        let others = hierarchies.map(|hierarchy| hierarchy.path().join(&self.name));
        for folder in self.folders.iter().cloned().chain(others).filter(|folder| folder.is_dir()) {
            remove_groups(&folder);
        }
    }
}

/// Removes the group that an earlier process recorded in its run folder, and returns its name. Blocks.
pub(crate) fn remove_recorded(run_folder: &Path) -> Option<String> {
    let name = std::fs::read_to_string(record(run_folder)).ok()?;
    let id = name.strip_prefix(NAME_PREFIX)?;
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if let Ok(folders) = folders(Path::new(ROOT), &name) {
        BuildGroup { name: name.clone(), folders }.remove();
    }
    Some(name)
}

fn record(run_folder: &Path) -> PathBuf {
    run_folder.join("build-group")
}

/// Returns the group's folders: one of version 2 if its root has the controllers, else one for each of version 1.
fn folders(root: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let has_all = |list: &str| {
        V1_CONTROLLERS.iter().all(|controller| list.split_whitespace().any(|found| found == *controller))
    };
    if std::fs::read_to_string(root.join("cgroup.subtree_control")).is_ok_and(|list| has_all(&list)) {
        return Ok(vec![root.join(name)]);
    }
    let folders: Vec<PathBuf> = V1_CONTROLLERS.iter().map(|controller| root.join(controller)).collect();
    match folders.iter().all(|folder| folder.join(PROCESSES).exists()) {
        true => Ok(folders.into_iter().map(|folder| folder.join(name)).collect()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "no cgroups limit memory and processes")),
    }
}

/// Writes a file of a group that only one version of cgroups has.
fn write_if_there(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    match folder.join(file) {
        path if path.exists() => std::fs::write(path, value),
        _ => Ok(()),
    }
}

/// Device and number of the files of podman's server of names.
fn name_servers() -> Vec<(u64, u64)> {
    let files = HELPER_FOLDERS.iter().map(|folder| Path::new(folder).join(NAME_SERVER));
    files.filter_map(|file| std::fs::metadata(file).ok()).map(|file| (file.dev(), file.ino())).collect()
}

/// Kills all processes in a group and below. Returns true if there were any. A server of names is moved out instead, since
/// containers of other sandboxes use it.
fn kill_all(folder: &Path, name_servers: &[(u64, u64)]) -> bool {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = false;
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found |= kill_all(&entry.path(), name_servers);
    }
    let members = || -> Vec<i32> {
        let list = std::fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    for pid in members().into_iter().filter_map(Pid::from_raw) {
        found = true;
        let id = pid.as_raw_nonzero().get();
        let program = std::fs::metadata(format!("/proc/{id}/exe"));
        if program.is_ok_and(|file| name_servers.contains(&(file.dev(), file.ino()))) && move_out(folder, id)
        {
            continue;
        }
        // The open process keeps its id from being reused, so that the second look-up is reliable.
        let Ok(open) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members().contains(&id) {
            // A process that is gone needs no signal.
            let _ = rustix::process::pidfd_send_signal(open, Signal::KILL);
        }
    }
    found
}

/// Moves a process from a group of builds to the root of its hierarchy. Returns true if it was moved.
fn move_out(folder: &Path, id: i32) -> bool {
    let is_ours = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME_PREFIX))
    };
    let root = folder.ancestors().find(is_ours).and_then(Path::parent);
    root.is_some_and(|root| std::fs::write(root.join(PROCESSES), id.to_string()).is_ok())
}

fn remove_groups(folder: &Path) {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_groups(&entry.path());
    }
    if let Err(error) = std::fs::remove_dir(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "Cgroup of builds was not removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let root = tempfile::tempdir().unwrap();
        assert!(folders(root.path(), "g").is_err());
        for controller in V1_CONTROLLERS {
            std::fs::create_dir(root.path().join(controller)).unwrap();
            std::fs::write(root.path().join(controller).join(PROCESSES), "").unwrap();
        }
        let one = folders(root.path(), "g").unwrap();
        assert_eq!(one, [root.path().join("memory/g"), root.path().join("pids/g")]);
        std::fs::write(root.path().join("cgroup.subtree_control"), "cpu io\n").unwrap();
        assert_eq!(folders(root.path(), "g").unwrap().len(), 2);
        std::fs::write(root.path().join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        assert_eq!(folders(root.path(), "g").unwrap(), [root.path().join("g")]);
    }

    #[test]
    fn only_our_own_groups_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "..", "bench-builds-", "bench-builds-../x", "user.slice"] {
            std::fs::write(record(folder.path()), name).unwrap();
            assert_eq!(remove_recorded(folder.path()), None, "{name}");
        }
    }
}
