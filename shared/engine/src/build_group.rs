//! Cgroups of podman's builds: limits on everything that a build runs, and a way to end it.
//!
//! Podman's builder doesn't limit processes, goes on when its client has gone, and does part of the work in its own
//! process. So each build has a group of its own, with one part for podman and one for the Dockerfile's commands.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// Folders in which podman looks for its own programs.
pub(crate) const HELPER_FOLDERS: [&str; 4] =
    ["/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman"];

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
/// Maximum number of groups that the commands of a build may make.
const GROUPS_MAX: usize = 256;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

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
        remove_recorded(run_folder)?;
        let name = format!("{NAME_PREFIX}{}", uuid::Uuid::new_v4().simple());
        std::fs::write(record(run_folder), &name)?;
        let group = Self { folders: folders(Path::new(ROOT), &name)?, name };
        for folder in &group.folders {
            if let Err(error) = std::fs::create_dir(folder) {
                group.remove_or_warn();
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
        build.create_parts(memory_bytes, processes).inspect_err(|_| build.remove_or_warn())?;
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
                write_if_there(&part, "cgroup.max.descendants", &GROUPS_MAX.to_string())?;
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

    /// Kills the commands of this build, and leaves podman the end of the build. Blocks.
    pub(crate) fn kill_commands(&self) {
        let (parts, name_servers) = (hierarchies(&self.name), name_servers());
        for part in parts.iter().map(|folder| folder.join(COMMANDS)) {
            let pass = Pass { name_servers: &name_servers, removes: false };
            if let Err(error) = pass.over(&part) {
                tracing::debug!(%error, "Commands of a build were not killed");
            }
        }
    }

    /// Kills everything in the group and removes it, or logs why it can't. Blocks.
    pub(crate) fn remove_or_warn(&self) {
        if let Err(error) = remove_group(&self.name) {
            tracing::warn!(group = self.name, %error, "Group of builds was not removed");
        }
    }

    /// Returns true if the commands of this build have made more groups than any build needs. The kernel allows only so many
    /// on the whole machine. Blocks.
    pub(crate) fn has_too_many(&self) -> bool {
        let counts = self.folders.iter().map(|folder| count_below(&folder.join(COMMANDS), GROUPS_MAX));
        counts.into_iter().any(|count| count > GROUPS_MAX)
    }
}

/// Removes the group that an earlier process recorded in its run folder, and returns its name. Blocks.
///
/// # Errors
/// Fails if something in the group can't be ended. The record stays for another try.
pub(crate) fn remove_recorded(run_folder: &Path) -> io::Result<Option<String>> {
    let Ok(name) = std::fs::read_to_string(record(run_folder)) else { return Ok(None) };
    let id = name.strip_prefix(NAME_PREFIX).unwrap_or_default();
    if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    remove_group(&name)?;
    Ok(Some(name))
}

/// Kills everything in a group and removes it, in every hierarchy, since the runtime makes groups in all of them. Blocks.
fn remove_group(name: &str) -> io::Result<()> {
    let (mut folders, name_servers) = (hierarchies(name), name_servers());
    let until = Instant::now() + END_TIMEOUT;
    loop {
        let mut last = Ok(());
        folders.retain(|folder| match (Pass { name_servers: &name_servers, removes: true }).over(folder) {
            Ok(is_removed) => !is_removed,
            Err(error) => {
                last = Err(error);
                true
            }
        });
        if folders.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            let left = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
            last?;
            return Err(io::Error::other(format!("processes can't be ended in {}", left.join(", "))));
        }
        std::thread::sleep(POLL);
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

/// Returns the folders of a group in all hierarchies in which it exists. The freezer's is first: it must be thawed before
/// anything in it can end.
fn hierarchies(name: &str) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let below = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path().join(name));
    let all = [root.join("freezer").join(name), root.join(name)].into_iter().chain(below);
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in all {
        // Some hierarchies have a second name, which is a link.
        let is_real = folder.parent().is_some_and(|parent| !parent.is_symlink()) && folder.is_dir();
        if is_real && !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

/// One pass over a group and all groups below, from the inside: a build can make groups that are nested so deeply that they
/// have no path.
struct Pass<'a> {
    name_servers: &'a [(u64, u64)],
    /// Removes groups, too.
    removes: bool,
}

impl Pass<'_> {
    /// Kills all processes that are found. Returns true if the group doesn't exist any more.
    fn over(&self, folder: &Path) -> io::Result<bool> {
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(false) };
        let above = open(above, FOLDER, Mode::empty())?;
        let name = CString::new(name.as_bytes())?;
        let mut here = match openat(&above, &name, FOLDER, Mode::empty()) {
            Ok(here) => here,
            Err(Errno::NOENT) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.kill_members(&here, folder);
        // Names of the open groups, each with the groups below it that are still to be visited.
        let mut open_groups = vec![(name, groups_below(&here)?)];
        while let Some((_, below)) = open_groups.last_mut() {
            if let Some(name) = below.pop() {
                // It may be gone by now.
                let Ok(group) = openat(&here, &name, FOLDER, Mode::empty()) else { continue };
                here = group;
                self.kill_members(&here, folder);
                open_groups.push((name, groups_below(&here)?));
                continue;
            }
            let up = match open_groups.len() {
                1 => above.try_clone()?,
                _ => openat(&here, "..", FOLDER, Mode::empty())?,
            };
            let Some((name, _)) = open_groups.pop() else { break };
            if self.removes {
                match unlinkat(&up, &name, AtFlags::REMOVEDIR) {
                    // Killed processes are there for another moment.
                    Ok(()) | Err(Errno::NOENT | Errno::BUSY) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            here = up;
        }
        Ok(self.removes && !folder.exists())
    }

    /// Kills the processes of an open group, after it was thawed. A server of names is moved out instead, since containers
    /// of other sandboxes use it.
    fn kill_members(&self, group: &OwnedFd, top: &Path) {
        // Each exists in one version of cgroups, or one hierarchy.
        write_in(group, "freezer.state", "THAWED");
        write_in(group, "cgroup.freeze", "0");
        let members = || -> Vec<i32> {
            let list = read_in(group, PROCESSES);
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
        };
        for pid in members().into_iter().filter_map(Pid::from_raw) {
            let id = pid.as_raw_nonzero().get();
            let program = std::fs::metadata(format!("/proc/{id}/exe"));
            let is_kept = program.is_ok_and(|file| self.name_servers.contains(&(file.dev(), file.ino())));
            if is_kept && move_out(top, id) {
                continue;
            }
            // The open process keeps its id from being reused, so that the second look-up is reliable.
            let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if members().contains(&id) {
                // A process that is gone needs no signal.
                let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
            }
        }
    }
}

/// Returns the names of the groups directly below an open one.
fn groups_below(group: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(group)? {
        let entry = entry?;
        if entry.file_type() == FileType::Directory && !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Counts the groups below one, up to a little more than `most`.
fn count_below(folder: &Path, most: usize) -> usize {
    let mut count = 0;
    let mut open_groups: Vec<OwnedFd> = open(folder, FOLDER, Mode::empty()).into_iter().collect();
    while let Some(group) = open_groups.pop() {
        let names = groups_below(&group).unwrap_or_default();
        count += names.len();
        // Open files are scarce, too.
        if count > most {
            break;
        }
        open_groups.extend(names.iter().filter_map(|name| openat(&group, name, FOLDER, Mode::empty()).ok()));
    }
    count
}

fn read_in(group: &OwnedFd, file: &str) -> String {
    let mut text = String::new();
    if let Ok(file) = openat(group, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        // After an error, the next pass reads the rest.
        let _ = File::from(file).read_to_string(&mut text);
    }
    text
}

fn write_in(group: &OwnedFd, file: &str, value: &str) {
    if let Ok(file) = openat(group, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        // The next pass tries again.
        let _ = File::from(file).write_all(value.as_bytes());
    }
}

/// Moves a process from a group of builds to the root of its hierarchy. Returns true if it was moved.
fn move_out(folder: &Path, id: i32) -> bool {
    let is_ours = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME_PREFIX))
    };
    let root = folder.ancestors().find(is_ours).and_then(Path::parent);
    root.is_some_and(|root| std::fs::write(root.join(PROCESSES), id.to_string()).is_ok())
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
    fn groups_without_a_path_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("bench-builds-1");
        std::fs::create_dir(&top).unwrap();
        let mut here = open(&top, FOLDER, Mode::empty()).unwrap();
        for depth in 0..300 {
            let name = format!("{depth}-{}", "x".repeat(200));
            for name in [&name, "beside"] {
                rustix::fs::mkdirat(&here, name, Mode::RWXU).unwrap();
            }
            here = openat(&here, &name, FOLDER, Mode::empty()).unwrap();
        }
        assert_eq!(count_below(&top, 1000), 600);
        assert!(count_below(&top, 20) > 20);
        let pass = |removes| Pass { name_servers: &[], removes }.over(&top).unwrap();
        assert!(!pass(false) && top.exists());
        assert!(pass(true) && !top.exists());
        assert!(pass(true));
    }

    #[test]
    fn only_our_own_groups_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "..", "bench-builds-", "bench-builds-../x", "user.slice"] {
            std::fs::write(record(folder.path()), name).unwrap();
            assert_eq!(remove_recorded(folder.path()).unwrap(), None, "{name}");
        }
    }
}
