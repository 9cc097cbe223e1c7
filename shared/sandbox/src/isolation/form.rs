//! What holds in a form, in words.

use std::path::PathBuf;

use super::Form;
use super::wire::{Kind, Ready};

/// What is known of the host.
pub(crate) struct Facts {
    pub(crate) own_user: bool,
    pub(crate) bounds_memory: bool,
    pub(crate) bounds_processes: bool,
    pub(crate) yields: bool,
    pub(crate) allow_network: bool,
    /// Shared folders that are not where they were asked to be.
    pub(crate) moved: Vec<PathBuf>,
}

/// Of a form that was tried.
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
        "The working folder is no file system of its own: it is watched, files that are deleted while open included, and \
         the sandbox ends when it holds too much.",
    );
    say(spaces, "", "The working folder is not at /workspace: $HOME names it.");
    say(spaces, "", "Programs share no memory or semaphores by name.");
    say(
        ready.landlock > 0,
        &format!("landlock {}", ready.landlock),
        "The kernel has no landlock; files are closed by the mount namespace alone.",
    );
    say(true, "seccomp", "");
    say(true, "limits of each process", "");
    say(
        facts.own_user,
        "uid per sandbox",
        if spaces {
            "The host is not root: programs are its user, in a user namespace."
        } else {
            "The host is not root: programs are its user, and only landlock and seccomp keep them from its processes."
        },
    );
    say(
        spaces || facts.own_user,
        "",
        "Programs cannot change modes, owners, times and extended attributes of files, not even of their own: the kernel \
         would let them do so with every file of the host's user. What a linker makes there is therefore not executable.",
    );
    say(
        facts.bounds_memory,
        "memory cgroup",
        "No memory cgroup may be made: each process is bounded, and what all use together, with files in memory, sockets and \
         pipes, is watched. System V shared memory, files without a name, shared memory of no file, \
         larger buffers of sockets and pipes, listeners of seccomp, and Landlock (for commands without \
         SANDY_ALLOW_LANDLOCK=1) are refused.",
    );
    say(
        !facts.yields,
        "",
        "The host may not raise its priority: that of programs is lowered, so that their memory is looked at in time. Where \
         the kernel shares processors out by session (autogroups), a sandbox ends when its programs are in more than 32 \
         sessions.",
    );
    say(
        facts.bounds_processes,
        "pids cgroup",
        if spaces || facts.own_user {
            "No pids cgroup may be made: processes are counted by user."
        } else {
            "No pids cgroup may be made: processes are watched, and the sandbox ends when there are too many."
        },
    );
    if facts.allow_network {
        say(false, "", "Programs reach what this machine reaches, itself included.");
    } else {
        say(true, "no network", "");
    }
    if !spaces && ready.unix_sockets && facts.own_user {
        say(
            ready.landlock >= 9,
            "",
            "Programs reach sockets in the machine's file system that every user may write to.",
        );
    }
    say(ready.unix_sockets, "", "Programs make no sockets, not even to talk to each other.");
    for folder in &facts.moved {
        say(
            false,
            "",
            &format!("The shared folder {} is seen where it is on the machine.", folder.display()),
        );
    }
    form.holds.retain(|what| !what.is_empty());
    form
}
