//! Health checks.

use std::time::{Duration, Instant};

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, Sandbox, World, stdout};

/// Time after which a test gives up. Generous: machines may be slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Check that fails once and then succeeds, unless there is a file that says otherwise.
const CHECK: &str = "if [ -e /tmp/hang ]; then busybox touch /tmp/hangs; sleep 3600; fi; if [ -e /tmp/ill ]; then exit 1; fi; \
    echo >> /tmp/tries; test $$(busybox wc -l < /tmp/tries) -gt 1";

/// Writes a compose file of a service with this check, and of one that waits for it.
fn compose_file(sandbox: &Sandbox, check: &str) -> String {
    let path = sandbox.workspace.join("compose.yaml");
    let check = format!("{{test: [CMD-SHELL, '{check}'], interval: 1s, timeout: 1h, retries: 3}}");
    let text = format!(
        "services:\n  first:\n    image: {BUSYBOX}\n    network_mode: none\n    \
         command: [sh, -c, 'busybox rm -f /tmp/ill; sleep 600']\n    healthcheck: {check}\n  \
         second:\n    image: {BUSYBOX}\n    network_mode: none\n    command: [sleep, '600']\n    \
         depends_on: {{first: {{condition: service_healthy}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn until(wanted: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "not {wanted}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_wait_for_healthy_ones() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let file = compose_file(&sandbox, CHECK);
    let up = [
        "compose",
        "--project-name",
        "health",
        "--file",
        &file,
        "up",
        "--detach",
        "--wait",
        "--wait-timeout",
        "240",
    ];
    sandbox.succeed(&up);
    let id =
        sandbox.succeed(&["compose", "--project-name", "health", "--file", &file, "ps", "--quiet", "first"]);
    let status = ["inspect", "--format", "{{.State.Health.Status}}", &id];
    assert_eq!(sandbox.succeed(&status), "healthy");
    // Checks go on, and also after a restart.
    sandbox.succeed(&["exec", &id, "busybox", "touch", "/tmp/ill"]);
    until("unhealthy", || sandbox.succeed(&status) == "unhealthy");
    sandbox.succeed(&["restart", "--time", "0", &id]);
    until("healthy", || sandbox.succeed(&status) == "healthy");
    sandbox.succeed(&["exec", &id, "busybox", "touch", "/tmp/hang"]);
    until("hanging", || sandbox.docker(&["exec", &id, "ls", "/tmp/hangs"]).status.success());
    let stopped = tokio::time::timeout(PATIENCE, sandbox.proxy.stop()).await;
    stopped.expect("a check in progress doesn't hold up the end").unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_ill_fails_the_start() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let file = compose_file(&sandbox, "exit 1");
    let output =
        sandbox.docker(&["compose", "--project-name", "ill", "--file", &file, "up", "--detach", "--wait"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{}{error}", stdout(&output));
    assert!(error.contains("ill-first-1 is unhealthy"), "{error}");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
