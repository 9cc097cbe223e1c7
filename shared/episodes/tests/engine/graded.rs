//! Episodes that are graded.

use std::time::Duration;

use bench_domain::{Agent, Outcome};
use bench_episodes::{is_retried, verdict};

use crate::support::{DOCKERFILE, SOLUTION, TEST, World, task};

#[tokio::test]
async fn the_oracle_earns_the_reward_and_nop_does_not() {
    let world = World::new().await;
    let report = world.report(&task(&[]), Agent::Oracle).await;
    let graded = verdict(&report);
    assert_eq!((graded.outcome, graded.score), (Outcome::Correct, Some(1.0)), "{report:?}");
    assert_eq!(report.log("agent/oracle.txt").unwrap().text, "working\n");
    assert_eq!(report.log("verifier/test-stdout.txt").unwrap().text, "1 passed\n");
    assert_eq!((report.test_output.as_str(), report.exception), ("1 passed\n", None));
    assert!(report.engine.starts_with("podman") || report.engine.starts_with("docker"), "{}", report.engine);
    let report = world.report(&task(&[]), Agent::Nop).await;
    assert_eq!((verdict(&report).outcome, verdict(&report).score), (Outcome::Incorrect, Some(0.0)));
}

#[tokio::test]
async fn turns_of_no_time_lead_to_the_same_end() {
    let world = World::new().await;
    let slow = "#!/bin/sh\nsleep 2\necho once >> /app/count\ntouch done\n";
    let counted =
        "#!/bin/sh\nsleep 1\n[ \"$(cat /app/count)\" = once ] && echo 1 > /logs/verifier/reward.txt\n";
    let task = task(&[("solution/solve.sh", slow), ("tests/test.sh", counted)]);
    let report = world.run(&task, Agent::Oracle, Duration::ZERO).await.unwrap();
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
}

#[tokio::test]
async fn rewards_can_be_partial_and_time_outs_are_graded() {
    let world = World::new().await;
    let half = "#!/bin/sh\necho '{\"reward\": 0.5, \"other\": 1}' > /logs/verifier/reward.json\n\
        echo '{\"results\":{\"summary\":{\"tests\":2,\"passed\":1,\"failed\":1}}}' > /logs/verifier/ctrf.json\n";
    let report = world.report(&task(&[("tests/test.sh", half)]), Agent::Nop).await;
    assert_eq!((verdict(&report).outcome, verdict(&report).score), (Outcome::Partial, Some(0.5)));
    assert_eq!(report.steps[0].tests.unwrap().total, 2);
    let endless = "#!/bin/sh\ntouch done\nsleep 600\n";
    let limits = "[agent]\ntimeout_sec = 6\n[environment]\nnetwork_mode = \"no-network\"\n";
    let report =
        world.report(&task(&[("solution/solve.sh", endless), ("task.toml", limits)]), Agent::Oracle).await;
    assert_eq!(report.steps[0].exception.as_ref().unwrap().name, "AgentTimeoutError");
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
}

#[tokio::test]
async fn steps_follow_each_other_in_one_environment() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[[steps]]\nname = \"one\"\nmin_reward = 1.0\n[[steps]]\nname = \"two\"\n";
    let second = "#!/bin/sh\n[ -f done ] && [ -f prepared ] && [ -f second ] && echo 0.5 > /logs/verifier/reward.txt\n";
    let mut files = task(&[
        ("task.toml", config),
        ("steps/one/instruction.md", "First."),
        ("steps/one/tests/test.sh", TEST),
        ("steps/one/solution/solve.sh", SOLUTION),
        ("steps/two/instruction.md", "Second."),
        ("steps/two/workdir/setup.sh", "touch prepared\n"),
        ("steps/two/tests/test.sh", second),
        // Nothing of the first step's verification is left.
        (
            "steps/two/solution/solve.sh",
            "#!/bin/sh\n[ -z \"$(ls /tests /logs/verifier | grep -v :)\" ] && touch second\n",
        ),
    ]);
    files.retain(|(path, _)| {
        !path.starts_with("solution/") && *path != "instruction.md" && !path.starts_with("tests/")
    });
    let report = world.report(&files, Agent::Oracle).await;
    assert_eq!(report.steps.len(), 2, "{report:?}");
    assert_eq!(verdict(&report).score, Some(0.75));
    assert!(report.log("steps/one/verifier/test-stdout.txt").is_some(), "{report:?}");
    // A step whose environment the agent breaks counts as 0, and is not left out.
    let breaks = files.iter().map(|(path, text)| match *path {
        "steps/two/solution/solve.sh" => (*path, "#!/bin/sh\nrm -f /bin/sh /bin/bash\nexit 1\n"),
        _ => (*path, *text),
    });
    let report = world.report(&breaks.collect::<Vec<_>>(), Agent::Oracle).await;
    assert_eq!((report.steps.len(), verdict(&report).score), (2, Some(0.5)), "{report:?}");
    // The first step's reward is too low for the second.
    let report = world.report(&files, Agent::Nop).await;
    assert_eq!((report.steps.len(), verdict(&report).score), (1, Some(0.0)));
}

#[tokio::test]
async fn a_separate_verifier_gets_the_artifacts_only() {
    let world = World::new().await;
    let config = "artifacts = [{source = \"/app/made\", exclude = [\"*.tmp\"]}]\n[environment]\nnetwork_mode = \"no-network\"\n[verifier.environment]\nnetwork_mode = \"no-network\"\n";
    let test = "#!/bin/sh\n[ \"$(cat /app/made/a.txt)\" = right ] && [ ! -f /app/hidden ] && [ ! -f /app/made/b.tmp ] && echo 1 > /logs/verifier/reward.txt\n";
    let solution = "#!/bin/sh\nmkdir made; echo right > made/a.txt; touch hidden made/b.tmp\n";
    let dockerfile = format!("{DOCKERFILE}COPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\n");
    let with_file = format!("{dockerfile}RUN mkdir /app/made && touch /app/made/a.txt\n");
    let (dockerfile, with_file) = (dockerfile.as_str(), with_file.as_str());
    let files = task(&[
        ("task.toml", config),
        ("tests/test.sh", test),
        ("tests/Dockerfile", dockerfile),
        ("solution/solve.sh", solution),
    ]);
    let report = world.report(&files, Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
    assert_eq!(report.log("artifacts/app/made/a.txt").unwrap().text, "right\n");
    // A folder in the place of the verifier's file can't be put there.
    let files = files.into_iter().map(|(path, text)| match path {
        "solution/solve.sh" => (path, "#!/bin/sh\nmkdir -p made/a.txt; touch 'made/a.txt/unexpected eof'\n"),
        "tests/Dockerfile" => (path, with_file),
        _ => (path, text),
    });
    let report = world.report(&files.collect::<Vec<_>>(), Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
    assert!(!is_retried(&report), "{report:?}");
}

#[tokio::test]
async fn no_artifact_escapes_a_separate_verifier_by_its_size() {
    let world = World::new().await;
    let config = "artifacts = [{source = \"/app/made\", exclude = [\"*.tmp\"]}]\n[environment]\nnetwork_mode = \"no-network\"\n[verifier.environment]\nnetwork_mode = \"no-network\"\n";
    let test = "#!/bin/sh\n[ ! -e /app/made/bad ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n";
    let dockerfile = format!("{DOCKERFILE}COPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\n");
    for (command, outcome) in [
        ("truncate -s 34M made/large.tmp; seq 2000 | (cd made && xargs touch)", Outcome::Correct),
        ("truncate -s 34M made/bad", Outcome::Incorrect),
    ] {
        let solution = format!("#!/bin/sh\nmkdir made\n{command}\n");
        let files = task(&[
            ("task.toml", config),
            ("tests/test.sh", test),
            ("tests/Dockerfile", &dockerfile),
            ("solution/solve.sh", &solution),
        ]);
        let report = world.report(&files, Agent::Oracle).await;
        assert_eq!(verdict(&report).outcome, outcome, "{command}: {report:?}");
        assert!(!is_retried(&report), "{command}");
    }
}

#[tokio::test]
async fn a_path_that_is_too_long_hides_no_reward() {
    let world = World::new().await;
    // From the inside out, since no shell changes into such a folder.
    let solution = "#!/bin/sh\nset -e\nname=$(printf 'x%.0s' $(seq 200))\nmkdir out\n\
        for level in $(seq 30); do mkdir wrap; mv out wrap/$name; mv wrap out; done; touch made\n";
    let test = "#!/bin/sh\n[ -e /app/made ] || exit 1\n\
        mkdir /logs/verifier/a && mv /app/out /logs/verifier/a/\necho 0 > /logs/verifier/reward.txt\n";
    let files = task(&[("solution/solve.sh", solution), ("tests/test.sh", test)]);
    let report = world.report(&files, Agent::Oracle).await;
    assert_eq!(
        (verdict(&report).outcome, verdict(&report).score),
        (Outcome::Incorrect, Some(0.0)),
        "{report:?}"
    );
}

#[tokio::test]
async fn variables_come_from_the_order_and_the_task() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[environment.env]\nA = \"${GIVEN}\"\nB = \"${OTHER:-default $1}\"\n\
        [verifier.env]\nC = \"${GIVEN:-x}\"\n";
    let test = "#!/bin/sh\necho \"$A|$B|$C|$HOME|$OPENROUTER_API_KEY\"\necho 1 > /logs/verifier/reward.txt\n";
    let report = world.report(&task(&[("task.toml", config), ("tests/test.sh", test)]), Agent::Nop).await;
    assert!(
        report.test_output.starts_with("from the order|default $1|from the order|"),
        "{}",
        report.test_output
    );
    let missing = "[environment]\nnetwork_mode = \"no-network\"\n[environment.env]\nA = \"${PATH}\"\n";
    let report = world.report(&task(&[("task.toml", missing)]), Agent::Nop).await;
    let refused = verdict(&report);
    assert!(refused.reason.contains("needs the variable `PATH`"), "{}", refused.reason);
}

#[tokio::test]
async fn the_older_format_is_graded_by_the_output_of_its_tests() {
    let world = World::new().await;
    let compose = "services:\n  client:\n    build: {dockerfile: Dockerfile}\n    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n    \
        container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    command: [sh, -c, sleep infinity]\n    \
        environment: ['TEST_DIR=${T_BENCH_TEST_DIR}']\n    volumes:\n      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\n      \
        - ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}\n";
    let tests = "echo '=== short test summary info ==='\nif [ -f done ]; then echo 'PASSED test.py::a'; else echo 'FAILED test.py::a'; fi\n";
    let files = [
        ("task.yaml", "instruction: Do it.\ndifficulty: easy\n"),
        ("docker-compose.yaml", compose),
        ("Dockerfile", DOCKERFILE),
        ("run-tests.sh", tests),
        ("solution.sh", "touch done\n"),
    ];
    let report = world.report(&files, Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
    assert_eq!(report.steps[0].tests.unwrap().passed, 1);
    let report = world.report(&files, Agent::Nop).await;
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
    // An agent that leaves nothing to test with doesn't avoid its grade.
    let files = files.map(|(path, text)| match path {
        "solution.sh" => (path, "touch done\nrm -rf /bin/*\n"),
        _ => (path, text),
    });
    let report = world.report(&files, Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
    assert!(!is_retried(&report), "{report:?}");
}

#[tokio::test]
async fn a_converted_task_has_the_variables_of_harbor() {
    let world = World::new().await;
    // What Harbor's converter of older tasks writes, and the mounts of older tasks.
    let compose = "services:\n  main:\n    build: {context: '${CONTEXT_DIR}'}\n    image: ${MAIN_IMAGE_NAME}\n    \
        command: [sh, -c, sleep infinity]\n    environment: ['TEST_DIR=${TEST_DIR}']\n    \
        deploy: {resources: {limits: {cpus: '${CPUS}', memory: '${MEMORY}'}}}\n    \
        volumes: ['${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}', '${HOST_AGENT_LOGS_PATH}:${ENV_AGENT_LOGS_PATH}']\n";
    let report = world.report(&task(&[("environment/docker-compose.yaml", compose)]), Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
}
