//! Attacks on the resources of the machine: processes, memory, disk space, and time for reading output.

use bench_domain::job::ALLOW_LANDLOCK;
use bench_sandbox::isolation::{IsolationError, Limits};

use crate::support::{
    LONG, PRELUDE, each_form, each_form_alone, exec, is_root, limits, marked_command, processes_with, run,
    stdout_of, text, wait_until,
};

#[tokio::test(flavor = "multi_thread")]
async fn fork_bomb() {
    each_form_alone(|form| async move {
        let sandbox = form.sandbox().await;
        let neighbor = form.sandbox().await;
        // Starts well more processes than the limit, but not endlessly many.
        let program = "import os, time\nn = 0\nwhile n < 400:\n try:\n  pid = os.fork()\n except OSError:\n  break\n \
                       if pid == 0:\n  time.sleep(100000)\n n += 1\nopen('counted', 'w').write(str(n))\n\
                       time.sleep(100000)";
        sandbox.write("bomb.py", program.as_bytes()).await.unwrap();
        let (request, mark) = marked_command("exec python3 bomb.py");
        let bomb = tokio::spawn({
            let sandbox = sandbox.clone();
            async move { sandbox.exec(&request).await }
        });
        if form.lacks("processes are watched") {
            wait_until("the end of the sandbox", || sandbox.is_over()).await;
        } else {
            wait_until("a full sandbox", || processes_with(&mark).len() as u64 >= limits().processes - 2).await;
            // Another command may not get a process, but always gets an answer.
            assert!(run(&sandbox, "echo alive").await.exit_code.is_some());
            let count = processes_with(&mark).len() as u64;
            assert!(count <= limits().processes + 5, "{count}");
        }
        assert_eq!(stdout_of(&neighbor, "echo alive").await, "alive");
        sandbox.end().await;
        assert_eq!(bomb.await.unwrap(), Err(IsolationError::Gone));
        assert_eq!(processes_with(&mark), [0; 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_fork_bomb() {
    each_form_alone(|form| async move {
        let sandbox = form.sandbox().await;
        let (mut request, mark) =
            marked_command("bomb() { bomb | bomb & }; bomb; while :; do (setsid true &) ; done");
        request.timeout = std::time::Duration::from_millis(500);
        match sandbox.exec(&request).await {
            Ok(output) => assert_eq!(output.exit_code, None),
            // The sandbox was ended for the attack.
            Err(error) => {
                assert_eq!(error, IsolationError::Gone);
                assert!(form.lacks("processes are watched") || form.lacks("more than 32 sessions"));
            }
        }
        sandbox.end().await;
        assert_eq!(processes_with(&mark), [0; 0]);
    })
    .await;
}

/// Allocates memory and prints how much, in MiB.
const HOG: &str = "import time\nheld = []\nfor n in range(1, 65):\n held.append(b'x' * (16 << 20))\n print(n * 16, flush=True)\n";

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_one_process() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        sandbox.write("hog.py", HOG.as_bytes()).await.unwrap();
        let output = run(&sandbox, "exec python3 hog.py").await;
        assert_ne!(output.exit_code, Some(0));
        let most: u64 = text(&output.stdout).lines().last().map_or(0, |line| line.parse().unwrap());
        assert!(most > 0 && most << 20 <= limits().memory_bytes, "{most} MiB");
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_many_processes() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let hold = "held = b'x' * (64 << 20); open('held-%d' % __import__('os').getpid(), 'w'); import time; time.sleep(100000)";
        let (request, mark) = marked_command(&format!(
            "for i in $(seq 10); do setsid python3 -c \"{hold}\" >/dev/null 2>&1 & wait_for=$!; \
             until [ -e held-$wait_for ] || ! kill -0 $wait_for 2>/dev/null; do sleep 0.02; done; done; sleep 0.5"
        ));
        // The waiting shell may be killed as well.
        let _ = sandbox.exec(&request).await.unwrap();
        let holding = || {
            let resident = |pid: &u32| {
                let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
                let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
                pages * 4_096
            };
            processes_with(&mark).iter().map(resident).sum::<u64>()
        };
        // The test counts shared pages of programs once per process, the guard counts them once.
        let shared = 48 << 20;
        wait_until("memory below the limit", || holding() <= limits().memory_bytes + shared).await;
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
    })
    .await;
}

/// The guard must measure at least as fast as programs allocate memory: it has priority over them, if necessary by
/// lowering theirs.
#[tokio::test(flavor = "multi_thread")]
async fn the_guard_of_memory_has_priority_over_many_processes() {
    let nice = |arguments: &[&str]| {
        let stdout = std::process::Command::new("nice").args(arguments).output().unwrap().stdout;
        text(&stdout).trim().parse::<i32>().unwrap()
    };
    let own = nice(&[]);
    let may_raise = nice(&["-n", "-40", "nice"]) < own;
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let yields = form.lacks("cannot create a memory cgroup") && !may_raise;
        assert_eq!(form.lacks("priority of programs is lowered"), yields);
        let few = match yields {
            false => own,
            // There the guard has another uid, and can't lower it later.
            true if form.is_confined() && is_root() => 19,
            true => own.max(10),
        };
        assert_eq!(stdout_of(&sandbox, "nice").await, few.to_string());
        let many = if yields { 19 } else { own };
        let command = format!(
            "for i in $(seq 20); do sleep 1000 & done; for i in $(seq 5000); do nice=$(nice); \
             [ $nice = {many} ] && break; sleep 0.02; done; kill $(jobs -p); echo $nice"
        );
        assert_eq!(stdout_of(&sandbox, &command).await, many.to_string());
    })
    .await;
}

/// If the kernel shares processors by session, programs in many sessions could delay the guard's measurements. The guard
/// ends such a sandbox in time.
#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_beside_a_guard_that_cannot_raise_its_priority() {
    let by_session = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
        .is_ok_and(|enabled| enabled.trim() == "1");
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let start = |count: u32| format!("for i in $(seq {count}); do setsid sleep 100000 & done");
        assert_eq!(stdout_of(&sandbox, &format!("{}; sleep 0.5; echo over", start(20))).await, "over");
        if form.lacks("more than 32 sessions") && by_session {
            let (request, mark) = marked_command(&format!("{}; sleep 100000", start(20)));
            assert_eq!(sandbox.exec(&request).await.unwrap_err(), IsolationError::Gone);
            wait_until("all ended", || processes_with(&mark).is_empty()).await;
        } else {
            assert_eq!(stdout_of(&sandbox, &format!("{}; sleep 0.5; echo over", start(20))).await, "over");
        }
    })
    .await;
}

/// Helpers for programs that exceed limits: child processes that take a share each, so that none reaches a limit of one
/// process.
const TAKERS: &str = r#"
import fcntl, mmap
GOAL, STEP = 512 << 20, 4 << 20
kept = []
def shared(count, take):
    "Runs take() in this number of children, and stays until one of them is killed."
    for number in range(count):
        if os.fork() == 0:
            try:
                take(number)
            except (OSError, MemoryError) as error:
                print("refused", error, flush=True)
                os._exit(0)
            time.sleep(100000)
    while True:
        _, status = os.wait()
        if os.WIFSIGNALED(status):
            sys.exit("killed")
        count -= 1
        if count == 0:
            sys.exit("refused")
def fill(end):
    end.setblocking(False)
    try:
        while True:
            end.send(bytes(64 << 10))
    except BlockingIOError:
        pass
"#;

/// Memory that belongs to no process, or that no process has mapped. Each program takes twice the limit, or is refused
/// before.
const WAYS_TO_TAKE_MEMORY: [(&str, &str); 8] = [
    (
        "files without a name",
        "def take(number):\n fd = os.memfd_create('x')\n for n in range(12): os.write(fd, bytes(STEP))\nshared(12, take)",
    ),
    (
        "segments",
        "libc.shmat.restype = ctypes.c_long\ndef take(number):\n for n in range(12):\n  \
         at = libc.shmat(libc.shmget(0, STEP, 0o1600), None, 0)\n  if at == -1: raise OSError('no segment')\n  \
         ctypes.memset(at, 1, STEP)\nshared(12, take)",
    ),
    (
        "shared memory that nothing maps any more",
        "def take(number):\n for n in range(12):\n  part = mmap.mmap(-1, STEP)\n  part.write(b'x' * STEP)\n  \
         part.madvise(mmap.MADV_DONTNEED)\n  kept.append(part)\nshared(12, take)",
    ),
    (
        "zeros that are shared",
        "def take(number):\n for n in range(12):\n  fd = os.open('/dev/zero', os.O_RDWR)\n  part = mmap.mmap(fd, STEP)\n  \
         part.write(b'x' * STEP)\n  part.madvise(mmap.MADV_DONTNEED)\n  kept.append(part)\nshared(12, take)",
    ),
    (
        "buffers of sockets",
        "def take(number):\n for n in range(100):\n  pair = socket.socketpair()\n  kept.extend(pair)\n  for end in pair: fill(end)\n\
         shared(14, take)",
    ),
    (
        "shared memory",
        "def take(number):\n part = mmap.mmap(-1, 44 << 20)\n part.write(b'x' * (44 << 20))\n kept.append(part)\nshared(12, take)",
    ),
    (
        "mappings",
        // Alternating kinds, since the kernel merges equal neighbors.
        "def take(number):\n libc.mmap.restype = ctypes.c_void_p\n libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, \
         ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n for n in range(50000): libc.mmap(None, 4096, 1 + 2 * (n % 2), 34, -1, 0)\n\
         shared(40, take)",
    ),
    (
        "files that are waited for",
        // Each file is open under many numbers, since reusing a number doesn't remove the file from the epoll set.
        "import select\ndef take(number):\n polls = [select.epoll() for n in range(60)]\n files = [os.eventfd(0) for n in range(60)]\n \
         kept.extend(polls)\n for n in range(150, 210):\n  for file in files:\n   os.dup2(file, n)\n   \
         for poll in polls: poll.register(n, select.EPOLLIN)\nshared(14, take)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn memory_outside_of_processes() {
    each_form(|form| async move {
        for (way, program) in WAYS_TO_TAKE_MEMORY {
            println!("{}: {way}", form.description().name);
            let sandbox = form.sandbox().await;
            sandbox.write("take.py", format!("{PRELUDE}{TAKERS}{program}").as_bytes()).await.unwrap();
            // The program keeps its memory until it is killed, or the sandbox is ended; otherwise this waits forever.
            match sandbox.exec(&exec("exec python3 take.py")).await {
                Ok(output) => {
                    let said = text(&output.stderr);
                    let code = output.exit_code;
                    assert!(
                        code == Some(137) || said.ends_with("killed\n") || said.ends_with("refused\n"),
                        "{}: {way}: {code:?} {said}",
                        form.description().name
                    );
                }
                Err(error) => assert_eq!(error, IsolationError::Gone, "{way}"),
            }
        }
    })
    .await;
}

/// Takes locks on parts of files, whose records no limit of the kernel counts. Starts at the end, since the kernel
/// keeps them in order.
const LOCKS: &str = "import fcntl, threading\ndef take(number):\n for n in range(100):\n  \
    fd = os.open(f'{number}-{n}', os.O_CREAT | os.O_RDWR)\n  kept.append(fd)\n  \
    for at in range(2000, 0, -1): fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * at)\n";

/// Ways to hold locks, each in several processes.
const WAYS_TO_HOLD_LOCKS: [(&str, &str); 3] = [
    ("open", "shared(14, take)"),
    // Hides the process where that is permitted.
    ("hidden", "libc.prctl(4, 0, 0, 0, 0)\nshared(14, take)"),
    (
        "in a thread whose process' first is over",
        "def start(number):\n threading.Thread(target=lambda: (take(number), time.sleep(100000))).start()\n \
         libc.syscall(60 if platform.machine() == 'x86_64' else 93, 0)\nshared(14, start)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn locks_on_parts_of_files_are_limited() {
    each_form(|form| async move {
        for (way, program) in WAYS_TO_HOLD_LOCKS {
            let sandbox = form.sandbox().await;
            sandbox.write("take.py", format!("{PRELUDE}{TAKERS}{LOCKS}{program}").as_bytes()).await.unwrap();
            let outcome = sandbox.exec(&exec("exec python3 take.py")).await;
            assert_eq!(outcome, Err(IsolationError::Gone), "{}: {way}", form.description().name);
            sandbox.end().await;
            let limit = sandbox.over_limit().unwrap_or_default();
            assert!(limit.contains("locks on parts of files"), "{}: {way}: {limit}", form.description().name);
        }
    })
    .await;
}

/// Locks of open files persist even if only a mapping or a socket's buffer holds the file.
#[tokio::test(flavor = "multi_thread")]
async fn locks_of_open_files_are_refused() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = "import fcntl\nfd = os.open('locked', os.O_CREAT | os.O_RDWR)\n\
                       for kind in (37, 38): refused(f'kind {kind}', lambda: fcntl.fcntl(fd, kind, struct.pack('hhqqi4x', 1, 0, 0, 1, 0)))";
        form.attack(&sandbox, program, &["kind 37 [Errno 22]", "kind 38 [Errno 22]"]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_can_lock_their_files() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // Two connections in each journal mode, for the time of a few scans; then locks as HDF5 takes them.
        let program = "import fcntl, sqlite3, time\n\
                       for mode in ('delete', 'wal'):\n one = sqlite3.connect(f'{mode}.db', timeout=100)\n \
                       other = sqlite3.connect(f'{mode}.db', timeout=0)\n one.execute(f'pragma journal_mode={mode}')\n \
                       one.execute('create table t (x)')\n one.commit()\n one.execute('begin immediate')\n \
                       one.execute('insert into t values (1)')\n\
                       \x20try:\n  other.execute('begin immediate')\n  raise SystemExit('it is not locked')\n\
                       \x20except sqlite3.OperationalError as error:\n  assert 'locked' in str(error), error\n \
                       time.sleep(1)\n one.commit()\n assert other.execute('select count(*) from t').fetchone() == (1,)\n\
                       kept = [open(f'{n}.h5', 'w') for n in range(100)]\n\
                       for file in kept: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
                       for at in range(10000): fcntl.lockf(kept[0], fcntl.LOCK_EX, 1, 2 * at)\n\
                       time.sleep(2)\nprint('alive')";
        sandbox.write("databases.py", program.as_bytes()).await.unwrap();
        assert_eq!(stdout_of(&sandbox, "python3 databases.py").await, "alive");
    })
    .await;
}

/// A Landlock ruleset accepts 65,536 rules for ports: 5 MB that are not visible in any process.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_memory_cgroup_rules_for_ports_are_refused() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = "ruleset = libc.syscall(444, struct.pack('QQ', 0, 3), 16, 0)\nassert ruleset >= 0\n\
                       print(libc.syscall(445, ruleset, 2, struct.pack('QQ', 1, 80), 0))";
        sandbox.write("rules.py", format!("{PRELUDE}{program}").as_bytes()).await.unwrap();
        let mut request = exec("python3 rules.py");
        request.env.insert(ALLOW_LANDLOCK.to_owned(), "1".to_owned());
        let output = sandbox.exec(&request).await.unwrap();
        assert_eq!(
            text(&output.stdout).trim(),
            if form.has("memory cgroup") { "0" } else { "-1" },
            "{output:?}"
        );
    })
    .await;
}

/// Restricts itself, then prints whether a write outside of its rules fails, or the failed call with its error.
const RESTRICT: &str = r#"
def restrict():
    ruleset = libc.syscall(444, struct.pack("Q", 2), 8, 0)
    if ruleset < 0:
        return "create_ruleset %d" % ctypes.get_errno()
    rule = struct.pack("=Qi", 2, os.open("allowed", os.O_PATH))
    if libc.syscall(445, ruleset, 1, rule, 0):
        return "add_rule %d" % ctypes.get_errno()
    if libc.syscall(446, ruleset, 0):
        return "restrict_self %d" % ctypes.get_errno()
    open("allowed/file", "w").close()
    try:
        open("file", "w").close()
    except PermissionError:
        return "restricted"
    return "not restricted"
os.makedirs("allowed", exist_ok=True)
libc.prctl(38, 1, 0, 0, 0)
print(restrict())
"#;

/// Without a ruleset, the other two calls must be refused by number as well.
const OTHER_CALLS: &str =
    "for number in (445, 446):\n libc.syscall(number, -1, 1, None, 0)\n print(ctypes.get_errno())\n";

/// An open file keeps the Landlock domain of the process that opened it, with a copy of all its rules: 200 domains with
/// 20,000 rules each take 262 MB that the guard can't see.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_memory_cgroup_only_permitted_commands_have_landlock() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        sandbox.write("restrict.py", format!("{PRELUDE}{RESTRICT}").as_bytes()).await.unwrap();
        sandbox.write("calls.py", format!("{PRELUDE}{OTHER_CALLS}").as_bytes()).await.unwrap();
        let is_counted = form.has("memory cgroup");
        let refused = if is_counted { "restricted" } else { "create_ruleset 38" };
        for command in ["python3 restrict.py", "SANDY_ALLOW_LANDLOCK=1 setsid -w python3 restrict.py"] {
            assert_eq!(stdout_of(&sandbox, command).await, refused, "{}: {command}", form.description().name);
        }
        if !is_counted {
            assert_eq!(
                stdout_of(&sandbox, "python3 calls.py").await,
                "38\n38",
                "{}",
                form.description().name
            );
        }
        for (value, expected) in [("1", "restricted"), ("0", refused), ("", refused)] {
            let mut request = exec("python3 restrict.py");
            request.env.insert(ALLOW_LANDLOCK.to_owned(), value.to_owned());
            let output = sandbox.exec(&request).await.unwrap();
            assert_eq!(
                text(&output.stdout).trim(),
                expected,
                "{}: {value}: {output:?}",
                form.description().name
            );
        }
        // The permission of one command doesn't apply to the next.
        assert_eq!(stdout_of(&sandbox, "python3 restrict.py").await, refused, "{}", form.description().name);
    })
    .await;
}

/// A seccomp listener keeps the filters of a thread that has ended: 300 listeners take 379 MB that the guard can't see.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_memory_cgroup_seccomp_listeners_are_refused() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let program = r#"
code = struct.pack("=HBBI", 6, 0, 0, 0x7fff0000)
held = ctypes.create_string_buffer(code, len(code))
described = struct.pack("@HP", 1, ctypes.addressof(held))
libc.prctl(38, 1, 0, 0, 0)
seccomp = 317 if platform.machine() == "x86_64" else 277
print(*(libc.syscall(seccomp, 1, flags, described) >= 0 for flags in (0, 8, 9)))
"#;
        sandbox.write("listen.py", format!("{PRELUDE}{program}").as_bytes()).await.unwrap();
        let said = stdout_of(&sandbox, "python3 listen.py").await;
        if form.has("memory cgroup") {
            assert!(said.starts_with("True True"), "{said}");
        } else {
            assert_eq!(said, "True False False", "{}", form.description().name);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_processes_and_files_together() {
    each_form(|form| async move {
        if form.is_confined() {
            // In this form, files are on the disk.
            return;
        }
        let sandbox = form.sandbox().await;
        // Each file system stays below its own limit.
        let fill = "for folder in /workspace /tmp /dev/shm; do head -c 23M /dev/zero > $folder/full; done; wc -c < /dev/shm/full; ";
        let program = "def take(number):\n kept.append(b'x' * (20 << 20))\nshared(10, take)";
        sandbox.write("take.py", format!("{PRELUDE}{TAKERS}{program}").as_bytes()).await.unwrap();
        let output = run(&sandbox, &format!("{fill} exec python3 take.py")).await;
        assert!(text(&output.stdout).starts_with(&(23 << 20).to_string()), "{output:?}");
        assert!(output.exit_code == Some(137) || text(&output.stderr).ends_with("killed\n"), "{output:?}");
        assert_eq!(stdout_of(&sandbox, "rm /tmp/full /dev/shm/full; echo alive").await, "alive");
    })
    .await;
}

/// Ways to hold deleted files that together exceed the folder's limit.
const WAYS_TO_HOLD_FILES: [(&str, &str); 5] = [
    ("open", "hold = kept.append"),
    // Holds only one mapped page of each.
    ("mapped", "def hold(fd):\n kept.append(mmap.mmap(fd, 4096))\n os.close(fd)\n"),
    (
        "on their way",
        "def hold(fd):\n here, there = socket.socketpair()\n socket.send_fds(here, [b'x'], [fd])\n here.close()\n os.close(fd)\n kept.append(there)\n",
    ),
    // Holds them in a process that can't be inspected.
    ("hidden", "libc.prctl(4, 0, 0, 0, 0)\nhold = kept.append"),
    (
        "in a program that nobody may read",
        "def hold(fd):\n os.set_inheritable(fd, True)\n kept.append(fd)\n\
         def stay():\n data = open('/usr/bin/sleep', 'rb').read()\n fd = os.open('sleep', os.O_CREAT | os.O_WRONLY, 0o111)\n \
         os.write(fd, data)\n os.close(fd)\n os.execv('./sleep', ['sleep', '100000'])\n",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn deleted_files_count_as_disk_usage() {
    each_form(|form| async move {
        for (way, hold) in WAYS_TO_HOLD_FILES {
            let sandbox = form.sandbox().await;
            let program = format!(
                "{PRELUDE}import mmap\nkept = []\ndef stay():\n time.sleep(100000)\n{hold}\nfor n in range(20):\n \
                 fd = os.open('deleted', os.O_CREAT | os.O_RDWR, 0o600)\n os.unlink('deleted')\n \
                 os.write(fd, bytes(4 << 20)) == 4 << 20 or sys.exit(28)\n hold(fd)\nstay()\n"
            );
            sandbox.write("hold.py", program.as_bytes()).await.unwrap();
            match sandbox.exec(&exec("exec python3 hold.py")).await {
                // The file system is full.
                Ok(output) => {
                    let said = text(&output.stderr);
                    let is_full = output.exit_code == Some(28) || said.contains("No space left");
                    assert!(is_full && !form.is_confined(), "{}: {way}: {:?} {said}", form.description().name, output.exit_code);
                }
                Err(error) => assert!(error == IsolationError::Gone && form.is_confined(), "{way}: {error}"),
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_files_within_the_limit_are_permitted() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        // Ordinary uses: temporary files, and a program and a mapping that were replaced while in use.
        let program = "import mmap, os, shutil, tempfile, time\nkept = [tempfile.TemporaryFile() for _ in range(20)]\n\
                       for file in kept: file.write(bytes(100 << 10)); file.flush()\n\
                       fd = os.open('mapped', os.O_CREAT | os.O_RDWR)\nos.write(fd, bytes(1 << 20))\npart = mmap.mmap(fd, 1 << 20)\n\
                       os.close(fd)\nos.unlink('mapped')\n\
                       fd = os.open('sleep', os.O_CREAT | os.O_WRONLY, 0o755)\nos.write(fd, open('/usr/bin/sleep', 'rb').read())\n\
                       os.close(fd)\nif os.fork() == 0: os.execv('./sleep', ['sleep', '100000'])\n\
                       time.sleep(1)\nos.unlink('sleep')\ntime.sleep(4)\nprint('alive')";
        sandbox.write("keep.py", program.as_bytes()).await.unwrap();
        assert_eq!(stdout_of(&sandbox, "timeout 200 python3 keep.py; kill %1 2>/dev/null; true").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk() {
    each_form(|form| async move {
        for folder in ["$HOME", "$TMPDIR"] {
            let sandbox = form.sandbox().await;
            let fill = format!(
                "cd {folder}; for i in $(seq 96); do head -c 1M /dev/zero > f$i 2>/dev/null || break; done; du -sm . | cut -f1"
            );
            if form.is_confined() {
                // The guard ends the sandbox when it is too full.
                let outcome = sandbox.exec(&exec(&format!("{fill}; sleep 100000"))).await;
                assert_eq!(outcome, Err(IsolationError::Gone));
                wait_until("the end", || sandbox.is_over()).await;
            } else {
                let megabytes: u64 = stdout_of(&sandbox, &fill).await.parse().unwrap();
                assert!((1..=limits().disk_bytes >> 20).contains(&megabytes), "{folder}: {megabytes} MB");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_by_one_large_file_or_many_small_files() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        match sandbox.exec(&exec("head -c 1G /dev/zero > large; stat -c %s large")).await {
            Ok(output) => {
                let bytes: u64 = text(&output.stdout).trim().parse().unwrap();
                assert!(bytes <= limits().disk_bytes, "{bytes}");
            }
            // The file and its folder together exceed the limit of the folder.
            Err(error) => assert!(error == IsolationError::Gone && form.is_confined(), "{error}"),
        }

        let sandbox = form.sandbox().await;
        let program = "n = 0\ntry:\n for n in range(40000):\n  open('e%d' % n, 'w').close()\nexcept OSError:\n pass\nprint(n)";
        sandbox.write("many.py", program.as_bytes()).await.unwrap();
        let outcome = sandbox.exec(&exec("python3 many.py; [ $SANDY_ISOLATION = namespaces ] || sleep 100000")).await;
        if form.is_confined() {
            assert_eq!(outcome, Err(IsolationError::Gone));
        } else {
            let made: u64 = text(&outcome.unwrap().stdout).trim().parse().unwrap();
            assert!(made * 4_096 <= limits().disk_bytes, "{made}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let mut request = exec("yes; true");
        request.timeout = std::time::Duration::from_secs(4);
        request.output_bytes_max = 4_096;
        let output = sandbox.exec(&request).await.unwrap();
        assert_eq!((output.stdout.len(), output.exit_code), (4_096, None));
        assert!(output.dropped_bytes > 0);

        // Background processes write into the pipes of a command that has ended.
        let mut request = exec("setsid yes & setsid yes >&2 & echo over");
        request.output_bytes_max = 4_096;
        assert_eq!(sandbox.exec(&request).await.unwrap().exit_code, Some(0));
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_commands_and_variables() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let fits = format!(": {}; echo fits", "x".repeat(100_000));
        assert_eq!(stdout_of(&sandbox, &fits).await, "fits");
        let long = run(&sandbox, &format!(": {}", "x".repeat(4 << 20))).await;
        assert_eq!(long.exit_code, Some(126));
        let mut request = exec("echo");
        request.env = (0..200).map(|number| (format!("V{number}"), "x".repeat(100_000))).collect();
        assert_eq!(sandbox.exec(&request).await.unwrap().exit_code, Some(126));
        for command in ["echo \0", "\0"] {
            assert_eq!(run(&sandbox, command).await.exit_code, Some(126));
        }
        // The long argument is created inside.
        assert_ne!(
            run(&sandbox, "/bin/echo $(head -c 4000000 /dev/zero | tr '\\0' x)").await.exit_code,
            Some(0)
        );
        assert_eq!(stdout_of(&sandbox, "echo alive").await, "alive");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_open_files_and_threads() {
    each_form(|form| async move {
        let sandbox = form.sandbox_with_limits(&Limits { open_files: 64, ..limits() }).await;
        let files = "n = 0\nheld = []\ntry:\n while n < 1000:\n  held.append(open('/dev/null')); n += 1\nexcept OSError:\n pass\nprint(n)";
        sandbox.write("files.py", files.as_bytes()).await.unwrap();
        let opened: u64 = stdout_of(&sandbox, "python3 files.py").await.parse().unwrap();
        assert!((32..64).contains(&opened), "{opened}");
        assert_ne!(run(&sandbox, "ulimit -n 1000").await.exit_code, Some(0));

        let threads = "import threading\nn = 0\ngo = threading.Event()\ntry:\n while n < 400:\n  \
                       threading.Thread(target=go.wait, daemon=True).start(); n += 1\nexcept RuntimeError:\n pass\nprint(n, flush=True)\n\
                       import os, time; time.sleep(0.0 if n < 40 else HOLD); os._exit(0)";
        if form.lacks("processes are watched") {
            sandbox.write("threads.py", threads.replace("HOLD", "100000").as_bytes()).await.unwrap();
            let outcome = sandbox.exec(&exec("ulimit -v unlimited 2>/dev/null; python3 threads.py")).await;
            // The sandbox was ended, or couldn't start many threads, since each thread's stack is reserved from the
            // memory limit.
            assert!(outcome.is_err() || text(&outcome.unwrap().stdout).trim().parse::<u64>().unwrap() < 60);
            return;
        }
        sandbox.write("threads.py", threads.replace("HOLD", "0").as_bytes()).await.unwrap();
        let started: u64 = stdout_of(&sandbox, "python3 threads.py").await.parse().unwrap();
        // Without a memory cgroup, each thread's stack is reserved from the memory limit.
        let fewest = if form.has("memory cgroup") { 16 } else { 2 };
        assert!((fewest..=limits().processes + 5).contains(&started), "{started}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_outlives_its_command() {
    each_form(|form| async move {
        let sandbox = form.sandbox().await;
        let daemon = "import os, sys, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n\
                      for fd in range(256):\n try: os.close(fd)\n except OSError: pass\n\
                      open('daemon', 'w')\nwhile True: time.sleep(1)";
        sandbox.write("daemon.py", daemon.as_bytes()).await.unwrap();
        let (mut request, mark) = marked_command("python3 daemon.py; until [ -e daemon ]; do sleep 0.01; done; trap '' TERM HUP INT; sleep 100000");
        request.timeout = std::time::Duration::from_millis(1_500);
        assert_eq!(sandbox.exec(&request).await.unwrap().exit_code, None);
        sandbox.end().await;
        assert_eq!(processes_with(&mark), [0; 0]);
        assert!(request.timeout < LONG);
    })
    .await;
}
