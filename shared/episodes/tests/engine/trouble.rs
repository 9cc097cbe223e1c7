//! Episodes that go wrong. Each has one outcome, and leaves nothing behind, which [`World::run`] checks.

use bench_domain::{Agent, Outcome};
use bench_episodes::{is_retried, verdict};

use crate::support::{World, labels, task};

#[tokio::test]
async fn a_solution_that_ends_its_environment_is_graded() {
    let world = World::new().await;
    let kill = "#!/bin/sh\nkill -9 -1; kill 1; kill -9 1; sleep 5\n";
    let report = world.report(&task(&[("solution/solve.sh", kill)]), Agent::Oracle).await;
    // Whether `kill 1` ends a container depends on the engine's init; in both cases the result is a grade.
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
}

#[tokio::test]
async fn a_solution_that_breaks_its_environment_is_graded() {
    let world = World::new().await;
    // However the agent's command ends.
    for end in ["rm -rf /bin/*", "rm -f /bin/sh /bin/bash\nexit 1"] {
        let solution = format!("#!/bin/sh\ntouch done\n{end}\n");
        let report = world.report(&task(&[("solution/solve.sh", &solution)]), Agent::Oracle).await;
        assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{end}: {report:?}");
        assert!(!is_retried(&report));
    }
}

#[tokio::test]
async fn a_solution_that_fills_the_disk_is_ended_and_graded() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\nstorage_mb = 64\n";
    let fill = "#!/bin/sh\ntouch done\ndd if=/dev/zero of=/full bs=1M count=100\nsleep 600\n";
    let report =
        world.report(&task(&[("task.toml", config), ("solution/solve.sh", fill)]), Agent::Oracle).await;
    assert_eq!(report.last_exception().unwrap().name, "DiskLimitExceededError", "{report:?}");
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect);
    assert!(!is_retried(&report));
}

#[tokio::test]
async fn a_solution_that_fills_its_artifacts_is_graded() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[verifier.environment]\nnetwork_mode = \"no-network\"\n";
    let test = "#!/bin/sh\n[ -f /logs/artifacts/done ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n";
    let fill = "#!/bin/sh\ncd /logs/artifacts; seq 25000 | xargs mkdir\n";
    let dockerfile =
        format!("{}COPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\n", crate::support::DOCKERFILE);
    let files = [
        ("task.toml", config),
        ("tests/test.sh", test),
        ("tests/Dockerfile", &dockerfile),
        ("solution/solve.sh", fill),
    ];
    let report = world.report(&task(&files), Agent::Oracle).await;
    assert_eq!(verdict(&report).outcome, Outcome::Incorrect, "{report:?}");
    assert!(!is_retried(&report));
}

#[tokio::test]
async fn verifiers_without_a_usable_reward_are_no_grades() {
    let world = World::new().await;
    for (test, name) in [
        ("#!/bin/sh\n", "RewardFileNotFoundError"),
        ("#!/bin/sh\n: > /logs/verifier/reward.txt\n", "RewardFileEmptyError"),
        ("#!/bin/sh\necho nan > /logs/verifier/reward.txt\n", "VerifierOutputParseError"),
        ("#!/bin/sh\necho '{\"a\":1,\"b\":0}' > /logs/verifier/reward.json\n", ""),
        ("#!/bin/sh\nln -s /etc/passwd /logs/verifier/reward.txt\n", "VerifierOutputParseError"),
    ] {
        let report = world.report(&task(&[("tests/test.sh", test)]), Agent::Nop).await;
        let ungraded = verdict(&report);
        assert_eq!(ungraded.outcome, Outcome::InfrastructureError, "{name}: {report:?}");
        assert!(!is_retried(&report), "{name}");
        let found = report.last_exception().map_or("", |exception| exception.name.as_str());
        assert_eq!(found, name, "{test}");
    }
}

#[tokio::test]
async fn a_reward_is_found_among_many_and_large_files() {
    let world = World::new().await;
    let test = "#!/bin/sh\nyes a line of the output | head -c 20000000\n\
        for i in $(seq 3000); do : > /logs/verifier/f$i; done\n\
        dd if=/dev/zero of=/logs/verifier/large bs=1M count=60 2>/dev/null\n\
        echo 1 > /logs/verifier/reward.txt\necho the end\n";
    let report = world.report(&task(&[("tests/test.sh", test)]), Agent::Nop).await;
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{:?}", report.last_exception());
    assert!(report.test_output.ends_with("the end\n"), "{}", report.test_output);
    let log = report.log("verifier/test-stdout.txt").unwrap();
    assert!(
        log.bytes == 20_000_008 && log.omitted > 0 && log.text.contains("bytes were left out"),
        "{}",
        log.omitted
    );
}

#[tokio::test]
async fn a_verifier_that_hangs_is_no_grade() {
    let world = World::new().await;
    let config = "[verifier]\ntimeout_sec = 6\n[environment]\nnetwork_mode = \"no-network\"\n";
    let hang = "#!/bin/sh\necho started\nsleep 600\n";
    let report = world.report(&task(&[("task.toml", config), ("tests/test.sh", hang)]), Agent::Nop).await;
    assert_eq!(report.last_exception().unwrap().name, "VerifierTimeoutError", "{report:?}");
    assert_eq!(report.test_output, "started\n", "the output so far is kept");
    assert_eq!(verdict(&report).outcome, Outcome::InfrastructureError);
}

#[tokio::test]
async fn a_build_that_fails_says_why() {
    let world = World::new().await;
    let dockerfile = format!("{}RUN echo a message of the build; exit 3\n", crate::support::DOCKERFILE);
    let report = world.report(&task(&[("environment/Dockerfile", &dockerfile)]), Agent::Nop).await;
    assert_eq!(report.exception.as_ref().unwrap().name, "SandboxBuildFailedError");
    assert!(is_retried(&report));
    assert!(report.log("engine.txt").unwrap().text.contains("a message of the build"), "{report:?}");
}

#[tokio::test]
async fn what_only_compose_resolves_is_refused_with_its_line() {
    let world = World::new().await;
    let compose = "services:\n  main:\n    build: .\n    volumes: ['${FROM:-/etc}:/host']\n";
    let report = world.report(&task(&[("environment/docker-compose.yaml", compose)]), Agent::Nop).await;
    let refused = verdict(&report);
    assert!(refused.reason.contains("docker-compose.yaml` line 4"), "{}", refused.reason);
    assert!(!is_retried(&report), "{report:?}");
}

#[tokio::test]
async fn a_failed_health_check_ends_the_episode() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[environment.healthcheck]\ncommand = \"echo ill; false\"\n\
        interval_sec = 0.2\ntimeout_sec = 2\nretries = 2\n";
    let report = world.report(&task(&[("task.toml", config)]), Agent::Oracle).await;
    assert_eq!(report.exception.as_ref().unwrap().name, "HealthcheckError", "{report:?}");
    assert!(is_retried(&report));
}

#[tokio::test]
async fn what_a_lost_sandbox_left_is_removed_through_another_one() {
    let world = World::new().await;
    let slow = task(&[("solution/solve.sh", "#!/bin/sh\nsleep 600\n")]);
    let labels = labels(&uuid::Uuid::new_v4().simple().to_string());
    let (state, other) = world.lose_sandbox(&slow, &labels).await;
    assert_eq!(world.count(&other, &labels).await, 1);
    world.remove_other_rounds(&other, &labels, &state.nonce).await;
    assert_eq!(world.count(&other, &labels).await, 1, "the round itself is not another one");
    world.remove_other_rounds(&other, &labels, "later").await;
    assert_eq!(world.count(&other, &labels).await, 0);
    // The end of the run comes to the same, and can be repeated.
    assert_eq!(world.cancel(&other, &state).await, Ok(()));
}
