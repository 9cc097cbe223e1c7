//! Measures the sandbox host: `bench-sandboxes [PROGRAMS]`, default 200.
//!
//! Runs small Python programs, one per processor at a time: bare, then over the HTTP API with a sandbox for each,
//! then with a sandbox for each slot. Prints the programs per second and their ratio to the bare ones. Finally
//! measures the memory of the host with idle sandboxes: of its own process, and of the processes of each sandbox.
//!
//! The host is a separate process of the same program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_sandbox::host::{HostConfig, SandboxHost, router};
use bench_sandbox::isolation::{IsolationOptions, probe, stage_main};
use bench_tests::process::resident_kib;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Argument that starts the process as the host.
const HOST: &str = "host";
const PROGRAMS_DEFAULT: usize = 200;
const IDLE: usize = 50;
/// Number of sandboxes whose steps are timed.
const STEPS: usize = 41;
/// Does almost nothing.
const EMPTY: &str = "print(0)\n";
/// Works for about a tenth of a second, like a test of a programming contest.
const SMALL: &str = "\
best = {}
for n in range(1, 6000):
    steps, m = 0, n
    while m != 1:
        m = m // 2 if m % 2 == 0 else 3 * m + 1
        steps += 1
        if m in best:
            steps += best[m]
            break
    best[n] = steps
rows = [[(i * j) % 7 for j in range(60)] for i in range(60)]
total = sum(sum(a * b for a, b in zip(row, col)) for row in rows for col in zip(*rows))
print(max(best.values()), total)
";

fn main() -> ExitCode {
    if let Some(code) = stage_main() {
        return code;
    }
    let argument = std::env::args().nth(1);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit_with(&error.into()),
    };
    let done = match argument.as_deref() {
        Some(HOST) => runtime.block_on(serve()),
        Some(text) => match text.parse() {
            Ok(programs) => runtime.block_on(measure(programs)),
            Err(_) => Err(anyhow::anyhow!("the argument is a number of programs")),
        },
        None => runtime.block_on(measure(PROGRAMS_DEFAULT)),
    };
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_with(&error),
    }
}

fn exit_with(error: &anyhow::Error) -> ExitCode {
    // If standard error is closed, the error can't be reported.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::FAILURE
}

/// Serves the host until standard input ends.
async fn serve() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let options = IsolationOptions::new(std::env::current_exe()?, folder.path().join("sandboxes"));
    let isolation = tokio::task::spawn_blocking(move || probe(&options)).await??;
    let mut config = HostConfig::default();
    // The idle sandboxes need slots immediately, without waiting for others to lend theirs.
    let lends = std::env::args().nth(2).is_some_and(|argument| argument == "idle");
    if lends {
        config.slots = IDLE;
    }
    let name = isolation.form().name;
    let host = SandboxHost::new(isolation, config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{name} http://{}", listener.local_addr()?);
    let routes = router(Arc::clone(&host));
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    host.shut_down().await;
    server.abort();
    Ok(())
}

/// The host in another process.
struct Host {
    child: Child,
    form: String,
    address: String,
    http: reqwest::Client,
}

impl Host {
    fn start(more: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(HOST)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let (form, address) = line.trim().split_once(' ').context("the host did not start")?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self { child, form: form.to_owned(), address: address.to_owned(), http })
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let answer = self.http.post(format!("{}{path}", self.address)).json(body).send().await?;
        let status = answer.status();
        let value: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status} {value}");
        Ok(value)
    }

    async fn create(&self) -> anyhow::Result<String> {
        let created = self.post("/api/sandboxes", &json!({ "priority": 3, "preemptable": true })).await?;
        Ok(format!("/api/sandboxes/{}", created["sandboxId"].as_str().context("no id")?))
    }

    async fn run(&self, path: &str, program: &str) -> anyhow::Result<()> {
        self.post(&format!("{path}/files/write"), &json!({ "path": "p.py", "content": program })).await?;
        let done = self.post(&format!("{path}/exec"), &json!({ "command": "python3 p.py" })).await?;
        ensure!(done["exitCode"] == 0, "{done}");
        Ok(())
    }

    async fn terminate(&self, path: &str) -> anyhow::Result<()> {
        self.post(&format!("{path}/terminate"), &json!({})).await.map(drop)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        ensure!(self.child.wait()?.success(), "the host exited with an error");
        Ok(())
    }
}

/// Runs this number of programs, one per processor at a time. Returns the programs per second.
async fn throughput<F, Fut>(programs: usize, workers: usize, work: F) -> anyhow::Result<f64>
where
    F: Fn(Arc<AtomicUsize>) -> Fut,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let left = Arc::new(AtomicUsize::new(programs));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..workers).map(|_| tokio::spawn(work(Arc::clone(&left)))).collect();
    for task in tasks {
        task.await??;
    }
    #[allow(clippy::cast_precision_loss)] // few programs
    Ok(programs as f64 / begun.elapsed().as_secs_f64())
}

/// Takes one of the remaining programs. Returns false if none is left.
fn take(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

async fn measure(programs: usize) -> anyhow::Result<()> {
    ensure!(programs > 0, "at least one program");
    let workers = std::thread::available_parallelism()?.get();
    let host = Arc::new(Host::start(&[])?);
    println!("form {}, {workers} processors, {programs} programs", host.form);
    let folder = Arc::new(tempfile::tempdir()?);
    for (name, program) in [("empty", EMPTY), ("small", SMALL)] {
        std::fs::write(folder.path().join("p.py"), program)?;
        let bare = throughput(programs, workers, |left| {
            let folder = Arc::clone(&folder);
            async move {
                while take(&left) {
                    let mut command = tokio::process::Command::new("/usr/bin/python3");
                    let done = command.arg("p.py").current_dir(folder.path()).output().await?;
                    ensure!(done.status.success(), "python3 failed");
                }
                Ok(())
            }
        })
        .await?;
        println!("{name}: bare {bare:.1}/s");
        let each = throughput(programs, workers, |left| {
            let host = Arc::clone(&host);
            async move {
                while take(&left) {
                    let path = host.create().await?;
                    host.run(&path, program).await?;
                    host.terminate(&path).await?;
                }
                Ok(())
            }
        })
        .await?;
        println!("{name}: a sandbox for each {each:.1}/s, {:.0} % of bare", each / bare * 100.0);
        let kept = throughput(programs, workers, |left| {
            let host = Arc::clone(&host);
            async move {
                let path = host.create().await?;
                while take(&left) {
                    host.run(&path, program).await?;
                }
                host.terminate(&path).await
            }
        })
        .await?;
        println!("{name}: a sandbox for each slot {kept:.1}/s, {:.0} % of bare", kept / bare * 100.0);
    }
    steps(&host).await?;
    Arc::into_inner(host).context("the host is still in use")?.stop()?;
    idle().await
}

/// Prints the median time of each step of a sandbox on an idle host.
async fn steps(host: &Host) -> anyhow::Result<()> {
    let mut took: [Vec<Duration>; 4] = Default::default();
    for _ in 0..STEPS {
        let mut begun = Instant::now();
        let mut note = |step: usize| {
            took[step].push(begun.elapsed());
            begun = Instant::now();
        };
        let path = host.create().await?;
        note(0);
        host.post(&format!("{path}/files/write"), &json!({ "path": "p.py", "content": EMPTY })).await?;
        note(1);
        host.post(&format!("{path}/exec"), &json!({ "command": "true" })).await?;
        note(2);
        host.terminate(&path).await?;
        note(3);
    }
    let medians = took.map(|mut took| {
        took.sort_unstable();
        took.get(STEPS / 2).copied().unwrap_or_default().as_secs_f64() * 1_000.0
    });
    let [create, write, exec, terminate] = medians;
    println!(
        "create {create:.1} ms, write {write:.1} ms, exec of `true` {exec:.1} ms, terminate {terminate:.1} ms"
    );
    Ok(())
}

/// Prints the memory of the host with idle sandboxes.
async fn idle() -> anyhow::Result<()> {
    let host = Host::start(&["idle"])?;
    let pid = host.child.id();
    // Creates one sandbox first, so that one-time allocations are not counted.
    let first = host.create().await?;
    host.terminate(&first).await?;
    let before = resident_kib(pid)?;
    let mut created = Vec::new();
    for _ in 0..IDLE {
        created.push(host.create().await?);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = resident_kib(pid)?;
    let theirs = descendants_kib(pid)?;
    println!("host: {before} KiB resident without sandboxes, {after} KiB with {IDLE} idle ones");
    println!("their processes: {} KiB each (shared pages counted in parts)", theirs / IDLE as u64);
    for path in created {
        host.terminate(&path).await?;
    }
    host.stop()
}

/// Returns the memory of a process and all its descendants.
fn descendants_kib(pid: u32) -> anyhow::Result<u64> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent: u32| (child, parent)));
    }
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&parent) = all.get(next) {
        all.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    let kib = all.iter().skip(1).filter_map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        field_kib(&text, "Pss:")
    });
    Ok(kib.sum())
}

fn field_kib(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
}
