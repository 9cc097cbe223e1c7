//! A finished run in the embedded services, made by the same calls that the functions make.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use bench_blobs::Blobs;
use bench_domain::body::JudgeReply;
use bench_domain::report::{BenchmarkReport, ReportBuilder};
use bench_domain::run::{
    AuthMode, DatasetUse, JudgeSpec, JudgeUse, ModelRef, Owner, Plan, RejudgedRun, RunState,
};
use bench_domain::sample::shards_for;
use bench_domain::{
    Answer, BenchmarkName, Code, Finish, Generation, Outcome, Position, Prompt, ReportedModels, RunId,
    RunSpec, RunTemplate, SampleBody, SampleRef, Secret, Stage, Subset, Timestamp, Usage, Verdict, testing,
};
use bench_embedded::{CompletedCall, Durability, Embedded, EmbeddedOptions, Faults, Recorder};
use bench_exports::{ExportFormat, ExportOrder, Exports, ExportsConfig};
use bench_signing::{KeyError, KeyRing, RingConfig, TrustedKey};
use bench_state::credentials::OwnerKey;
use bench_state::{
    AnswerRecord, BodyRef, Claim, Commit, EventKind, Handover, NewEvent, PlanClaim, PlannedSample,
    SampleResult, State, Transition,
};
use bench_web::Access;
use futures_util::{StreamExt, stream};

pub(crate) const VERSION: &str = "9.8.7";
pub(crate) const CREATED_AT: Timestamp = Timestamp::from_micros(1_767_322_985_123_456); // 2026-01-02T03:03:05.123456Z

/// Held by tests that export archives without a usable key: they share the process's metrics.
pub(crate) static FAILING_ARCHIVES: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Public test key of the vectors: bytes 00..1f.
const PRIVATE_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Address of the bucket for clients. Nothing listens there: tests pass requests on.
pub(crate) const S3_ADDRESS: &str = "http://127.0.0.1:9000";

pub(crate) fn after(seconds: u64) -> Timestamp {
    CREATED_AT.plus(Duration::from_secs(seconds))
}

pub(crate) fn key_ring() -> Result<KeyRing, KeyError> {
    KeyRing::from_config(&RingConfig { private_key: Some(PRIVATE_KEY), ..RingConfig::default() })
}

pub(crate) fn trusted() -> Vec<TrustedKey> {
    key_ring().unwrap().trusted_keys()
}

/// Returns the owner that the holder of a key is.
pub(crate) fn owner_of(key: &str) -> Owner {
    access().owner_of(&Secret::new(key).unwrap())
}

fn access() -> Access {
    let owner_key = Arc::new(OwnerKey::from_master_key(&[7; 32]));
    Access::new(false, Some("hush".to_owned()), owner_key)
}

pub(crate) fn config() -> ExportsConfig {
    ExportsConfig::new(VERSION, access())
}

/// Completed calls of services, by action, with the bytes of their responses.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<BTreeMap<String, (u64, u64)>>>);

impl Calls {
    fn recorder(&self) -> Recorder {
        let calls = Arc::clone(&self.0);
        Recorder::for_completed_calls(move |completed: &CompletedCall<'_>| {
            let mut calls = calls.lock().unwrap();
            let (count, bytes) = calls.entry(completed.call.action.to_owned()).or_default();
            *count += 1;
            *bytes += completed.response_bytes;
        })
    }

    /// Forgets all calls so far.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Returns the number of calls of an action, and the bytes of their responses.
    pub(crate) fn of(&self, action: &str) -> (u64, u64) {
        self.0.lock().unwrap().get(action).copied().unwrap_or_default()
    }
}

/// The embedded services with a temporary data directory.
pub(crate) struct Stack {
    pub(crate) state: State,
    pub(crate) blobs: Blobs,
    pub(crate) calls: Calls,
    embedded: Embedded,
    directory: tempfile::TempDir,
}

impl Stack {
    pub(crate) async fn open() -> Self {
        Self::open_in(tempfile::tempdir().unwrap(), Faults::default()).await
    }

    /// Opens the same data directory again, with these faults.
    pub(crate) async fn reopen_with(self, faults: &str) -> Self {
        let Self { embedded, directory, .. } = self;
        embedded.close();
        Self::open_in(directory, faults.parse().unwrap()).await
    }

    async fn open_in(directory: tempfile::TempDir, faults: Faults) -> Self {
        let calls = Calls::default();
        let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal).faults(faults);
        let options = options.recorder(calls.recorder());
        let embedded = tokio::task::spawn_blocking(|| Embedded::open(options)).await.unwrap().unwrap();
        let state = State::new(&embedded.sdk_config(), "bench", embedded.epoch());
        let blobs = Blobs::new(&embedded.sdk_config(), "bench");
        state.ensure_table().await.unwrap();
        blobs.ensure_bucket().await.unwrap();
        Self { state, blobs, calls, embedded, directory }
    }

    pub(crate) fn exports(&self) -> Exports {
        self.exports_with(key_ring(), config())
    }

    pub(crate) fn exports_with(&self, keys: Result<KeyRing, KeyError>, config: ExportsConfig) -> Exports {
        Exports::new(self.state.clone(), self.blobs.clone(), keys, config)
    }

    /// Creates exports over the same bucket, with presigned addresses at [`S3_ADDRESS`].
    pub(crate) fn reachable(&self) -> Exports {
        let blobs = self.blobs.clone().with_presign_endpoint(S3_ADDRESS);
        let config = ExportsConfig { direct_uploads: true, ..config() };
        Exports::new(self.state.clone(), blobs, key_ring(), config)
    }

    /// Sends a request to the bucket as a client would.
    pub(crate) async fn ask_s3(&self, request: http::Request<axum::body::Body>) -> http::StatusCode {
        let s3 = axum::Router::new().fallback_service(self.embedded.s3().unwrap().listening());
        tower::ServiceExt::oneshot(s3, request).await.unwrap().status()
    }

    /// Deletes a record directly from the table, to simulate damage.
    pub(crate) async fn lose_record(&self, partition: &str, sort: &str) {
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let client = aws_sdk_dynamodb::Client::new(&self.embedded.sdk_config());
        let delete =
            client.delete_item().table_name("bench").key("pk", text(partition)).key("sk", text(sort));
        let deleted = delete.return_values(ReturnValue::AllOld).send().await.unwrap();
        assert!(deleted.attributes.is_some(), "there is a record {partition} {sort}");
    }

    pub(crate) async fn bytes(&self, key: &str) -> Vec<u8> {
        self.blobs.get(key).await.unwrap().unwrap().to_vec()
    }
}

/// A sample of the test run.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) prompt: String,
    pub(crate) response: String,
    pub(crate) expected: String,
    pub(crate) verdict: Verdict,
    pub(crate) finish: Finish,
    pub(crate) latency_ms: u64,
    pub(crate) model: String,
    /// True if the sample has a stored answer.
    pub(crate) has_body: bool,
    /// True if the sample was handed over and isn't graded yet.
    pub(crate) is_handed_over: bool,
    /// Stage that it was handed over to.
    pub(crate) stage: Stage,
    /// Change to the body in addition to prompt and answer.
    pub(crate) change: fn(&mut SampleBody),
}

impl Said {
    pub(crate) fn right(response: &str) -> Self {
        Self {
            prompt: "What is it?".to_owned(),
            response: response.to_owned(),
            expected: "A".to_owned(),
            verdict: Verdict::correct("A"),
            finish: Finish::Stop,
            latency_ms: 12,
            model: "acme/model-1".to_owned(),
            has_body: true,
            is_handed_over: false,
            stage: Stage::Judge,
            change: |_| {},
        }
    }

    pub(crate) fn wrong(response: &str) -> Self {
        Self { verdict: Verdict::incorrect("B", "B is not A"), ..Self::right(response) }
    }

    pub(crate) fn failed(reason: &str) -> Self {
        let verdict = Verdict::ungraded(Code::ProviderError, reason);
        Self { verdict, has_body: false, ..Self::right("") }
    }

    /// Creates an answer without a verdict.
    pub(crate) fn unjudged(response: &str) -> Self {
        Self { is_handed_over: true, ..Self::right(response) }
    }
}

/// A run to make: one benchmark with `items` items of `samples` samples each. `say` returns the sample at a
/// position, or `None` to leave it open.
pub(crate) struct Script<F> {
    pub(crate) run: RunId,
    pub(crate) benchmark: &'static str,
    /// Further benchmarks, which fail before they are planned.
    pub(crate) failing: &'static [&'static str],
    pub(crate) protocol_name: &'static str,
    pub(crate) items: u32,
    pub(crate) samples: u32,
    pub(crate) source: &'static str,
    pub(crate) owner: Owner,
    /// The judge, if there was one.
    pub(crate) judge: Option<JudgeUse>,
    /// The run whose answers were rejudged.
    pub(crate) rejudges: Option<RejudgedRun>,
    /// The protocol's generation settings, if the run's differ.
    pub(crate) protocol_generation: Option<Generation>,
    /// True if an older version closed the run, whose reports don't name the models that answered.
    pub(crate) is_closed_by_older: bool,
    pub(crate) say: F,
}

pub(crate) fn script<F: Fn(Position) -> Option<Said>>(items: u32, say: F) -> Script<F> {
    Script {
        run: "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90".parse().unwrap(),
        benchmark: "mmlu_pro",
        failing: &[],
        protocol_name: "five-shot",
        items,
        samples: 1,
        source: "hub",
        owner: Owner::Local,
        judge: None,
        rejudges: None,
        protocol_generation: None,
        is_closed_by_older: false,
        say,
    }
}

pub(crate) fn item_id(item: u32) -> String {
    format!("q{item}")
}

/// Returns a source id that looks like a formula, as a dataset's own id may.
pub(crate) fn source_id(item: u32) -> String {
    format!("=own/{item}")
}

fn spec(run: RunId, benchmark: &BenchmarkName, samples: u32, owner: Owner) -> RunSpec {
    let template = RunTemplate {
        model: ModelRef {
            base_url: Some("http://user:hunter2@model.internal:8000/v1".to_owned()),
            ..testing::model("openai-compatible/=acme/model")
        },
        selected_benchmarks: Some(vec![benchmark.to_string()]),
        subset: Subset::new(50, None, Some("+seed")).unwrap(),
        samples: Some(samples),
        generation: Generation { temperature: Some(0.0), ..Generation::default() },
        config: Some("{\"secret\":\"hunter2\"}".to_owned()),
        ..testing::template("openai-compatible/=acme/model", benchmark.as_str())
    };
    RunSpec {
        owner,
        auth: AuthMode::ApiKey,
        software: VERSION.to_owned(),
        created_at: CREATED_AT,
        ..testing::spec(run, template)
    }
}

fn plan_of(attempt: u32, items: u32, samples: u32, source: &str) -> Plan {
    let plan = testing::plan(items, shards_for(items.into()));
    Plan {
        attempt,
        samples_per_item: samples,
        dataset_items: 12_032,
        dataset: DatasetUse {
            id: "TIGER-Lab/MMLU-Pro".to_owned(),
            source: source.to_owned(),
            ..plan.dataset
        },
        prompt_source: "official".to_owned(),
        protocol: "5-shot chain of thought".to_owned(),
        generation: Generation { temperature: Some(0.0), max_tokens: Some(2048), ..Generation::default() },
        ..plan
    }
}

impl<F: Fn(Position) -> Option<Said>> Script<F> {
    /// Makes the run and ends it.
    pub(crate) async fn play(&self, stack: &Stack) {
        self.work(stack).await;
        self.end(stack).await;
    }

    /// Makes the run without ending it.
    pub(crate) async fn work(&self, stack: &Stack) {
        let state = &stack.state;
        self.create(stack).await;
        let found = state.run_with_benchmarks(self.run).await.unwrap().unwrap();
        let started = NewEvent::new(EventKind::RunStarted, "started");
        let running = found.run.state.start(after(1)).unwrap();
        let changed = state.change_run(&found.run, &running, 1, &started, after(1)).await.unwrap();
        assert_eq!(changed, Transition::Done);
        let claim = state.claim_plan(self.run, 1, after(1), after(60)).await.unwrap();
        let PlanClaim::Claimed { attempt } = claim else { panic!("the plan was taken: {claim:?}") };
        let plan = Plan {
            judge: self.judge.clone(),
            protocol_name: self.protocol_name.to_owned(),
            protocol_generation: self.protocol_generation.clone(),
            ..plan_of(attempt, self.items, self.samples, self.source)
        };
        let items: Vec<PlannedSample> = (0..self.items)
            .map(|item| PlannedSample {
                item_id: item_id(item),
                source_id: Some(source_id(item)),
                group: None,
                offset: 0,
                length: 1,
            })
            .collect();
        state.write_plan(self.run, &found.benchmarks[0].name, &plan, &items, after(1)).await.unwrap();
        let benchmark = state.run_with_benchmarks(self.run).await.unwrap().unwrap().benchmarks.remove(0);
        let running = benchmark.state.start(after(1)).unwrap();
        state.change_benchmark(self.run, &benchmark, &running, Some(&plan), None, after(1)).await.unwrap();
        state.note_planned(self.run, 1).await.unwrap();

        let benchmark = state.run_with_benchmarks(self.run).await.unwrap().unwrap().benchmarks.remove(0);
        let positions =
            (0..self.items).flat_map(|item| (0..self.samples).map(move |sample| Position { item, sample }));
        // In reverse, so that the samples complete in another order than that of the plan.
        let positions: Vec<Position> = positions.collect::<Vec<_>>().into_iter().rev().collect();
        stream::iter(positions)
            .for_each_concurrent(32, |position| self.answer(stack, &plan, &benchmark, position))
            .await;
    }

    pub(crate) async fn create(&self, stack: &Stack) {
        let name: BenchmarkName = self.benchmark.parse().unwrap();
        let judge = self.judge.as_ref().map(|judge| JudgeSpec {
            model: ModelRef {
                base_url: Some("http://user:hunter2@judge.internal/v1".to_owned()),
                ..testing::model("openrouter/acme/judge")
            },
            auth: AuthMode::ApiKey,
            generation: judge.generation.clone(),
            price: None,
        });
        let rejudges = self.rejudges;
        let mut spec = spec(self.run, &name, self.samples, self.owner.clone());
        spec.benchmarks.extend(self.failing.iter().map(|name| name.parse::<BenchmarkName>().unwrap()));
        spec.judge = judge;
        spec.rejudges = rejudges;
        let event = NewEvent::new(EventKind::RunCreated, "created");
        assert!(stack.state.create_run(&spec, &event, None, CREATED_AT).await.unwrap());
    }

    async fn answer(
        &self,
        stack: &Stack,
        plan: &Plan,
        benchmark: &bench_state::BenchmarkRecord,
        position: Position,
    ) {
        let Some(said) = (self.say)(position) else { return };
        let sample = SampleRef {
            run: self.run,
            benchmark: benchmark.name.clone(),
            plan: plan.attempt,
            shards: plan.shards,
            position,
        };
        let claim = stack.state.claim(Stage::Answer, &sample, after(2), after(600)).await.unwrap();
        let Claim::Claimed(claimed) = claim else { panic!("{sample} was taken: {claim:?}") };
        let body = match said.has_body {
            false => None,
            true => {
                let answer = Answer { finish: said.finish.clone(), ..Answer::local(&said.response) };
                let mut body = SampleBody {
                    judge_reply: self.judge.as_ref().filter(|_| !said.is_handed_over).map(|judge| {
                        JudgeReply {
                            model: judge.model.clone(),
                            prompt: Prompt::user("=Is it right? It should be A."),
                            reply: Answer::local("correct: yes"),
                        }
                    }),
                    ..SampleBody::new(
                        item_id(position.item),
                        Prompt::user(&said.prompt),
                        answer,
                        said.expected.clone(),
                    )
                };
                (said.change)(&mut body);
                let sha256 = stack.blobs.put_body(&sample, claimed.attempt, &body).await.unwrap();
                Some(BodyRef { attempt: claimed.attempt, sha256 })
            }
        };
        let usage = Usage::counted(7, 3, 0);
        if said.is_handed_over {
            let answered = AnswerRecord {
                body: body.unwrap(),
                item_hash: Some(format!("{:016x}", position.item)),
                truncated: false,
                latency_ms: Some(said.latency_ms),
                usage: Some(usage),
                model: Some(said.model),
            };
            let handed = stack
                .state
                .hand_over(&sample, claimed.attempt, said.stage, &answered, usage, after(10))
                .await;
            assert_eq!(handed.unwrap(), Handover::Done);
            return;
        }
        let finished = SampleResult {
            verdict: said.verdict,
            item_hash: Some(format!("{:016x}", position.item)),
            truncated: said.finish == Finish::Length,
            latency_ms: said.has_body.then_some(said.latency_ms),
            usage: said.has_body.then_some(usage),
            model: said.has_body.then_some(said.model),
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            body,
            at: after(10 + u64::from(position.item)),
        };
        let commit = stack
            .state
            .commit(
                &sample,
                &benchmark.sort(),
                claimed.attempt,
                &finished,
                finished.usage.unwrap_or_default(),
            )
            .await
            .unwrap();
        assert!(matches!(commit, Commit::Done { .. }), "{commit:?}");
    }

    /// Ends the run as the finisher does.
    pub(crate) async fn end(&self, stack: &Stack) {
        let state = &stack.state;
        let mut benchmarks = state.run_with_benchmarks(self.run).await.unwrap().unwrap().benchmarks;
        for failing in benchmarks.split_off(1) {
            let failed = failing.state.fail(after(5_000), Code::TooFewGraded, "no dataset").unwrap();
            state.change_benchmark(self.run, &failing, &failed, None, None, after(5_000)).await.unwrap();
        }
        let benchmark = benchmarks.remove(0);
        let mut builder = ReportBuilder::default();
        let planned = u64::from(self.items) * u64::from(self.samples);
        let mut models = ReportedModels::default();
        for sample in state.samples_page(self.run, &benchmark, 0, planned).await.unwrap() {
            sample.summary().iter().for_each(|summary| builder.add(summary));
            sample.reported_model().into_iter().for_each(|model| models.add(model));
        }
        let report: BenchmarkReport = builder.finish(self.items.into(), self.samples, 0.9, None);
        let report = if self.is_closed_by_older { report } else { report.with_reported_models(models) };
        let score = report.score;
        let closed = benchmark.state.close(after(5_000), report).unwrap();
        state.change_benchmark(self.run, &benchmark, &closed, None, None, after(5_000)).await.unwrap();
        let run = state.run(self.run).await.unwrap().unwrap();
        let over: RunState = match score {
            Some(_) => run.state.succeed(after(5_001), score).unwrap(),
            None => run.state.fail(after(5_001), Code::TooFewGraded, "too little was graded").unwrap(),
        };
        let event = NewEvent::new(EventKind::RunCompleted, "over");
        let changed = state.change_run(&run, &over, run.generation, &event, after(5_001)).await.unwrap();
        assert_eq!(changed, Transition::Done);
    }
}

/// Returns samples of every kind.
pub(crate) fn mixed(position: Position) -> Option<Said> {
    Some(match position.item {
        0 => Said::right("The answer is (A)."),
        1 => Said { latency_ms: 0, ..Said::wrong("The answer is (B). é 😀 \u{1}") },
        2 => Said::failed("the provider answered 500 five times"),
        3 => Said { verdict: Verdict::wrong(Outcome::NoAnswer, "the answer is empty"), ..Said::right("") },
        4 => Said { finish: Finish::Length, model: "acme/model-2".to_owned(), ..Said::right("A, and furth") },
        5 => Said { verdict: Verdict::partial(0.25, Some("C".to_owned()), "a quarter"), ..Said::right("C") },
        6 => return None,
        _ => Said::right("A"),
    })
}

/// Builds an archive and its table in one pass. Returns their keys, and how often that read records (at most 100 at once) and bodies.
pub(crate) async fn build_both(stack: &Stack, run: RunId) -> ([String; 2], [u64; 2]) {
    let exports = stack.exports();
    stack.calls.clear();
    let order = ExportOrder { with_table: true, ..ExportFormat::Zip.into() };
    let archive = exports.build(run, order).await.unwrap();
    let read = ["BatchGetItem", "GetObject"].map(|action| stack.calls.of(action).0);
    stack.calls.clear();
    let table = exports.build(run, ExportFormat::Csv).await.unwrap();
    for action in ["BatchGetItem", "GetObject", "PutObject", "CreateMultipartUpload"] {
        assert_eq!(stack.calls.of(action).0, 0, "the table is stored already: {action}");
    }
    ([archive.key, table.key], read)
}
