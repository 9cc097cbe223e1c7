//! Pipes where the engine reads files of a container. Without a watch, its calls never end.

use std::time::Duration;

use bench_engine::NetworkPolicy;

use crate::support::{BUSYBOX, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_in_place_of_the_users_ends_its_container_only() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let other = world.sandbox("s2", NetworkPolicy::None);
    for file in ["passwd", "group"] {
        let id = sandbox.succeed(&["run", "--detach", BUSYBOX, "sleep", "600"]);
        let kept = other.succeed(&["run", "--detach", BUSYBOX, "sleep", "600"]);
        // The pipe is made again, and a program writes into it without an end.
        let agent = format!(
            "while true; do busybox rm -f /etc/{file}; busybox mkfifo /etc/{file}; \
             busybox yes | dd of=/etc/{file} 2>/dev/null; done"
        );
        sandbox.succeed(&["exec", "--detach", &id, "sh", "-c", &agent]);
        // The engine reads the file each time. Depending on the moment, it is a pipe, or still a file without this user.
        let is_running = || sandbox.succeed(&["inspect", "--format", "{{.State.Running}}", &id]) == "true";
        while is_running() {
            let refused = sandbox.docker(&["exec", "--user", "someone", &id, "true"]);
            assert!(!refused.status.success(), "{refused:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(other.succeed(&["exec", &kept, "echo", "alive"]), "alive");
        sandbox.succeed(&["rm", "--force", &id]);
    }
    // An image may have one, too.
    let context = sandbox.workspace.join("context");
    std::fs::create_dir(&context).unwrap();
    let dockerfile = format!("FROM {BUSYBOX}\nRUN busybox rm -f /etc/passwd && busybox mkfifo /etc/passwd\n");
    std::fs::write(context.join("Dockerfile"), dockerfile).unwrap();
    let (context, image) = (context.to_str().unwrap(), "localhost/bench/s1/pipe:1");
    sandbox.succeed(&["build", "--quiet", "--tag", image, context]);
    let started = sandbox.docker(&["run", "--user", "someone", image, "true"]);
    assert!(!started.status.success(), "{started:?}");
    assert_eq!(sandbox.succeed(&["ps", "--quiet"]), "");
    sandbox.proxy.stop().await.unwrap();
    other.proxy.stop().await.unwrap();
    world.stop().await;
}
