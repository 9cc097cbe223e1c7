//! Health checks.

use std::time::{Duration, Instant};

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, Sandbox, World, stdout};

/// Writes a compose file of a service whose check needs a file, and of one that waits for it.
fn compose_file(sandbox: &Sandbox, command: &str) -> String {
    let path = sandbox.workspace.join("compose.yaml");
    let check = "{test: [CMD, ls, /tmp/ready], interval: 1s, timeout: 5s, retries: 3}";
    let text = format!(
        "services:\n  first:\n    image: {BUSYBOX}\n    network_mode: none\n    command: [sh, -c, '{command}; sleep 600']\n    \
         healthcheck: {check}\n  second:\n    image: {BUSYBOX}\n    network_mode: none\n    command: [sleep, '600']\n    \
         depends_on: {{first: {{condition: service_healthy}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn services_wait_for_healthy_ones() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let file = compose_file(&sandbox, "sleep 2; touch /tmp/ready");
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
        "60",
    ];
    let began = Instant::now();
    sandbox.succeed(&up);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let id =
        sandbox.succeed(&["compose", "--project-name", "health", "--file", &file, "ps", "--quiet", "first"]);
    let status = ["inspect", "--format", "{{.State.Health.Status}}", &id];
    assert_eq!(sandbox.succeed(&status), "healthy");
    // Checks go on, and also after a restart.
    sandbox.succeed(&["exec", &id, "busybox", "rm", "/tmp/ready"]);
    let become_one = |wanted: &str| {
        let began = Instant::now();
        while sandbox.succeed(&status) != wanted {
            assert!(began.elapsed() < Duration::from_secs(30), "not {wanted}");
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    become_one("unhealthy");
    sandbox.succeed(&["restart", "--time", "0", &id]);
    become_one("healthy");
    let began = Instant::now();
    sandbox.proxy.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "a check holds up the end: {:?}", began.elapsed());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_ill_fails_the_start() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let file = compose_file(&sandbox, "true");
    let began = Instant::now();
    let output =
        sandbox.docker(&["compose", "--project-name", "ill", "--file", &file, "up", "--detach", "--wait"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{}{error}", stdout(&output));
    assert!(error.contains("ill-first-1 is unhealthy"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
