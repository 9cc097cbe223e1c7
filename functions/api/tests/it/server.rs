//! A test server with a client, and a fake worker that needs no model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bench_api::{Api, ApiConfig, router};
use bench_blobs::Blobs;
use bench_datasets::{Library, LibraryConfig};
use bench_domain::body::JudgeReply;
use bench_domain::report::ReportBuilder;
use bench_domain::run::{DatasetUse, JudgeUse, Plan};
use bench_domain::sample::shards_for;
use bench_domain::{
    Answer, Code, Finish, Generation, Outcome, Position, Prompt, RunId, SESSION_COOKIE_CHARS, SampleBody,
    SampleRef, Secret, SessionId, Stage, Usage, Verdict,
};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_queue::{Message, QueueName, QueueSettings, Queues};
use bench_runs::RunCreatorConfig;
use bench_state::access::{AccessEntry, AccessKind};
use bench_state::credentials::{Credentials, LocalKey, OwnerKey};
use bench_state::{
    BodyRef, Claim, EventKind, NewEvent, PlannedSample, SampleRecord, SampleResult, SessionRecord, State,
};
use bench_web::SecretLimits;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) struct Server {
    pub(crate) api: Arc<Api>,
    pub(crate) embedded: Embedded,
    router: Router,
    dir: tempfile::TempDir,
}

/// A response, read whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_else(|| panic!("no text: {}", self.text)).to_owned()
    }

    pub(crate) fn code(&self) -> Option<Code> {
        self.json()["code"].as_str().and_then(Code::from_name)
    }

    /// Checks that an error has a sentence or a list of problems, and a known code.
    fn check_error(&self) {
        if (self.status.is_client_error() || self.status.is_server_error()) && !self.text.is_empty() {
            let body = self.json();
            assert!(body["detail"].is_string() || body["detail"].is_array(), "{body}");
            assert!(self.code().is_some(), "{body}");
        }
    }

    /// Returns the kinds of problems in a 422 response.
    pub(crate) fn problems(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{}", self.text);
        let detail = self.json()["detail"].clone();
        let problems = detail.as_array().unwrap_or_else(|| panic!("no list: {}", self.text));
        problems.iter().map(|problem| problem["type"].as_str().unwrap().to_owned()).collect()
    }
}

impl Server {
    /// Starts a server that is bound to loopback.
    pub(crate) async fn local() -> Self {
        Self::new(true, &[]).await
    }

    /// Starts a server that isn't bound to loopback. The operator's secret is `hush`, and the holders of
    /// `key-a`, `key-b` and `sk-caller` are listed with every permission.
    pub(crate) async fn deployed() -> Self {
        let server = Self::new(false, &[]).await;
        for key in ["key-a", "key-b", "sk-caller"] {
            server.list(AccessKind::Key, key, true, true).await;
        }
        server
    }

    /// Returns the folder with all data.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Adds a caller to the operator's list.
    pub(crate) async fn list(
        &self,
        kind: AccessKind,
        secret: &str,
        oracle: bool,
        gated: bool,
    ) -> AccessEntry {
        self.list_with(kind, secret, |entry| {
            entry.oracle = oracle;
            entry.gated = gated;
        })
        .await
    }

    /// Like `list`, with a modified entry.
    pub(crate) async fn list_with(
        &self,
        kind: AccessKind,
        secret: &str,
        change: impl FnOnce(&mut AccessEntry),
    ) -> AccessEntry {
        let mut entry = AccessEntry {
            owner: self.api.access.owner_key.owner_of(&Secret::new(secret).unwrap()),
            name: secret.to_owned(),
            kind,
            subject: None,
            oracle: false,
            gated: false,
            tasks: false,
            created_at: bench_clock::now(),
            ends_at: None,
        };
        change(&mut entry);
        assert!(self.api.state.add_access(&entry).await.unwrap());
        entry
    }

    /// Signs a user in, and returns the session's cookie, whose value repeats this letter.
    pub(crate) async fn sign_in(&self, letter: char, subject: &str, has_invoke_scope: bool) -> String {
        let value = letter.to_string().repeat(SESSION_COOKIE_CHARS);
        let now = bench_clock::now();
        let session = SessionRecord {
            id: SessionId::from_cookie(&value).unwrap(),
            subject: subject.to_owned(),
            name: format!("{subject}'s name"),
            has_invoke_scope,
            created_at: now,
            ends_at: now.plus(Duration::from_secs(3_600)),
        };
        self.api.state.create_session(&session, None).await.unwrap();
        format!("bench_session={value}")
    }

    pub(crate) async fn new(local: bool, vars: &[(&str, &str)]) -> Self {
        Self::with(local, vars, |_| {}).await
    }

    pub(crate) async fn with(
        local: bool,
        vars: &[(&str, &str)],
        change: impl FnOnce(&mut ApiConfig),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions::new(dir.path().join("data")).durability(Durability::Normal);
        let embedded = Embedded::open(options).unwrap();
        let sdk = embedded.sdk_config();
        let state = State::new(&sdk, "bench", embedded.epoch());
        state.ensure_table().await.unwrap();
        let queues = Queues::create(&sdk, "bench-", QueueSettings::default()).await.unwrap();
        let blobs = Blobs::new(&sdk, "bench");
        blobs.ensure_bucket().await.unwrap();
        let owner_key = Arc::new(OwnerKey::from_master_key(&[7; 32]));
        let wrapper = Arc::new(LocalKey::new(&[7; 32]).unwrap());
        let credentials = Credentials::new(&sdk, "keys", wrapper);
        credentials.ensure_table().await.unwrap();
        let library = Library::new(blobs.clone(), LibraryConfig::new(dir.path().join("downloads")));
        let vars: BTreeMap<&str, &str> = [("ADMIN_SECRET", "hush"), ("SKIP_MODEL_SYNC", "1")]
            .into_iter()
            .chain(vars.iter().copied())
            .collect();
        let var = |name: &str| vars.get(name).map(|value| (*value).to_owned());
        let mut config = ApiConfig::from_vars(var, local, "9.8.7").unwrap();
        config.poll_every = Duration::from_millis(5);
        config.secret_limits = SecretLimits { delay: Duration::ZERO, per_minute: 1_000 };
        change(&mut config);
        let api = Arc::new(Api::new(state, queues, blobs, credentials, library, owner_key, config));
        Self { router: router(Arc::clone(&api)), api, embedded, dir }
    }

    /// Starts another server over the same data, with these variables.
    pub(crate) fn again(&self, vars: &[(&str, &str)]) -> Self {
        let api = &self.api;
        let vars: BTreeMap<&str, &str> = [("ADMIN_SECRET", "hush"), ("SKIP_MODEL_SYNC", "1")]
            .into_iter()
            .chain(vars.iter().copied())
            .collect();
        let var = |name: &str| vars.get(name).map(|value| (*value).to_owned());
        let read = ApiConfig::from_vars(var, api.config.server.local, "9.8.7").unwrap();
        let config = ApiConfig {
            runs: RunCreatorConfig {
                policy: read.runs.policy,
                limits: read.runs.limits,
                ..api.config.runs.clone()
            },
            ..api.config.clone()
        };
        let dir = tempfile::tempdir().unwrap();
        let library = Library::new(api.blobs.clone(), LibraryConfig::new(dir.path().join("downloads")));
        let (state, queues, blobs) = (api.state.clone(), api.queues.clone(), api.blobs.clone());
        let owner_key = Arc::clone(&api.access.owner_key);
        let api = Api::new(state, queues, blobs, api.credentials.clone(), library, owner_key, config);
        let api = Arc::new(api);
        Self { router: router(Arc::clone(&api)), api, embedded: self.embedded.clone(), dir }
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Reply {
        let response = self.open_with(method, path, headers, body).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = axum::body::to_bytes(response.into_body(), 64 << 20).await.unwrap();
        let reply = Reply { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() };
        reply.check_error();
        reply
    }

    /// Sends a request without a body, and returns the response before its body has arrived.
    pub(crate) async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        self.open_with(method, path, headers, Body::empty()).await
    }

    async fn open_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:8000");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.ask("POST", path, headers, Body::empty()).await
    }

    pub(crate) async fn order(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.ask("POST", path, &all, body.to_string()).await
    }

    /// Orders a run of the oracle from this machine and returns its id.
    pub(crate) async fn run_of(&self, benchmarks: &[&str]) -> RunId {
        self.run_of_model("oracle", benchmarks).await
    }

    /// Orders a run of a model from this machine and returns its id.
    pub(crate) async fn run_of_model(&self, model: &str, benchmarks: &[&str]) -> RunId {
        let body = json!({ "model_id": model, "selected_benchmarks": benchmarks, "demo": true });
        let reply = self.order("/api/runs", &[], &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().unwrap().parse().unwrap()
    }

    /// Receives the messages of a queue. No other consumer can receive them afterwards.
    pub(crate) async fn messages(&self, queue: QueueName) -> Vec<Message> {
        let url = self.api.queues.url(queue).unwrap();
        let client = self.api.queues.client();
        let received =
            client.receive_message().queue_url(url).max_number_of_messages(10).send().await.unwrap();
        received
            .messages()
            .iter()
            .map(|message| Message::from_body(message.body().unwrap()).unwrap())
            .collect()
    }

    /// Plans a run as the planner does: `items` demo items with `samples_per_item` samples each.
    pub(crate) async fn plan(&self, run: RunId, name: &str, items: u64, samples_per_item: u32) {
        self.plan_as(run, name, items, samples_per_item, |_| {}).await;
    }

    /// Like `plan`, with items from another source.
    pub(crate) async fn plan_from(
        &self,
        source: &str,
        run: RunId,
        name: &str,
        items: u64,
        samples_per_item: u32,
    ) {
        self.plan_as(run, name, items, samples_per_item, |plan| plan.dataset.source = source.to_owned())
            .await;
    }

    /// Like `plan`, with a modified plan.
    pub(crate) async fn plan_as(
        &self,
        run: RunId,
        name: &str,
        items: u64,
        samples_per_item: u32,
        change: impl FnOnce(&mut Plan),
    ) {
        let ids: Vec<_> = (0..items).map(|item| (item > 0).then(|| format!("own-{item}"))).collect();
        self.plan_ids(run, name, ids, samples_per_item, change).await;
    }

    /// Like `plan_as`, with items that have these ids in their dataset.
    pub(crate) async fn plan_ids(
        &self,
        run: RunId,
        name: &str,
        ids: Vec<Option<String>>,
        samples_per_item: u32,
        change: impl FnOnce(&mut Plan),
    ) {
        let items = ids.len() as u64;
        let state = &self.api.state;
        let now = bench_clock::now();
        let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
        if found.run.state.started_at().is_none() {
            let next = found.run.state.start(now).unwrap();
            let event = NewEvent::new(EventKind::RunStarted, "Run started");
            state.change_run(&found.run, &next, 1, &event, now).await.unwrap();
        }
        let record = found.benchmark(name).unwrap();
        let mut plan = Plan {
            attempt: 1,
            shards: shards_for(items),
            items,
            samples_per_item,
            dataset_items: 1_000,
            dataset: DatasetUse {
                id: "TIGER-Lab/MMLU-Pro".into(),
                revision: "r1".into(),
                source: "demo".into(),
                digest: "d1".into(),
                data_key: "datasets/x".into(),
                documents: None,
                attachments: BTreeMap::new(),
                note: None,
                demo_support: false,
            },
            prompt_digest: "p1".into(),
            prompt_source: "official".into(),
            protocol: "protocol 1".into(),
            protocol_name: "one".into(),
            options: Default::default(),
            generation: Generation { max_tokens: Some(2_048), ..Generation::default() },
            protocol_generation: None,
            protocol_samples: None,
            timeout: None,
            templates: Default::default(),
            judge: None,
        };
        change(&mut plan);
        let planned: Vec<PlannedSample> = ids
            .into_iter()
            .enumerate()
            .map(|(item, source_id)| PlannedSample {
                item_id: format!("q{item}"),
                source_id,
                group: Some("law".into()),
                offset: 0,
                length: 1,
            })
            .collect();
        state.write_plan(run, &record.name, &plan, &planned, now).await.unwrap();
        let next = record.state.start(now).unwrap();
        state.change_benchmark(run, record, &next, Some(&plan), None, now).await.unwrap();
    }

    /// Commits one sample as a worker does. Graded samples and empty answers have a stored body.
    pub(crate) async fn commit(&self, run: RunId, name: &str, position: Position, outcome: Outcome) {
        let text = if outcome == Outcome::NoAnswer { "" } else { "The answer is\0 (A)." };
        self.commit_text(run, name, position, outcome, text).await;
    }

    /// Like `commit`, with the model's answer.
    pub(crate) async fn commit_text(
        &self,
        run: RunId,
        name: &str,
        position: Position,
        outcome: Outcome,
        text: &str,
    ) {
        self.commit_body(run, name, position, outcome, text, |_| {}).await;
    }

    /// Like `commit`, with a modified body.
    pub(crate) async fn commit_body(
        &self,
        run: RunId,
        name: &str,
        position: Position,
        outcome: Outcome,
        text: &str,
        change: impl FnOnce(&mut SampleBody),
    ) {
        let state = &self.api.state;
        let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
        let record = found.benchmark(name).unwrap();
        let plan = record.plan.as_ref().unwrap();
        let sample = SampleRef {
            run,
            benchmark: record.name.clone(),
            plan: plan.attempt,
            shards: plan.shards,
            position,
        };
        let now = bench_clock::now();
        let claimed =
            state.claim(Stage::Answer, &sample, now, now.plus(Duration::from_secs(60))).await.unwrap();
        let Claim::Claimed(claimed) = claimed else { panic!("{claimed:?}") };
        let mut answer = Answer::local(text);
        answer.finish = if outcome == Outcome::Truncated { Finish::Length } else { Finish::Stop };
        answer.reasoning = Some("Hm\0m.".into());
        answer.usage = Some(Usage::counted(100, 10, 0));
        answer.usage_raw = Some(r#"{"prompt_tokens":100,"completion_tokens":10,"x":1.0}"#.into());
        answer.model = Some("oracle-1".into());
        let prompt = Prompt::user(format!("What is {}?", claimed.record.item_id));
        let mut body = SampleBody {
            judge_reply: plan.judge.as_ref().map(|judge| JudgeReply {
                model: judge.model.clone(),
                prompt: Prompt::user("Is it right?\0 The gold answer is A."),
                reply: Answer::local("{\"correct\": \"yes\"}\0"),
            }),
            ..SampleBody::new(claimed.record.item_id.clone(), prompt, answer, "A")
        };
        change(&mut body);
        let stored = if outcome.is_graded() {
            let sha256 = self.api.blobs.put_body(&sample, claimed.attempt, &body).await.unwrap();
            Some(BodyRef { attempt: claimed.attempt, sha256 })
        } else {
            None
        };
        let verdict = match outcome {
            Outcome::Correct => Verdict::correct("A"),
            Outcome::Incorrect => Verdict::incorrect("B", "B is not A"),
            Outcome::InfrastructureError => {
                Verdict::ungraded(Code::ProviderError, "HTTP 500 from Chutes: no")
            }
            other => Verdict::wrong(other, "because"),
        };
        let finished = SampleResult {
            verdict,
            item_hash: stored.as_ref().map(|_| "0123456789abcdef".into()),
            truncated: outcome == Outcome::Truncated,
            latency_ms: stored.as_ref().map(|_| 200),
            usage: stored.as_ref().and(body.answer.usage),
            model: stored.as_ref().and(body.answer.model),
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            body: stored,
            at: bench_clock::now(),
        };
        state
            .commit(&sample, &record.sort(), claimed.attempt, &finished, finished.usage.unwrap_or_default())
            .await
            .unwrap();
    }

    /// Closes a run as the finisher does.
    pub(crate) async fn close(&self, run: RunId) {
        let state = &self.api.state;
        let now = bench_clock::now();
        let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
        let mut scores = Vec::new();
        let mut failures = Vec::new();
        for record in &found.benchmarks {
            let plan = record.plan.as_ref().unwrap();
            let mut builder = ReportBuilder::default();
            let samples = state.samples_page(run, record, 0, plan.samples()).await.unwrap();
            samples.iter().filter_map(SampleRecord::summary).for_each(|sample| builder.add(&sample));
            let spec = &found.run.spec;
            let report = builder.finish(plan.items, plan.samples_per_item, spec.coverage_min, spec.price);
            scores.extend(report.score);
            failures.extend(report.failure());
            let next = record.state.close(now, report).unwrap();
            state.change_benchmark(run, record, &next, None, None, now).await.unwrap();
        }
        let fresh = state.run(run).await.unwrap().unwrap();
        let (next, kind) = if failures.is_empty() {
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            (fresh.state.succeed(now, Some(mean)).unwrap(), EventKind::RunCompleted)
        } else {
            (
                fresh.state.fail(now, Code::BenchmarksFailed, failures.join("; ")).unwrap(),
                EventKind::RunFailed,
            )
        };
        state.change_run(&fresh, &next, fresh.generation, &NewEvent::new(kind, "Over"), now).await.unwrap();
    }

    /// Creates a finished run of the oracle that includes a judged benchmark.
    pub(crate) async fn judged_run(&self, outcomes: &[Outcome]) -> RunId {
        let run = self.run_of(&["hle", "mmlu_pro"]).await;
        self.finish_judged(run, outcomes, |judge| judge.version = 1).await;
        run
    }

    /// Plans, answers and closes a run with a judged benchmark, as planner, workers and finisher do. Other
    /// benchmarks may be included.
    pub(crate) async fn finish_judged(
        &self,
        run: RunId,
        outcomes: &[Outcome],
        change: impl FnOnce(&mut JudgeUse),
    ) {
        let mut judge = JudgeUse {
            model: "oracle".into(),
            endpoint_host: None,
            version: 0,
            prompt_digest: "7".repeat(64),
            prompt_source: "own".into(),
            generation: Generation { temperature: Some(0.0), seed: Some(7), ..Generation::default() },
        };
        change(&mut judge);
        let items = outcomes.len() as u64;
        let found = self.api.state.run_with_benchmarks(run).await.unwrap().unwrap();
        for record in &found.benchmarks {
            let name = record.name.as_str();
            let judge = (name == "hle").then(|| judge.clone());
            self.plan_as(run, name, items, 1, |plan| plan.judge = judge).await;
            for (item, outcome) in outcomes.iter().enumerate() {
                let position = Position { item: u32::try_from(item).unwrap(), sample: 0 };
                self.commit(run, name, position, *outcome).await;
            }
        }
        self.close(run).await;
    }

    /// Creates a finished run of one benchmark with these outcomes, one sample per item.
    pub(crate) async fn finished_run(&self, outcomes: &[Outcome]) -> RunId {
        let run = self.run_of(&["mmlu_pro"]).await;
        self.plan(run, "mmlu_pro", outcomes.len() as u64, 1).await;
        for (item, outcome) in outcomes.iter().enumerate() {
            let position = Position { item: u32::try_from(item).unwrap(), sample: 0 };
            self.commit(run, "mmlu_pro", position, *outcome).await;
        }
        self.close(run).await;
        run
    }
}
