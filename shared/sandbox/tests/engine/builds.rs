//! Builds: one at a time, within limits, and nothing of them left.

use std::time::{Duration, Instant};

use bench_environments::{EnvironmentError, Limit};

use crate::support::{Sandbox, World, dockerfile, environment, first_form, task};

/// Returns the processes whose command line contains a text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text) && !line.contains("bench-") && !line.contains("docker"))
        .collect()
}

/// Returns a command that runs long and that no other process has.
pub(crate) fn long_command() -> String {
    format!("sleep {}", 100_000 + uuid::Uuid::new_v4().as_u128() % 1_000_000)
}

/// Builds an image with these lines, which must fail.
async fn failing(sandbox: &Sandbox<'_>, lines: &str, time: Duration) -> EnvironmentError {
    let task = task(lines);
    let environment = environment(&task);
    let project = sandbox.resolve(&environment, &task, &dockerfile()).await.unwrap();
    let built = sandbox.finish(&environment, "build", &sandbox.build(&project, time)).await;
    sandbox.engine().remove(&environment.name).await.unwrap();
    built.unwrap_err()
}

fn limit(error: &EnvironmentError) -> Option<Limit> {
    match error {
        EnvironmentError::LimitExceeded { limit, .. } => Some(*limit),
        _ => None,
    }
}

pub(crate) async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2_400 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("timed out waiting for {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sandbox_of_a_host_builds_at_a_time() {
    first_form(
        |_| {},
        |world| async move {
            let (one, two) = (world.sandbox().await, world.sandbox().await);
            // A sandbox that holds the builder and is gone: nothing else can tell that it won't build.
            let hold = "import socket, os, time\ns = socket.socket(socket.AF_UNIX)\n\
                        s.connect(os.environ['DOCKER_HOST'][7:])\n\
                        s.sendall(b'POST /bench/builder HTTP/1.1\\r\\nHost: x\\r\\nConnection: Upgrade\\r\\nUpgrade: tcp\\r\\n\\r\\n')\n\
                        print(s.recv(12).decode(), flush=True)\ntime.sleep(1000)\n";
            one.sandy.write_file(&one.id, "hold.py", hold).await.unwrap();
            let held = "setsid python3 hold.py >held 2>&1 & until grep -q 101 held; do sleep 0.1; done";
            one.output(held).await;
            let task = task("RUN echo one-at-a-time\n");
            let environment = environment(&task);
            let project = two.resolve(&environment, &task, &dockerfile()).await.unwrap();
            let build = two.build(&project, Duration::from_secs(600));
            let name = "build".parse().unwrap();
            let waiting = two.engine().advance(&environment, &name, &build, Duration::from_secs(2)).await.unwrap();
            assert_eq!(waiting, bench_environments::Progress::Running);
            assert_eq!(world.images().len(), 0);
            one.end().await;
            two.finish(&environment, "build", &build).await.unwrap();
            assert_eq!(world.images().len(), 1);
            two.end().await;
            assert_eq!(world.left(), Vec::<String>::new());
            world
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_that_exceed_a_limit_leave_nothing() {
    first_form(
        |config| {
            let engine = config.engine.as_mut().unwrap();
            engine.limits.build_disk_bytes_max = 300 << 20;
        },
        |world| async move {
            let sandbox = world.sandbox().await;
            let began = Instant::now();
            let endless = long_command();
            let error = failing(&sandbox, &format!("RUN true && {endless}\n"), Duration::from_secs(4)).await;
            assert_eq!(limit(&error), Some(Limit::BuildTime), "{error:?}");
            println!("{}: a build without an end failed after {:?}", world.form, began.elapsed());
            let groups = world.host.engine().lacks.iter().all(|lack| !lack.contains("Builds may continue"));
            if groups {
                wait_until("the end of the build's command", || processes_with(&endless).is_empty()).await;
                let bomb = format!("RUN while true; do {endless} & done\n");
                let error = failing(&sandbox, &bomb, Duration::from_secs(4)).await;
                println!("{}: {error}", world.form);
                wait_until("the end of all commands", || processes_with(&endless).is_empty()).await;
            } else {
                println!("the commands of builds have no group here");
            }
            let fill = "RUN dd if=/dev/zero of=/large bs=1M count=20000\n";
            let error = failing(&sandbox, fill, Duration::from_secs(600)).await;
            assert_eq!(limit(&error), Some(Limit::ImageSize), "{error:?}");
            // The builder is free again.
            let error = failing(&sandbox, "RUN exit 3\n", Duration::from_secs(600)).await;
            assert!(matches!(error, EnvironmentError::Build { .. }), "{error:?}");
            // A sandbox that ends while it builds.
            let task = task(&format!("RUN {endless}\n"));
            let environment = environment(&task);
            let project = sandbox.resolve(&environment, &task, &dockerfile()).await.unwrap();
            let build = sandbox.build(&project, Duration::from_secs(600));
            let name = "build".parse().unwrap();
            let running = sandbox.engine().advance(&environment, &name, &build, Duration::from_secs(1)).await;
            assert_eq!(running.unwrap(), bench_environments::Progress::Running);
            wait_until("the build's command", || !processes_with(&endless).is_empty()).await;
            sandbox.end().await;
            if groups {
                wait_until("the end of the build's command", || processes_with(&endless).is_empty()).await;
            }
            assert_eq!(world.left(), Vec::<String>::new());
            assert_eq!(world.images(), Vec::<String>::new());
            world
        },
    )
    .await;
}

impl World {
    /// Returns the names of the images that the host's sandboxes keep.
    fn images(&self) -> Vec<String> {
        crate::support::images(&self.socket(), &self.instance())
    }
}
