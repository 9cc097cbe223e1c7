//! Agents that work on programming tasks in a sandbox: their changes are graded as replies, whatever fails.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bench_domain::{Code, Outcome, RunId, RunStatus, SampleBody, Verdict};
use bench_embedded::Recorder;
use bench_sandy::testing::{Call, Endpoint, Fault, Options};
use bench_state::SampleRecord;
use bench_tests::model_server::{ModelRequest, Reply};
use serde_json::{Value, json};

use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

const NAME: &str = "code_lab";
/// Model calls of [`repairs`].
const CALLS: u64 = 3;
const REPAIR: &str = "printf 'import sys\\nprint(int(sys.argv[1]) + int(sys.argv[2]))\\n' > add.py";

/// Writes a data set of one task: a program that subtracts and should add. Its tests run outside of the answer.
fn task() -> PathBuf {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let metadata = r#"{"language": "python", "instructions_file": "i.md", "eval": {"command": ["lab"], "timeout_seconds": 60}}"#;
    let tests = "import lab\n\n\nclass Add(lab.Case):\n    def test_numbers(self):\n        self.assertEqual(self.program('python3', 'add.py', '2', '3').stdout, '5\\n')\n";
    let files = json!({
        "metadata.json": { "text": metadata },
        "i.md": { "text": "[item t0] The sum is a difference." },
        "workspace/add.py": { "text": "import sys\nprint(int(sys.argv[1]) - int(sys.argv[2]))\n" },
        "tests/test_add.py": { "text": tests },
    });
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("code-agent-{number}.jsonl"));
    fs::write(&path, json!({ "task_id": "add", "files": files }).to_string() + "\n").unwrap();
    path
}

fn order() -> Order {
    Order::code_agent(task(), &[])
}

fn settings() -> Settings {
    settings_with(|_| Fault::None)
}

fn settings_with(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Settings {
    Settings {
        sandboxes: Some(Options { rule: Some(Arc::new(rule)), ..Options::default() }),
        ..Settings::default()
    }
}

/// Returns the number of turns before a request.
fn turns_before(request: &ModelRequest) -> usize {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "assistant").count()
}

/// Replies with one command a turn, then says that the task is done.
fn runs(commands: &'static [&'static str]) -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
    move |request| {
        Reply::Text(match commands.get(turns_before(request)) {
            Some(command) => format!("I work.\n```bash\n{command}\n```\n"),
            None => "```done\n```\n".to_owned(),
        })
    }
}

/// Notes each run of its first command in a file of the project, then repairs it.
fn repairs(request: &ModelRequest) -> Reply {
    runs(&["cat add.py; echo ran >> notes.txt", REPAIR])(request)
}

async fn only_sample(world: &World, run: RunId) -> (SampleRecord, SampleBody) {
    world.first_sample(run, NAME).await
}

/// Runs an agent to its end. Returns the verdict and the stored body.
async fn verdict_of(
    settings: Settings,
    order: Order,
    commands: &'static [&'static str],
) -> (Verdict, SampleBody) {
    let world = World::open(settings, runs(commands)).await;
    let run = order.place(&world).await;
    ManualDriver::new(&world, 0).drain().await;
    check(&world, run, Expected::SUCCEEDED).await;
    assert_eq!(world.sandbox_host().open(), Vec::<String>::new());
    let (sample, body) = only_sample(&world, run).await;
    (sample.finished.unwrap().verdict, body)
}

/// Checks that the change is graded as a reply would be, and was made once.
fn check_repaired(verdict: &Verdict, body: &SampleBody) {
    assert_eq!((verdict.outcome, &verdict.detail["verdict"]), (Outcome::Correct, &json!("tests-passed")));
    let diff = "--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n import sys\n-print(int(sys.argv[1]) - int(sys.argv[2]))\n+print(int(sys.argv[1]) + int(sys.argv[2]))\n--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+ran\n";
    assert_eq!(body.answer.text, format!("```diff\n{diff}```\n"));
    assert!(body.execution.is_some() && body.episode.is_some());
}

#[test]
fn a_repaired_project_passes_its_tests() {
    runtime().block_on(async {
        let world = World::open(settings(), repairs).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let (sample, body) = only_sample(&world, run).await;
        let finished = sample.finished.unwrap();
        check_repaired(&finished.verdict, &body);
        // One sandbox for the agent, and another one for the tests.
        assert_eq!((world.sandbox_host().created_count(), world.sandbox_host().open().len()), (2, 0));
        assert_eq!(world.model.total(), CALLS);
        let report = body.episode.unwrap();
        let outcome = report.steps[0].agent.clone().unwrap();
        assert_eq!(
            (report.agent.as_str(), outcome.end.as_str(), outcome.totals.turns),
            ("bash", "completed", 3)
        );
        let detail = &finished.verdict.detail;
        assert_eq!(
            (&detail["agent"], &detail["agent_end"], &detail["turns"]),
            (&json!("bash"), &json!("completed"), &json!(3))
        );
        let usage = finished.usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (outcome.totals.input_tokens, outcome.totals.output_tokens)
        );
        let trajectory: Value =
            serde_json::from_str(&report.log("agent/trajectory.json").unwrap().text).unwrap();
        let seen = trajectory["steps"][1]["observation"].to_string();
        assert!(seen.contains("print(int(sys.argv[1]) - int(sys.argv[2]))"), "{seen}");
        // The agent is told its folder, and sees no test.
        let told = trajectory["steps"][0]["message"].as_str().unwrap();
        assert!(told.contains("The sum is a difference.") && told.contains("/workspace`"), "{told}");
        assert!(!trajectory.to_string().contains("test_numbers"));
        let found = world.stored_run(run).await;
        let plan = found.benchmarks[0].plan.clone().unwrap();
        assert_eq!((plan.protocol_name.as_str(), plan.options["agent"].as_str()), ("agent", "bash"));
    });
}

#[test]
fn an_agent_that_does_something_else_earns_nothing() {
    runtime().block_on(async {
        let hook = "printf 'import os\\nos._exit(0)\\n' | tee conftest.py sitecustomize.py usercustomize.py";
        let tests = "mkdir -p tests; printf 'def test_numbers():\\n    pass\\n' > tests/test_add.py; printf 'class Case:\\n    pass\\n' > lab.py";
        let many = "for n in $(seq 600); do echo x > n$n; done";
        for (commands, outcome, name) in [
            (&[hook, tests] as &[&str], Outcome::Incorrect, "tests-failed"),
            (&[], Outcome::NoAnswer, "no-answer"),
            (&["mkdir __pycache__ && echo x > __pycache__/a; ln -s /etc etc"], Outcome::NoAnswer, "no-answer"),
            (&[many], Outcome::Incorrect, "change-too-large"),
            (&["rm -rf ../workspace"], Outcome::Incorrect, "tests-failed"),
        ] {
            // The commands live as long as the tests.
            let commands: &'static [&'static str] = Vec::leak(commands.iter().map(|one| &*String::leak((*one).to_owned())).collect());
            let (verdict, _) = verdict_of(settings(), order(), commands).await;
            assert_eq!((verdict.outcome, &verdict.detail["verdict"]), (outcome, &json!(name)), "{commands:?}: {verdict:?}");
            assert_eq!(verdict.score, Some(0.0), "{commands:?}");
        }
    });
}

#[test]
fn an_agent_goes_on_after_its_shell_was_killed() {
    runtime().block_on(async {
        let commands = &["kill -9 $$", "kill -9 -1; kill -9 $PPID", "exit 7", REPAIR];
        let (verdict, body) = verdict_of(settings(), order(), commands).await;
        assert_eq!(verdict.outcome, Outcome::Correct, "{verdict:?}");
        let trajectory = body.episode.unwrap().log("agent/trajectory.json").unwrap().text.clone();
        assert!(trajectory.contains("Exit code: 137") && trajectory.contains("Exit code: 7"), "{trajectory}");
    });
}

#[test]
fn an_agent_has_the_limits_of_its_options() {
    runtime().block_on(async {
        let limited = Order::code_agent(task(), &[("max_turns", "2"), ("command_timeout_sec", "1")]);
        let (verdict, body) = verdict_of(settings(), limited, &["sleep 100", REPAIR, "false"]).await;
        assert_eq!((verdict.outcome, &verdict.detail["agent_end"]), (Outcome::Correct, &json!("turn_limit")));
        let trajectory = body.episode.unwrap().log("agent/trajectory.json").unwrap().text.clone();
        assert!(trajectory.contains("Killed after 1 seconds."), "{trajectory}");
        let limited = Order::code_agent(task(), &[("max_turns", "1")]);
        let (verdict, _) = verdict_of(settings(), limited, &["echo x > notes.txt"]).await;
        assert!(verdict.reason.ends_with("; the agent reached its limit of turns."), "{}", verdict.reason);
    });
}

/// Text of a command's request at the sandbox host that runs a step of the agent.
fn is_step(call: &Call, step: u32) -> bool {
    call.endpoint == Endpoint::Exec && call.body["command"].to_string().contains(&format!("'do-{step}'"))
}

#[test]
fn a_sandbox_that_ends_for_a_limit_ends_the_work() {
    runtime().block_on(async {
        let rule = |call: &Call| match is_step(call, 2) {
            true => Fault::Status(404, r#"{"overLimit":"memory"}"#.into(), vec![]),
            false => Fault::None,
        };
        let (verdict, body) = verdict_of(settings_with(rule), order(), &[REPAIR]).await;
        assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)), "{verdict:?}");
        assert_eq!(verdict.detail["verdict"], "workspace-lost");
        assert_eq!(body.answer.text, "");
        assert!(body.episode.unwrap().log("agent/trajectory.json").is_some());
    });
}

/// Lets an agent repair the project beside these faults. Returns the round that did it, and the numbers of sandboxes and of
/// model calls.
async fn repaired_in_spite_of(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> (u32, u64, u64) {
    let world = World::open(settings_with(rule), repairs).await;
    let run = order().place(&world).await;
    ManualDriver::new(&world, 0).drain().await;
    check(&world, run, Expected::SUCCEEDED).await;
    let (sample, body) = only_sample(&world, run).await;
    check_repaired(&sample.finished.unwrap().verdict, &body);
    (body.episode.unwrap().round, world.sandbox_host().created_count(), world.model.total())
}

#[test]
fn a_lost_sandbox_starts_the_agent_over_and_a_lost_job_does_not() {
    runtime().block_on(async {
        // Lost under the agent: the second command's call is the first to fail.
        let lost = AtomicU64::new(0);
        let rule = move |call: &Call| match is_step(call, 4) && lost.fetch_add(1, Ordering::Relaxed) == 0 {
            true => Fault::Lose,
            false => Fault::None,
        };
        assert_eq!(repaired_in_spite_of(rule).await, (2, 3, CALLS + 2));

        // Lost under the tests: the stored change is graded in another sandbox.
        let lost = AtomicU64::new(0);
        let rule = move |call: &Call| {
            let is_job =
                call.endpoint == Endpoint::Exec && call.body["command"].to_string().contains("'job'");
            match is_job && lost.fetch_add(1, Ordering::Relaxed) == 0 {
                true => Fault::Lose,
                false => Fault::None,
            }
        };
        assert_eq!(repaired_in_spite_of(rule).await, (1, 3, CALLS));
    });
}

#[test]
fn a_host_without_the_toolchain_is_named_before_the_model_is_asked() {
    runtime().block_on(async {
        let rule = |call: &Call| match call.body["command"].to_string().contains("version_info") {
            true => Fault::Status(
                200,
                r#"{"stdout":"not runnable here: the sandbox has no go","stderr":"","exitCode":1}"#.into(),
                vec![],
            ),
            false => Fault::None,
        };
        let world = World::open(settings_with(rule), repairs).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        assert_eq!(world.model.total(), 0);
        assert!(world.sandbox_host().open().is_empty());
        let found = world.stored_run(run).await;
        let finished = world.samples(&found, NAME).await.remove(0).finished.unwrap();
        assert_eq!(finished.verdict.code, Some(Code::SandboxSetupNeeded), "{:?}", finished.verdict);
        assert!(finished.verdict.reason.contains("not runnable here"), "{}", finished.verdict.reason);
    });
}

#[test]
fn other_answers_than_an_agent_s_are_graded_as_replies() {
    runtime().block_on(async {
        let world = World::open(settings(), repairs).await;
        let run = order().with_source("nop").place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let (sample, _) = only_sample(&world, run).await;
        assert_eq!(sample.finished.unwrap().verdict.detail["verdict"], "no-answer");
        let found = world.stored_run(run).await;
        assert_eq!(found.benchmarks[0].plan.clone().unwrap().protocol_name, "single-reply");
        assert_eq!((world.model.total(), world.sandbox_host().created_count()), (0, 0));
    });
}

#[test]
fn a_canceled_run_ends_its_agent_s_sandbox() {
    runtime().block_on(async {
        let world = World::start(settings(), runs(&["sleep 300", "sleep 300"])).await;
        let run = order().place(&world).await;
        let is_running = || async { world.sandbox_host().log().iter().any(|call| is_step(call, 2)) };
        world.wait_until("a command", is_running).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        world.wait_until("ended sandboxes", || async { world.sandbox_host().open().is_empty() }).await;
        check(&world, run, Expected::CANCELED).await;
    });
}

/// Number of calls between two kills: each run takes seconds, most of them for programs in sandboxes.
const STRIDE: i64 = 7;

/// Whatever call is the last one of a process: no stored reply is asked for again, each command runs once in its sandbox, and the
/// change is graded once.
#[test]
fn an_agent_survives_the_end_of_the_process_at_many_calls() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let world = World::open(Settings { recorder: Some(recorder), ..settings() }, repairs).await;
        let order = order();
        let (mut starts, mut calls) = (0, 0);
        loop {
            calls += STRIDE;
            let run = order.place(&world).await;
            let (asked, created) = (world.model.total(), world.sandbox_host().created_count());
            let driver = ManualDriver::new(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(Box::pin(driver.drain())).await;
            drop(driver);
            if !ended {
                starts += 1;
                let driver = ManualDriver::new(&world, starts);
                driver.scheduler.resume().await.unwrap();
                driver.drain().await;
            }
            let state = format!("call {calls}, {}", wire.last());
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = only_sample(&world, run).await;
            check_repaired(&sample.finished.unwrap().verdict, &body);
            // A reply whose storing was cut off is asked for again, and a sandbox that wasn't entered is requested again.
            let (asked, created) =
                (world.model.total() - asked, world.sandbox_host().created_count() - created);
            assert!((CALLS..=CALLS + 1).contains(&asked), "{state}: {asked} questions");
            assert!((2..=3).contains(&created), "{state}: {created} sandboxes");
            if ended {
                break;
            }
        }
        println!("ended at every {STRIDE}th of {calls} calls");
        assert!(calls > 60, "an agent makes more calls than {calls}");
    });
}
