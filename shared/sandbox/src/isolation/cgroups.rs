//! Cgroups, through their files: limits on all processes of a sandbox together. Supports versions 1 and 2 of the
//! interface. Where this process can't create groups, sandboxes run without them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::Limits;

/// Maximum number of our own processes and threads in each sandbox. In namespaces: the guard, its thread that scans
/// everything except memory, hakoniwa's process, and the second stage with a thread that starts commands. Without
/// namespaces: the guard with its thread, and the second stage with two such threads.
pub(crate) const OWN_PROCESSES: u64 = 5;
/// Maximum time to wait until the last process of a group is gone and the group can be removed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Suffix of the group that the host's own processes move to. The next host doesn't remove groups with this suffix.
const HOST_SUFFIX: &str = ".host";
/// Maximum number of passes that move processes to that group.
const MOVE_PASSES_MAX: u32 = 10;

/// Controllers of version 1 for memory, processes and CPU time.
const V1_CONTROLLERS: [&str; 3] = ["memory", "pids", "cpuacct"];

/// Version of the cgroup interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A cgroup folder with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupFolder {
    version: Version,
    path: PathBuf,
}

/// The groups of this host; those of its sandboxes are created below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cgroups {
    memory: Option<GroupFolder>,
    processes: Option<GroupFolder>,
    cpu: Option<GroupFolder>,
}

/// The groups of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Group {
    memory: Option<GroupFolder>,
    cpu: Option<GroupFolder>,
    /// All folders of the group, without duplicates.
    folders: Vec<GroupFolder>,
}

impl Cgroups {
    /// Creates a group for this host in every hierarchy where this process may.
    pub(crate) fn find(name: &str) -> Self {
        let (mounts, own) = hierarchies();
        Self::find_in(&mounts, &own, name)
    }

    /// Does the same for the given mounts and groups of this process.
    fn find_in(mounts: &str, own: &str, name: &str) -> Self {
        let groups = v2_groups(mounts, own);
        let made = groups.iter().find_map(|group_folder| make_v2_group(group_folder, name));
        // A group that was delegated to this process, such as a scope or service with `Delegate=yes`, can enable its
        // controllers for child groups once its own processes have moved to a child group.
        let made = made.or_else(|| {
            let own = groups.first()?;
            move_to_child_group(own, name).then(|| make_v2_group(own, name)).flatten()
        });
        if let Some(folder) = made {
            let group_folder = Some(GroupFolder { version: Version::V2, path: folder });
            return Self { memory: group_folder.clone(), processes: group_folder.clone(), cpu: group_folder };
        }
        let [memory, processes, cpu] = V1_CONTROLLERS.map(|controller| {
            let folder = v1_group(mounts, own, controller)?.join(name);
            // Several controllers may share a hierarchy, so the folder may already exist.
            (folder.is_dir() || std::fs::create_dir(&folder).is_ok())
                .then_some(GroupFolder { version: Version::V1, path: folder })
        });
        Self { memory, processes, cpu }
    }

    /// Returns every folder that [`Self::find`] may create.
    pub(crate) fn candidates(name: &str) -> Vec<PathBuf> {
        let (mounts, own) = hierarchies();
        let one = V1_CONTROLLERS.iter().filter_map(|controller| v1_group(&mounts, &own, controller));
        v2_groups(&mounts, &own).into_iter().chain(one).map(|group_folder| group_folder.join(name)).collect()
    }

    pub(crate) fn bounds_memory(&self) -> bool {
        self.memory.is_some()
    }

    pub(crate) fn bounds_processes(&self) -> bool {
        self.processes.is_some()
    }

    /// Returns the folders of this host.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = [&self.memory, &self.processes, &self.cpu]
            .into_iter()
            .flatten()
            .map(|group_folder| group_folder.path.clone())
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Creates groups with these limits for one sandbox.
    pub(crate) fn make(&self, name: &str, limits: &Limits) -> std::io::Result<Group> {
        let mut group = Group::default();
        let made = self.fill(&mut group, name, limits);
        if made.is_err() {
            group.remove();
        }
        made.map(|()| group)
    }

    fn fill(&self, group: &mut Group, name: &str, limits: &Limits) -> std::io::Result<()> {
        for group_folder in [&self.memory, &self.processes, &self.cpu].into_iter().flatten() {
            let own = GroupFolder { version: group_folder.version, path: group_folder.path.join(name) };
            if !group.folders.contains(&own) {
                std::fs::create_dir(&own.path)?;
                group.folders.push(own);
            }
        }
        let in_group = |group_folder: &GroupFolder| GroupFolder {
            version: group_folder.version,
            path: group_folder.path.join(name),
        };
        if let Some(group_folder) = self.memory.as_ref().map(in_group) {
            let bytes = limits.memory_bytes.to_string();
            let set = |file: &str, value: &str| std::fs::write(group_folder.path.join(file), value);
            match group_folder.version {
                Version::V1 => {
                    set("memory.limit_in_bytes", &bytes)?;
                    // Exists only if the kernel counts swap.
                    let _ = set("memory.memsw.limit_in_bytes", &bytes);
                }
                Version::V2 => {
                    set("memory.max", &bytes)?;
                    let _ = set("memory.swap.max", "0");
                }
            }
            group.memory = Some(group_folder);
        }
        if let Some(group_folder) = self.processes.as_ref().map(in_group) {
            let processes = limits.processes.saturating_add(OWN_PROCESSES).to_string();
            std::fs::write(group_folder.path.join("pids.max"), processes)?;
        }
        group.cpu = self.cpu.as_ref().map(in_group);
        Ok(())
    }
}

impl Group {
    /// Returns the files to which a process writes its id to join the group.
    pub(crate) fn cgroup_procs(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|group_folder| group_folder.path.join("cgroup.procs")).collect()
    }

    /// Returns the CPU time used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let group_folder = self.cpu.as_ref()?;
        Some(match group_folder.version {
            Version::V1 => number(&group_folder.path.join("cpuacct.usage"))? as f64 / 1e9,
            Version::V2 => entry(&group_folder.path.join("cpu.stat"), "usage_usec")? as f64 / 1e6,
        })
    }

    /// Returns the memory in use, in bytes, without the inactive page cache.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let group_folder = self.memory.as_ref()?;
        let (usage, idle) = match group_folder.version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        let idle = entry(&group_folder.path.join("memory.stat"), idle).unwrap_or_default();
        Some(number(&group_folder.path.join(usage))?.saturating_sub(idle))
    }

    /// Kills all processes in the group and removes it. Retries for a while, since processes take a moment to exit.
    pub(crate) fn remove(&self) {
        remove(self.folders.iter().map(|group_folder| group_folder.path.clone()).collect());
    }
}

/// Kills all processes in these groups and the groups below them, and removes the groups.
pub(crate) fn remove(folders: Vec<PathBuf>) {
    let until = Instant::now() + REMOVAL_TIMEOUT;
    let mut left = folders;
    loop {
        left.retain(|folder| !remove_once(folder));
        if left.is_empty() {
            return;
        }
        if Instant::now() > until {
            tracing::warn!(folders = ?left, "Cgroups of a sandbox cannot be removed");
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns true if the group is gone.
fn remove_once(folder: &Path) -> bool {
    if let Ok(entries) = std::fs::read_dir(folder) {
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove_once(&entry.path());
        }
    }
    match std::fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(_) => {
            kill_all(folder);
            false
        }
    }
}

fn kill_all(folder: &Path) {
    if std::fs::write(folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let procs = folder.join("cgroup.procs");
    let members = || -> Vec<i32> {
        let list = std::fs::read_to_string(&procs).unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    for pid in members().into_iter().filter_map(Pid::from_raw) {
        // The pidfd keeps the id from being reused, so that the second look-up is reliable.
        let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members().contains(&pid.as_raw_nonzero().get()) {
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
    }
}

/// Returns the mounts that this process sees, and its groups.
fn hierarchies() -> (String, String) {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    (read("/proc/self/mountinfo"), read("/proc/self/cgroup"))
}

/// Returns the folder of this process's group in the hierarchy of a version 1 controller.
fn v1_group(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        names.split(',').any(|name| name == controller).then_some(path)
    })?;
    mounts.lines().filter_map(Mount::parse).find_map(|mount| {
        (mount.kind == "cgroup" && mount.options.split(',').any(|name| name == controller))
            .then(|| mount.folder(own))
            .flatten()
    })
}

/// Returns the folders of the version 2 hierarchy to try: this process's own group, then its ancestors as far as a
/// service manager has delegated them to this user, up to the root group, which root may use.
fn v2_groups(mounts: &str, own: &str) -> Vec<PathBuf> {
    let Some(mount) = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2") else {
        return Vec::new();
    };
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).and_then(|path| mount.folder(path));
    let mut groups: Vec<PathBuf> = Vec::new();
    if let Some(own) = own {
        groups.extend(
            own.ancestors()
                .take_while(|group_folder| group_folder.starts_with(&mount.point))
                .map(Path::to_owned),
        );
    }
    if !groups.contains(&mount.point) {
        groups.push(mount.point);
    }
    groups
}

/// Moves the processes of a group into a child group, where they stay: the kernel doesn't let a group with processes of
/// its own enable controllers for its children. The limits of the group still apply to them. Returns false if that
/// isn't permitted.
fn move_to_child_group(group_folder: &Path, name: &str) -> bool {
    let has_memory = std::fs::read_to_string(group_folder.join("cgroup.controllers"))
        .is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"));
    let child = group_folder.join(format!("{name}{HOST_SUFFIX}"));
    if !has_memory || !may_move(group_folder) || std::fs::create_dir(&child).is_err() {
        return false;
    }
    // Another pass finds processes that were started in the meantime.
    for _ in 0..MOVE_PASSES_MAX {
        let members = std::fs::read_to_string(group_folder.join("cgroup.procs")).unwrap_or_default();
        let mut has_moved = false;
        for pid in members.lines() {
            has_moved |= std::fs::write(child.join("cgroup.procs"), pid).is_ok();
        }
        if !has_moved {
            break;
        }
    }
    let is_empty = |group: &Path| {
        std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|members| members.trim().is_empty())
    };
    // An empty child group is removed; otherwise this process lives in it from now on.
    if is_empty(&child) {
        let _ = std::fs::remove_dir(&child);
    }
    is_empty(group_folder)
}

/// Creates a group for this host with both controllers; `None` if they aren't available.
fn make_v2_group(group_folder: &Path, name: &str) -> Option<PathBuf> {
    const CONTROLLERS: [&str; 2] = ["memory", "pids"];
    let has = |file: PathBuf| {
        let names = std::fs::read_to_string(file).unwrap_or_default();
        CONTROLLERS.iter().all(|controller| names.split_whitespace().any(|name| name == *controller))
    };
    if !has(group_folder.join("cgroup.controllers")) {
        return None;
    }
    let enable_controllers = |folder: &Path| {
        // Fails for a group that has processes itself.
        has(folder.join("cgroup.subtree_control"))
            || std::fs::write(folder.join("cgroup.subtree_control"), "+memory +pids").is_ok()
    };
    let folder = group_folder.join(name);
    if !enable_controllers(group_folder) || std::fs::create_dir(&folder).is_err() {
        return None;
    }
    let can_join = nix::unistd::Uid::effective().is_root() || may_move(group_folder);
    if !can_join || !enable_controllers(&folder) {
        let _ = std::fs::remove_dir(&folder);
        return None;
    }
    Some(folder)
}

/// Returns true if this process may move processes below this group, which requires write access to the group's list.
fn may_move(group_folder: &Path) -> bool {
    rustix::fs::access(group_folder.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
}

/// An entry of `/proc/self/mountinfo`.
struct Mount {
    root: String,
    point: PathBuf,
    kind: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (here, kind) = line.split_once(" - ")?;
        let here: Vec<&str> = here.split(' ').collect();
        let kind: Vec<&str> = kind.split(' ').collect();
        Some(Self {
            root: (*here.get(3)?).to_owned(),
            point: PathBuf::from(*here.get(4)?),
            kind: (*kind.first()?).to_owned(),
            options: (*kind.get(2)?).to_owned(),
        })
    }

    /// Returns the location of a hierarchy's path in the file system.
    fn folder(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        Some(self.point.join(below))
    }
}

fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn entry(file: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                       36 31 0:32 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                       41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_one_groups_are_found_by_controller() {
        let own = "4:memory:/user/a\n3:cpu,cpuacct:/docker/1\n0::/\n";
        assert_eq!(v1_group(ONE, own, "memory"), Some("/sys/fs/cgroup/memory/user/a".into()));
        assert_eq!(v1_group(ONE, own, "cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct/".into()));
        assert_eq!(v1_group(ONE, own, "pids"), None);
        assert_eq!(v1_group(ONE, "3:cpu,cpuacct:/elsewhere\n", "cpuacct"), None);
        assert_eq!(v1_group("garbage\n", own, "memory"), None);
    }

    #[test]
    fn version_two_candidates_are_the_own_group_and_its_ancestors() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let own = "0::/user.slice/a.scope\n";
        let expected: Vec<PathBuf> = ["/user.slice/a.scope", "/user.slice", ""]
            .map(|path| format!("/sys/fs/cgroup{path}").into())
            .into();
        assert_eq!(v2_groups(mounts, own), expected);
        assert_eq!(v2_groups(mounts, "0::/\n"), vec![PathBuf::from("/sys/fs/cgroup/")]);
        assert!(v2_groups("", own).is_empty());
    }

    #[test]
    fn entries_are_found_by_their_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stat");
        std::fs::write(&file, "usage_usec_x 1\nusage_usec 2\n").unwrap();
        assert_eq!(entry(&file, "usage_usec"), Some(2));
        assert_eq!(entry(&file, "user_usec"), None);
    }

    /// Creates a folder as a fake group. It stores what is written to it and doesn't act like a kernel.
    fn fake_group(controllers: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        std::fs::write(folder.path().join("cgroup.subtree_control"), "").unwrap();
        std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
        folder
    }

    fn limits() -> Limits {
        Limits { memory_bytes: 1 << 30, processes: 10, disk_bytes: 1, open_files: 1 }
    }

    #[test]
    fn version_two_enables_controllers_for_child_groups() {
        let group_folder = fake_group("cpu memory pids\n");
        let folder = make_v2_group(group_folder.path(), "host").unwrap();
        for group in [group_folder.path(), &folder] {
            assert_eq!(
                std::fs::read_to_string(group.join("cgroup.subtree_control")).unwrap(),
                "+memory +pids"
            );
        }
        let here = Some(GroupFolder { version: Version::V2, path: folder.clone() });
        let cgroups = Cgroups { memory: here.clone(), processes: here.clone(), cpu: here };
        let group = cgroups.make("one", &limits()).unwrap();
        let own = folder.join("one");
        assert_eq!(group.cgroup_procs(), [own.join("cgroup.procs")]);
        for (file, value) in [("memory.max", "1073741824"), ("memory.swap.max", "0"), ("pids.max", "15")] {
            assert_eq!(std::fs::read_to_string(own.join(file)).unwrap(), value);
        }
        std::fs::write(own.join("cpu.stat"), "usage_usec 2500000\nuser_usec 1\n").unwrap();
        std::fs::write(own.join("memory.current"), "5000\n").unwrap();
        std::fs::write(own.join("memory.stat"), "anon 1\ninactive_file 2000\n").unwrap();
        assert_eq!((group.cpu_seconds(), group.memory_bytes()), (Some(2.5), Some(3_000)));
        assert_eq!(cgroups.folders(), [folder]);
    }

    /// Returns the mounts of a machine whose version 2 hierarchy is this folder.
    fn hierarchy(top: &Path) -> String {
        format!("30 23 0:26 / {} rw - cgroup2 cgroup2 rw\n", top.display())
    }

    /// Creates a fake group in a hierarchy.
    fn group(at: &Path, controllers: &str, enabled_controllers: &str) {
        std::fs::create_dir_all(at).unwrap();
        std::fs::write(at.join("cgroup.controllers"), controllers).unwrap();
        std::fs::write(at.join("cgroup.subtree_control"), enabled_controllers).unwrap();
        std::fs::write(at.join("cgroup.procs"), "").unwrap();
    }

    #[test]
    fn an_ancestor_that_delegates_its_controllers_is_used() {
        let top = tempfile::tempdir().unwrap();
        let slice = top.path().join("user.slice/user@1000.service/app.slice");
        group(&slice, "cpu memory pids", "memory pids");
        // The process's own group has neither controller: its slice keeps them.
        group(&slice.join("run.scope"), "cpu", "");
        let own = "0::/user.slice/user@1000.service/app.slice/run.scope\n";
        let found = Cgroups::find_in(&hierarchy(top.path()), own, "bench-sandbox-x");
        assert!(found.bounds_memory() && found.bounds_processes());
        assert_eq!(found.folders(), [slice.join("bench-sandbox-x")]);
    }

    #[test]
    fn processes_of_a_delegated_group_move_to_a_child_group() {
        let top = tempfile::tempdir().unwrap();
        let scope = top.path().join("run.scope");
        group(&scope, "memory pids", "");
        std::fs::write(scope.join("cgroup.procs"), "41\n42\n").unwrap();
        // The fake group keeps its list of processes, so it doesn't count as empty; each process was written to the
        // child group's list.
        assert!(!move_to_child_group(&scope, "bench-sandbox-x"));
        let child = scope.join("bench-sandbox-x.host");
        assert_eq!(std::fs::read_to_string(child.join("cgroup.procs")).unwrap(), "42");

        // A group without controllers is left alone.
        let other = top.path().join("other.scope");
        group(&other, "cpu", "");
        assert!(
            !move_to_child_group(&other, "bench-sandbox-x") && !other.join("bench-sandbox-x.host").exists()
        );
    }

    #[test]
    fn version_two_without_both_controllers_is_not_used() {
        assert_eq!(make_v2_group(fake_group("hugetlb\n").path(), "host"), None);
        assert_eq!(make_v2_group(fake_group("memory cpu\n").path(), "host"), None);
    }

    #[test]
    fn version_one_has_a_group_for_each_controller() {
        let (memory, pids) = (fake_group(""), fake_group(""));
        let group_folder =
            |at: &tempfile::TempDir| Some(GroupFolder { version: Version::V1, path: at.path().to_owned() });
        let cgroups = Cgroups { memory: group_folder(&memory), processes: group_folder(&pids), cpu: None };
        let group = cgroups.make("one", &limits()).unwrap();
        assert_eq!(group.cgroup_procs().len(), 2);
        let read = |at: &tempfile::TempDir, file: &str| {
            std::fs::read_to_string(at.path().join("one").join(file)).unwrap()
        };
        assert_eq!(read(&memory, "memory.limit_in_bytes"), "1073741824");
        assert_eq!(read(&pids, "pids.max"), "15");
        assert_eq!((group.cpu_seconds(), group.memory_bytes()), (None, None));
    }
}
