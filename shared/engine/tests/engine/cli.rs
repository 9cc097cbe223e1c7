//! Docker's command through the proxy.

use std::io::Write;
use std::process::{Command, Stdio};

use bench_engine::{EngineKind, NetworkPolicy};

use crate::support::{BUSYBOX, World};

#[tokio::test(flavor = "multi_thread")]
async fn containers_run_with_limits_and_shared_folders() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    assert!(sandbox.succeed(&["version"]).contains("Server"));
    sandbox.succeed(&["info"]);
    assert_eq!(sandbox.succeed(&["run", "--rm", BUSYBOX, "echo", "hi"]), "hi");

    std::fs::create_dir(sandbox.workspace.join("data")).unwrap();
    std::fs::write(sandbox.workspace.join("data/file"), "shared").unwrap();
    let run = ["run", "--rm", "-v", "/workspace:/all", "-v", "/workspace/data/file:/one:ro", BUSYBOX];
    assert_eq!(sandbox.succeed(&[&run[..], &["cat", "/all/data/file", "/one"]].concat()), "sharedshared");
    sandbox.succeed(&[&run[..], &["sh", "-c", "echo new > /all/data/new"]].concat());
    assert_eq!(std::fs::read_to_string(sandbox.workspace.join("data/new")).unwrap(), "new\n");

    let volume = format!("named-{}:/volume", world.instance);
    let id = sandbox.succeed(&["run", "-d", "--name", "limited", "-v", &volume, BUSYBOX, "sleep", "600"]);
    let limits = sandbox.succeed(&[
        "inspect",
        "--format",
        "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}} {{.HostConfig.NetworkMode}}",
        "limited",
    ]);
    assert_eq!(limits, "134217728 1000000000 64 none");
    assert_eq!(sandbox.succeed(&["exec", "limited", "echo", "inside"]), "inside");
    assert_eq!(sandbox.docker(&["exec", "limited", "sh", "-c", "exit 7"]).status.code(), Some(7));
    std::fs::write(sandbox.workspace.join("in"), "copied").unwrap();
    sandbox.succeed(&["cp", &sandbox.workspace.join("in").display().to_string(), "limited:/tmp/in"]);
    sandbox.succeed(&["cp", "limited:/tmp/in", &sandbox.workspace.join("out").display().to_string()]);
    assert_eq!(std::fs::read_to_string(sandbox.workspace.join("out")).unwrap(), "copied");
    assert!(id.starts_with(&sandbox.succeed(&["ps", "--quiet"])));
    // Podman's older versions can't change limits.
    if world.engine.report().kind == EngineKind::Docker {
        sandbox.succeed(&["update", "--memory", "64m", "--memory-swap", "64m", "limited"]);
    }
    sandbox.succeed(&["kill", "limited"]);
    assert_eq!(sandbox.succeed(&["wait", "limited"]), "137");
    sandbox.succeed(&["rm", "limited"]);

    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_of_commands_pass_through() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    sandbox.succeed(&["run", "-d", "--name", "piped", BUSYBOX, "sleep", "600"]);
    // Input longer than all buffers; its end must reach the command.
    let mut cat = Command::new("docker")
        .args(["exec", "-i", "piped", "cat"])
        .env("DOCKER_HOST", format!("unix://{}", sandbox.proxy.socket().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "line\n".repeat(200_000);
    let mut input = cat.stdin.take().unwrap();
    let written = text.clone();
    std::thread::spawn(move || input.write_all(written.as_bytes()).unwrap());
    let output = cat.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), text.len());
    let ran = sandbox.succeed(&["run", "--rm", BUSYBOX, "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(ran, "out");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_built_under_own_names() {
    let world = World::start().await;
    let sandbox = world.sandbox("s1", NetworkPolicy::None);
    let context = sandbox.workspace.join("context");
    std::fs::create_dir(&context).unwrap();
    let folder = context.display().to_string();
    let dockerfile = |text: &str| std::fs::write(context.join("Dockerfile"), text).unwrap();
    dockerfile(&format!(
        "ARG BASE={BUSYBOX}\nFROM $BASE\nRUN echo built > /made\nCOPY file /file\nCMD cat /made /file\n"
    ));
    std::fs::write(context.join("file"), "from context\n").unwrap();
    let name = "localhost/bench/s1/app:1";
    sandbox.succeed(&["build", "-t", name, &folder]);
    assert_eq!(sandbox.succeed(&["run", "--rm", name]), "built\nfrom context");
    sandbox.refuse(&["build", "-t", "debian:bookworm", &folder], "is not available to this sandbox");
    for (text, expected) in [
        (format!("FROM {BUSYBOX}\nRUN --network=host true"), "Dockerfile:2: the flag `--network` of `RUN`"),
        (format!("FROM {BUSYBOX}\nADD http://127.0.0.1:1/ /x"), "Dockerfile:2: `ADD` of addresses"),
        ("FROM localhost/bench/s2/app:1".to_owned(), "is not available to this sandbox"),
    ] {
        dockerfile(&text);
        sandbox.refuse(&["build", "-t", name, &folder], expected);
    }
    sandbox.refuse(&["build", "--network", "host", "-t", name, &folder], "networkmode");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_runs_services_that_find_each_other() {
    let world = World::start().await;
    if world.engine.report().compose.is_none() {
        panic!("this test needs `docker compose` (Debian: docker-compose; Fedora: docker-compose)");
    }
    let sandbox = world.sandbox("s1", NetworkPolicy::Public);
    let project = sandbox.workspace.join("compose.yaml");
    let text = format!(
        "services:\n  server:\n    image: {BUSYBOX}\n    command: sh -c 'while true; do echo hello | nc -l -p 7000; done'\n  \
         main:\n    image: localhost/bench/s1/main\n    build: .\n    command: sleep 600\n    \
         volumes: ['data:/data']\nvolumes:\n  data:\n"
    );
    std::fs::write(&project, text).unwrap();
    std::fs::write(sandbox.workspace.join("Dockerfile"), format!("FROM {BUSYBOX}\nRUN true\n")).unwrap();
    let file = project.display().to_string();
    let compose = |arguments: &[&str]| {
        let fixed = ["compose", "--project-name", "p1", "--file", &file];
        sandbox.succeed(&[&fixed[..], arguments].concat())
    };
    compose(&["up", "--detach", "--build"]);
    let mut answer = String::new();
    for _ in 0..20 {
        answer = compose(&["exec", "-T", "main", "sh", "-c", "nc -w 2 server 7000 </dev/null; true"]);
        if answer == "hello" {
            break;
        }
    }
    assert_eq!(answer, "hello");
    assert!(compose(&["ps"]).contains("p1-main-1"));
    compose(&["down", "--volumes", "--timeout", "1"]);
    assert_eq!(sandbox.succeed(&["ps", "--all", "--quiet"]), "");
    sandbox.proxy.stop().await.unwrap();
    world.stop().await;
}
