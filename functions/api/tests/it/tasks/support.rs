//! Archives, forms, and a worker that ends episodes.

use std::io::Write;
use std::time::Duration;

use axum::body::Body;
use bench_domain::{
    Answer, Code, EpisodeLog, EpisodeReport, EpisodeState, EpisodeStep, Outcome, Position, Prompt, RunId,
    SampleBody, SampleRef, Stage, TestCounts, Usage, Verdict,
};
use bench_state::{AnswerRecord, BodyRef, Claim, ClaimedRecord};
use http::header;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::server::{Reply, Server};

pub(crate) const BENCHMARK: &str = "terminal_tasks";
const BOUNDARY: &str = "XBOUNDARYX";

/// Sample of an episode that a worker holds.
pub(crate) struct ClaimedEpisode {
    sample: SampleRef,
    sort: String,
    claimed: Box<ClaimedRecord>,
}

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
    pub(crate) async fn send_form(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
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

    /// Hands the sample of an episode over to the stage that works on it, and claims it there, as workers do.
    pub(crate) async fn claim_episode(&self, run: RunId, sample: u32) -> ClaimedEpisode {
        let state = &self.api.state;
        let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
        let record = found.benchmark(BENCHMARK).unwrap();
        let plan = record.plan.as_ref().unwrap();
        let sample = SampleRef {
            run,
            benchmark: record.name.clone(),
            plan: plan.attempt,
            shards: plan.shards,
            position: Position { item: 0, sample },
        };
        let now = bench_clock::now();
        let until = now.plus(Duration::from_secs(60));
        let claim = state.claim(Stage::Answer, &sample, now, until).await.unwrap();
        let Claim::Claimed(claimed) = claim else { panic!("{claim:?}") };
        let body = SampleBody::new("fix-it", Prompt::user("Fix it."), Answer::local(""), "");
        let sha256 = self.api.blobs.put_body(&sample, claimed.attempt, &body).await.unwrap();
        let answered = AnswerRecord {
            body: BodyRef { attempt: claimed.attempt, sha256 },
            item_hash: None,
            truncated: false,
            latency_ms: None,
            usage: None,
            model: None,
        };
        state
            .hand_over(&sample, claimed.attempt, Stage::Episode, &answered, Usage::default(), now)
            .await
            .unwrap();
        let claim = state.claim(Stage::Episode, &sample, bench_clock::now(), until).await.unwrap();
        let Claim::Claimed(claimed) = claim else { panic!("{claim:?}") };
        ClaimedEpisode { sample, sort: record.sort(), claimed }
    }

    /// Saves the checkpoint of an episode.
    pub(crate) async fn save_episode(&self, episode: &ClaimedEpisode, checkpoint: &EpisodeState) {
        let attempt = episode.claimed.attempt;
        let state = &self.api.state;
        assert!(
            state.save_checkpoint(&episode.sample, attempt, Stage::Episode, checkpoint, true).await.unwrap()
        );
    }

    /// Ends an episode without a grade, as workers do when its sandboxes fail.
    pub(crate) async fn fail_episode(&self, episode: &ClaimedEpisode) {
        let verdict = Verdict::ungraded(Code::SandboxFailed, "the sandbox was lost");
        let finished = episode.claimed.record.to_finished(verdict, bench_clock::now());
        let ClaimedEpisode { sample, sort, claimed } = episode;
        self.api.state.commit(sample, sort, claimed.attempt, &finished, Usage::default()).await.unwrap();
    }

    /// Ends an episode as workers do.
    pub(crate) async fn end_episode(&self, run: RunId, sample: u32, outcome: Outcome) {
        self.end_episode_with(run, sample, outcome, |_| {}).await;
    }

    /// Does the same with a changed report. Its model used 100 and 10 tokens.
    pub(crate) async fn end_episode_with(
        &self,
        run: RunId,
        sample: u32,
        outcome: Outcome,
        change: impl FnOnce(&mut EpisodeReport),
    ) {
        let position = Position { item: 0, sample };
        self.commit_body(run, BENCHMARK, position, outcome, "", |body| {
            let mut report = report(outcome);
            change(&mut report);
            body.episode = Some(report);
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
