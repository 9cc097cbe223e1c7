//! Builds that end early, and images that stay or don't.

use std::fs::{File, FileTimes};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use bench_engine::{ImageCache, NetworkPolicy};

use crate::builders::{Traces, runs, start_build};
use crate::support::{BUSYBOX, World, stdout};

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < until, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_ends_with_its_client() {
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = sandbox.workspace.join("context");
    std::fs::create_dir(&context).unwrap();
    std::fs::write(context.join("Dockerfile"), format!("FROM {BUSYBOX}\nRUN sleep 86420\n")).unwrap();
    let mut build = start_build(&sandbox, &context);
    wait_until("the build's command", || runs("sleep 86420"));
    build.kill().unwrap();
    build.wait().unwrap();
    wait_until("its end", || !runs("sleep 86420"));
    traces.expect_none();
    // The next build isn't kept waiting.
    std::fs::write(context.join("Dockerfile"), format!("FROM {BUSYBOX}\nRUN true\n")).unwrap();
    sandbox.succeed(&["build", "-t", "localhost/bench/s1/quick:1", &context.display().to_string()]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_were_not_used_for_long_are_removed() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let uses = world.folder.path().join("uses");
    let cache = ImageCache::open(&uses, "localhost/bench/s1/", 0).unwrap();
    let record = |file: &str, age: Duration| {
        let time = FileTimes::new().set_modified(SystemTime::now() - age);
        File::create(uses.join(file)).unwrap().set_times(time).unwrap();
    };
    let day = Duration::from_secs(86_400);
    let context = sandbox.workspace.display().to_string();
    for (name, age) in [("old:1", day), ("new:1", Duration::ZERO)] {
        std::fs::write(
            sandbox.workspace.join("Dockerfile"),
            format!("FROM {BUSYBOX}\nENV A={name}\nCOPY Dockerfile /{name}\n"),
        )
        .unwrap();
        sandbox.succeed(&["build", "-t", &format!("localhost/bench/s1/{name}"), &context]);
        record(name, age);
    }
    // Images of other names, of which one was pulled for a sandbox.
    let archive = world.folder.path().join("image.tar");
    let pack = |content: &str| {
        std::fs::write(sandbox.workspace.join("content"), content).unwrap();
        let tar = Command::new("tar")
            .arg("-cf")
            .arg(&archive)
            .arg("-C")
            .arg(&sandbox.workspace)
            .arg("content")
            .status();
        assert!(tar.unwrap().success());
    };
    let name = |kind: &str| format!("quay.io/bench-test/{kind}-{}:1", world.instance);
    for kind in ["pulled", "other"] {
        pack(kind);
        let imported = world.docker(&["import", &archive.display().to_string(), &name(kind)]);
        assert!(imported.status.success(), "{imported:?}");
    }
    let id = stdout(&world.docker(&["image", "inspect", "--format", "{{.Id}}", &name("pulled")]));
    let pull = format!("pulled/{}", name("pulled").replace('/', "%"));
    std::fs::write(uses.join(&pull), id).unwrap();
    let time = FileTimes::new().set_modified(SystemTime::now() - day);
    File::options().write(true).open(uses.join(&pull)).unwrap().set_times(time).unwrap();
    cache.evict(world.engine.client()).await.unwrap();
    let exists = |image: &str| world.docker(&["image", "inspect", image]).status.success();
    let found =
        ["localhost/bench/s1/old:1", "localhost/bench/s1/new:1", &name("pulled"), &name("other"), BUSYBOX]
            .map(exists);
    assert_eq!(found, [false, true, false, true, true]);
    world.docker(&["image", "rm", &name("other")]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_of_a_base_image_are_refused() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = sandbox.workspace.display().to_string();
    let dockerfile = sandbox.workspace.join("Dockerfile");
    let base = format!("localhost/bench-test/trigger-{}:1", world.instance);
    std::fs::write(&dockerfile, format!("FROM {BUSYBOX}\nONBUILD RUN touch /triggered\n")).unwrap();
    // Made by the machine, in place of a registry.
    let built = world.docker(&["build", "-t", &base, &context]);
    assert!(built.status.success(), "{built:?}");
    std::fs::write(&dockerfile, format!("FROM {base}\n")).unwrap();
    sandbox.refuse(&["build", "-t", "localhost/bench/s1/x:1", &context], "has `ONBUILD` instructions");
    world.docker(&["image", "rm", &base]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_and_left_builds_leave_no_layers() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    // A file that no other test has, so that its layers are found by their history.
    let mark = world.instance.clone();
    let layers = || {
        let ids = stdout(&world.docker(&["image", "ls", "--all", "--quiet", "--no-trunc"]));
        let of_ours = |id: &&str| {
            let history = world.docker(&["image", "history", "--no-trunc", "--format", "{{.CreatedBy}}", id]);
            stdout(&history).contains(&mark)
        };
        ids.lines().filter(of_ours).map(str::to_owned).collect::<Vec<_>>()
    };
    let context = sandbox.workspace.join("context");
    std::fs::create_dir(&context).unwrap();
    let write = |lines: &str| {
        let dockerfile =
            format!("FROM {BUSYBOX} AS early\nRUN echo {mark} > /a\nFROM {BUSYBOX}\nRUN echo {mark} > /b\n");
        std::fs::write(context.join("Dockerfile"), format!("{dockerfile}{lines}\n")).unwrap();
    };
    let context = context.display().to_string();
    write("RUN exit 3");
    sandbox.refuse(&["build", "-t", "localhost/bench/s1/failed:1", &context], "3");
    wait_until("the removal of a failed build's layers", || layers().is_empty());
    write("RUN sleep 86426");
    let mut build = start_build(&sandbox, context.as_ref());
    wait_until("the build's command", || runs("sleep 86426"));
    build.kill().unwrap();
    build.wait().unwrap();
    wait_until("the removal of a left build's layers", || layers().is_empty());
    write("COPY --from=early /a /c");
    let name = "localhost/bench/s1/whole:1";
    sandbox.succeed(&["build", "-t", name, &context]);
    assert_eq!(sandbox.succeed(&["run", "--rm", name, "cat", "/c"]), mark);
    sandbox.succeed(&["image", "rm", name]);
    sandbox.proxy.stop().await.unwrap();
    wait_until("the removal of all layers", || layers().is_empty());
    world.stop().await;
}
