//! The form `namespaces`: the second stage is the first process in its own namespaces.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hakoniwa::{Container, MountOptions, Namespace, Stdio};
use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use nix::unistd::{Gid, Uid};

use super::guard::{Guard, leave_control};
use super::watch_loop::{WatchEnd, WatchedPipes, wait_closed};
use super::watcher::Watcher;
use super::{AGENT, ALLOCATOR_SETTING, Context, STAGE_ARGUMENT, loopback, user};
use crate::isolation::engine_folders::SOCKETS_INSIDE;
use crate::isolation::wire::Plan;

/// Uid inside the sandbox.
pub(crate) const USER_INSIDE: u32 = 1_000;
/// Maximum size of the small file system for the root folder and the mount points, in bytes.
const STAGING_BYTES_MAX: u64 = 4 << 20;
/// Maximum size of `/dev/shm`, in bytes.
const SHARED_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// File systems in memory of a sandbox.
const IN_MEMORY: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];
/// Minimum, initial and maximum buffer sizes of one TCP connection, set where no cgroup counts them.
const BUFFERS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 1048576"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 1048576"),
];
/// Maximum time for the second stage to exit by itself after the host is gone.
const EXIT_WAIT: Duration = Duration::from_secs(2);
/// Minimum mean size of files, in bytes. It limits the number of files, whose names take memory too.
const FILE_BYTES_MEAN: u64 = 4 << 10;
/// Name of the working folder in the staging folder.
const WORKSPACE: &str = "workspace";
/// Exit code that hakoniwa reports if the set-up fails.
const SET_UP_FAILED: i32 = 125;

/// Candidates for a place for the staging folder: folders that every user may enter.
const WORLD_ACCESSIBLE: [&str; 4] = ["/tmp", "/mnt", "/run", "/var/tmp"];

/// Creates the namespaces, starts the second stage in them, and returns when it or the host is gone, or when the
/// sandbox exceeds a limit, which it returns.
pub(super) fn run(guard: Guard) -> Result<Option<String>, String> {
    let Guard { plan, control, host_pipe } = guard;
    let staging = stage(&plan)?;
    let container = container(&plan, &staging);

    let (agent_pipe, alive) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("cannot create a pipe")?;
    let mut command = container.command("/proc/self/exe");
    command.args([STAGE_ARGUMENT, AGENT]);
    command.env(ALLOCATOR_SETTING.0, ALLOCATOR_SETTING.1);
    command.current_dir("/workspace");
    command.stdin(Stdio::from(control.try_clone().context("cannot open a file")?));
    command.stdout(Stdio::from(alive));
    let mut child = command.spawn().context("cannot create the namespaces")?;
    leave_control(control)?;

    let watcher =
        Watcher { limits: plan.limits, folder: None, in_memory: &IN_MEMORY, user: None, own_processes: 2 };
    let watch_end = watcher.run(&WatchedPipes { host_pipe: &host_pipe, agent_pipe: &agent_pipe })?;
    match &watch_end {
        WatchEnd::AgentGone => {}
        // The second stage notices the host's end as well, and ends everything.
        WatchEnd::HostGone if wait_closed(&agent_pipe, EXIT_WAIT) => {}
        WatchEnd::HostGone | WatchEnd::OverLimit(_) => child.kill().context("cannot kill the sandbox")?,
    }
    match (child.wait(), watch_end) {
        (_, WatchEnd::OverLimit(reason)) => Ok(Some(reason)),
        (Ok(status), _) if status.code == SET_UP_FAILED && status.exit_code.is_none() => Err(status.reason),
        _ => Ok(None),
    }
}

/// Files that the container is built from, in a mount namespace of this process.
struct Staging {
    root: PathBuf,
    /// The working folder, if it is a folder of the machine.
    workspace: Option<PathBuf>,
    shared: Vec<(PathBuf, PathBuf)>,
}

/// Leaves the machine's mounts and network, prepares the files that the sandbox sees, and gives up the user.
fn stage(plan: &Plan) -> Result<Staging, String> {
    let namespaces = if plan.allow_network {
        CloneFlags::CLONE_NEWNS
    } else {
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET
    };
    // Another user may not be able to enter our folders, so root prepares the files.
    match plan.uid {
        Some(_) => nix::sched::unshare(namespaces).context("cannot create namespaces")?,
        None => unshare_as_user(namespaces)?,
    }
    mount(None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)?;

    let owner = plan.uid.map(|uid| format!(",uid={uid},gid={uid}")).unwrap_or_default();
    let data = format!("size={STAGING_BYTES_MAX},nr_inodes=4k,mode=0755{owner}");
    mount(
        Some("tmpfs".as_ref()),
        &plan.staging,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some(&data),
    )?;
    make_folder(&plan.staging.join("root"))?;
    let mut names = Vec::new();
    if let Some(workspace) = &plan.workspace {
        bind_into(&plan.staging, WORKSPACE, workspace)?;
    }
    if let Some(sockets) = &plan.sockets {
        bind_into(&plan.staging, "engine", sockets)?;
        names.push(("engine".to_owned(), PathBuf::from(SOCKETS_INSIDE)));
    }
    for (number, shared) in plan.shared.iter().enumerate() {
        let name = format!("shared{number}");
        let place = plan.staging.join(&name);
        if shared.host.is_dir() {
            make_folder(&place)?;
        } else {
            std::fs::write(&place, "").context("cannot create a mount point")?;
        }
        mount(Some(&shared.host), &place, None, MsFlags::MS_BIND | MsFlags::MS_REC, None)?;
        names.push((name, shared.inside.clone()));
    }
    if !plan.allow_network {
        loopback::up()?;
        if !plan.limits.memory_is_bounded {
            for (setting, bytes) in BUFFERS {
                // If this isn't permitted, the guard counts the possible maximum of each connection.
                let _ = std::fs::write(setting, bytes);
            }
        }
    }
    let place = match plan.uid {
        None => plan.staging.clone(),
        Some(uid) => {
            let place = WORLD_ACCESSIBLE
                .map(Path::new)
                .into_iter()
                .find(|place| place.is_dir())
                .ok_or("no folder is accessible to every user")?;
            mount(Some(&plan.staging), place, None, MsFlags::MS_MOVE, None)?;
            nix::unistd::chown(&place.join("root"), Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)))
                .context("cannot change the owner of the root folder")?;
            user::become_user(uid)?;
            // Otherwise the maps of its user namespace would belong to root.
            nix::sys::prctl::set_dumpable(true).context("cannot make the process accessible to its user")?;
            place.to_owned()
        }
    };
    Ok(Staging {
        root: place.join("root"),
        workspace: plan.workspace.as_ref().map(|_| place.join(WORKSPACE)),
        shared: names.into_iter().map(|(name, inside)| (place.join(name), inside)).collect(),
    })
}

/// Makes a folder of the machine visible in the staging folder.
fn bind_into(staging: &Path, name: &str, folder: &Path) -> Result<(), String> {
    let place = staging.join(name);
    make_folder(&place)?;
    mount(Some(folder), &place, None, MsFlags::MS_BIND, None)
}

/// Creates namespaces without privileges, in a user namespace where all files keep their owner.
fn unshare_as_user(namespaces: CloneFlags) -> Result<(), String> {
    let (uid, gid) = (Uid::current(), Gid::current());
    nix::sched::unshare(namespaces | CloneFlags::CLONE_NEWUSER)
        .context("cannot create namespaces, perhaps because user namespaces are disabled")?;
    std::fs::write("/proc/self/setgroups", "deny").context("cannot set up the user namespace")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))
        .context("cannot set up the user namespace")?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).context("cannot set up the user namespace")
}

fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> Result<(), String> {
    nix::mount::mount(source, target, kind, flags, data)
        .context(&format!("cannot mount `{}`", source.unwrap_or(target).display()))
}

fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir(path).context("cannot create a folder")
}

/// Builds the container: namespaces and mounts of the sandbox.
fn container(plan: &Plan, staging: &Staging) -> Container {
    let mut container = Container::empty();
    for space in
        [Namespace::User, Namespace::Mount, Namespace::Pid, Namespace::Ipc, Namespace::Uts, Namespace::Cgroup]
    {
        container.unshare(space);
    }
    container.uidmap(USER_INSIDE).gidmap(USER_INSIDE).hostname("sandbox").rootdir(&staging.root);
    container.procfsmount("/proc");
    system(&mut container);
    devices(&mut container);
    for (source, inside) in &staging.shared {
        bind_ro(&mut container, source, &inside.to_string_lossy());
    }

    let limits = &plan.limits;
    for (place, mode, bytes) in [
        ("/workspace", "0700", limits.disk_bytes),
        ("/tmp", "1777", limits.disk_bytes),
        ("/dev/shm", "1777", limits.disk_bytes.min(SHARED_MEMORY_BYTES_MAX)),
    ] {
        if let Some(workspace) = staging.workspace.as_ref().filter(|_| place == "/workspace") {
            let options = MountOptions::BIND | MountOptions::NOSUID | MountOptions::NODEV;
            container.mount(&workspace.to_string_lossy(), place, "", options, None);
            continue;
        }
        let files = (bytes / FILE_BYTES_MEAN).max(1_024);
        let data = format!("size={bytes},nr_inodes={files},mode={mode}");
        let options = MountOptions::NOSUID | MountOptions::NODEV;
        container.mount("tmpfs", place, "tmpfs", options, Some(data));
    }
    configuration(&mut container, plan.allow_network);
    container
}

/// Mounts the machine's programs and libraries.
fn system(container: &mut Container) {
    bind_ro(container, Path::new("/usr"), "/usr");
    for name in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        let path = Path::new(name);
        match std::fs::read_link(path) {
            Ok(target) => {
                container.symlink(&target.to_string_lossy(), name);
            }
            Err(_) if path.is_dir() => bind_ro(container, path, name),
            Err(_) => {}
        }
    }
    for name in super::allowed_files::CONFIGURATION {
        let path = Path::new(name);
        if path.exists() {
            bind_ro(container, path, name);
        }
    }
}

/// Mounts the few devices that programs need.
fn devices(container: &mut Container) {
    for name in super::allowed_files::DEVICES {
        if Path::new(name).exists() {
            container.mount(name, name, "", MountOptions::BIND | MountOptions::NOSUID, None);
        }
    }
    container.symlink("/proc/self/fd", "/dev/fd");
    for (number, name) in ["stdin", "stdout", "stderr"].iter().enumerate() {
        container.symlink(&format!("/proc/self/fd/{number}"), &format!("/dev/{name}"));
    }
}

/// Creates the sandbox's own files in `/etc`, without names and secrets of the machine.
fn configuration(container: &mut Container, network: bool) {
    for (path, mode) in [("/etc", 0o755), ("/run", 0o755), ("/var", 0o755), ("/opt", 0o755)] {
        container.dir(path, mode);
    }
    container.symlink("/tmp", "/var/tmp");
    container.symlink("/proc/self/mounts", "/etc/mtab");
    let id = USER_INSIDE;
    container.file(
        "/etc/passwd",
        &format!(
            "sandbox:x:{id}:{id}::/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
    );
    container.file("/etc/group", &format!("sandbox:x:{id}:\nnogroup:x:65534:\n"));
    container.file("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
    container.file("/etc/hostname", "sandbox\n");
    container.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n");
    if network {
        let resolver = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        container.file("/etc/resolv.conf", &resolver);
    }
}

/// Mounts a file or folder of the machine read-only.
fn bind_ro(container: &mut Container, source: &Path, inside: &str) {
    let mut options = MountOptions::BIND | MountOptions::REC | MountOptions::RDONLY;
    options |= MountOptions::NOSUID | MountOptions::NODEV;
    // Keep the restrictions of the machine's own mount, since the kernel refuses to loosen them.
    if rustix::fs::statvfs(source).is_ok_and(|at| at.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC)) {
        options |= MountOptions::NOEXEC;
    }
    container.mount(&source.to_string_lossy(), inside, "", options, None);
}
