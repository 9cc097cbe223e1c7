//! Describes the protections of a form of isolation.

use std::path::PathBuf;

use super::Form;
use super::wire::{Kind, Ready};

/// Properties of the host that the description depends on.
pub(crate) struct Facts {
    pub(crate) own_user: bool,
    pub(crate) bounds_memory: bool,
    pub(crate) bounds_processes: bool,
    pub(crate) yields: bool,
    pub(crate) allow_network: bool,
    /// Shared folders that programs don't see at the requested path.
    pub(crate) moved: Vec<PathBuf>,
}

/// Describes a form after a trial sandbox was created.
pub(crate) fn describe(kind: Kind, ready: &Ready, facts: &Facts) -> Form {
    let mut form = Form { name: kind.name(), holds: Vec::new(), lacks: Vec::new() };
    let mut say = |holds: bool, what: &str, lack: &str| {
        if holds {
            form.holds.push(what.to_owned());
        } else if !lack.is_empty() {
            form.lacks.push(lack.to_owned());
        }
    };
    let spaces = kind == Kind::Namespaces;
    for space in ["user", "mount", "pid", "ipc", "uts", "cgroup"] {
        say(spaces, &format!("{space} namespace"), "");
    }
    say(spaces && !facts.allow_network, "network namespace", "");
    say(
        spaces,
        "sized working folder",
        "The working folder is not a separate file system: the guard measures it, including deleted files that are \
         still open, and ends the sandbox when it exceeds its limit.",
    );
    say(spaces, "", "The working folder is not at /workspace: $HOME contains its path.");
    say(spaces, "", "Programs cannot share named memory or named semaphores.");
    say(
        ready.landlock > 0,
        &format!("landlock {}", ready.landlock),
        "The kernel has no Landlock; only the mount namespace protects files.",
    );
    say(true, "seccomp", "");
    say(true, "limits of each process", "");
    say(
        facts.own_user,
        "uid per sandbox",
        if spaces {
            "The host is not root: programs run as its user, in a user namespace."
        } else {
            "The host is not root: programs run as its user, and only Landlock and seccomp keep them from its processes."
        },
    );
    say(
        spaces || facts.own_user,
        "",
        "Programs cannot change modes, owners, times and extended attributes of files, not even of their own: the kernel \
         would let them change every file of the host's user. Programs that a linker creates are therefore not executable.",
    );
    say(
        facts.bounds_memory,
        "memory cgroup",
        "The host cannot create a memory cgroup: the kernel limits each process, and the guard watches the total, including \
         files in memory, sockets and pipes. System V shared memory, anonymous files, anonymous shared memory, \
         larger buffers of sockets and pipes, seccomp listeners, and Landlock (for commands without \
         SANDY_ALLOW_LANDLOCK=1) are refused.",
    );
    say(
        !facts.yields,
        "",
        "The host cannot raise its priority: the priority of programs is lowered, so that the guard measures their memory in \
         time. On kernels with autogroups, which schedule by session, a sandbox ends when its programs are in more than 32 \
         sessions.",
    );
    say(
        facts.bounds_processes,
        "pids cgroup",
        if spaces || facts.own_user {
            "The host cannot create a pids cgroup: processes are counted by user."
        } else {
            "The host cannot create a pids cgroup: processes are watched, and the sandbox ends when there are too many."
        },
    );
    if facts.allow_network {
        say(false, "", "Programs can reach every address that this machine can reach, including its own.");
    } else {
        say(true, "no network", "");
    }
    if !spaces && ready.unix_sockets && facts.own_user {
        say(
            ready.landlock >= 9,
            "",
            "Programs can reach sockets in the machine's file system that every user may write to.",
        );
    }
    say(ready.unix_sockets, "", "Programs cannot create sockets, not even to talk to each other.");
    for folder in &facts.moved {
        say(
            false,
            "",
            &format!("The shared folder {} is visible at its path on the machine.", folder.display()),
        );
    }
    form.holds.retain(|what| !what.is_empty());
    form
}
