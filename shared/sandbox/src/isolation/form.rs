//! Describes the protections of a form of isolation.

use std::path::PathBuf;

use super::Form;
use super::wire::{FormKind, Ready};

/// Properties of the host that the description depends on.
pub(crate) struct HostFacts {
    pub(crate) has_own_uid: bool,
    pub(crate) bounds_memory: bool,
    pub(crate) bounds_processes: bool,
    pub(crate) lowers_program_priority: bool,
    pub(crate) allow_network: bool,
    /// Shared folders that programs don't see at the requested path.
    pub(crate) moved_folders: Vec<PathBuf>,
}

/// Describes a form after a trial sandbox was created.
pub(crate) fn describe(kind: FormKind, ready: &Ready, host_facts: &HostFacts) -> Form {
    let mut form = Form { name: kind.name(), holds: Vec::new(), lacks: Vec::new() };
    let mut add = |holds: bool, what: &str, lack: &str| {
        if holds {
            form.holds.push(what.to_owned());
        } else if !lack.is_empty() {
            form.lacks.push(lack.to_owned());
        }
    };
    let has_namespaces = kind == FormKind::Namespaces;
    for space in ["user", "mount", "pid", "ipc", "uts", "cgroup"] {
        add(has_namespaces, &format!("{space} namespace"), "");
    }
    add(has_namespaces && !host_facts.allow_network, "network namespace", "");
    add(
        has_namespaces,
        "sized working folder",
        "The working folder is not a separate file system: the guard measures it, including deleted files that are \
         still open, and ends the sandbox when it exceeds its limit.",
    );
    add(has_namespaces, "", "The working folder is not at /workspace: $HOME contains its path.");
    add(has_namespaces, "", "Programs cannot share named memory or named semaphores.");
    add(
        ready.landlock > 0,
        &format!("landlock {}", ready.landlock),
        "The kernel has no Landlock; only the mount namespace protects files.",
    );
    add(true, "seccomp", "");
    add(true, "limits of each process", "");
    add(
        host_facts.has_own_uid,
        "uid per sandbox",
        if has_namespaces {
            "The host is not root: programs run as its user, in a user namespace."
        } else {
            "The host is not root: programs run as its user, and only Landlock and seccomp keep them from its processes."
        },
    );
    add(
        has_namespaces || host_facts.has_own_uid,
        "",
        "Programs cannot change modes, owners, times and extended attributes of files, not even of their own: the kernel \
         would let them change every file of the host's user. Programs that a linker creates are therefore not executable.",
    );
    add(
        host_facts.bounds_memory,
        "memory cgroup",
        "The host cannot create a memory cgroup: the kernel limits each process, and the guard watches the total, including \
         files in memory, sockets and pipes. System V shared memory, anonymous files, anonymous shared memory, \
         larger buffers of sockets and pipes, seccomp listeners, and Landlock (for commands without \
         SANDY_ALLOW_LANDLOCK=1) are refused.",
    );
    add(
        !host_facts.lowers_program_priority,
        "",
        "The host cannot raise its priority: the priority of programs is lowered, so that the guard measures their memory in \
         time. On kernels with autogroups, which schedule by session, a sandbox ends when its programs are in more than 32 \
         sessions.",
    );
    add(
        host_facts.bounds_processes,
        "pids cgroup",
        if has_namespaces || host_facts.has_own_uid {
            "The host cannot create a pids cgroup: processes are counted by user."
        } else {
            "The host cannot create a pids cgroup: processes are watched, and the sandbox ends when there are too many."
        },
    );
    if host_facts.allow_network {
        add(false, "", "Programs can reach every address that this machine can reach, including its own.");
    } else {
        add(true, "no network", "");
    }
    if !has_namespaces && ready.unix_sockets && host_facts.has_own_uid {
        add(
            ready.landlock >= 9,
            "",
            "Programs can reach sockets in the machine's file system that every user may write to.",
        );
    }
    add(ready.unix_sockets, "", "Programs cannot create sockets, not even to talk to each other.");
    for folder in &host_facts.moved_folders {
        add(
            false,
            "",
            &format!("The shared folder {} is visible at its path on the machine.", folder.display()),
        );
    }
    form.holds.retain(|what| !what.is_empty());
    form
}
