//! Attacks on processes of the machine, of the host, of other sandboxes, and of the sandbox itself.

use std::process::{Child, Command, Stdio};

use bench_domain::job::ALLOW_LANDLOCK;

use crate::support::{each_form, exec, is_alive, marked_command, processes_with, run, stdout_of, text};

/// A process on this machine that does nothing.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        Self(Command::new("sleep").arg("100000").stdin(Stdio::null()).spawn().unwrap())
    }

    fn is_unharmed(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_to_processes_of_the_machine() {
    each_form(|form| async move {
        let (sandbox, neighbor) = (form.sandbox().await, form.sandbox().await);
        run(&neighbor, "setsid sleep 100000 >/dev/null 2>&1 & echo $! > pid").await;
        let mut bystander = Bystander::new();
        let mark = stdout_of(&neighbor, "echo $SANDY_SANDBOX_ID").await;
        let mut others = Vec::new();
        for _ in 0..6_000 {
            others = processes_with(&format!("SANDY_SANDBOX_ID={mark}"));
            if !others.is_empty() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(!others.is_empty());
        let mut targets = vec![bystander.0.id(), std::process::id()];
        targets.extend(&others);
        let numbers: Vec<String> = targets.iter().map(u32::to_string).collect();
        // In a pid namespace, these ids don't exist, or belong to its own processes if they are low.
        let program = format!(
            r#"
own = set(visible())
for pid in ({}):
    if pid in own:
        continue
    for number in (0, signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        refused("kill %d" % number, lambda: os.kill(pid, number))
    refused("kill its group", lambda: os.killpg(pid, signal.SIGKILL))
    refused("queue", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
    for name, attempt in (
        ("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        ("cpus", lambda: os.sched_setaffinity(pid, {{0}})),
        ("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))),
        ("limit", lambda: __import__("resource").prlimit(pid, __import__("resource").RLIMIT_CPU, (0, 0))),
        ("group", lambda: os.setpgid(pid, 0)),
    ):
        refused(name, attempt)
refused("priority of a user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
prevented("all")
"#,
            numbers.join(", ") + ","
        );
        form.attack(&sandbox, &program, &["kill 9", "limit", "priority", "priority of a user", "all"]).await;
        let mut request = exec("kill -9 -1; kill -STOP -1; echo over");
        request.timeout = std::time::Duration::from_millis(1_000);
        // It may have killed the shell that it runs in.
        let _ = sandbox.exec(&request).await;
        assert!(bystander.is_unharmed());
        assert!(others.iter().all(|pid| is_alive(*pid)));
        assert_eq!(stdout_of(&neighbor, "kill -0 $(cat pid) && echo alive").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_stops_its_supervisor() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // A grader's program could do this, since the supervisor is its parent. It must not be possible by any other
        // call either.
        let program = r#"
import fcntl
x86 = platform.machine() == "x86_64"
def n(on_x86, elsewhere):
    return on_x86 if x86 else elsewhere
child = os.fork()
if child == 0:
    supervisor = os.getppid()
    for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        refused("kill %d" % number, lambda: os.kill(supervisor, number))
        refused("kill group %d" % number, lambda: os.killpg(os.getpgid(0), number))
        refused("kill all %d" % number, lambda: os.kill(-1, number))
        refused("pidfd %d" % number, lambda: signal.pidfd_send_signal(os.pidfd_open(supervisor), number))
        call("tkill %d" % number, n(200, 130), supervisor, number)
        call("tgkill %d" % number, n(234, 131), supervisor, supervisor, number)
        info = struct.pack("3i", number, 0, -1) + b"\0" * 116
        call("queue %d" % number, n(129, 138), supervisor, number, info)
        call("queue to thread %d" % number, n(297, 240), supervisor, supervisor, number, info)
        here, there = os.pipe()
        refused("input %d" % number, lambda: fcntl.fcntl(here, 10, number))
    os._exit(0)
_, status = os.waitpid(child, 0)
(succeeded if status else prevented)("the supervisor goes on", status)
# Other signals arrive.
child = os.fork()
if child == 0:
    time.sleep(100000)
os.kill(child, signal.SIGCONT)
os.kill(child, signal.SIGUSR1)
(prevented if os.waitpid(child, 0)[1] == signal.SIGUSR1 else succeeded)("other signals")
"#;
        form.attack(&sandbox, program, &["kill 19", "pidfd 19", "the supervisor goes on", "other signals"])
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_kills_its_parent() {
    each_form(|form| async move {
        let (sandbox, neighbor) = (form.sandbox().await, form.sandbox().await);
        let (request, mark) = marked_command(
            "setsid sleep 100000 >/dev/null 2>&1 & \
             for signal in STOP TERM INT HUP SEGV KILL; do kill -$signal $PPID 1; kill -$signal -$PPID; done 2>/dev/null; \
             sleep 0.2; echo survived",
        );
        let outcome = sandbox.exec(&request).await;
        // Otherwise the sandbox would be lost, and the host couldn't tell that a program is to blame.
        assert_eq!(text(&outcome.unwrap().stdout), "survived\n");
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
        assert_eq!(stdout_of(&neighbor, "echo alive").await, "alive");
        sandbox.end().await;
        assert_eq!(processes_with(&mark), [0; 0]);
    })
    .await;
}

/// Every way to send a signal to the first process of a sandbox, each tried in a separate process.
const SIGNALS_TO_THE_FIRST: &str = r#"
import fcntl
x86 = platform.machine() == "x86_64"
def n(on_x86, elsewhere):
    return on_x86 if x86 else elsewhere
first, me = os.getppid(), os.getpid()
is_confined = os.environ["SANDY_ISOLATION"] == "confined"
def attempt(name, what):
    child = os.fork()
    if child == 0:
        code = 0
        try:
            what()
            code = 1
        except OSError:
            pass
        os._exit(code)
    # If the first process ignores signals, sending them does no harm.
    status = os.waitpid(child, 0)[1]
    (succeeded if is_confined and status != 0 else prevented)(name, status)
def checked(number, *arguments):
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]) == -1:
        raise OSError(ctypes.get_errno(), "refused")
def notify(own, fill):
    "Makes it the receiver of an input signal, which kills processes that do not handle it."
    here, there = socket.socketpair()
    own(here)
    fcntl.fcntl(here, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    fill and fcntl.fcntl(here, 10, signal.SIGKILL)
    there.send(b"x")
def own_group():
    os.setpgid(0, first)
    os.kill(0, signal.SIGKILL)
# Its other threads have numbers close to its own.
for target in [first, *(first + more for more in range(1, 40) if first + more != me)]:
    which = "first" if target == first else "thread"
    for number in (0, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGKILL):
        info = struct.pack("3i", number, 0, -1) + b"\0" * 116
        attempt(f"kill {which} {number}", lambda: os.kill(target, number))
        attempt(f"tkill {which}", lambda: checked(n(200, 130), target, number))
        attempt(f"tgkill {which}", lambda: checked(n(234, 131), first, target, number))
        attempt(f"queue {which}", lambda: checked(n(129, 138), target, number, info))
        attempt(f"queue to thread {which}", lambda: checked(n(297, 240), first, target, number, info))
    for flags in (0, os.O_EXCL):
        attempt(f"pidfd {which}", lambda: signal.pidfd_send_signal(os.pidfd_open(target, flags), signal.SIGKILL))
# The group of process 1 as a target means all processes, including this one.
for number in (signal.SIGTERM, signal.SIGKILL) if is_confined else ():
    attempt("its group", lambda: os.killpg(first, number))
    attempt("all processes", lambda: os.kill(-1, number))
attempt("its group from inside", own_group)
for fill in (False, True):
    for owner in (first, -first):
        attempt("owner", lambda: notify(lambda end: fcntl.fcntl(end, fcntl.F_SETOWN, owner), fill))
        attempt("owner by request", lambda: notify(lambda end: fcntl.ioctl(end, 0x8901, struct.pack("i", owner)), fill))
        attempt("owner of a group", lambda: notify(lambda end: fcntl.ioctl(end, 0x8902, struct.pack("i", owner)), fill))
    for kind in (0, 1, 2):
        attempt("owner by kind", lambda: notify(lambda end: fcntl.fcntl(end, 15, struct.pack("2i", kind, first)), fill))
prevented("all")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn signals_to_the_first_process() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let things = ["kill first 9", "tgkill thread", "pidfd first", "owner by kind", "all"];
        form.attack(&sandbox, SIGNALS_TO_THE_FIRST, &things).await;
        // Another thread starts commands that may use Landlock.
        let mut request = exec("python3 attack.py");
        request.env.insert(ALLOW_LANDLOCK.to_owned(), "1".to_owned());
        let printed = text(&sandbox.exec(&request).await.unwrap().stdout);
        assert!(
            printed.ends_with("prevented all \n") && !printed.contains("SUCCEEDED"),
            "{}: {printed}",
            form.description().name
        );
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
        // Programs may still kill their own processes, even those in the group of another command.
        let other = "sleep 100000 & echo $! > other; wait; echo ended";
        let waits = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { stdout_of(&sandbox, other).await }
        });
        stdout_of(&sandbox, "until [ -s other ]; do sleep 0.01; done; kill -KILL $(cat other)").await;
        assert_eq!(waits.await.unwrap(), "ended");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_objects_are_separate_from_the_machine() {
    each_form(|form| async move {
        let (one, other) = (form.sandbox().await, form.sandbox().await);
        let make = r#"
IPC_CREAT = 0o1000
number = libc.shmget(0x5eed, 4096, IPC_CREAT | 0o666)
print("created a segment" if number != -1 else "no segment", flush=True)
try:
    open("/dev/shm/bench-seed", "w").write("x")
except OSError:
    pass
prevented("made")
"#;
        form.attack(&one, make, &["made"]).await;
        let find = r#"
(succeeded if libc.shmget(0x5eed, 4096, 0) != -1 else prevented)("segment")
(succeeded if libc.msgget(0x5eed, 0) != -1 else prevented)("queue")
(succeeded if libc.semget(0x5eed, 1, 0) != -1 else prevented)("semaphores")
refused("shared memory", lambda: open("/dev/shm/bench-seed").read())
"#;
        form.attack(&other, find, &["segment", "queue", "semaphores", "shared memory"]).await;
        assert!(!std::path::Path::new("/dev/shm/bench-seed").exists());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_cannot_reach_the_socket_to_the_host() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // Only the first process has the socket to the host.
        let scan = r#"
import stat
found = []
for fd in range(256):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(mode) or fd > 2:
        found.append(fd)
(succeeded if found else prevented)("inherited files", found)
for pid in (1, os.getppid()):
    refused("files of process %d" % pid, lambda: os.listdir("/proc/%d/fd" % pid))
    refused("socket of process %d" % pid, lambda: os.open("/proc/%d/fd/0" % pid, os.O_RDWR))
"#;
        form.attack(&sandbox, scan, &["inherited files", "files of process 1", "socket of process 1"]).await;
    })
    .await;
}
