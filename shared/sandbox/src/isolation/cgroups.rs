//! Cgroups, through their files: limits on all processes of a sandbox together. Supports versions 1 and 2 of the
//! interface. Machines where this process can't create groups do without.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::Limits;

/// Maximum number of our own processes and threads in each sandbox. In namespaces: the guard, its thread that scans
/// everything except memory, hakoniwa's process, and the second stage with a thread that starts commands. Without
/// namespaces: the guard with its thread, and the second stage with two such threads.
pub(crate) const OWN_PROCESSES: u64 = 5;
/// Maximum time to wait until the last process of a group is gone and the group can be removed.
const REMOVAL_MAX: Duration = Duration::from_secs(10);

/// Suffix of the group that the host's own processes move to. The next host doesn't remove groups with this suffix.
const LEAF: &str = ".host";
/// Maximum number of passes that move processes to that group.
const LEAF_LOOKS: u32 = 10;

/// Controllers of version 1 for memory, processes and CPU time.
const CONTROLLERS_ONE: [&str; 3] = ["memory", "pids", "cpuacct"];

/// Version of the cgroup interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A cgroup folder with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    version: Version,
    folder: PathBuf,
}

/// The groups of this host, in which it creates groups for its sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cgroups {
    memory: Option<Place>,
    processes: Option<Place>,
    cpu: Option<Place>,
}

/// The groups of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Group {
    memory: Option<Place>,
    cpu: Option<Place>,
    /// All folders of the group, without duplicates.
    folders: Vec<Place>,
}

impl Cgroups {
    /// Creates a group for this host in every hierarchy where this process may.
    pub(crate) fn find(name: &str) -> Self {
        let (mounts, own) = hierarchies();
        Self::find_in(&mounts, &own, name)
    }

    /// Does the same for the given mounts and groups of this process.
    fn find_in(mounts: &str, own: &str, name: &str) -> Self {
        let places = places_two(mounts, own);
        let made = places.iter().find_map(|place| make_two(place, name));
        // A group that was delegated to this process, such as a scope or service with `Delegate=yes`, can enable its
        // controllers for child groups once its own processes have moved to a child group.
        let made = made.or_else(|| {
            let own = places.first()?;
            leave_for_leaf(own, name).then(|| make_two(own, name)).flatten()
        });
        if let Some(folder) = made {
            let place = Some(Place { version: Version::Two, folder });
            return Self { memory: place.clone(), processes: place.clone(), cpu: place };
        }
        let [memory, processes, cpu] = CONTROLLERS_ONE.map(|controller| {
            let folder = place_one(mounts, own, controller)?.join(name);
            // Several controllers may share a hierarchy, so the folder may already exist.
            (folder.is_dir() || std::fs::create_dir(&folder).is_ok())
                .then_some(Place { version: Version::One, folder })
        });
        Self { memory, processes, cpu }
    }

    /// Returns every folder that [`Self::find`] may create.
    pub(crate) fn possible(name: &str) -> Vec<PathBuf> {
        let (mounts, own) = hierarchies();
        let one = CONTROLLERS_ONE.iter().filter_map(|controller| place_one(&mounts, &own, controller));
        places_two(&mounts, &own).into_iter().chain(one).map(|place| place.join(name)).collect()
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
            .map(|place| place.folder.clone())
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
        for place in [&self.memory, &self.processes, &self.cpu].into_iter().flatten() {
            let own = Place { version: place.version, folder: place.folder.join(name) };
            if !group.folders.contains(&own) {
                std::fs::create_dir(&own.folder)?;
                group.folders.push(own);
            }
        }
        let in_group = |place: &Place| Place { version: place.version, folder: place.folder.join(name) };
        if let Some(place) = self.memory.as_ref().map(in_group) {
            let bytes = limits.memory_bytes.to_string();
            let set = |file: &str, value: &str| std::fs::write(place.folder.join(file), value);
            match place.version {
                Version::One => {
                    set("memory.limit_in_bytes", &bytes)?;
                    // Exists only if the kernel counts swap.
                    let _ = set("memory.memsw.limit_in_bytes", &bytes);
                }
                Version::Two => {
                    set("memory.max", &bytes)?;
                    let _ = set("memory.swap.max", "0");
                }
            }
            group.memory = Some(place);
        }
        if let Some(place) = self.processes.as_ref().map(in_group) {
            let processes = limits.processes.saturating_add(OWN_PROCESSES).to_string();
            std::fs::write(place.folder.join("pids.max"), processes)?;
        }
        group.cpu = self.cpu.as_ref().map(in_group);
        Ok(())
    }
}

impl Group {
    /// Returns the files to which a process writes its id to join the group.
    pub(crate) fn joins(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|place| place.folder.join("cgroup.procs")).collect()
    }

    /// Returns the CPU time used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let place = self.cpu.as_ref()?;
        Some(match place.version {
            Version::One => number(&place.folder.join("cpuacct.usage"))? as f64 / 1e9,
            Version::Two => entry(&place.folder.join("cpu.stat"), "usage_usec")? as f64 / 1e6,
        })
    }

    /// Returns the memory in use, in bytes, without the inactive page cache.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let place = self.memory.as_ref()?;
        let (usage, idle) = match place.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.current", "inactive_file"),
        };
        let idle = entry(&place.folder.join("memory.stat"), idle).unwrap_or_default();
        Some(number(&place.folder.join(usage))?.saturating_sub(idle))
    }

    /// Kills all processes in the group and removes it. Retries for a while, since processes take a moment to exit.
    pub(crate) fn remove(&self) {
        remove(self.folders.iter().map(|place| place.folder.clone()).collect());
    }
}

/// Kills all processes in these groups and the groups below them, and removes the groups.
pub(crate) fn remove(folders: Vec<PathBuf>) {
    let until = Instant::now() + REMOVAL_MAX;
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
        let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members().contains(&pid.as_raw_nonzero().get()) {
            let _ = rustix::process::pidfd_send_signal(held, Signal::KILL);
        }
    }
}

/// Returns the mounts that this process sees, and its groups.
fn hierarchies() -> (String, String) {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    (read("/proc/self/mountinfo"), read("/proc/self/cgroup"))
}

/// Returns the folder of this process's group in the hierarchy of a version 1 controller.
fn place_one(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
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
fn places_two(mounts: &str, own: &str) -> Vec<PathBuf> {
    let Some(mount) = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2") else {
        return Vec::new();
    };
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).and_then(|path| mount.folder(path));
    let mut places: Vec<PathBuf> = Vec::new();
    if let Some(own) = own {
        places
            .extend(own.ancestors().take_while(|place| place.starts_with(&mount.point)).map(Path::to_owned));
    }
    if !places.contains(&mount.point) {
        places.push(mount.point);
    }
    places
}

/// Moves the processes of a group into a child group, where they stay: the kernel doesn't let a group with processes of
/// its own enable controllers for its children. The limits of the group still apply to them. Returns false if that
/// isn't permitted.
fn leave_for_leaf(place: &Path, name: &str) -> bool {
    let has_memory = std::fs::read_to_string(place.join("cgroup.controllers"))
        .is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"));
    let leaf = place.join(format!("{name}{LEAF}"));
    if !has_memory || !may_move(place) || std::fs::create_dir(&leaf).is_err() {
        return false;
    }
    // Another pass finds processes that were started in the meantime.
    for _ in 0..LEAF_LOOKS {
        let members = std::fs::read_to_string(place.join("cgroup.procs")).unwrap_or_default();
        let mut has_moved = false;
        for pid in members.lines() {
            has_moved |= std::fs::write(leaf.join("cgroup.procs"), pid).is_ok();
        }
        if !has_moved {
            break;
        }
    }
    let is_empty = |group: &Path| {
        std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|members| members.trim().is_empty())
    };
    // An empty child group is removed; otherwise this process lives in it from now on.
    if is_empty(&leaf) {
        let _ = std::fs::remove_dir(&leaf);
    }
    is_empty(place)
}

/// Creates a group for this host with both controllers; `None` if they aren't available.
fn make_two(place: &Path, name: &str) -> Option<PathBuf> {
    const CONTROLLERS: [&str; 2] = ["memory", "pids"];
    let has = |file: PathBuf| {
        let names = std::fs::read_to_string(file).unwrap_or_default();
        CONTROLLERS.iter().all(|controller| names.split_whitespace().any(|name| name == *controller))
    };
    if !has(place.join("cgroup.controllers")) {
        return None;
    }
    let hand_down = |folder: &Path| {
        // Fails for a group that has processes itself.
        has(folder.join("cgroup.subtree_control"))
            || std::fs::write(folder.join("cgroup.subtree_control"), "+memory +pids").is_ok()
    };
    let folder = place.join(name);
    if !hand_down(place) || std::fs::create_dir(&folder).is_err() {
        return None;
    }
    let joined = nix::unistd::Uid::effective().is_root() || may_move(place);
    if !joined || !hand_down(&folder) {
        let _ = std::fs::remove_dir(&folder);
        return None;
    }
    Some(folder)
}

/// Returns true if this process may move processes below this group, which requires write access to the group's list.
fn may_move(place: &Path) -> bool {
    rustix::fs::access(place.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
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
    fn places_of_version_one_are_below_the_own_group() {
        let own = "4:memory:/user/a\n3:cpu,cpuacct:/docker/1\n0::/\n";
        assert_eq!(place_one(ONE, own, "memory"), Some("/sys/fs/cgroup/memory/user/a".into()));
        assert_eq!(place_one(ONE, own, "cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct/".into()));
        assert_eq!(place_one(ONE, own, "pids"), None);
        assert_eq!(place_one(ONE, "3:cpu,cpuacct:/elsewhere\n", "cpuacct"), None);
        assert_eq!(place_one("garbage\n", own, "memory"), None);
    }

    #[test]
    fn places_of_version_two_are_the_own_group_and_those_above() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let own = "0::/user.slice/a.scope\n";
        let expected: Vec<PathBuf> = ["/user.slice/a.scope", "/user.slice", ""]
            .map(|path| format!("/sys/fs/cgroup{path}").into())
            .into();
        assert_eq!(places_two(mounts, own), expected);
        assert_eq!(places_two(mounts, "0::/\n"), vec![PathBuf::from("/sys/fs/cgroup/")]);
        assert!(places_two("", own).is_empty());
    }

    #[test]
    fn entries_are_found_by_their_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stat");
        std::fs::write(&file, "usage_usec_x 1\nusage_usec 2\n").unwrap();
        assert_eq!(entry(&file, "usage_usec"), Some(2));
        assert_eq!(entry(&file, "user_usec"), None);
    }

    /// Creates a folder that stands in for a group. It stores what is written to it and doesn't act like a kernel.
    fn stand_in(controllers: &str) -> tempfile::TempDir {
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
    fn version_two_hands_its_controllers_down() {
        let place = stand_in("cpu memory pids\n");
        let folder = make_two(place.path(), "host").unwrap();
        for group in [place.path(), &folder] {
            assert_eq!(
                std::fs::read_to_string(group.join("cgroup.subtree_control")).unwrap(),
                "+memory +pids"
            );
        }
        let here = Some(Place { version: Version::Two, folder: folder.clone() });
        let cgroups = Cgroups { memory: here.clone(), processes: here.clone(), cpu: here };
        let group = cgroups.make("one", &limits()).unwrap();
        let own = folder.join("one");
        assert_eq!(group.joins(), [own.join("cgroup.procs")]);
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

    /// Creates a stand-in for a group in a hierarchy.
    fn group(at: &Path, controllers: &str, handed_down: &str) {
        std::fs::create_dir_all(at).unwrap();
        std::fs::write(at.join("cgroup.controllers"), controllers).unwrap();
        std::fs::write(at.join("cgroup.subtree_control"), handed_down).unwrap();
        std::fs::write(at.join("cgroup.procs"), "").unwrap();
    }

    #[test]
    fn a_group_above_that_hands_its_controllers_down_is_used() {
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
    fn processes_of_a_delegated_group_move_into_one_below_it() {
        let top = tempfile::tempdir().unwrap();
        let scope = top.path().join("run.scope");
        group(&scope, "memory pids", "");
        std::fs::write(scope.join("cgroup.procs"), "41\n42\n").unwrap();
        // The stand-in keeps its list of processes, so it doesn't count as empty; each process was written to the child
        // group's list.
        assert!(!leave_for_leaf(&scope, "bench-sandbox-x"));
        let leaf = scope.join("bench-sandbox-x.host");
        assert_eq!(std::fs::read_to_string(leaf.join("cgroup.procs")).unwrap(), "42");

        // A group without controllers is left alone.
        let other = top.path().join("other.scope");
        group(&other, "cpu", "");
        assert!(!leave_for_leaf(&other, "bench-sandbox-x") && !other.join("bench-sandbox-x.host").exists());
    }

    #[test]
    fn version_two_without_both_controllers_is_done_without() {
        assert_eq!(make_two(stand_in("hugetlb\n").path(), "host"), None);
        assert_eq!(make_two(stand_in("memory cpu\n").path(), "host"), None);
    }

    #[test]
    fn version_one_has_a_group_for_each_controller() {
        let (memory, pids) = (stand_in(""), stand_in(""));
        let place =
            |at: &tempfile::TempDir| Some(Place { version: Version::One, folder: at.path().to_owned() });
        let cgroups = Cgroups { memory: place(&memory), processes: place(&pids), cpu: None };
        let group = cgroups.make("one", &limits()).unwrap();
        assert_eq!(group.joins().len(), 2);
        let read = |at: &tempfile::TempDir, file: &str| {
            std::fs::read_to_string(at.path().join("one").join(file)).unwrap()
        };
        assert_eq!(read(&memory, "memory.limit_in_bytes"), "1073741824");
        assert_eq!(read(&pids, "pids.max"), "15");
        assert_eq!((group.cpu_seconds(), group.memory_bytes()), (None, None));
    }
}
