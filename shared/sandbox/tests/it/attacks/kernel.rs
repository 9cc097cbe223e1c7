//! Attacks on the kernel: system calls that ordinary programs don't need.

use crate::support::{TestForm, each_form};
use bench_sandbox::isolation::Sandbox;
use std::sync::Arc;

/// Python code for system call numbers that differ between architectures.
const NUMBERS: &str = r#"
x86 = platform.machine() == "x86_64"
def n(on_x86, elsewhere):
    return on_x86 if x86 else elsewhere
"#;

async fn attack(form: &TestForm, sandbox: &Arc<dyn Sandbox>, program: &str, things: &[&str]) {
    form.attack(sandbox, &format!("{NUMBERS}{program}"), things).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_and_roots() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
here = os.getcwd().encode()
os.makedirs("mnt", exist_ok=True)
call("mount tmpfs", n(165, 40), b"none", b"mnt", b"tmpfs", 0, None)
call("mount proc", n(165, 40), b"none", b"mnt", b"proc", 0, None)
call("bind", n(165, 40), b"/", b"mnt", None, 4096, None)
call("remount", n(165, 40), b"none", b"/", None, 32 | 4096, None)
call("remount usr", n(165, 40), b"none", b"/usr", None, 32 | 4096, None)
call("umount proc", n(166, 39), b"/proc", 2)
call("umount usr", n(166, 39), b"/usr", 2)
call("chroot", n(161, 51), b"mnt")
call("pivot_root", n(155, 41), b"mnt", b"mnt")
call("open_tree", 428, -100, b"/", 1)
call("move_mount", 429, -100, b"/usr", -100, b"mnt", 0)
call("fsopen", 430, b"tmpfs", 0)
call("fsmount", 432, 0, 0, 0)
call("mount_setattr", 442, -100, b"/", 0, b"\0" * 32, 32)
call("open_by_handle_at", n(304, 265), -100, b"\0" * 64, 0)
call("name_to_handle_at", n(303, 264), -100, b"/", b"\0" * 64, b"\0" * 8, 0)
call("swapon", n(167, 224), b"attack.py", 0)
"#;
        attack(
            &form,
            &sandbox,
            program,
            &["mount tmpfs", "remount usr", "umount proc", "chroot", "fsopen", "swapon"],
        )
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_namespaces() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
spaces = {"user": 0x10000000, "mount": 0x00020000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000,
          "uts": 0x04000000, "cgroup": 0x02000000, "time": 0x00000080}
for name, flag in spaces.items():
    call("unshare " + name, n(272, 97), flag)
    if name != "time":
        call("clone " + name, n(56, 220), flag | signal.SIGCHLD, None, None, None, None)
call("unshare all at once", n(272, 97), 0x10000000 | 0x00020000)
# clone3 is missing, since a filter can't see its flags.
call("clone3", 435, struct.pack("11Q", 0x10000000, *[0] * 3, signal.SIGCHLD, *[0] * 6), 88)
for name in ("mnt", "user", "net", "pid"):
    try:
        fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
    except OSError as error:
        prevented("setns " + name, error)
    else:
        call("setns " + name, n(308, 268), fd, 0)
# Programs can still start others.
assert os.system("true") == 0
"#;
        let things =
            ["unshare user", "clone user", "clone mount", "unshare all at once", "clone3", "setns mnt"];
        attack(&form, &sandbox, program, &things).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rare_and_dangerous_calls() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
call("io_uring_setup", 425, 8, b"\0" * 120)
call("io_uring_enter", 426, 0, 0, 0, 0, None, 0)
call("io_uring_register", 427, 0, 0, None, 0)
call("bpf", n(321, 280), 0, b"\0" * 72, 72)
call("perf_event_open", n(298, 241), b"\0" * 120, 0, -1, -1, 0)
call("userfaultfd", n(323, 282), 0)
call("add_key", n(248, 217), b"user", b"name", b"value", 5, -3)
call("request_key", n(249, 218), b"user", b"name", None, -3)
call("keyctl", n(250, 219), 0, -3, 1)
call("keyctl join", n(250, 219), 1, None)
call("memfd_secret", 447, 0)
call("fanotify_init", n(300, 262), 0, 0)
call("syslog", n(103, 116), 3, b"\0" * 100, 100)
call("init_module", n(175, 105), b"\0" * 8, 8, b"")
call("finit_module", n(313, 273), 0, b"", 0)
call("delete_module", n(176, 106), b"x", 0)
call("kexec_load", n(246, 104), 0, 0, None, 0)
call("reboot", n(169, 142), 0xfee1dead - (1 << 32), 672274793, 0, None)
call("sethostname", n(170, 161), b"x", 1)
call("settimeofday", n(164, 170), struct.pack("2Q", 1, 0), None)
call("clock_settime", n(227, 112), 0, struct.pack("2Q", 1, 0))
call("acct", n(163, 89), None)
call("quotactl", n(179, 60), 0, None, 0, None)
call("personality", n(135, 92), 0x0400000)
call("a call of the future", 470)
call("a call of the far future", 5000)
if x86:
    call("iopl", 172, 3)
    call("ioperm", 173, 0, 1, 1)
    call("modify_ldt", 154, 1, b"\0" * 16, 16)
    # The same calls under the numbers of the x32 interface.
    call("x32 ptrace", 0x40000000 + 521, 0, 0, 0, 0)
    call("x32 mount", 0x40000000 + 165, b"none", b"/tmp", b"tmpfs", 0, None)
    call("x32 getpid", 0x40000000 + 39)
TIOCSTI = 0x5412
import fcntl
refused("typing on a terminal", lambda: fcntl.ioctl(0, TIOCSTI, b"x"))
"#;
        let things = [
            "io_uring_setup",
            "bpf",
            "perf_event_open",
            "keyctl",
            "a call of the future",
            "typing on a terminal",
        ];
        attack(&form, &sandbox, program, &things).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_calling_conventions() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // Calls of 32-bit programs have other numbers, and the kernel kills programs that make one. (mov eax, 20; int
        // 0x80; ret)
        let program = r#"
import mmap
if not x86:
    prevented("32-bit calls")
    sys.exit()
pid = os.fork()
if pid == 0:
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    os._exit(0)
_, status = os.waitpid(pid, 0)
(prevented if os.WIFSIGNALED(status) else succeeded)("32-bit calls", status)
"#;
        attack(&form, &sandbox, program, &["32-bit calls"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_into_processes() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
parent = os.getppid()
child = os.fork()
if child == 0:
    time.sleep(100000)
for name, pid in (("own child", child), ("parent", parent), ("first process", 1)):
    call("attach to " + name, n(101, 117), 16, pid, 0, 0)
    call("seize " + name, n(101, 117), 0x4206, pid, 0, 0)
    call("read from " + name, n(310, 270), pid, b"\0" * 16, 1, b"\0" * 16, 1, 0)
    call("write to " + name, n(311, 271), pid, b"\0" * 16, 1, b"\0" * 16, 1, 0)
    call("compare with " + name, n(312, 272), pid, os.getpid(), 0, 0, 0)
    call("advise " + name, 440, pid, None, 0, 0, 0)
call("trace me", n(101, 117), 0, 0, 0, 0)
try:
    fd = os.pidfd_open(child)
    call("take a file of a child", 438, fd, 0, 0)
except OSError as error:
    prevented("take a file of a child", error)
for name in ("mem", "maps", "environ", "auxv"):
    refused("first process' " + name, lambda: open("/proc/1/" + name, "rb").read(1))
os.kill(child, 9)
"#;
        let things =
            ["attach to own child", "attach to first process", "read from parent", "first process' mem"];
        attack(&form, &sandbox, program, &things).await;
    })
    .await;
}
