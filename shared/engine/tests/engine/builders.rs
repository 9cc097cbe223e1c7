//! What podman does itself in a build: unpacking, copying, expanding, reading the users of a stage. It ends with the build's
//! limits, and leaves nothing.

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
        let groups = ["", "memory", "pids", "cpu", "devices"].map(|hierarchy| {
            entries(&Path::new("/sys/fs/cgroup").join(hierarchy).join(&self.group)).filter(is_folder)
        });
        let containers = entries(&self.storage.join("overlay-containers")).filter(|container| {
            let description = std::fs::read_to_string(container.join("userdata/buildah.json"));
            description.is_ok_and(|text| text.contains(&self.group))
        });
        let of_builds = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("build-");
        let folders = entries(&self.run_folder).filter(is_folder).filter(of_builds);
        let left = groups.into_iter().flatten().chain(containers).chain(folders);
        left.map(|path| path.display().to_string()).collect()
    }

    pub(crate) fn expect_none(&self) {
        let until = Instant::now() + Duration::from_secs(30);
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
    let until = Instant::now() + Duration::from_secs(60);
    while !traces.left().iter().any(|path| path.contains("-containers/")) {
        assert!(Instant::now() < until && build.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
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
    // The next build isn't kept waiting.
    let context = context(&sandbox, "next", &format!("FROM {BUSYBOX}\nRUN true\n"));
    sandbox.succeed(&["build", "-t", "localhost/bench/s1/next:1", context.to_str().unwrap()]);
    traces.expect_none();
    sandbox.proxy.stop().await.unwrap();
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
    let until = Instant::now() + Duration::from_secs(60);
    while !runs("sleep 86422") {
        assert!(Instant::now() < until && build.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(50));
    }
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
