//! Filters of system calls (seccomp).
//!
//! Ordinary programs need few system calls. The filters refuse those that affect other processes, create namespaces or
//! mounts, or change the machine's settings, and those that are new or rarely used and therefore less tested.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use super::Context;

/// Permissions that depend on the other protections of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filter {
    /// Permits sockets between programs on one machine (`AF_UNIX`).
    pub(super) unix_sockets: bool,
    /// Permits internet sockets: the sandbox has its own network, or network access is allowed.
    pub(super) internet_sockets: bool,
    /// Permits System V and POSIX message queues, semaphores and shared memory: the sandbox has its own namespace for
    /// them.
    pub(super) shared_objects: bool,
    /// Permits changes of modes, owners, times and extended attributes of files. Landlock doesn't restrict them, so
    /// programs that run as the host's user could change those of all its files.
    pub(super) file_attributes: bool,
    /// Permits a process to make itself unreadable (`PR_SET_DUMPABLE`), which hides what it holds from the guard.
    pub(super) hidden_processes: bool,
    /// Permits memory that only a memory cgroup counts.
    pub(super) uncounted_memory: bool,
}

/// Calls that are refused regardless of their arguments.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_memfd_secret,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Keys, which all processes of a user share.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The machine's settings.
    libc::SYS_reboot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_ON_THIS_ARCH: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(target_arch = "aarch64")]
const REFUSED_ON_THIS_ARCH: &[i64] = &[libc::SYS_kexec_file_load];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REFUSED_ON_THIS_ARCH: &[i64] = &[];

/// Named objects that all programs of a user, or of the machine, share.
const SHARED_OBJECTS: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// The calls among them for shared memory, which outlives its creator.
const SHARED_MEMORY: &[i64] = &[libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl];

/// Calls that change a file's attributes. Later calls of this kind (`setxattrat`, `file_setattr`) have numbers above
/// [`UNKNOWN_SINCE`].
const FILE_ATTRIBUTES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Reports changes even in folders that may not be read.
    libc::SYS_inotify_add_watch,
];
/// The number is the same on all architectures.
const SYS_FCHMODAT2: i64 = 452;

#[cfg(target_arch = "x86_64")]
const FILE_ATTRIBUTES_ON_THIS_ARCH: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const FILE_ATTRIBUTES_ON_THIS_ARCH: &[i64] = &[];

/// `ioctl` requests that change flags, project or encryption of a file, from `linux/fs.h` and `linux/fscrypt.h`.
const FILE_ATTRIBUTE_IOCTLS: [u64; 6] =
    [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4004_7602, 0x800c_6613];

/// Signals that stop a process until another one continues it. A program that stops its supervisor would occupy the
/// sandbox until the job's time limit.
const STOP_SIGNALS: [libc::c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// Calls that send a signal, and the index of the argument with the signal.
const SIGNAL_CALLS: [(i64, u8); 6] = [
    (libc::SYS_kill, 1),
    (libc::SYS_tkill, 1),
    (libc::SYS_tgkill, 2),
    (libc::SYS_rt_sigqueueinfo, 1),
    (libc::SYS_rt_tgsigqueueinfo, 2),
    (libc::SYS_pidfd_send_signal, 1),
];
/// From `linux/fcntl.h`: chooses the signal that notifies a process of input.
const F_SETSIG: libc::c_int = 10;

/// From `linux/landlock.h`: a rule for a network port. A ruleset accepts 65,536 of them without an open file for each.
const LANDLOCK_RULE_NET_PORT: libc::c_int = 2;
/// From `linux/seccomp.h`: returns an open file that keeps all filters of a thread, up to 1.3 MB, after the thread has
/// ended.
const SECCOMP_FILTER_FLAG_NEW_LISTENER: u32 = 1 << 3;

/// Calls that take the ids of processes or threads to signal, and the indices of those arguments. `kill` and
/// `rt_sigqueueinfo` accept the id of any thread of a process, and `pidfd_open` returns the descriptor that
/// `pidfd_send_signal` needs.
const SIGNAL_TARGETS: [(i64, &[u8]); 6] = [
    (libc::SYS_kill, &[0]),
    (libc::SYS_tkill, &[0]),
    (libc::SYS_tgkill, &[0, 1]),
    (libc::SYS_rt_sigqueueinfo, &[0]),
    (libc::SYS_rt_tgsigqueueinfo, &[0, 1]),
    (libc::SYS_pidfd_open, &[0]),
];
/// From `linux/fcntl.h`: chooses the process that a signal notifies of input.
const F_SETOWN: libc::c_int = 8;
const F_SETOWN_EX: libc::c_int = 15;
/// `ioctl` requests with the same effect: `FIOSETOWN` and `SIOCSPGRP`.
const OWNER_IOCTLS: [u64; 2] = [0x8901, 0x8902];

/// Locks on parts of a file that belong to the open file instead of the process. The guard can't count them: they
/// persist while the file is mapped or in transit through a socket.
const OPEN_FILE_LOCKS: [libc::c_int; 2] = [libc::F_OFD_SETLK, libc::F_OFD_SETLKW];

/// Calls that allocate memory which belongs to no process: anonymous files, and pages that stay in a pipe after their
/// process has given them up. Where no cgroup counts such memory, they fail as if they didn't exist.
const UNCOUNTED_MEMORY: &[i64] =
    &[libc::SYS_memfd_create, libc::SYS_vmsplice, libc::SYS_splice, libc::SYS_tee];

/// All system calls of Landlock.
const LANDLOCK: [i64; 3] =
    [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

/// Calls that act on the process whose id is the first argument; 0 is the caller. A user may apply them to all its
/// processes, but a sandbox must not apply them to other processes of its user, such as the host.
const ONLY_ON_ITSELF: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The same for calls whose second argument is the id, and whose first is its kind.
const ONLY_ON_ITSELF_SECOND: &[i64] = &[libc::SYS_setpriority, libc::SYS_ioprio_set];

/// The `CLONE_NEW*` flags; each creates a namespace. Time namespaces are missing, since `clone` uses that bit for
/// something else and `unshare` is refused.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Calls from this number on are newer than this list. They fail as if they didn't exist, so that programs use older
/// ones.
const UNKNOWN_SINCE: u32 = 463;

/// Applies the filters to this process and everything that it starts.
pub(super) fn apply(filter: Filter) -> Result<(), String> {
    const CONTEXT: &str = "cannot apply seccomp";
    seccompiler::apply_filter(&unknown()).context(CONTEXT)?;
    for program in [refusal_filter(filter)?, missing(filter)?, invalid()?] {
        seccompiler::apply_filter(&program).context(CONTEXT)?;
    }
    Ok(())
}

/// Prevents this thread, and everything that it starts, from sending signals to the process with these threads. The
/// first is the process's main thread. The process must be alone in its process group.
pub(super) fn protect(threads: &[nix::unistd::Pid]) -> Result<(), String> {
    seccompiler::apply_filter(&protection_filter(threads)?).context("cannot apply seccomp")
}

/// Prevents this thread, and everything that it starts, from using Landlock, as on a kernel without it. A Landlock
/// domain holds a copy of its rules, persists while any file is open that was opened in it, and is counted only by a
/// memory cgroup.
pub(super) fn without_landlock() -> Result<(), String> {
    let allowed_files = LANDLOCK.iter().map(|call| (*call, Vec::new())).collect();
    seccompiler::apply_filter(&program(allowed_files, libc::ENOSYS)?).context("cannot apply seccomp")
}

fn protection_filter(threads: &[nix::unistd::Pid]) -> Result<BpfProgram, String> {
    /// Converts a number to the form that filters compare: the low half of an argument.
    fn low(number: i32) -> u64 {
        u64::from(number.cast_unsigned())
    }
    /// Target for all processes.
    const ALL: i32 = -1;
    let process = threads.first().ok_or("there is no process to protect")?;
    let is = |argument: u8, number: i32| rule([condition(argument, SeccompCmpOp::Eq, low(number))?]);
    let mut allowed_files: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, arguments) in SIGNAL_TARGETS {
        let mut named = Vec::new();
        for argument in arguments {
            for thread in threads {
                named.push(is(*argument, thread.as_raw())?);
            }
        }
        allowed_files.insert(call, named);
    }
    if let Some(named) = allowed_files.get_mut(&libc::SYS_kill) {
        named.extend([is(0, ALL)?, is(0, -process.as_raw())?]);
    }
    allowed_files.insert(libc::SYS_setpgid, vec![is(1, process.as_raw())?]);
    let mut owners = vec![rule([condition(1, SeccompCmpOp::Eq, number(F_SETOWN_EX))?])?];
    for owner in threads.iter().map(|thread| thread.as_raw()).chain([-process.as_raw()]) {
        owners.push(rule([
            condition(1, SeccompCmpOp::Eq, number(F_SETOWN))?,
            condition(2, SeccompCmpOp::Eq, low(owner))?,
        ])?);
    }
    allowed_files.insert(libc::SYS_fcntl, owners);
    allowed_files.insert(
        libc::SYS_ioctl,
        OWNER_IOCTLS
            .into_iter()
            .map(|request| rule([condition(1, SeccompCmpOp::Eq, request)?]))
            .collect::<Result<_, _>>()?,
    );
    program(allowed_files, libc::EPERM)
}

/// Refuses calls with unknown numbers. On x86-64, these include the x32 interface, which has other numbers for the same
/// calls.
fn unknown() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let number_at = 0;
    let (allow, missing) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: number_at },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: UNKNOWN_SINCE },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: missing },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: allow },
    ]
}

/// Refuses calls for which programs have a fallback when they don't exist.
fn missing(filter: Filter) -> Result<BpfProgram, String> {
    // Its flags are in memory, which a filter can't read.
    let mut allowed_files = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    if !filter.uncounted_memory {
        allowed_files.extend(UNCOUNTED_MEMORY.iter().map(|call| (*call, Vec::new())));
    }
    program(allowed_files, libc::ENOSYS)
}

/// Refuses calls for which programs have a fallback when the kernel doesn't support the argument.
fn invalid() -> Result<BpfProgram, String> {
    let locks = OPEN_FILE_LOCKS.iter().map(|kind| rule([condition(1, SeccompCmpOp::Eq, number(*kind))?]));
    program(BTreeMap::from([(libc::SYS_fcntl, locks.collect::<Result<_, _>>()?)]), libc::EINVAL)
}

/// Refuses calls that aren't permitted.
fn refusal_filter(filter: Filter) -> Result<BpfProgram, String> {
    let mut allowed_files: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_ON_THIS_ARCH).map(|call| (*call, Vec::new())).collect();
    if !filter.shared_objects {
        allowed_files.extend(SHARED_OBJECTS.iter().map(|call| (*call, Vec::new())));
    }
    if !filter.file_attributes {
        allowed_files.extend(
            FILE_ATTRIBUTES.iter().chain(FILE_ATTRIBUTES_ON_THIS_ARCH).map(|call| (*call, Vec::new())),
        );
    }
    for (call, signal) in SIGNAL_CALLS {
        let stops =
            STOP_SIGNALS.iter().map(|stop| rule([condition(signal, SeccompCmpOp::Eq, number(*stop))?]));
        allowed_files.insert(call, stops.collect::<Result<_, _>>()?);
    }
    let mut controls: Vec<SeccompRule> = STOP_SIGNALS
        .iter()
        .map(|stop| {
            rule([
                condition(1, SeccompCmpOp::Eq, number(F_SETSIG))?,
                condition(2, SeccompCmpOp::Eq, number(*stop))?,
            ])
        })
        .collect::<Result<_, String>>()?;
    if !filter.uncounted_memory {
        allowed_files.extend(SHARED_MEMORY.iter().map(|call| (*call, Vec::new())));
        controls.push(rule([condition(1, SeccompCmpOp::Eq, number(libc::F_SETPIPE_SZ))?])?);
        // Anonymous shared memory: the kernel keeps all of it even if a part is unmapped. (`MAP_SHARED` is a bit of
        // `MAP_SHARED_VALIDATE`.)
        let shared = number(libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let buffers = [libc::SO_SNDBUF, libc::SO_RCVBUF].into_iter().map(|buffer| {
            rule([
                condition(1, SeccompCmpOp::Eq, number(libc::SOL_SOCKET))?,
                condition(2, SeccompCmpOp::Eq, number(buffer))?,
            ])
        });
        allowed_files.insert(libc::SYS_setsockopt, buffers.collect::<Result<_, String>>()?);
        allowed_files.insert(
            libc::SYS_landlock_add_rule,
            vec![rule([condition(1, SeccompCmpOp::Eq, number(LANDLOCK_RULE_NET_PORT))?])?],
        );
        let listener = u64::from(SECCOMP_FILTER_FLAG_NEW_LISTENER);
        allowed_files.insert(
            libc::SYS_seccomp,
            vec![rule([condition(1, SeccompCmpOp::MaskedEq(listener), listener)?])?],
        );
        allowed_files
            .insert(libc::SYS_mmap, vec![rule([condition(3, SeccompCmpOp::MaskedEq(shared), shared)?])?]);
    }
    allowed_files.insert(libc::SYS_fcntl, controls);
    if !filter.hidden_processes {
        allowed_files.insert(
            libc::SYS_prctl,
            vec![rule([
                condition(0, SeccompCmpOp::Eq, number(libc::PR_SET_DUMPABLE))?,
                condition(1, SeccompCmpOp::Eq, 0)?,
            ])?],
        );
    }
    for call in ONLY_ON_ITSELF {
        allowed_files.insert(*call, vec![rule([condition(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    for call in ONLY_ON_ITSELF_SECOND {
        // An id of 0 means the caller if the kind is process: 0 for priorities, 1 for I/O priorities. Other kinds are
        // groups and users.
        let itself = if *call == libc::SYS_ioprio_set { 1 } else { 0 };
        allowed_files.insert(
            *call,
            vec![
                rule([condition(0, SeccompCmpOp::Ne, itself)?])?,
                rule([condition(1, SeccompCmpOp::Ne, 0)?])?,
            ],
        );
    }
    let mut clones: Vec<SeccompRule> = NEW_NAMESPACES
        .iter()
        .map(|flag| rule([condition(0, SeccompCmpOp::MaskedEq(number(*flag)), number(*flag))?]))
        .collect::<Result<_, String>>()?;
    // A thread with its own open files, which the guard doesn't find among those of its process.
    let thread = number(libc::CLONE_THREAD);
    let with_files = thread | number(libc::CLONE_FILES);
    clones.push(rule([condition(0, SeccompCmpOp::MaskedEq(with_files), thread)?])?);
    allowed_files.insert(libc::SYS_clone, clones);
    allowed_files.insert(libc::SYS_socket, vec![sockets(filter)?]);
    // Requests that insert input into a terminal.
    allowed_files.insert(
        libc::SYS_ioctl,
        [libc::TIOCSTI, libc::TIOCLINUX]
            .into_iter()
            .chain(FILE_ATTRIBUTE_IOCTLS.into_iter().filter(|_| !filter.file_attributes))
            .map(|request| rule([condition(1, SeccompCmpOp::Eq, request)?]))
            .collect::<Result<_, _>>()?,
    );
    // Other personalities restore old behavior, such as a readable page at address 0.
    const ASK: u64 = 0xffff_ffff;
    allowed_files.insert(
        libc::SYS_personality,
        vec![rule([
            condition(0, SeccompCmpOp::Ne, 0)?,
            condition(0, SeccompCmpOp::Ne, ASK)?,
            condition(0, SeccompCmpOp::Ne, libc::ADDR_NO_RANDOMIZE as u64)?,
        ])?],
    );
    program(allowed_files, libc::EPERM)
}

/// Refuses all socket families except the permitted ones.
fn sockets(filter: Filter) -> Result<SeccompRule, String> {
    let mut families = Vec::new();
    if filter.unix_sockets {
        families.push(libc::AF_UNIX);
    }
    if filter.internet_sockets {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if families.is_empty() {
        // Sockets never have this family, so every socket is refused.
        families.push(libc::AF_UNSPEC);
    }
    let conditions: Result<Vec<_>, _> = families
        .into_iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    rule(conditions?)
}

/// Converts a kernel constant to the form that filters compare.
fn number(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}

fn condition(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
        .context("cannot build the seccomp filter")
}

fn rule(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions.into()).context("cannot build the seccomp filter")
}

fn program(allowed_files: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, String> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().context("cannot build the seccomp filter")?;
    let filter = SeccompFilter::new(allowed_files, SeccompAction::Allow, action, architecture)
        .context("cannot build the seccomp filter")?;
    filter.try_into().context("cannot build the seccomp filter")
}
