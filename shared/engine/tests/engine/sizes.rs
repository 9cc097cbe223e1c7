//! Sizes of what containers have written.

use bench_engine::{Limits, NetworkPolicy};

use crate::support::{BUSYBOX, World};

/// Starts a container that does nothing.
fn sleeper(sandbox: &crate::support::Sandbox) -> String {
    sandbox.succeed(&["run", "--detach", "--network", "none", BUSYBOX, "sleep", "600"])
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_container_writes_is_measured() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let id = sleeper(&sandbox);
    let megabytes = || {
        let size = sandbox.succeed(&["container", "inspect", "--size", "--format", "{{.SizeRw}}", &id]);
        size.parse::<u64>().unwrap() >> 20
    };
    assert_eq!(megabytes(), 0);
    // Files that the engine mounts from a folder of its own.
    let mounted = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"];
    let script = "for file in \"$@\"; do if [ -e $file ]; then dd if=/dev/zero of=$file bs=1M count=10; echo $file; fi; done";
    let found = sandbox.succeed(&[&["exec", &id, "sh", "-c", script, "sh"], &mounted[..]].concat());
    let count = found.lines().count() as u64;
    assert!(count >= 3 && megabytes() == 10 * count, "{found}: {}", megabytes());
    // A file behind a path that is longer than the system allows.
    let script = "x=0123456789; x=$x$x$x$x$x; x=$x$x$x$x; cd /tmp; \
        for i in $(seq 40); do mkdir $x 2>/dev/null && cd $x 2>/dev/null || break; done; \
        dd if=/dev/zero of=f bs=1M count=20; ln f g; echo made";
    assert_eq!(sandbox.succeed(&["exec", &id, "sh", "-c", script]), "made");
    assert_eq!(megabytes(), 10 * count + 20);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_with_too_many_files_is_not_measured() {
    let world = World::start().await;
    let sandbox = world
        .limited("s1", NetworkPolicy::None, |limits| *limits = Limits { files_max: 500, ..limits.clone() });
    let id = sleeper(&sandbox);
    let measure = ["container", "inspect", "--size", "--format", "{{.SizeRw}}", &id];
    sandbox.succeed(&measure);
    sandbox.succeed(&["exec", &id, "sh", "-c", "cd /tmp; mkdir $(seq 600)"]);
    sandbox.refuse(&measure, "`number of files of the container` is above this sandbox's limit of 500");
    assert_eq!(sandbox.succeed(&["container", "inspect", "--format", "{{.State.Status}}", &id]), "running");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
