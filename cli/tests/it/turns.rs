//! `bench turns`: an agent's work, after its end and while it works. The sandbox host and the model are scripted.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use bench_tests::scripted_host::ScriptedHost;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::support::{CommandOutput, TestDir};

/// A folder with a sandbox host, and a model that runs two commands. It sends the second reply when it is released.
struct Scene {
    dir: TestDir,
    runtime: Runtime,
    host: ScriptedHost,
    model: ModelServer,
    release: watch::Sender<bool>,
}

impl Scene {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (release, released) = watch::channel(false);
        let rule = move |request: &ModelRequest| {
            let messages = request.body["messages"].as_array().unwrap();
            match messages.iter().filter(|message| message["role"] == "assistant").count() {
                0 => Reply::Text("I look around.\n```bash\nls -la\n```\n".to_owned()),
                1 => Reply::once(released.clone(), "I write.\n```bash\ntouch done\n```\n".to_owned()),
                _ => Reply::Text("```done\n```\n".to_owned()),
            }
        };
        let host = runtime.block_on(ScriptedHost::start(0)).unwrap();
        let model = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
        Self { dir: TestDir::new(), runtime, host, model, release }
    }

    fn run(&self) -> Command {
        let task = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-tasks/fix-csv");
        let address = self.model.base_url();
        let model = ["--model", "openai-compatible/m", "--base-url", &address, "--api-key-env", "TEST_KEY"];
        let mut command = self.dir.command(&["run", "--task", task, "--agent", "bash"]);
        command.args(model).env("TEST_KEY", "k");
        command.env("SANDY_BASE_URL", self.host.base_url()).env("SANDY_API_KEY", "sandy-test-key");
        command
    }
}

#[test]
fn turns_of_an_episode_that_is_over() {
    let scene = Scene::new();
    scene.release.send_replace(true);
    let output = CommandOutput::new(&scene.run().output().unwrap());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let dir = &scene.dir;
    let all = dir.bench(&["turns", "latest"]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    let places = [
        "Task\n",
        "\nTurn 1: ",
        "I look around.",
        "$ ls -la",
        "\nTurn 2: ",
        "$ touch done",
        "\nTurn 3: ",
        "task is complete",
    ]
    .map(|part| all.stdout.find(part).unwrap_or_else(|| panic!("no {part:?} in {}", all.stdout)));
    assert!(places.is_sorted(), "{}", all.stdout);
    let one = dir.bench(&["turns", "latest", "--task", "fix-csv", "--sample", "1", "--turn", "2"]);
    assert!(one.stdout.starts_with("Turn 2: ") && !one.stdout.contains("Turn 3"), "{}", one.stdout);
    let steps = dir.bench(&["turns", "latest", "--json"]);
    let steps: Vec<Value> = steps.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steps.iter().filter(|step| step["source"] == "agent").count(), 3);
    dir.bench(&["turns", "latest", "--turn", "4"]).assert_refused(2, "no turn 4");
    dir.bench(&["turns", "latest", "--sample", "2"]).assert_refused(2, "no episode of the run");
}

#[test]
fn turns_are_followed_while_the_agent_works() {
    let scene = Scene::new();
    let mut run = scene.run().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The command owns the data directory once the model was asked.
    let asked = async {
        while scene.model.in_flight() == 0 || scene.model.total() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    scene.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), asked).await }).unwrap();
    let now = scene.dir.bench(&["turns", "latest"]);
    assert!(
        now.stdout.contains("$ ls -la") && !now.stdout.contains("touch done"),
        "{}{}",
        now.stdout,
        now.stderr
    );
    assert!(now.stderr.contains("The agent is at work"), "{}", now.stderr);
    let mut follow = scene.dir.command(&["turns", "latest", "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let before: Vec<String> =
        lines.by_ref().map(Result::unwrap).take_while(|line| line != "$ ls -la").collect();
    assert!(before.iter().any(|line| line.starts_with("Turn 1: ")), "{before:?}");
    scene.release.send_replace(true);
    let after: Vec<String> = lines.map(Result::unwrap).collect();
    let turns = |lines: &[String]| lines.iter().filter(|line| line.starts_with("Turn ")).count();
    assert_eq!((turns(&before), turns(&after)), (1, 2), "each turn once: {after:?}");
    assert!(after.iter().any(|line| line == "$ touch done"), "{after:?}");
    assert!(follow.wait().unwrap().success() && run.wait().unwrap().success());
}
