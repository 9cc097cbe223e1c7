//! Episodes ordered by the command, in one process with its own sandbox host.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir};

/// Variables by which podman finds its storage.
pub(crate) const PODMAN_VARS: [&str; 2] = ["CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"];
/// Variables by which the docker command finds another engine.
const DOCKER_VARS: [&str; 2] = ["DOCKER_HOST", "DOCKER_CONFIG"];
const DOCKERFILE: &str = "FROM scratch\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n\
    RUN printf '#!/bin/sh\\nexec sh \"$@\"\\n' > /bin/bash && chmod +x /bin/bash && mkdir -p /tmp /root /etc /app\n\
    ENV PATH=/bin\nWORKDIR /app\n";
const TERMINAL_BENCH_CONFIG: &str =
    "instruction: Create the file `done`.\ndifficulty: hard\nparser_name: pytest\n";
const TERMINAL_BENCH_COMPOSE: &str = "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    \
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    \
    command: [sh, -c, sleep infinity]\n    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n";
/// Time within which containers of runs that are over have to be gone.
const REMOVAL_MAX: Duration = Duration::from_secs(120);

/// Folder with a task, and the variables of the engine.
pub(crate) struct Place {
    dir: TestDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: TestDir::new() }
    }

    /// Writes a task with this solution and this test.
    pub(crate) fn task(&self, name: &str, solution: &str, test: &str) -> PathBuf {
        let config = "[environment]\nnetwork_mode = \"no-network\"\n";
        self.folder(
            name,
            &[
                ("task.toml", config.as_bytes()),
                ("instruction.md", b"Create the file `done`."),
                ("environment/Dockerfile", DOCKERFILE.as_bytes()),
                ("environment/busybox", &busybox()),
                ("solution/solve.sh", solution.as_bytes()),
                ("tests/test.sh", test.as_bytes()),
            ],
        )
    }

    /// Writes a task of Terminal-Bench 1 as the only row of a dataset.
    fn terminal_bench_dataset(&self, name: &str) -> PathBuf {
        let folder = self.folder(
            name,
            &[
                ("task.yaml", TERMINAL_BENCH_CONFIG.as_bytes()),
                ("docker-compose.yaml", TERMINAL_BENCH_COMPOSE.as_bytes()),
                ("Dockerfile", DOCKERFILE.as_bytes()),
                ("busybox", &busybox()),
                ("solution.sh", SOLUTION.as_bytes()),
                ("run-tests.sh", b"#!/bin/bash\ncat $TEST_DIR/title\nls /app/done && result=PASSED || result=FAILED\necho \"$result tests/test_it.py::test_done\"\n"),
                ("tests/title", b"=========================== short test summary info ============================\n"),
            ],
        );
        let pack = format!("tar -C '{}' -cz . | base64 -w 0", folder.display());
        let packed = Command::new("sh").args(["-c", &pack]).output().unwrap();
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
        let row = json!({
            "task_id": name, "difficulty": "hard", "category": "files", "task_yaml": TERMINAL_BENCH_CONFIG,
            "archive": String::from_utf8(packed.stdout).unwrap(),
        });
        let path = self.dir.path(&format!("{name}.jsonl"));
        std::fs::write(&path, format!("{row}\n")).unwrap();
        path
    }

    fn folder(&self, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let folder = self.dir.path(name);
        for (path, content) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            make_executable(&path);
        }
        folder
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.dir.command(args);
        // With podman's storage, the command starts a service of its own.
        let has_podman = std::env::var_os(PODMAN_VARS[1]).is_some();
        for name in if has_podman { PODMAN_VARS } else { DOCKER_VARS } {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// Returns a path in the test's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    /// Returns the path of a file in the data directory.
    pub(crate) fn data_path(&self, name: &str) -> PathBuf {
        self.dir.path("data").join(name)
    }

    pub(crate) fn bench(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(&self.command(args).output().unwrap())
    }
}

fn busybox() -> Vec<u8> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].iter().find_map(|path| std::fs::read(path).ok());
    busybox.expect("these tests need /bin/busybox: install the package busybox-static")
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns containers, networks, volumes and images of the engine, without the images of tasks, which are kept.
pub(crate) fn objects() -> BTreeSet<String> {
    const ID: &str = "{{.ID}}";
    let lists: [&[&str]; 4] = [
        &["ps", "--all", "--format", ID],
        &["network", "ls", "--format", ID],
        &["volume", "ls", "--format", "{{.Name}}"],
        &["image", "ls", "--all", "--format", "{{.ID}} {{.Repository}}"],
    ];
    let listed = lists.iter().flat_map(|list| {
        let output = Command::new("docker").args(*list).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| format!("{} {line}", list[0])).collect::<Vec<_>>()
    });
    listed.filter(|object| !object.contains("bench__")).collect()
}

pub(crate) const SOLUTION: &str = "#!/bin/sh\nsleep 1\ntouch done\n";
pub(crate) const TEST: &str =
    "#!/bin/sh\nif [ -f done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";

/// Held by each test, since they count what the engine has.
pub(crate) static ENGINE: Mutex<()> = Mutex::new(());

#[test]
fn a_check_proves_a_task_or_says_what_is_wrong_with_it() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects();
    let place = Place::new();
    let good = place.task("good", SOLUTION, TEST);
    let given_away = place.task("given-away", SOLUTION, "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n");
    let (good, given_away) = (good.to_str().unwrap(), given_away.to_str().unwrap());
    // Sockets in this folder have paths that are too long for their addresses.
    let deep = place.dir.path(&"deep-folder-of-a-user/".repeat(6));
    let proven = place.bench(&["tasks", "check", good, "--data-dir", deep.to_str().unwrap()]);
    assert_eq!(proven.code, 0, "{}{}", proven.stdout, proven.stderr);
    assert!(proven.stdout.contains("proven"), "{}", proven.stdout);
    let refused = place.bench(&["tasks", "check", "--json", given_away]);
    refused.assert_refused(1, "1 task not proven");
    let found: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((&found[0]["proven"], &found[0]["nop_passed"]), (&json!(false), &json!(2)), "{found:#}");
    // The filter in front of the engine refuses it.
    let mounting = place.task("mounting", SOLUTION, TEST);
    let dockerfile = format!("{DOCKERFILE}RUN --mount=type=cache,target=/x true\n");
    std::fs::write(mounting.join("environment/Dockerfile"), dockerfile).unwrap();
    let refused = place.bench(&["run", "--task", mounting.to_str().unwrap(), "--agent", "nop"]);
    let reason = "`environment/Dockerfile` line 7: the flag `--mount` of `RUN` is not allowed";
    assert!(refused.code == 1 && refused.stderr.contains(reason), "{}{}", refused.stdout, refused.stderr);
    assert_eq!(objects(), before);
}

#[test]
fn terminal_bench_tasks_are_graded_by_the_output_of_their_tests() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects();
    let place = Place::new();
    let dataset = place.terminal_bench_dataset("hard-task");
    let dataset = format!("terminal_bench_hard={}", dataset.display());
    for (agent, outcome) in [("oracle", "correct"), ("nop", "incorrect")] {
        let benchmark = ["--benchmark", "terminal_bench_hard", "--dataset", &dataset];
        let order = [&["run", "--json", "--agent", agent][..], &benchmark].concat();
        let ended = place.bench(&order);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let runs: Value = serde_json::from_str(&place.bench(&["runs", "--json"]).stdout).unwrap();
        let run = runs[0]["id"].as_str().unwrap();
        let items: Value =
            serde_json::from_str(&place.bench(&["runs", run, "--items", "--json"]).stdout).unwrap();
        assert_eq!(items[0]["outcome"], outcome, "{agent}: {items:#}");
    }
    assert_eq!(objects(), before);
}

#[test]
fn an_agent_that_keeps_the_engine_waiting_is_graded() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects();
    let place = Place::new();
    // Podman reads this file itself before it runs a command.
    let solution = "#!/bin/sh\ntouch done\nrm -f /etc/passwd; mkfifo /etc/passwd\n";
    let task = place.task("waiting", solution, TEST);
    let ended = place.bench(&["run", "--json", "--task", task.to_str().unwrap(), "--agent", "oracle"]);
    let run: Value = serde_json::from_str(&ended.stdout).unwrap();
    let id = run[0]["id"].as_str().unwrap();
    let items: Value = serde_json::from_str(&place.bench(&["runs", id, "--items", "--json"]).stdout).unwrap();
    assert_eq!(items[0]["outcome"], "incorrect", "{items:#}");
    assert_eq!(objects(), before);
}

/// Process that ends with the test.
pub(crate) struct Service(Child);

impl Service {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Tells the process to end, and waits for it.
    pub(crate) fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// Server that works on runs until it ends.
struct Server {
    service: Service,
    address: String,
}

impl Server {
    fn start(place: &Place) -> Self {
        let mut serve = place.command(&["serve", "--port", "0"]);
        let mut service = Service::start(serve.stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut line = String::new();
        BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("Serving ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { service, address }
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + REMOVAL_MAX;
    while !condition() {
        assert!(Instant::now() < until, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn canceled_requeued_and_removed_episodes_leave_nothing() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects();
    let place = Place::new();
    let task = place.task("endless", "#!/bin/sh\nsleep 600\n", TEST);
    let server = Server::start(&place);
    let at = ["--server", server.address.as_str()];
    let json = |args: &[&str]| -> Value {
        let output = place.bench(&[args, &["--json"], &at].concat());
        assert_eq!(output.code, 0, "{args:?}: {}{}", output.stdout, output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let watch = |args: &[&str]| {
        let mut command = place.command(&[args, &at].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut ordered =
        watch(&["run", "--task", task.to_str().unwrap(), "--agent", "oracle", "--samples", "3"]);
    wait_until("an episode", is_any_episode_running);
    let run = json(&["runs"])[0]["id"].as_str().unwrap().to_owned();
    json(&["cancel", &run]);
    assert_ne!(ordered.wait().unwrap().code(), Some(0));
    wait_until("the end of the canceled run's containers", || !is_any_episode_running());
    assert_eq!(json(&["runs", &run])["status"], "canceled");

    let mut requeued = watch(&["requeue", &run]);
    wait_until("an episode of the requeued run", is_any_episode_running);
    let id = json(&["tasks", "list", "--all"])[0]["id"].to_string();
    json(&["tasks", "remove", &id]);
    assert_ne!(requeued.wait().unwrap().code(), Some(0));
    wait_until("the end of the removed task's containers", || !is_any_episode_running());
    assert_eq!(json(&["runs", &run])["status"], "canceled");
    server.service.end();
    assert_eq!(objects(), before);
}

/// Returns true if the engine has a container of an episode.
pub(crate) fn is_any_episode_running() -> bool {
    let filter = ["ps", "--quiet", "--filter", "label=bench-runner.environment"];
    Command::new("docker").args(filter).output().is_ok_and(|output| !output.stdout.is_empty())
}

/// Runs a command in a terminal of 24 lines with 80 columns, and prints what the terminal is sent.
const TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 4096)
    except OSError:
        break
    if not shown:
        break
    sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
";

#[test]
fn a_terminal_shows_each_episode() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = objects();
    let place = Place::new();
    let good = place.task("good", SOLUTION, TEST);
    let bench =
        place.command(&["run", "--task", good.to_str().unwrap(), "--agent", "oracle", "--samples", "3"]);
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL]).arg(bench.get_program()).args(bench.get_args());
    python.current_dir(bench.get_current_dir().unwrap()).env_clear();
    for (name, value) in bench.get_envs() {
        value.map(|value| python.env(name, value));
    }
    let ended = CommandOutput::new(&python.envs([("TERM", "xterm"), ("NO_COLOR", "1")]).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    for shown in ["task  episodes", "▸ running", "good  ✓✓✓       3/3 100.0%"] {
        assert!(ended.stdout.contains(shown), "{shown}: {}", ended.stdout);
    }
    assert_eq!(objects(), before);
}
