//! Archives, forms, and a worker that ends episodes.

use std::io::Write;

use bench_domain::{EpisodeLog, EpisodeReport, EpisodeStep, Outcome, Position, RunId, TestCounts};
use http::header;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::server::{Reply, Server};

pub(crate) const BENCHMARK: &str = "terminal_tasks";
const BOUNDARY: &str = "XBOUNDARYX";

/// Returns an archive with these files.
pub(crate) fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, content) in files {
        zip.start_file(*path, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns an archive of a task, with these files in addition or instead.
pub(crate) fn task_zip(instruction: &str, extra: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        ("fix-it/task.toml", ""),
        ("fix-it/instruction.md", instruction),
        ("fix-it/environment/Dockerfile", "FROM debian:12\n"),
        ("fix-it/tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("fix-it/solution/solve.sh", "true\n"),
    ];
    let kept = usual.into_iter().filter(|(path, _)| !extra.iter().any(|(other, _)| other == path));
    zip_of(&kept.chain(extra.iter().copied()).collect::<Vec<_>>())
}

/// Returns a form with one part.
pub(crate) fn form(part: &str, file_name: Option<&str>, content: &[u8]) -> Vec<u8> {
    let name = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
    let mut body =
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{part}\"{name}\r\n\r\n").into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}

impl Server {
    /// Sends a form.
    pub(crate) async fn send_form(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let mut all = vec![(header::CONTENT_TYPE.as_str(), kind.as_str())];
        all.extend_from_slice(headers);
        self.ask("POST", path, &all, body).await
    }

    /// Uploads an archive with these query parameters.
    pub(crate) async fn upload(&self, query: &str, headers: &[(&str, &str)], zip: &[u8]) -> Reply {
        self.send_form(&format!("/api/tasks?{query}"), headers, form("file", Some("t.zip"), zip)).await
    }

    /// Uploads a task of the oracle and returns its id.
    pub(crate) async fn task(&self, name: &str, num_runs: u32) -> u64 {
        let zip = task_zip("Fix it.", &[]);
        let reply = self.upload(&format!("name={name}&agent=oracle&num_runs={num_runs}"), &[], &zip).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()["id"].as_u64().unwrap()
    }

    pub(crate) async fn task_view(&self, task: u64) -> Value {
        let reply = self.get(&format!("/api/tasks/{task}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    }

    /// Returns the run of a task that was ordered last.
    pub(crate) async fn last_run(&self, task: u64) -> RunId {
        let view = self.task_view(task).await;
        view["run_ids"].as_array().unwrap().last().unwrap().as_str().unwrap().parse().unwrap()
    }

    /// Plans a task's run as the planner does.
    pub(crate) async fn plan_episodes(&self, run: RunId, samples: u32) {
        self.plan_from("local", run, BENCHMARK, 1, samples).await;
    }

    /// Ends an episode as workers do.
    pub(crate) async fn end_episode(&self, run: RunId, sample: u32, outcome: Outcome) {
        let position = Position { item: 0, sample };
        self.commit_body(run, BENCHMARK, position, outcome, "", |body| {
            body.episode = Some(report(outcome));
        })
        .await;
    }
}

fn report(outcome: Outcome) -> EpisodeReport {
    let passed = u64::from(outcome == Outcome::Correct);
    let tests = TestCounts { total: 2, passed: 1 + passed, failed: 1 - passed };
    let log = |name: &str, text: String| EpisodeLog {
        name: name.to_owned(),
        bytes: text.len() as u64,
        text,
        omitted: 0,
    };
    EpisodeReport {
        agent: "oracle".into(),
        round: 1,
        steps: vec![EpisodeStep {
            agent_ms: Some(1_500),
            verifier_ms: Some(1_000),
            tests: Some(tests),
            ..EpisodeStep::default()
        }],
        setup_ms: Some(500),
        logs: vec![log("agent/oracle.txt", "ä".repeat(60_000)), log("build.log", "built".into())],
        test_output: "2 tests".into(),
        ..EpisodeReport::default()
    }
}
