//! Builds that end early.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, World};

/// Returns true if a process has exactly this command line.
fn runs(command: &str) -> bool {
    let wanted: String = command.split(' ').map(|word| format!("{word}\0")).collect();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .any(|line| line == wanted)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < until, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_ends_with_its_client() {
    let world = World::start().await;
    if let Some(reason) = &world.engine.report().ungrouped {
        println!("commands of builds have no group here: {reason}");
        world.stop().await;
        return;
    }
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = sandbox.workspace.join("context");
    std::fs::create_dir(&context).unwrap();
    std::fs::write(context.join("Dockerfile"), format!("FROM {BUSYBOX}\nRUN sleep 86420\n")).unwrap();
    let mut build = Command::new("docker")
        .args(["build", "-t", "localhost/bench/s1/endless:1"])
        .arg(&context)
        .env("DOCKER_HOST", format!("unix://{}", sandbox.proxy.socket().display()))
        .env("DOCKER_BUILDKIT", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the build's command", || runs("sleep 86420"));
    build.kill().unwrap();
    build.wait().unwrap();
    wait_until("its end", || !runs("sleep 86420"));
    // The next build isn't kept waiting.
    std::fs::write(context.join("Dockerfile"), format!("FROM {BUSYBOX}\nRUN true\n")).unwrap();
    sandbox.succeed(&["build", "-t", "localhost/bench/s1/quick:1", &context.display().to_string()]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
