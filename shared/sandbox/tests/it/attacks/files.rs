//! Attacks on files of the machine, of other sandboxes and of the kernel.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use bench_sandbox::isolation::SharedFolder;

use crate::support::{copy_program, each_form, each_form_with, is_root, run, stdout_of};

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_machine() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let secret = form.folder().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        // Files that every user may read, at known paths.
        for path in [secret.as_path(), form.folder()] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let own = std::process::id();
        let root = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(0)).unwrap().unwrap().dir;
        let shell = root.join(".bashrc");
        let program = format!(
            r#"
secret, host, shell = {secret:?}, {own}, {shell:?}
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/sshd_config", "/etc/machine-id", "/etc/fstab",
             shell, "/home", "/var/log", "/var/lib", "/boot", "/sys/kernel", "/sys/fs/cgroup", secret,
             "/proc/%d/environ" % host, "/proc/%d/cmdline" % host, "/proc/%d/root/etc/shadow" % host, "/proc/%d/fd" % host,
             "/proc/1/environ", "/proc/1/mem", "/proc/1/fd", "/proc/1/root/etc/shadow", "/proc/kcore", "/proc/kmsg"):
    def look():
        if os.path.isdir(path):
            return os.listdir(path)
        with open(path, "rb") as file:
            return file.read(100)
    refused("read " + path, look)
"#
        );
        let read_shell = format!("read {}", shell.display());
        form.attack(&sandbox, &program, &["read /etc/shadow", &read_shell, "read /proc/1/mem", "read /proc/kmsg"]).await;
        // Inside, the only users are those of the sandbox.
        if !form.is_confined() {
            assert_eq!(stdout_of(&sandbox, "cut -d: -f1 /etc/passwd | tr '\\n' ' '").await, "sandbox nobody ");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_outside() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let open_to_all = form.folder().join("open");
        std::fs::create_dir_all(&open_to_all).unwrap();
        std::fs::set_permissions(&open_to_all, PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::write(open_to_all.join("file"), "kept").unwrap();
        std::fs::set_permissions(open_to_all.join("file"), PermissionsExt::from_mode(0o666)).unwrap();
        let program = format!(
            r#"
place = {open_to_all:?}
home = os.environ["HOME"]
for folder in ("/", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/dev", "/proc", "/proc/self", "/var", "/opt", "/run",
               "/sys", "/root", place, os.path.dirname(home)):
    refused("make a file in " + folder, lambda: open(os.path.join(folder, "bench-attack"), "w"))
    refused("make a folder in " + folder, lambda: os.mkdir(os.path.join(folder, "bench-attack.d")))
for path in (place + "/file", "/etc/passwd", "/etc/hosts", "/usr/bin/env", "/bin/bash", "/proc/self/oom_score_adj"):
    refused("write to " + path, lambda: open(path, "r+b"))
    refused("truncate " + path, lambda: os.truncate(path, 0))
    refused("remove " + path, lambda: os.unlink(path))
    refused("change the mode of " + path, lambda: os.chmod(path, 0o777))
    refused("rename " + path, lambda: os.rename(path, home + "/taken"))
    refused("link to " + path, lambda: os.link(path, home + "/linked"))
    os.path.lexists(home + "/linked") and succeeded("a link to " + path)
os.symlink(place, home + "/out")
refused("write through a link", lambda: open(home + "/out/new", "w"))
refused("leave the folder", lambda: open(home + "/../../../../../../bench-attack", "w"))
"#
        );
        let things = ["make a file in /etc", "make a folder in /", "write to /etc/passwd", "write through a link"];
        form.attack(&sandbox, &program, &things).await;
        assert_eq!(std::fs::read_to_string(open_to_all.join("file")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(&open_to_all).unwrap().count(), 1);
    })
    .await;
}

/// Returns mode, owner and times of the last changes, which show if an attribute was set.
fn attributes(path: &Path) -> (u32, u32, i64, i64, i64) {
    let about = std::fs::metadata(path).unwrap();
    (about.mode(), about.uid(), about.mtime(), about.ctime(), about.ctime_nsec())
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_of_the_user_s_files() {
    let (secret, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Every user may enter the folders, so that only the sandbox keeps programs out.
    for folder in [&secret, &shared] {
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let (key, data) = (secret.path().join("signing-key.pem"), shared.path().join("data"));
    std::fs::write(&key, "secret").unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    // Programs may open this one.
    std::fs::write(&data, "data").unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o644)).unwrap();
    let before = [&key, &data].map(|path| attributes(path));
    let share = SharedFolder { host: shared.path().to_owned(), inside: "/shared".into() };
    each_form_with(
        |options| options.shared = vec![share],
        |form| {
            let key = key.clone();
            async move {
                let sandbox = form.sandbox().await;
                let program = format!(
                    r#"
import fcntl
key, data = {key:?}, os.environ["SANDY_FILES"] + "/data"
me = os.getuid()
def by_path(name, path):
    folder, file = os.path.split(path)
    refused("chmod " + name, lambda: os.chmod(path, 0o666))
    refused("chmod of a folder, " + name, lambda: os.chmod(folder, 0o777))
    call("fchmodat " + name, 268 if x86 else 53, -100, path.encode(), 0o666, 0)
    call("fchmodat2 " + name, 452, -100, path.encode(), 0o666, 0)
    refused("chown " + name, lambda: os.chown(path, me, os.getgid()))
    refused("lchown " + name, lambda: os.lchown(path, me, os.getgid()))
    refused("utime " + name, lambda: os.utime(path, (1, 1)))
    refused("utime now " + name, lambda: os.utime(path))
    refused("setxattr " + name, lambda: os.setxattr(path, "user.x", b"x"))
    refused("lsetxattr " + name, lambda: os.setxattr(path, "user.x", b"x", follow_symlinks=False))
    refused("removexattr " + name, lambda: os.removexattr(path, "user.x"))
    call("setxattrat " + name, 463, -100, path.encode(), 0, b"user.x", b"\0" * 16, 16)
    call("file_setattr " + name, 469, -100, path.encode(), b"\0" * 24, 24, 0)
    call("truncate " + name, 76 if x86 else 45, path.encode(), 0)
    if x86:
        call("old chmod " + name, 90, path.encode(), 0o666)
        call("old utime " + name, 132, path.encode(), None)
        call("old utimes " + name, 235, path.encode(), None)
        call("old futimesat " + name, 261, -100, path.encode(), None)
def by_file(name, path, flags):
    try:
        file = os.open(path, flags)
    except OSError as error:
        prevented("open " + name, error)
        return
    refused("fchmod " + name, lambda: os.fchmod(file, 0o666))
    refused("chmod by link " + name, lambda: os.chmod("/proc/self/fd/%d" % file, 0o666))
    refused("fchown " + name, lambda: os.fchown(file, me, os.getgid()))
    refused("futimes " + name, lambda: os.utime(file, (1, 1)))
    refused("fsetxattr " + name, lambda: os.setxattr(file, "user.x", b"x"))
    refused("fremovexattr " + name, lambda: os.removexattr(file, "user.x"))
    call("empty path " + name, 452, file, b"", 0o666, 0x1000)
    # Flags that an owner may set: no dump, no atime.
    for request in (0x40086602, 0x40046602, 0x401c5820):
        refused("flags %x %s" % (request, name), lambda: fcntl.ioctl(file, request, struct.pack("7I", 0xc0, *[0] * 6)))
    os.close(file)
x86 = platform.machine() == "x86_64"
for name, path in (("of a secret", key), ("of a shared file", data)):
    by_path(name, path)
    by_file(name + " held by its path", path, os.O_PATH)
    by_file(name + " that is open", path, os.O_RDONLY)
"#
                );
                let things = ["chmod of a secret", "utime of a shared file", "fchmod of a shared file that is open"];
                form.attack(&sandbox, &program, &things).await;
                if form.is_confined() && !form.has("uid per sandbox") {
                    assert!(form.lacks("change modes"), "{:?}", form.description());
                    assert_ne!(run(&sandbox, "echo x > own && chmod 777 own").await.exit_code, Some(0));
                } else {
                    assert_eq!(stdout_of(&sandbox, "echo x > own && chmod 600 own && stat -c %a own").await, "600");
                }
            }
        },
    )
    .await;
    assert_eq!([&key, &data].map(|path| attributes(path)), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_kernel() {
    let core_pattern = || std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let before = core_pattern();
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory",
             "/proc/sys/kernel/ns_last_pid", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/suid_dumpable", "/proc/sysrq-trigger",
             "/proc/self/uid_map", "/proc/self/setgroups", "/proc/self/oom_score_adj", "/sys/kernel/uevent_helper",
             "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/release_agent", "/proc/1/oom_score_adj"):
    refused("write " + path, lambda: os.write(os.open(path, os.O_WRONLY), b"1"))
# Every setting that the sandbox sees.
count = 0
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        count += 1
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            succeeded("write " + os.path.join(folder, name))
        except OSError:
            pass
prevented("all settings", count)
"#;
        form.attack(&sandbox, program, &["write /proc/sys/kernel/core_pattern", "write /proc/sysrq-trigger", "all settings"])
            .await;
    })
    .await;
    assert_eq!(core_pattern(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn devices() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
import stat
for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop-control",
             "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/tty", "/dev/console", "/dev/ptmx", "/dev/pts/0", "/dev/snapshot"):
    refused("open " + path, lambda: os.open(path, os.O_RDONLY))
for name, kind, major, minor in (("memory", stat.S_IFCHR, 1, 1), ("disk", stat.S_IFBLK, 254, 0), ("null", stat.S_IFCHR, 1, 3)):
    refused("make the device " + name, lambda: os.mknod(name, kind | 0o666, os.makedev(major, minor)))
allowed = {"fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"}
try:
    more = set(os.listdir("/dev")) - allowed
    (succeeded if more else prevented)("devices", more)
except OSError as error:
    prevented("devices", error)
# The existing devices work.
open("/dev/null", "w").write("x")
assert open("/dev/urandom", "rb").read(4) and open("/dev/zero", "rb").read(2) == bytes(2)
"#;
        form.attack(&sandbox, program, &["open /dev/mem", "make the device memory", "make the device null", "devices"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_another_sandbox() {
    each_form(|form| async move {
        let (one, other) = (form.sandbox().await, form.sandbox().await);
        other.write("secret", b"secret").await.unwrap();
        run(&other, "chmod -R 777 $HOME; echo x > $TMPDIR/shared; chmod 777 $TMPDIR/shared; setsid sleep 100000 >/dev/null 2>&1 &").await;
        let home = stdout_of(&other, "echo $HOME").await;
        let temporary = stdout_of(&other, "echo $TMPDIR").await;
        let id = stdout_of(&other, "echo $SANDY_SANDBOX_ID").await;
        let program = format!(
            r#"
home, temporary, other = {home:?}, {temporary:?}, {id:?}
refused("read a file", lambda: open(home + "/secret").read())
refused("read a temporary file", lambda: open(temporary + "/shared").read())
home == os.environ["HOME"] or refused("list the folder", lambda: os.listdir(home))
home == os.environ["HOME"] or refused("write a file", lambda: open(home + "/planted", "w"))
# Through its processes.
found = []
for pid in visible():
    for name in ("environ", "cwd/secret", "root/workspace/secret"):
        try:
            content = open("/proc/%s/%s" % (pid, name), "rb").read()
        except OSError:
            continue
        if other.encode() in content or b"secret" == content:
            found.append((pid, name))
succeeded("see its processes", found) if found else prevented("see its processes")
"#
        );
        form.attack(&one, &program, &["read a file", "read a temporary file", "see its processes"]).await;
        assert_eq!(stdout_of(&other, "ls").await, "secret");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn setuid_programs() {
    let planted = tempfile::tempdir().unwrap();
    std::fs::set_permissions(planted.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = planted.path().join("id");
    copy_program(Path::new("/usr/bin/id"), &program);
    // Owned by root if root runs the test: the worst that a shared folder may contain.
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o6755)).unwrap();
    let share = SharedFolder { host: planted.path().to_owned(), inside: "/shared".into() };
    each_form_with(
        |options| options.shared = vec![share],
        |form| async move {
            let sandbox = form.sandbox().await;
            let plain = stdout_of(&sandbox, "id -u").await;
            assert_eq!(stdout_of(&sandbox, "$SANDY_FILES/id -u; $SANDY_FILES/id -ru").await, format!("{plain}\n{plain}"));
            assert_ne!(plain, "0");
            assert_eq!(stdout_of(&sandbox, "cp /usr/bin/id own; chmod 6755 own; ./own -u").await, plain);
            let attack = r#"
PR_GET_NO_NEW_PRIVS = 39
(prevented if libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 else succeeded)("new privileges")
for name, attempt in (("uid 0", lambda: os.setuid(0)), ("gid 0", lambda: os.setgid(0)), ("groups", lambda: os.setgroups([0])),
                      ("owner", lambda: os.chown("attack.py", 0, 0))):
    refused(name, attempt)
"#;
            form.attack(&sandbox, attack, &["new privileges", "uid 0", "gid 0", "groups", "owner"]).await;
            if is_root() {
                assert!(form.has("uid per sandbox"));
            }
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_removes_its_own_files() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        sandbox.write("jobs/one/script.sh", b"rm -rf \"$HOME\"/jobs \"$TMPDIR\"/*; echo gone").await.unwrap();
        assert_eq!(stdout_of(&sandbox, "bash jobs/one/script.sh; ls -A").await, "gone");
        sandbox.write("jobs/one/script.sh", b"echo again").await.unwrap();
        assert_eq!(stdout_of(&sandbox, "bash jobs/one/script.sh").await, "again");
    })
    .await;
}
