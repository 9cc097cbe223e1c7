//! Cgroups, written by hand: limits for all processes of a sandbox together. Both versions of the interface; used where
//! this process may make groups, and done without elsewhere.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::Limits;

/// Maximum number of our own processes and threads in each sandbox. In namespaces: the guard, a thread of it that looks at
/// everything but memory, hakoniwa's, and the second stage with a thread that starts commands. Without: the guard with its
/// thread, and the second stage with two such threads.
pub(crate) const OWN_PROCESSES: u64 = 5;
/// Groups are removed when their last process is; it is waited for so long.
const REMOVAL_MAX: Duration = Duration::from_secs(10);

/// Ends the name of the group that the host's own processes move to. It is none of the groups that the next host removes.
const LEAF: &str = ".host";
/// Looks for processes that are to move there.
const LEAF_LOOKS: u32 = 10;

/// For memory, processes and CPU time.
const CONTROLLERS_ONE: [&str; 3] = ["memory", "pids", "cpuacct"];

/// What each version calls things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A folder in which groups may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    version: Version,
    folder: PathBuf,
}

/// Where groups of this host are made.
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
    /// Every folder of it, once.
    folders: Vec<Place>,
}

impl Cgroups {
    /// Makes a folder for this host wherever this process may.
    pub(crate) fn find(name: &str) -> Self {
        let (mounts, own) = hierarchies();
        Self::find_in(&mounts, &own, name)
    }

    /// The same for these mounts and groups of this process.
    fn find_in(mounts: &str, own: &str, name: &str) -> Self {
        let places = places_two(mounts, own);
        let made = places.iter().find_map(|place| make_two(place, name));
        // A group that was handed to this process, as a scope or service with `Delegate=yes` is: it may hand its
        // controllers down when its processes are in a group below it.
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
            // Several controllers may share a hierarchy.
            (folder.is_dir() || std::fs::create_dir(&folder).is_ok())
                .then_some(Place { version: Version::One, folder })
        });
        Self { memory, processes, cpu }
    }

    /// Every folder that [`Self::find`] may make.
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

    /// The folders of this host.
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

    /// Groups with these limits for one sandbox.
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
                    // Only where swap is counted.
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
    /// Whoever writes its number to these files is in the group.
    pub(crate) fn joins(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|place| place.folder.join("cgroup.procs")).collect()
    }

    /// CPU time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let place = self.cpu.as_ref()?;
        Some(match place.version {
            Version::One => number(&place.folder.join("cpuacct.usage"))? as f64 / 1e9,
            Version::Two => entry(&place.folder.join("cpu.stat"), "usage_usec")? as f64 / 1e6,
        })
    }

    /// Memory in use, in bytes. Files of the machine that are only kept to be read again do not count.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let place = self.memory.as_ref()?;
        let (usage, idle) = match place.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.current", "inactive_file"),
        };
        let idle = entry(&place.folder.join("memory.stat"), idle).unwrap_or_default();
        Some(number(&place.folder.join(usage))?.saturating_sub(idle))
    }

    /// Kills everything in the group and removes it. Tries for a while: processes take a moment to go.
    pub(crate) fn remove(&self) {
        remove(self.folders.iter().map(|place| place.folder.clone()).collect());
    }
}

/// Kills everything in these groups and those below them, and removes them.
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

/// Whether the group is gone.
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
        // Held, so that its number cannot become another's, and then looked up again.
        let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if members().contains(&pid.as_raw_nonzero().get()) {
            let _ = rustix::process::pidfd_send_signal(held, Signal::KILL);
        }
    }
}

/// The mounts that this process sees, and its groups.
fn hierarchies() -> (String, String) {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    (read("/proc/self/mountinfo"), read("/proc/self/cgroup"))
}

/// The folder of this process' group in the hierarchy of a version 1 controller.
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

/// Folders of the version 2 hierarchy to try: this process' own group, then those above it, as far as a service manager
/// has handed them to this user, up to the top, which root may use.
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

/// Moves the processes of a group into one below it, where they stay: the kernel lets no group with processes of its own
/// hand its controllers down. The limits of the group hold for them as before. `false` where that is not allowed.
fn leave_for_leaf(place: &Path, name: &str) -> bool {
    let has_memory = std::fs::read_to_string(place.join("cgroup.controllers"))
        .is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"));
    let leaf = place.join(format!("{name}{LEAF}"));
    if !has_memory || !may_move(place) || std::fs::create_dir(&leaf).is_err() {
        return false;
    }
    // Those that are started meanwhile are found by another look.
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
    // An empty one is removed; one with processes is where this one lives from now on.
    if is_empty(&leaf) {
        let _ = std::fs::remove_dir(&leaf);
    }
    is_empty(place)
}

/// A folder for this host with both controllers; `None` where they cannot be had.
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
        // A group that has processes itself may not: then this fails.
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

/// Moving a process needs leave to write the list of the group that both places are below.
fn may_move(place: &Path) -> bool {
    rustix::fs::access(place.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
}

/// A line of `/proc/self/mountinfo`.
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

    /// Where a path of the hierarchy is in the file system.
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

    /// A folder that stands for a group: what the kernel would make of what is written is not looked at.
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

    /// What a host sees whose version 2 hierarchy is this folder.
    fn hierarchy(top: &Path) -> String {
        format!("30 23 0:26 / {} rw - cgroup2 cgroup2 rw\n", top.display())
    }

    /// Makes a group that stands in a hierarchy.
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
        // The own group has neither controller: its slice keeps them.
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
        // The stand-in keeps its list, so it counts as not empty; each of its processes was written to the other's.
        assert!(!leave_for_leaf(&scope, "bench-sandbox-x"));
        let leaf = scope.join("bench-sandbox-x.host");
        assert_eq!(std::fs::read_to_string(leaf.join("cgroup.procs")).unwrap(), "42");

        // One without controllers is left alone.
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
