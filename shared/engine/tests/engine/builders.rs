//! Work that podman does itself in a build: unpacking, copying, expanding, reading the users of a stage. It ends with the
//! build's limits, and leaves nothing.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench_engine::{EngineKind, NetworkPolicy};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{BUSYBOX, ONE_AT_A_TIME, Sandbox, World, stdout};

/// Size of the file in the archive that grows.
const UNPACKED_BYTES: u64 = 4 << 30;
const MIB: u64 = 1 << 20;

/// Traces of the builds of one engine.
pub(crate) struct Traces {
    group: String,
    run_folder: PathBuf,
    storage: PathBuf,
}

impl Traces {
    /// Returns `None` for an engine without services for builds.
    pub(crate) fn of(world: &World) -> Option<Self> {
        let report = world.engine.report();
        if report.kind != EngineKind::Podman || report.ungrouped.is_some() {
            println!("this engine builds itself: {:?}", report.ungrouped);
            return None;
        }
        let run_folder = world.folder.path().join("run");
        let group = std::fs::read_to_string(run_folder.join("build-group")).unwrap();
        let storage = stdout(&world.docker(&["info", "--format", "{{.DockerRootDir}}"]));
        Some(Self { group, run_folder, storage: storage.into() })
    }

    /// Returns what is left of builds: cgroups, working containers and folders of services.
    pub(crate) fn left(&self) -> Vec<String> {
        let is_folder = |path: &PathBuf| path.is_dir();
        let hierarchies = entries(Path::new("/sys/fs/cgroup")).chain([PathBuf::from("/sys/fs/cgroup")]);
        let groups = hierarchies.map(|hierarchy| entries(&hierarchy.join(&self.group)).filter(is_folder));
        let containers = entries(&self.storage.join("overlay-containers")).filter(|container| {
            let description = std::fs::read_to_string(container.join("userdata/buildah.json"));
            description.is_ok_and(|text| text.contains(&self.group))
        });
        let of_builds = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("build-");
        let scratch = entries(&self.storage.join("tmp"))
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&self.group));
        let folders = entries(&self.run_folder).filter(is_folder).filter(of_builds);
        let left = groups.flatten().chain(containers).chain(scratch).chain(folders);
        left.map(|path| path.display().to_string()).collect()
    }

    pub(crate) fn expect_none(&self) {
        let until = Instant::now() + Duration::from_secs(120);
        while !self.left().is_empty() {
            assert!(Instant::now() < until, "left: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns true if a process has exactly this command line.
pub(crate) fn runs(command: &str) -> bool {
    let wanted: String = command.split(' ').map(|word| format!("{word}\0")).collect();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .any(|line| line == wanted)
}

/// Writes the context of a build and returns its folder.
fn context(sandbox: &Sandbox, name: &str, dockerfile: &str) -> PathBuf {
    let context = sandbox.workspace.join(name);
    std::fs::create_dir(&context).unwrap();
    std::fs::write(context.join("Dockerfile"), dockerfile).unwrap();
    context
}

/// Starts a build that the test ends.
pub(crate) fn start_build(sandbox: &Sandbox, context: &Path) -> Child {
    let mut docker = Command::new("docker");
    docker.args(["build", "-t", "localhost/bench/s1/endless:1"]).arg(context);
    docker.env("DOCKER_HOST", format!("unix://{}", sandbox.proxy.socket().display()));
    docker.env("DOCKER_BUILDKIT", "0").stdout(Stdio::null()).stderr(Stdio::null());
    docker.spawn().unwrap()
}

/// Waits for something while a build runs.
fn wait_during(build: &mut Child, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < until && build.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a compressed archive with one file of zeros. Each of its parts is compressed once.
fn growing_archive() -> Vec<u8> {
    let compressed = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(UNPACKED_BYTES);
    header.set_mode(0o644);
    header.set_cksum();
    let part = compressed(&vec![0; 64 << 20]);
    let mut archive = compressed(header.as_bytes());
    for _ in 0..UNPACKED_BYTES / (64 << 20) {
        archive.extend_from_slice(&part);
    }
    archive.extend(compressed(&[0; 1024]));
    archive
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_grows_ends_at_the_disk_limit() {
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let sandbox = world.limited("s1", NetworkPolicy::None, |limits| limits.build_disk_bytes_max = 200 * MIB);
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nADD zeros.tar.gz /\n"));
    let archive = growing_archive();
    assert!(archive.len() < 8 << 20, "{}", archive.len());
    std::fs::write(context.join("zeros.tar.gz"), archive).unwrap();
    let arguments = ["build", "-t", "localhost/bench/s1/grown:1", context.to_str().unwrap()];
    sandbox.refuse(&arguments, "the host's disk limit of builds and pulls was exceeded");
    traces.expect_none();
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_does_not_go_on_without_its_client() {
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nADD zeros.tar.gz /\n"));
    std::fs::write(context.join("zeros.tar.gz"), growing_archive()).unwrap();
    let mut build = start_build(&sandbox, &context);
    wait_during(&mut build, || traces.left().iter().any(|path| path.contains("-containers/")));
    build.kill().unwrap();
    build.wait().unwrap();
    traces.expect_none();
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_and_pipes_end_at_the_time_limit() {
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let limit = Duration::from_secs(8);
    let sandbox = world.limited("s1", NetworkPolicy::None, |limits| limits.build_time_max = limit);
    let doubled = format!("ENV A={}\n{}", "x".repeat(1000), "ENV A=$A$A$A$A$A$A$A$A\n".repeat(9));
    let dockerfiles = [
        ("variables", format!("FROM {BUSYBOX}\n{doubled}RUN true\n")),
        (
            "pipe",
            format!(
                "FROM {BUSYBOX}\nRUN busybox rm -f /etc/passwd && busybox mkfifo /etc/passwd\nUSER someone\n\
                 COPY --chown=someone Dockerfile /\nRUN true\n"
            ),
        ),
    ];
    for (name, dockerfile) in dockerfiles {
        let context = context(&sandbox, name, &dockerfile);
        let image = format!("localhost/bench/s1/{name}:1");
        let built = sandbox.docker(&["build", "-t", &image, context.to_str().unwrap()]);
        assert!(!built.status.success(), "{name}: {built:?}");
        println!("{name}: {}", String::from_utf8_lossy(&built.stderr));
        traces.expect_none();
    }
    // The next build isn't kept waiting. It has no short limit, which a slow machine could reach.
    let other = world.sandbox("s2", NetworkPolicy::None);
    let context = context(&other, "next", &format!("FROM {BUSYBOX}\nRUN true\n"));
    other.succeed(&["build", "-t", "localhost/bench/s2/next:1", context.to_str().unwrap()]);
    traces.expect_none();
    sandbox.proxy.stop().await.unwrap();
    other.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_after_the_build_that_started_the_server_of_names() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let sandbox = world.sandbox("s1", NetworkPolicy::Public);
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nRUN sleep 86422\n"));
    let mut build = start_build(&sandbox, &context);
    wait_during(&mut build, || runs("sleep 86422"));
    sandbox.succeed(&["network", "create", "together"]);
    sandbox.succeed(&["run", "-d", "--network", "together", "--name", "named", BUSYBOX, "sleep", "600"]);
    sandbox.succeed(&["run", "-d", "--network", "together", "--name", "asking", BUSYBOX, "sleep", "600"]);
    let find = || sandbox.succeed(&["exec", "asking", "busybox", "nslookup", "named"]);
    find();
    build.kill().unwrap();
    build.wait().unwrap();
    traces.expect_none();
    find();
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_a_build_makes_end_with_it() {
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    // Frozen processes can't be killed, and deep groups have no path. Which of them are possible depends on the version.
    let script = "\
        cd /sys/fs/cgroup; frozen=freezer/frozen; file=freezer.state; value=FROZEN\n\
        if [ ! -d freezer ]; then frozen=frozen; file=cgroup.freeze; value=1; fi\n\
        mkdir $frozen; sleep 86423 & echo $! > $frozen/cgroup.procs; echo $value > $frozen/$file\n\
        if [ -d pids ]; then cd pids; fi\n\
        name=n; for i in $(seq 7); do name=$name$name$name; done; name=$(echo $name | head -c 200)\n\
        for i in $(seq 25); do mkdir $name; cd $name; done\n\
        echo $$ > cgroup.procs; exec sleep 86424\n";
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nCOPY script /\nRUN sh /script\n"));
    std::fs::write(context.join("script"), script).unwrap();
    let mut build = start_build(&sandbox, &context);
    wait_during(&mut build, || runs("sleep 86424"));
    build.kill().unwrap();
    build.wait().unwrap();
    traces.expect_none();
    assert!(!runs("sleep 86423") && !runs("sleep 86424"));
    // The kernel limits the number of groups on the whole machine.
    let many = "cd /sys/fs/cgroup; [ -d memory ] && cd memory; for i in $(seq 3000); do mkdir $i || exit 1; done; sleep 60";
    std::fs::write(context.join("script"), many).unwrap();
    let built = sandbox.docker(&["build", "-t", "localhost/bench/s1/many:1", context.to_str().unwrap()]);
    assert!(!built.status.success(), "{built:?}");
    traces.expect_none();
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_at_any_moment_leave_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let world = World::start().await;
    let Some(traces) = Traces::of(&world) else { return world.stop().await };
    let interfaces = || -> BTreeSet<PathBuf> {
        let is_ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("bx");
        entries(Path::new("/sys/class/net")).filter(is_ours).collect()
    };
    let external = || {
        let listed = Command::new("podman").args(["ps", "--all", "--external", "--quiet"]).output().unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (before, containers) = (interfaces(), external());
    let sandbox = world.sandbox("s1", NetworkPolicy::Public);
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nRUN sleep 86425\n"));
    for moment in 0..8 {
        let mut build = start_build(&sandbox, &context);
        // The service has started.
        wait_during(&mut build, || traces.left().iter().any(|path| path.contains("/tmp/")));
        std::thread::sleep(Duration::from_millis(90 * moment));
        build.kill().unwrap();
        build.wait().unwrap();
        traces.expect_none();
    }
    sandbox.proxy.stop().await.unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while interfaces().iter().any(|interface| !before.contains(interface)) {
        assert!(Instant::now() < until, "left: {:?}, before {before:?}", interfaces());
        std::thread::sleep(Duration::from_millis(100));
    }
    let left: Vec<String> = external().difference(&containers).cloned().collect();
    println!("other tests and working containers: {left:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn init_gets_no_groups_of_the_machine() {
    let world = World::start().await;
    if world.engine.report().kind != EngineKind::Podman {
        return world.stop().await;
    }
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let refused = "any command but systemd";
    for command in ["/sbin/init", "/usr/sbin/init", "/usr/local/sbin/init", "/anywhere/systemd"] {
        sandbox.refuse(&["create", BUSYBOX, command], refused);
        sandbox.refuse(&["create", "--entrypoint", command, BUSYBOX], refused);
    }
    let context = context(&sandbox, "context", &format!("FROM {BUSYBOX}\nCMD [\"/sbin/init\"]\n"));
    sandbox.succeed(&["build", "-t", "localhost/bench/s1/init:1", context.to_str().unwrap()]);
    sandbox.refuse(&["create", "localhost/bench/s1/init:1"], refused);
    assert_eq!(sandbox.succeed(&["ps", "--all", "--quiet"]), "");
    sandbox.succeed(&["run", "--rm", BUSYBOX, "echo", "/sbin/init"]);
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
