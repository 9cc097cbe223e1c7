//! Hostile jobs. Each ends in a named way, and the client neither follows nor waits for what they leave.

use std::fs;
use std::time::Duration;

use bench_domain::{HarvestedFile, JobEnd, JobSpec};
use bench_sandy::ExecRequest;
use bench_sandy::job;
use bench_sandy::testing::Options;

use crate::support::{OUTSIDE, World, file, result, spec};

/// Kills the wrapper, which is the script's parent, and makes it look long dead.
const WITHOUT_WRAPPER: &str = "outside \"kill -9 $PPID\"; sleep 0.1; touch -d '1 hour ago' beat lock;";

#[tokio::test]
async fn a_flood_of_output_is_read_and_only_its_end_is_kept() {
    let world = World::new().await;
    let report =
        world.run(&spec("head -c 1000000000 /dev/zero; echo the end; yes | head -c 100000000 >&2")).await;
    assert_eq!(report.end, JobEnd::Exited(0));
    assert!(report.stdout_tail.starts_with('\0') && report.stdout_tail.ends_with("the end\n"));
    assert_eq!((report.stdout_tail.len(), report.stderr_tail.len()), (8 << 10, 8 << 10));
    for name in ["out", "err"] {
        let bytes = fs::metadata(world.file(name)).unwrap().len();
        assert!(bytes <= 1 << 20, "{name} has {bytes} bytes");
    }
}

#[tokio::test]
async fn invalid_utf8_is_replaced() {
    let world = World::new().await;
    let spec =
        JobSpec { results: vec![result("r", 100)], ..spec("printf 'a\\0\\377b'; printf '\\303(\\0' > r") };
    let report = world.run(&spec).await;
    assert_eq!((report.stdout_tail.as_str(), report.text("r")), ("a\0\u{fffd}b", Some("\u{fffd}(\0")));
}

#[tokio::test]
async fn a_job_without_its_wrapper_has_vanished_whatever_it_fakes() {
    for pretended in [
        "true",
        "ln -s /etc/passwd rc",
        "mkfifo rc",
        "mkdir rc",
        "head -c 100000 /dev/urandom > rc",
        "echo exited 0 > rc",
        "printf 'exited 999 1\\n' > rc",
        "truncate -s 1T rc",
        "echo '1 1 1' > pid",
        "echo \"$$ 1 1\" > pid",
        "rm pid; mkfifo pid",
        "rm beat; mkfifo beat; touch -d '1 hour ago' beat",
        "rm beat; ln -s /dev/zero beat",
        "touch -d '2099-01-01' beat",
        "rmdir lock; touch -d '1 hour ago' lock",
        "rmdir lock; mkfifo lock; touch -d '1 hour ago' lock",
        "rm out err; ln -s /etc/passwd out; mkfifo err",
        "chmod 000 . rc pid beat",
    ] {
        let world = World::new().await;
        let report = world.run(&spec(&format!("{OUTSIDE} {WITHOUT_WRAPPER} {pretended}; exit 0"))).await;
        assert_eq!(report.end, JobEnd::Vanished, "{pretended}");
        assert!(!report.stdout_tail.contains("root:"), "{pretended}");
    }
}

#[tokio::test]
async fn processes_of_a_job_without_its_wrapper_can_be_stopped() {
    let world = World::new().await;
    let spec = spec(&format!("{OUTSIDE} {WITHOUT_WRAPPER} sleep 1000 & touch done; wait"));
    world.upload(&spec).await;
    world.start(&spec).await;
    world.wait_for_file("done").await;
    assert_eq!(world.end().await, JobEnd::Vanished);
    assert!(!world.processes().is_empty());
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    assert_eq!(world.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_wrapper_replaces_fake_records() {
    for pretended in [
        "ln -s /etc/passwd rc; ln -sf /etc/passwd rc.tmp",
        "mkfifo rc rc.x; mv rc.x rc.tmp",
        "mkdir rc; touch rc/x; rm rc.tmp; mkdir rc.tmp",
        "echo 'exited 0 1' > rc",
        "rm -f rc.tmp",
        "echo '1 1 1' > pid",
        "rm pid beat; mkfifo pid beat",
        "rm out err; mkfifo out err",
        "rmdir lock; echo > lock",
        "rm -rf \"$PWD\"",
        "rm -rf ../../jobs",
        "rm -rf \"$PWD\"; ln -s /etc \"$PWD\"",
        "mv \"$PWD\" \"$PWD-moved\"",
        "chmod 000 .",
    ] {
        let world = World::new().await;
        let report = world.run(&spec(&format!("here=$PWD; {pretended}; sleep 0.2; exit 7"))).await;
        assert_eq!((report.end, world.processes()), (JobEnd::Exited(7), Vec::new()), "{pretended}");
    }
}

#[tokio::test]
async fn daemons_end_with_their_job() {
    for script in [
        "setsid sleep 1000 & exit 0",
        "(setsid bash -c 'trap \"\" TERM HUP; sleep 1000 & exec env -i setsid sleep 1000' &) ; exit 0",
        "for n in 1 2 3 4 5 6 7 8; do (setsid sleep 1000 >/dev/null 2>&1 &); done",
    ] {
        let world = World::new().await;
        let report = world.run(&spec(script)).await;
        assert_eq!((report.end, world.processes()), (JobEnd::Exited(0), Vec::new()), "{script}");
    }
}

/// A time limit that no test reaches.
const NEVER: Duration = Duration::from_secs(6 * 3_600);

/// Returns a job that stops its wrapper, the script's parent, and keeps running.
fn halting(again: &str) -> JobSpec {
    let script = format!(
        "{OUTSIDE} echo x > r; outside \"kill -STOP $PPID\"; touch done; trap '' TERM; while :; do {again} sleep 0.1; done"
    );
    JobSpec { time_limit: NEVER, results: vec![result("r", 10)], ..spec(&script) }
}

#[tokio::test]
async fn a_job_with_a_halted_wrapper_can_be_stopped() {
    let world = World::new().await;
    let spec = halting("");
    world.upload(&spec).await;
    world.start(&spec).await;
    world.wait_for_file("done").await;
    assert!(job::overdue(spec.time_limit) > spec.time_limit);
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    let report = world.harvest(&spec, JobEnd::TimedOut).await;
    assert_eq!((report.text("r"), world.processes()), (Some("x\n"), Vec::new()));
}

#[tokio::test]
async fn a_job_that_halts_its_wrapper_ends_at_a_poll() {
    for again in ["", "outside \"kill -STOP $PPID\";"] {
        let world = World::new().await;
        let spec = halting(again);
        world.upload(&spec).await;
        world.start(&spec).await;
        world.wait_for_file("done").await;
        // On a busy machine, the signal takes effect a little later.
        assert_eq!(world.end().await, JobEnd::Halted, "{again}");
        let report = world.harvest(&spec, JobEnd::Halted).await;
        assert_eq!((report.text("r"), world.processes()), (Some("x\n"), Vec::new()), "{again}");
        // A repeated poll gives the same answer if the wrapper could record it.
        let end = world.end().await;
        assert!(end == JobEnd::Halted || (end == JobEnd::Vanished && !again.is_empty()), "{again}: {end:?}");
    }
}

/// Every way for a program of the same user to stop or slow down its job's wrapper. (Signal 0 does nothing, but is
/// refused to programs that may not send signals.)
const ATTACK_ON_WRAPPER: &str = r#"
import ctypes, fcntl, os, resource, signal, socket, struct, sys
libc, wrapper = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
group = os.getpgid(wrapper)
def own(kind):
    here, there = socket.socketpair()
    kind(here)
def trace():
    if libc.ptrace(16, wrapper, 0, 0) == -1:
        raise OSError("refused")
def ways():
    for number in (0, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        yield "kill", lambda: os.kill(wrapper, number)
        yield "group", lambda: os.killpg(group, number)
        yield "pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(wrapper), number)
    yield "everybody", lambda: os.kill(-1, 0)
    yield "priority", lambda: os.setpriority(os.PRIO_PROCESS, wrapper, 19)
    yield "priority of its group", lambda: os.setpriority(os.PRIO_PGRP, group, 19)
    yield "priority of its user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19)
    yield "scheduler", lambda: os.sched_setscheduler(wrapper, os.SCHED_IDLE, os.sched_param(0))
    yield "processors", lambda: os.sched_setaffinity(wrapper, {0})
    yield "limit", lambda: resource.prlimit(wrapper, resource.RLIMIT_CPU, (0, 0))
    yield "memory", lambda: open("/proc/%d/mem" % wrapper, "r+b")
    yield "owner", lambda: own(lambda end: fcntl.fcntl(end, fcntl.F_SETOWN, wrapper))
    yield "owner by request", lambda: own(lambda end: fcntl.ioctl(end, 0x8901, struct.pack("i", wrapper)))
    yield "owner by kind", lambda: own(lambda end: fcntl.fcntl(end, 15, struct.pack("2i", 1, wrapper)))
    yield "trace", trace
done = []
for name, way in ways():
    try:
        way()
        done.append(name)
    except OSError:
        pass
# It may affect itself, its children and its group.
child = os.fork()
if child == 0:
    signal.pause()
os.setpriority(os.PRIO_PROCESS, 0, 5)
fcntl.fcntl(socket.socketpair()[0], fcntl.F_SETOWN, os.getpid())
os.kill(child, signal.SIGSTOP)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(done)
"#;

#[tokio::test]
async fn a_job_can_neither_end_nor_slow_down_its_wrapper() {
    let world = World::new().await;
    let files = vec![file("attack.py", ATTACK_ON_WRAPPER)];
    let report = world.run(&JobSpec { files, ..spec("python3 -I attack.py $PPID; exit 5") }).await;
    assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(5), "[]\n"), "{report:?}");
}

#[tokio::test]
async fn a_program_that_halts_its_supervisor_ends_its_job() {
    // As with a grader's supervisor and its program: the program is the child, and keeps working.
    for program in [
        "import os, signal\nif os.fork(): os.wait()\nos.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass",
        // Continues it from time to time, briefly.
        "import os, signal, time\nif os.fork(): os.wait()\nwhile True:\n os.kill(os.getppid(), signal.SIGSTOP); \
         time.sleep(0.4); os.kill(os.getppid(), signal.SIGCONT)",
    ] {
        let world = World::new().await;
        let script = format!("echo x > r; exec python3 -c '{program}'");
        let spec = JobSpec { time_limit: NEVER, results: vec![result("r", 10)], ..spec(&script) };
        let report = world.run(&spec).await;
        assert_eq!((report.end, report.text("r")), (JobEnd::Halted, Some("x\n")), "{program}");
        assert_eq!(world.processes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_program_may_halt_its_own_children_for_a_while() {
    let world = World::new().await;
    let script = "sleep 1000 & kill -STOP $!; sleep 0.5; kill -CONT $!; kill $!; wait; exit 3";
    assert_eq!(world.run(&spec(script)).await.end, JobEnd::Exited(3));
}

#[tokio::test]
async fn only_regular_result_files_are_read() {
    let world = World::new().await;
    let names =
        ["link", "fifo", "dir", "below/passwd", "below-link/passwd", "huge", "self", "secret", "dot", "good"];
    let spec = JobSpec {
        results: names.iter().map(|name| result(name, 1_000)).collect(),
        ..spec(
            "ln -s /etc/passwd link; mkfifo fifo; mkdir dir; mkdir below; ln /etc/hostname below/x\n\
             ln -s /etc below-link; truncate -s 1T huge; ln -s self self; echo no > secret; chmod 000 secret\n\
             ln -s good dot; echo yes > good",
        )
    };
    let report = world.run(&spec).await;
    let found = |name: &str| report.files.get(name).cloned();
    for name in ["link", "fifo", "dir", "self", "dot"] {
        assert_eq!(found(name), Some(HarvestedFile::NotAFile), "{name}");
    }
    assert_eq!(found("huge"), Some(HarvestedFile::TooLong(1 << 40)));
    assert_eq!((found("below/passwd"), found("below-link/passwd")), (None, None));
    assert_eq!(report.text("good"), Some("yes\n"));
    // Root can read it anyway.
    assert!(matches!(found("secret"), Some(HarvestedFile::NotAFile | HarvestedFile::Text(_))));
}

#[tokio::test]
async fn answers_printed_by_a_job_are_ignored() {
    // A host whose shells first read a file of the sandbox.
    let vars = vec![("BASH_ENV".to_owned(), "$HOME/.profile".to_owned())];
    let world = World::with(Options { vars, ..Options::default() }).await;
    let script =
        "echo 'echo vanished; echo over exited 0 1; echo 0 over exited 0 1' > ../../.profile; exit 9";
    let report = world.run(&spec(script)).await;
    assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(9), ""));
    let shell = world.sandy.exec(&world.id, &ExecRequest::new("true")).await.unwrap();
    assert!(shell.stdout.starts_with("vanished\n"), "{shell:?}");
}

#[tokio::test]
async fn a_fork_bomb_ends_at_its_time_limit() {
    let world = World::new().await;
    // As many processes as a small host permits. Each starts another one when it is killed.
    let script = "again() { trap '' TERM; for n in 1 2 3; do sleep 1000; done; }\n\
                  for n in $(seq 60); do (again & again &) ; done; wait; sleep 1000";
    let report = world.run(&JobSpec { time_limit: Duration::from_secs(1), ..spec(script) }).await;
    assert_eq!((report.end, world.processes()), (JobEnd::TimedOut, Vec::new()));
}
