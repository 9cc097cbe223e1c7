//! Custom agents: files, install script and run command in the container.

use std::io::{Cursor, Write as _};
use std::time::Duration;

use bench_domain::{EpisodeReport, Outcome};
use bench_episodes::{is_retried, verdict};
use bench_terminal_tasks::CustomAgent;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{DOCKERFILE, TEST, World, task};

const LONG: Duration = Duration::from_secs(20);
/// Creates what the tests look for.
const RUN: &str = "name = \"tiny\"\nversion = \"1.0\"\nrun = \"touch done\"\n";

fn agent(config: &str, files: &[(&str, &str)]) -> CustomAgent {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files.iter().copied().chain([("agent.toml", config)]) {
        zip.start_file(path, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    CustomAgent::read(Cursor::new(zip.finish().unwrap().into_inner())).unwrap()
}

fn exception(report: &EpisodeReport) -> (&str, &str) {
    let exception = report.last_exception().unwrap_or_else(|| panic!("{report:?}"));
    (exception.name.as_str(), exception.message.as_str())
}

#[tokio::test]
async fn an_agent_is_installed_as_root_and_works_as_the_task_s_user() {
    let world = World::new().await;
    let config = "name = \"tiny\"\nversion = \"1.0\"\ninstall = \"setup/in stall.sh\"\n\
        run = \"cat $AGENT_INSTRUCTION_FILE; sh /installed-agent/lib/go.sh 'it''s' # a comment\"\n\
        [env]\nWHO = \"${GIVEN}\"\nMODE = \"${MODE:-fast}\"\n";
    let install = "#!/bin/sh\nset -e\n[ $(id -u) = 0 ] && [ \"$MODE\" = fast ] && [ $DEBIAN_FRONTEND = noninteractive ]\n\
        [ \"$PWD\" = /installed-agent ] && [ ! -e instruction.md ]\necho once >> /installed-agent/count\n";
    let go = "set -e\necho; echo \"$(id -u) $PWD $WHO $MODE $1 $(cat /installed-agent/count)\"\ntouch done\n";
    let agent = agent(config, &[("setup/in stall.sh", install), ("lib/go.sh", go)]);
    let open = format!("{DOCKERFILE}RUN chmod 777 /app\n");
    let limits = "[agent]\nuser = 1000\ntimeout_sec = 600\n[environment]\nnetwork_mode = \"no-network\"\n";
    let files = task(&[("task.toml", limits), ("environment/Dockerfile", &open)]);
    // As in turns that are killed after each operation.
    for linger in [LONG, Duration::ZERO] {
        let report = world.custom(&files, &agent, linger).await;
        assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
        assert_eq!(report.agent, "custom/tiny@1.0");
        let log = &report.log("agent/custom.txt").unwrap().text;
        assert_eq!(log, "Create the file `done`.\n1000 /app from the order fast its once\n");
        assert!(report.steps[0].agent_ms.is_some());
    }
}

#[tokio::test]
async fn an_install_script_that_fails_is_no_grade() {
    let world = World::new().await;
    let config = format!("{RUN}install = \"install.sh\"\ninstall_timeout_sec = 6\n");
    let broken = agent(&config, &[("install.sh", "echo first\necho 'no such package' >&2\nexit 7\n")]);
    let report = world.custom(&task(&[]), &broken, LONG).await;
    let expected = "the install script of the agent ended with exit code 7: no such package";
    assert_eq!(exception(&report), ("RuntimeError", expected));
    assert_eq!(report.log("agent/install.txt").unwrap().text, "first\nno such package\n");
    assert_eq!((verdict(&report).outcome, verdict(&report).score), (Outcome::InfrastructureError, None));
    assert!(is_retried(&report));

    let endless = agent(&config, &[("install.sh", "echo waiting\nsleep 600\n")]);
    let report = world.custom(&task(&[]), &endless, LONG).await;
    let expected = "the install script of the agent did not end within its 6 s: waiting";
    assert_eq!(exception(&report), ("AgentSetupTimeoutError", expected));
    assert_eq!(verdict(&report).outcome, Outcome::InfrastructureError);
    assert!(is_retried(&report));
}

#[tokio::test]
async fn time_outs_and_exit_codes_are_graded() {
    let world = World::new().await;
    let limits = "[agent]\ntimeout_sec = 6\n[environment]\nnetwork_mode = \"no-network\"\n";
    // The time of the install script isn't the agent's, which would be over before it did anything.
    let slow = agent(
        &RUN.replace("done", "done; sleep 600").replace("name", "install = \"i\"\nname"),
        &[("i", "sleep 8\n")],
    );
    let report = world.custom(&task(&[("task.toml", limits)]), &slow, LONG).await;
    assert_eq!(exception(&report), ("AgentTimeoutError", "the agent did not end within its 6 s"));
    assert!(report.setup_ms.unwrap() >= 8_000, "{report:?}");
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");

    let fails = agent(&RUN.replace("touch done", "echo 'not today'; exit 3"), &[]);
    let report = world.custom(&task(&[]), &fails, LONG).await;
    assert_eq!(
        exception(&report),
        ("NonZeroAgentExitCodeError", "the agent's command ended with exit code 3")
    );
    assert_eq!((verdict(&report).outcome, verdict(&report).score), (Outcome::Incorrect, Some(0.0)));
    assert_eq!(report.log("agent/custom.txt").unwrap().text, "not today\n");
}

#[tokio::test]
async fn later_steps_have_their_instruction_and_no_other_installation() {
    let world = World::new().await;
    let config = "[environment]\nnetwork_mode = \"no-network\"\n[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n";
    let second = "#!/bin/sh\n[ \"$(cat texts)\" = \"First.Second.\" ] && [ \"$(cat /count)\" = once ] && echo 1 > /logs/verifier/reward.txt\n";
    let files = task(&[
        ("task.toml", config),
        ("steps/one/instruction.md", "First."),
        ("steps/one/tests/test.sh", TEST),
        ("steps/two/instruction.md", "Second."),
        ("steps/two/tests/test.sh", second),
    ]);
    let unused = ["instruction.md", "tests/test.sh", "solution/solve.sh"];
    let files: Vec<_> = files.into_iter().filter(|(path, _)| !unused.contains(path)).collect();
    let config = "name = \"tiny\"\ninstall = \"install.sh\"\nrun = \"cat $AGENT_INSTRUCTION_FILE >> texts; touch done\"\n";
    let agent = agent(config, &[("install.sh", "echo once >> /count\n")]);
    let report = world.custom(&files, &agent, LONG).await;
    assert_eq!(verdict(&report).outcome, Outcome::Correct, "{report:?}");
    assert!(report.log("steps/two/agent/custom.txt").is_some());
    assert_eq!(report.agent, "custom/tiny");
}

#[tokio::test]
async fn an_agent_can_t_avoid_a_grade_by_breaking_its_environment() {
    let world = World::new().await;
    let breaks = agent(&format!("{RUN}install = \"i\"\n"), &[("i", "rm -f /bin/sh /bin/bash\n")]);
    let report = world.custom(&task(&[]), &breaks, LONG).await;
    assert_eq!(exception(&report).0, "EnvironmentGoneError", "{report:?}");
    assert_eq!((verdict(&report).outcome, verdict(&report).score), (Outcome::Incorrect, Some(0.0)));
}
