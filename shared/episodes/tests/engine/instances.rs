//! Agents in images with a repository, and verifications of their changes. Each turn is repeated from its saved state, as after a
//! kill.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use bench_agents::{ModelReply, Seen, Usage};
use bench_domain::{Agent, AgentRecord, EpisodeReport, EpisodeState, VerificationReport};
use bench_environments::{EngineHost, TaskFile};
use bench_episodes::{
    Advance, Instance, InstanceEpisode, InstanceImage, InstanceTask, ModelAnswer, Thinker, VerificationTask,
    verdict, verification_failure,
};

use crate::support::{FREE, World, labels};

/// Image of this machine's shell, git and Python.
const BASE: &str = "docker.io/library/bench-base:test";
/// A repository whose second commit has the fix, in an image that starts a shell by itself.
const DOCKERFILE: &str = "FROM docker.io/library/bench-base:test\nCOPY make.sh /make.sh\nRUN bash /make.sh\nWORKDIR /app\n\
    ENTRYPOINT [\"/bin/bash\"]\n";
const MAKE: &str = "set -e\nmkdir /app\ncd /app\ngit init -q\ngit config user.name a\ngit config user.email a@b\n\
    echo 'def add(a, b): return a - b' > calc.py\ngit add .\ngit commit -qm base\n\
    echo 'def add(a, b): return a + b' > calc.py\ngit commit -qam fix\n";
const PREPARATION: &str = "set -e\ncd /app\ngit reset -q --hard HEAD~1\ngit reflog expire --expire=now --all\ngit gc -q --prune=now\n";
const COLLECTION: &str =
    "cd /app && git add -A && git diff --cached HEAD > /tmp/change.diff || { echo 'no diff' >&2; exit 1; }";
const COMMAND: &str = "cd /app\ngit reset -q --hard HEAD~1\ngit apply -v /workspace/patch.diff\n\
    python -c 'import calc; print(calc.add(2, 3))' > /workspace/stdout.log\n\
    printf '{\"sum\": %s}' \"$(cat /workspace/stdout.log)\" > /workspace/output.json\n";
const OUTPUTS: [&str; 2] = ["output.json", "stdout.log"];

fn image(dockerfile: &str) -> InstanceImage {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/containers/base.sh");
    static BASE_IMAGE: std::sync::Once = std::sync::Once::new();
    BASE_IMAGE.call_once(|| {
        let made = Command::new(script).arg(BASE).status().unwrap();
        assert!(made.success(), "the base image can't be made");
    });
    let file = |path: &str, text: &str| TaskFile {
        path: path.to_owned(),
        is_executable: false,
        bytes: text.as_bytes().to_vec(),
    };
    InstanceImage::Built(vec![file("Dockerfile", dockerfile), file("make.sh", MAKE)])
}

fn instance<'a>(image: &'a InstanceImage, labels: &'a bench_environments::Labels) -> Instance<'a> {
    Instance {
        image,
        architecture: None,
        needs_network: false,
        memory_bytes: 1 << 30,
        cpus: 1.0,
        disk_bytes_max: 64 << 20,
        labels,
    }
}

/// End of an agent's work.
struct Worked {
    report: EpisodeReport,
    change: Option<String>,
    messages: Vec<String>,
}

impl World {
    async fn work(&self, replies: &[&str], preparation: &str) -> Worked {
        let image = image(DOCKERFILE);
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let labels = labels(&nonce);
        let mut records: Vec<String> = Vec::new();
        let mut saved = serde_json::to_string(&EpisodeState::new(1, nonce.as_str())).unwrap();
        let (mut answer, mut asked) = (None, 0);
        let until = tokio::time::Instant::now() + Duration::from_secs(600);
        loop {
            assert!(tokio::time::Instant::now() < until, "the work does not end: {saved}");
            assert!(saved.len() < 64_000, "the checkpoint has {} bytes", saved.len());
            let mut thinker = Thinker::new(BTreeMap::new(), BTreeMap::new());
            for record in &records {
                thinker.add(&serde_json::from_str::<AgentRecord>(record).unwrap()).unwrap();
            }
            thinker.answer.clone_from(&answer);
            let task = InstanceTask {
                instance: instance(&image, &labels),
                agent: Agent::Bash,
                thinker: &thinker,
                instruction: "Mend `add`.",
                folder: "/app",
                preparation,
                collection: COLLECTION,
                change_path: "/tmp/change.diff",
                too_large_exit: 77,
                collection_time_limit: Duration::from_secs(600),
                change_bytes_max: 1 << 20,
                time_limit: Duration::from_secs(600),
            };
            let episode =
                InstanceEpisode { sandy: self.sandy(), sandbox: self.sandbox(), places_wanted: &FREE };
            let advance = async || {
                let mut state: EpisodeState = serde_json::from_str(&saved).unwrap();
                let advanced = episode.advance(&task, &mut state, Duration::from_secs(5)).await;
                (state, advanced)
            };
            drop(advance().await);
            let (mut state, advanced) = advance().await;
            let messages = || {
                let parts = thinker.transcript.parts().iter();
                parts.filter_map(|part| match part {
                    bench_agents::Part::Message(message) => Some(message.text.clone()),
                    _ => None,
                })
            };
            match advanced {
                Advance::Waiting(wait) => tokio::time::sleep(wait.min(Duration::from_millis(300))).await,
                Advance::Asks(request) => {
                    let text = (*replies.get(asked).expect("a reply to each question")).to_owned();
                    asked += 1;
                    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
                    let reply = ModelReply { text, usage, latency_ms: 100, ..ModelReply::default() };
                    let paid = bench_domain::Usage::counted(10, 5, 0);
                    answer = Some(ModelAnswer { step: request.step, seen: Seen::Reply(reply), paid });
                }
                Advance::Stepped(record) => {
                    records.push(serde_json::to_string(&record).unwrap());
                    state.agent = Some(record.progress);
                }
                Advance::Changed(report, change) => {
                    self.expect_nothing_left(&nonce).await;
                    return Worked { report: *report, change: Some(change), messages: messages().collect() };
                }
                Advance::Ended(report) => {
                    self.expect_nothing_left(&nonce).await;
                    return Worked { report: *report, change: None, messages: messages().collect() };
                }
                other => panic!("{other:?}"),
            }
            saved = serde_json::to_string(&state).unwrap();
        }
    }

    async fn verify(&self, patch: &str, command: &str, time_limit: Duration) -> VerificationReport {
        let image = image(DOCKERFILE);
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let labels = labels(&nonce);
        let patch = TaskFile {
            path: "patch.diff".to_owned(),
            is_executable: false,
            bytes: patch.as_bytes().to_vec(),
        };
        let files = [patch];
        let task = VerificationTask {
            instance: instance(&image, &labels),
            workspace: "/workspace",
            files: &files,
            command,
            time_limit,
            outputs: &OUTPUTS,
            output_bytes_max: 1 << 20,
        };
        let mut saved = serde_json::to_string(&EpisodeState::new(1, nonce.as_str())).unwrap();
        let until = tokio::time::Instant::now() + Duration::from_secs(600);
        loop {
            assert!(tokio::time::Instant::now() < until, "the verification does not end: {saved}");
            let episode =
                InstanceEpisode { sandy: self.sandy(), sandbox: self.sandbox(), places_wanted: &FREE };
            let advance = async || {
                let mut state: EpisodeState = serde_json::from_str(&saved).unwrap();
                let advanced = episode.verify(&task, &mut state, Duration::from_secs(5)).await;
                (state, advanced)
            };
            drop(advance().await);
            let (state, advanced) = advance().await;
            match advanced {
                Advance::Waiting(wait) => tokio::time::sleep(wait.min(Duration::from_millis(300))).await,
                Advance::Verified(report) => {
                    self.expect_nothing_left(&nonce).await;
                    return *report;
                }
                other => panic!("{other:?}"),
            }
            saved = serde_json::to_string(&state).unwrap();
        }
    }

    async fn expect_nothing_left(&self, nonce: &str) {
        let left = EngineHost::new(self.sandy(), self.sandbox()).leftovers().await.unwrap();
        assert!(left.iter().all(|left| !left.environment.contains(nonce)), "{left:?}");
    }
}

#[tokio::test]
async fn an_agents_change_is_collected_and_verified_in_another_container() {
    let world = World::new().await;
    let replies = [
        "```bash\nid -un; git log --oneline --all | wc -l; cat /proc/net/route | wc -l; sed -i 's/-/+/' calc.py; echo new > new.txt\n```",
        "```done\n```",
    ];
    let worked = world.work(&replies, PREPARATION).await;
    let change = worked.change.unwrap();
    assert!(change.contains("+def add(a, b): return a + b") && change.contains("b/new.txt"), "{change}");
    // One commit, and no route anywhere.
    assert!(worked.messages.iter().any(|message| message.contains("root\n1\n1\n")), "{:?}", worked.messages);
    assert!(worked.report.engine.contains(' ') && worked.report.setup_ms.is_some(), "{:?}", worked.report);
    let report = world.verify(&change, COMMAND, Duration::from_secs(600)).await;
    assert_eq!(report.output("output.json"), Some("{\"sum\": 5}"), "{report:?}");
    assert_eq!((report.output("stdout.log"), report.exit_code), (Some("5\n"), Some(0)));
    assert!(report.logs.iter().any(|log| log.text.contains("Applied patch calc.py")), "{report:?}");
    let report = world.verify("", COMMAND, Duration::from_secs(600)).await;
    assert_eq!(report.output("output.json"), Some("{\"sum\": -1}"), "{report:?}");
}

#[tokio::test]
async fn an_agent_that_breaks_its_container_has_no_change() {
    let world = World::new().await;
    for (reply, expected) in [
        ("```bash\nkill -9 -1; kill 1; kill -9 1; sleep 3; rm -rf /app/.git\n```", "Incorrect"),
        ("```bash\ndd if=/dev/zero of=/full bs=1M count=200; sleep 3600\n```", "Incorrect"),
        ("```bash\nrm -rf /app/.git /usr/bin/git\n```", "Incorrect"),
    ] {
        let worked = world.work(&[reply, "```done\n```"], PREPARATION).await;
        assert_eq!(worked.change, None, "{reply}");
        assert_eq!(format!("{:?}", verdict(&worked.report).outcome), expected, "{:?}", worked.report);
    }
}

#[tokio::test]
async fn a_repository_that_cannot_be_prepared_costs_nothing() {
    let world = World::new().await;
    let worked = world.work(&[], "echo 'the fix is still there' >&2; exit 1").await;
    let verdict = verdict(&worked.report);
    assert_eq!(format!("{:?}", verdict.outcome), "InfrastructureError");
    assert!(verdict.reason.contains("the fix is still there"), "{}", verdict.reason);
}

#[tokio::test]
async fn a_verification_that_ends_its_container_or_lasts_too_long_has_no_output() {
    let world = World::new().await;
    let report = world.verify("", "kill -9 -1; kill 1; kill -9 1; sleep 5", Duration::from_secs(600)).await;
    assert_eq!((report.output("output.json"), verification_failure(&report)), (None, None), "{report:?}");
    let report =
        world.verify("", "echo partial > /workspace/stdout.log; sleep 3600", Duration::from_secs(6)).await;
    assert!(report.is_timed_out && report.output("output.json").is_none(), "{report:?}");
    assert_eq!(report.output("stdout.log"), Some("partial\n"));
    assert_eq!(verification_failure(&report), None);
    let report = world
        .verify("", "dd if=/dev/zero of=/full bs=1M count=200; sleep 3600", Duration::from_secs(600))
        .await;
    let exception = report.exception.as_ref().unwrap();
    assert_eq!((exception.name.as_str(), verification_failure(&report)), ("DiskLimitExceededError", None));
    for (command, why) in [
        ("mkdir /workspace/output.json", None),
        ("printf '{\"caf\\351\": 1}' > /workspace/output.json", Some("it isn't UTF-8")),
        (
            "dd if=/dev/zero of=/workspace/output.json bs=1M count=20",
            Some("20971520 bytes, more than the limit of 1048576"),
        ),
    ] {
        let report = world.verify("", command, Duration::from_secs(600)).await;
        assert_eq!(report.output("output.json"), None, "{command}: {report:?}");
        assert_eq!(verification_failure(&report), None, "{command}: {report:?}");
        assert_eq!(report.left_out("output.json"), why, "{command}: {report:?}");
    }
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_waited_for() {
    let world = World::new().await;
    let image = InstanceImage::Pulled("127.0.0.1:9/no/image:1".to_owned());
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    let labels = labels(&nonce);
    let task = VerificationTask {
        instance: instance(&image, &labels),
        workspace: "/workspace",
        files: &[],
        command: "true",
        time_limit: Duration::from_secs(600),
        outputs: &OUTPUTS,
        output_bytes_max: 1 << 20,
    };
    let mut state = EpisodeState::new(1, nonce.as_str());
    let episode = InstanceEpisode { sandy: world.sandy(), sandbox: world.sandbox(), places_wanted: &FREE };
    let mut waits = Vec::new();
    let failed = loop {
        match episode.verify(&task, &mut state, Duration::from_secs(5)).await {
            Advance::Waiting(wait) => tokio::time::sleep(wait.min(Duration::from_millis(300))).await,
            Advance::Delayed(wait, why) => {
                assert_eq!(state.delay_reason(), Some(why.as_str()));
                assert!(why.contains("could not be pulled"), "{why}");
                waits.push(wait.as_secs());
            }
            Advance::Verified(report) => break verification_failure(&report).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1_200]);
    assert_eq!(failed.code, Some(bench_domain::Code::SandboxSetupNeeded));
    assert!(failed.reason.contains("8 pulls failed"), "{}", failed.reason);
}
