//! Agents that ask a model, in real containers with a real terminal.

use bench_domain::{Agent, Outcome};
use serde_json::{Value, json};

use crate::support::{World, task};
use crate::thinking::DOCKERFILE;

const FILES: [(&str, &str); 1] = [("environment/Dockerfile", DOCKERFILE)];

/// Types a command that counts the lines of a file.
const COUNT: &str = "wc -l < log.txt | sed 's/^ */lines:/'\n";

fn reply(keystrokes: &[(&str, f64)], is_complete: bool) -> String {
    let commands: Vec<Value> =
        keystrokes.iter().map(|(keys, wait)| json!({ "keystrokes": keys, "duration": wait })).collect();
    let commands = Value::Array(commands);
    format!(r#"{{"analysis":"a","plan":"p","commands":{commands},"task_complete":{is_complete}}}"#)
}

#[tokio::test]
async fn a_model_types_into_a_terminal() {
    let world = World::new().await;
    let long = format!("cat > long.txt <<'END'\n{}END\n", "0123456789abcdef\n".repeat(6_000));
    let replies = [
        (reply(&[("touch done\n", 0.1), ("echo first >> log.txt\n", 0.3), (COUNT, 0.5)], false), "lines:1"),
        // The terminal shows what is typed before the result is there.
        (reply(&[("echo $((40 + 2))begun; sleep 3600\n", 0.3)], false), "42begun"),
        (reply(&[("C-c", 0.3), ("echo $?\n", 0.5)], false), "130"),
        (reply(&[(long.as_str(), 0.5), ("wc -c long.txt\n", 1.0)], false), "102000 long.txt"),
        ("no JSON at all".to_owned(), ""),
        (reply(&[("echo over\n", 0.3)], true), ""),
        (reply(&[("echo 'it''s'\n", 0.1)], true), ""),
    ];
    let thought = world.think_until(&task(&FILES), Agent::Terminus2, &[], &replies).await;
    let messages = thought.messages();
    assert_eq!(thought.end(), "completed", "{messages:#?}");
    assert!(messages[0].contains("Create the file `done`."), "{}", messages[0]);
    assert!(messages[1].starts_with("New Terminal Output:"), "{}", messages[1]);
    assert!(messages[1].contains("lines:1"), "typed once: {}", messages[1]);
    assert!(messages[3].contains("^C") && messages[3].contains("130"), "{}", messages[3]);
    // 6,000 lines of 17 bytes arrive whole, though no command can be so long.
    assert!(messages[4].contains("102000 long.txt"), "{}", &messages[4]);
    assert!(messages[5].contains("ERROR:"), "{}", messages[5]);
    let report = &thought.report;
    assert_eq!(bench_episodes::verdict(report).outcome, Outcome::Correct, "{report:?}");
    assert!(report.log("agent/terminus_2.pane").is_some_and(|log| log.text.contains("first")));
    println!("{} bytes stored in {} turns", thought.stored_bytes, replies.len());
}

/// The package managers are stand-ins that note their arguments and bring what the image hides.
#[tokio::test]
async fn a_terminal_that_is_missing_is_installed() {
    for (manager, calls) in [
        ("apt-get", "update -qq\ninstall -y -qq tmux\nupdate -qq\ninstall -y -qq asciinema\n"),
        ("apk", "add --no-cache tmux\nadd --no-cache asciinema\n"),
    ] {
        let world = World::new().await;
        let script = "#!/bin/sh\\necho \"$@\" >> /calls\\ncase \"$*\" in *tmux) mv /hidden /bin/tmux ;; *asciinema) exit 1 ;; esac\\n";
        let image = format!(
            "{DOCKERFILE}RUN mv /bin/tmux /hidden && printf '{script}' > /bin/{manager} && chmod 755 /bin/{manager}\n"
        );
        let replies = [
            (reply(&[("touch done; cat /calls\n", 0.5)], false), calls.lines().last().unwrap()),
            (reply(&[], true), ""),
            (reply(&[], true), ""),
        ];
        let files = task(&[("environment/Dockerfile", image.as_str())]);
        let thought = world.think_until(&files, Agent::Terminus2, &[], &replies).await;
        assert_eq!(thought.end(), "completed");
        assert!(thought.messages()[1].contains(calls), "{manager}: {}", thought.messages()[1]);
        assert!(
            thought.report.log("agent/recording.cast").is_none(),
            "without its program there is no recording"
        );
        assert_eq!(bench_episodes::verdict(&thought.report).outcome, Outcome::Correct);
    }
}

#[tokio::test]
async fn a_terminal_that_can_not_be_installed_ends_the_episode_before_the_model_is_asked() {
    let world = World::new().await;
    let image = format!("{DOCKERFILE}RUN rm /bin/tmux\n");
    let files = task(&[("environment/Dockerfile", image.as_str())]);
    let thought = world.think(&files, Agent::Terminus2, &[], &[]).await;
    let exception = thought.report.last_exception().unwrap();
    assert!(
        exception.message.starts_with("the container has no tmux, and it could not be installed"),
        "{exception:?}"
    );
    assert!(!bench_episodes::verdict(&thought.report).outcome.is_graded());
}

#[tokio::test]
async fn keystrokes_that_end_the_terminal_end_the_agent() {
    for keys in ["exit\n", "tmux kill-server\n"] {
        let world = World::new().await;
        let replies = [(reply(&[("touch done\n", 0.2), (keys, 0.5)], false), "never shown")];
        let thought = world.think_until(&task(&FILES), Agent::Terminus2, &[], &replies).await;
        assert_eq!(thought.end(), "terminal_ended");
        assert_eq!(
            bench_episodes::verdict(&thought.report).outcome,
            Outcome::Correct,
            "{keys}: it is graded"
        );
    }
}

#[tokio::test]
async fn a_model_runs_commands() {
    let world = World::new().await;
    let long = format!("cat > long.txt <<'END'\n{}END\nwc -c long.txt", "0123456789abcdef\n".repeat(6_000));
    let fenced = |script: &str| format!("```bash\n{script}\n```\n");
    let replies = [
        fenced("echo once >> log.txt; cat log.txt; echo error >&2; pwd; exit 3"),
        fenced("sleep 3600"),
        fenced(&long),
        fenced("yes | head -c 30000"),
        fenced("touch done; kill -9 $$"),
        "```done\n```".to_owned(),
    ];
    let options = [("command_timeout_sec", "10")];
    let thought = world.think(&task(&FILES), Agent::Bash, &options, &replies).await;
    let messages = thought.messages();
    assert_eq!(messages[1], "Exit code: 3\nOutput:\nonce\nerror\n/app\n");
    assert!(messages[2].starts_with("Killed after 10 seconds."), "{}", messages[2]);
    assert!(messages[3].contains("102000 long.txt"), "{}", messages[3]);
    assert!(messages[4].contains("bytes") && messages[4].len() < 12_000, "{}", messages[4]);
    assert!(messages[5].starts_with("Exit code: 137"), "{}", messages[5]);
    assert_eq!(thought.end(), "completed");
    assert_eq!(bench_episodes::verdict(&thought.report).outcome, Outcome::Correct);
}

#[tokio::test]
async fn each_step_is_a_conversation_of_its_own_in_the_same_container() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n";
    let test = |file: &str| {
        format!("#!/bin/sh\nif [ -f {file} ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n")
    };
    let (first, second) = (test("one.txt"), test("two.txt"));
    let mut files = task(&FILES);
    files.extend([
        ("steps/one/instruction.md", "Create one.txt."),
        ("steps/one/tests/test.sh", first.as_str()),
        ("steps/two/instruction.md", "Copy it to two.txt."),
        ("steps/two/tests/test.sh", second.as_str()),
    ]);
    files.retain(|(path, _)| {
        !["solution/", "tests/", "instruction.md", "task.toml"].iter().any(|own| path.starts_with(own))
    });
    files.push(("task.toml", config));
    let scripts = ["echo 1 > one.txt", "cp one.txt two.txt; ls"];
    let of_terminal = |script: &str| {
        let typed = format!("{script}; echo $((40 + 2))over\n");
        [(reply(&[(&typed, 0.5)], false), "42over"), (reply(&[], true), ""), (reply(&[], true), "")].to_vec()
    };
    let of_shell =
        |script: &str| vec![(format!("```bash\n{script}\n```\n"), ""), ("```done\n```".to_owned(), "")];
    for (agent, replies) in
        [(Agent::Terminus2, scripts.map(of_terminal).concat()), (Agent::Bash, scripts.map(of_shell).concat())]
    {
        let thought = world.think_until(&files, agent, &[], &replies).await;
        let report = &thought.report;
        assert_eq!(bench_episodes::verdict(report).outcome, Outcome::Correct, "{report:?}");
        assert_eq!(report.steps.len(), 2, "{report:?}");
        for step in &report.steps {
            let outcome = step.agent.as_ref().unwrap();
            assert_eq!(outcome.end, "completed");
            // The model of the terminal may have to wait.
            let (calls, least) = (outcome.totals.calls as usize, replies.len() / 2);
            assert!(calls == least || agent == Agent::Terminus2 && calls > least, "{outcome:?}");
        }
        // Those of the second step.
        let messages = thought.messages();
        assert!(messages[0].contains("Copy it to two.txt."), "{messages:#?}");
        assert!(!messages.iter().any(|message| message.contains("Create one.txt.")), "{messages:#?}");
    }
}

#[tokio::test]
async fn the_oracle_types_keystrokes() {
    let world = World::new().await;
    let config = "instruction: Create the file `done`.\ndifficulty: easy\nmax_agent_timeout_sec: 600\nmax_test_timeout_sec: 600\n";
    let compose = "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n    \
        container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    command: [\"sh\", \"-c\", \"sleep infinity\"]\n    \
        volumes:\n      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\n      - \
        ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}\n    network_mode: none\n";
    let test = "cd /app; echo '=== short test summary info ==='; [ -f done ] && echo PASSED t.py::test_a || echo FAILED t.py::test_a\n";
    let solution = "- command: sleep 2; touch almost\n  block: true\n  max_timeout_sec: 120\n- command: mv almost 'done'\n  min_timeout_sec: 1\n\
        - command: ls\n  block: true\n  max_timeout_sec: 120\n";
    let files = [
        ("task.yaml", config),
        ("docker-compose.yaml", compose),
        ("Dockerfile", DOCKERFILE),
        ("run-tests.sh", test),
        ("solution.yaml", solution),
    ];
    let report = world.in_terminal(&files, Agent::Oracle).await;
    assert_eq!(bench_episodes::verdict(&report).outcome, Outcome::Correct, "{report:?}");
    assert!(report.log("agent/oracle.txt").is_some_and(|log| log.text.contains("mv almost")), "{report:?}");
    let late = "- command: sleep 3600\n  block: true\n  max_timeout_sec: 2\n- command: touch done\n";
    let files = files.map(|(path, text)| if path == "solution.yaml" { (path, late) } else { (path, text) });
    let report = world.in_terminal(&files, Agent::Oracle).await;
    assert_eq!(bench_episodes::verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
    assert_eq!(report.last_exception().map(|raised| raised.name.as_str()), Some("AgentTimeoutError"));
}
