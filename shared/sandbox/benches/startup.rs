//! Measures how long a sandbox takes to start, how many small programs run per second, and how much memory idle
//! sandboxes use, for each form that this machine allows, compared with plain processes that run the same program.
//!
//! `cargo bench -p bench-sandbox --bench startup`

#![allow(clippy::expect_used, reason = "a benchmark that can't continue has no result")]

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bench_sandbox::isolation::{Exec, Isolation, IsolationOptions, Limits, forms};

/// Number of starts measured; the median is reported.
const STARTS: usize = 50;
/// Number of programs run to measure the throughput.
const PROGRAMS: usize = 200;
/// Number of idle sandboxes whose memory is measured.
const IDLE: usize = 50;
/// A program that computes for a few milliseconds.
const SMALL: &str = "print(sum(i * i for i in range(200000)))";

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let options = IsolationOptions::new(env!("CARGO_BIN_EXE_bench-sandbox-stage"), folder.path());
    let mut out = std::io::stdout().lock();
    for outcome in forms(&options) {
        match outcome {
            Ok(isolation) => {
                let lines = runtime.block_on(measure(isolation));
                writeln!(out, "{lines}").expect("output");
            }
            Err((name, reason)) => writeln!(out, "{name}: not possible here: {reason}").expect("output"),
        }
    }
}

async fn measure(isolation: Arc<dyn Isolation>) -> String {
    let (mut bare, mut made, mut both, mut warm, mut ended) = (vec![], vec![], vec![], vec![], vec![]);
    // The two measurements alternate, so that other load on the machine affects both alike.
    for _ in 0..STARTS {
        bare.push(time(|| run_bare("")).1);
        let began = Instant::now();
        let sandbox = isolation.create(&Limits::default()).await.expect("a sandbox");
        made.push(began.elapsed());
        sandbox.exec(&python("")).await.expect("a program");
        both.push(began.elapsed());
        let again = Instant::now();
        sandbox.exec(&python("")).await.expect("a program");
        warm.push(again.elapsed());
        let last = Instant::now();
        sandbox.end().await;
        ended.push(last.elapsed());
    }
    let (bare, made, both, warm, ended) =
        (median(bare), median(made), median(both), median(warm), median(ended));

    let slots = std::thread::available_parallelism().map_or(1, usize::from);
    let alone = bare_throughput(slots).await;
    let inside = throughput(&isolation, slots, true).await;
    let reused = throughput(&isolation, slots, false).await;
    let (resident, shared) = idle(&isolation).await;
    format!(
        "{}: start of a sandbox and python3 {:.1} ms, python3 alone {:.1} ms: {:.1} ms more ({:.2} times)\n\
         {}: create {:.1} ms, python3 in an existing sandbox {:.1} ms, end {:.1} ms\n\
         {}: {PROGRAMS} small programs, each in a new sandbox, {slots} at once: {:.1} per second, without sandbox {:.1}: {:.0}%; in one sandbox per slot {:.1}: {:.0}%\n\
         {}: {IDLE} idle sandboxes: {:.1} MB resident, {:.1} MB with shared pages counted once ({:.2} MB each)",
        isolation.form().name,
        ms(both),
        ms(bare),
        ms(both) - ms(bare),
        ms(both) / ms(bare),
        isolation.form().name,
        ms(made),
        ms(warm),
        ms(ended),
        isolation.form().name,
        inside,
        alone,
        100.0 * inside / alone,
        reused,
        100.0 * reused / alone,
        isolation.form().name,
        resident as f64 / 1e6,
        shared as f64 / 1e6,
        shared as f64 / 1e6 / IDLE as f64,
    )
}

fn python(program: &str) -> Exec {
    Exec {
        command: format!("exec python3 -c '{program}'"),
        cwd: None,
        env: BTreeMap::new(),
        timeout: Duration::from_secs(60),
        output_bytes_max: 1 << 20,
    }
}

/// Runs the same shell and Python program without a sandbox.
fn run_bare(program: &str) {
    let status = Command::new("/bin/bash")
        .args(["-c", &format!("exec python3 -c '{program}'")])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "python3 runs");
}

async fn bare_throughput(slots: usize) -> f64 {
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let workers: Vec<_> = (0..slots)
        .map(|_| {
            let next = next.clone();
            tokio::task::spawn_blocking(move || {
                while next.fetch_add(1, Ordering::Relaxed) < PROGRAMS {
                    run_bare(SMALL);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    PROGRAMS as f64 / began.elapsed().as_secs_f64()
}

/// Runs the programs and returns how many finished per second. If `each` is true, every program gets a new sandbox;
/// otherwise each slot uses one sandbox for all its programs.
async fn throughput(isolation: &Arc<dyn Isolation>, slots: usize, each: bool) -> f64 {
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let workers: Vec<_> = (0..slots)
        .map(|_| {
            let (next, isolation) = (next.clone(), isolation.clone());
            tokio::spawn(async move {
                let mut sandbox = isolation.create(&Limits::default()).await.expect("a sandbox");
                while next.fetch_add(1, Ordering::Relaxed) < PROGRAMS {
                    if each {
                        sandbox.end().await;
                        sandbox = isolation.create(&Limits::default()).await.expect("a sandbox");
                    }
                    sandbox.exec(&python(SMALL)).await.expect("a program");
                }
                sandbox.end().await;
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    PROGRAMS as f64 / began.elapsed().as_secs_f64()
}

/// Returns the memory of all processes of idle sandboxes, in bytes: resident memory, and the same with shared pages
/// counted once.
async fn idle(isolation: &Arc<dyn Isolation>) -> (u64, u64) {
    let mut sandboxes = Vec::new();
    for _ in 0..IDLE {
        sandboxes.push(isolation.create(&Limits::default()).await.expect("a sandbox"));
    }
    let (mut resident, mut shared) = (0, 0);
    for pid in descendants(std::process::id()) {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let field = |name: &str| -> u64 {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1_024
        };
        resident += field("Rss:");
        shared += field("Pss:");
    }
    for sandbox in sandboxes {
        sandbox.end().await;
    }
    (resident, shared)
}

fn descendants(of: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let children: Vec<u32> = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.iter().flat_map(|child| descendants(*child)).chain(children.iter().copied()).collect()
}

fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
