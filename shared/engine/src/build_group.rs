//! A cgroup for the commands of podman's builds: limits on all of them together, and a way to end them all.
//!
//! Podman's builder doesn't limit processes, and leaves the running command of a build whose client has gone.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

/// Prefix of the group's name.
const NAME_PREFIX: &str = "bench-builds-";
/// Folder in which the machine's cgroups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// Controllers of version 1 that limit builds.
const V1_CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Maximum time to wait until killed processes are gone.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// The group, in every hierarchy that limits something.
#[derive(Debug, Clone)]
pub(crate) struct BuildGroup {
    name: String,
    folders: Vec<PathBuf>,
}

impl BuildGroup {
    /// Creates the group, in place of the one that an earlier process left behind. `run_folder` records its name.
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
        // Limits must be possible before builds rely on them.
        match group.limit(u64::MAX >> 1, 1 << 16) {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    /// Returns the group for the commands of one build.
    pub(crate) fn of_build(&self) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let folders = self.folders.iter().map(|folder| folder.join(&id)).collect();
        Self { name: format!("{}/{id}", self.name), folders }
    }

    /// Returns the parent group for a build's commands, as the engine wants it.
    pub(crate) fn parent(&self) -> String {
        // One level below, since the runtime removes the group of each command.
        format!("/{}/run", self.name)
    }

    /// Limits all commands together.
    pub(crate) fn limit(&self, memory_bytes: u64, processes: u64) -> io::Result<()> {
        for folder in &self.folders {
            let set = |file: &str, value: String| match folder.join(file) {
                path if path.exists() => std::fs::write(path, value),
                _ => Ok(()),
            };
            set("memory.limit_in_bytes", memory_bytes.to_string())?;
            set("memory.max", memory_bytes.to_string())?;
            set("memory.swap.max", "0".to_owned())?;
            set("pids.max", processes.to_string())?;
        }
        Ok(())
    }

    /// Kills everything in the group and waits briefly for its end. Returns true if there was anything. Blocks.
    pub(crate) fn kill(&self) -> bool {
        let until = Instant::now() + END_TIMEOUT;
        let mut found = false;
        while self.folders.iter().any(|folder| kill_all(folder)) {
            found = true;
            if Instant::now() > until {
                tracing::warn!(group = self.name, "Commands of a build can't be killed");
                break;
            }
            std::thread::sleep(POLL);
        }
        found
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

/// Removes the group that an earlier process recorded in its run folder. Blocks.
pub(crate) fn remove_recorded(run_folder: &Path) {
    let Ok(name) = std::fs::read_to_string(record(run_folder)) else { return };
    let is_name = name
        .strip_prefix(NAME_PREFIX)
        .is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_name && let Ok(folders) = folders(Path::new(ROOT), &name) {
        BuildGroup { name, folders }.remove();
    }
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
    match folders.iter().all(|folder| folder.join("cgroup.procs").exists()) {
        true => Ok(folders.into_iter().map(|folder| folder.join(name)).collect()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "no cgroups limit memory and processes")),
    }
}

/// Kills all processes in a group and below. Returns true if there were any.
fn kill_all(folder: &Path) -> bool {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = false;
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found |= kill_all(&entry.path());
    }
    let members = || -> Vec<i32> {
        let list = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    for pid in members().into_iter().filter_map(Pid::from_raw) {
        found = true;
        // The open process keeps its id from being reused, so that the second look-up is reliable.
        let Ok(open) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members().contains(&pid.as_raw_nonzero().get()) {
            // A process that is gone needs no signal.
            let _ = rustix::process::pidfd_send_signal(open, Signal::KILL);
        }
    }
    found
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
            std::fs::write(root.path().join(controller).join("cgroup.procs"), "").unwrap();
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
            remove_recorded(folder.path());
        }
    }
}
