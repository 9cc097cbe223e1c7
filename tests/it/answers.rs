//! Answers that are damaged, have impossible token counts, or contain a key.

use std::io::{Cursor, Read as _};

use axum::body::{Body, to_bytes};
use bench_domain::{Outcome, RunId, RunStatus, SampleBody, TextRepairs};
use bench_exports::ExportFormat;
use bench_tests::files::files_with;
use bench_tests::model_server::{ModelRequest, Reply};
use memchr::memmem;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::support::{Expected, Order, Settings, World, check, data, log, runtime};

const KEY: &str = "sk-caller-77b1/d0+5e=c3a1904f";
const JUDGE_KEY: &str = "sk-judge-0c41a7de95f2b368";
const USAGE: &str = r#"{"prompt_tokens":100,"completion_tokens":20}"#;

/// Returns the stored bodies of a benchmark, in the order of its items.
async fn bodies(world: &World, run: RunId, benchmark: &str) -> Vec<SampleBody> {
    let found = world.stored_run(run).await;
    let mut bodies = Vec::new();
    for sample in world.samples(&found, benchmark).await {
        let Some(stored) = sample.stored_body() else { continue };
        let address = World::sample_ref(&found, benchmark, sample.position);
        let read = world.stack.blobs.get_body(&address, stored.attempt, Some(&stored.sha256)).await.unwrap();
        bodies.push(read.unwrap().0);
    }
    bodies
}

#[test]
fn halves_of_characters_do_not_cost_an_answer() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| {
            let right = data::right_answer(&request.item);
            let right = right.as_bytes();
            match data::number(&request.item) {
                0 => Reply::deltas(&[br"\ud83d".as_slice(), br"\ude00 ", right], USAGE),
                1 => Reply::deltas(&[br"\ud83d ".as_slice(), right], USAGE),
                2 => Reply::deltas(&[right, br" \ude00"], USAGE),
                3 => Reply::deltas(&[b"\xff\xfe ".as_slice(), right], USAGE),
                4 => Reply::deltas(&[b"\xf0\x9f".as_slice(), b"\x98\x80 ", right], USAGE),
                _ => Reply::deltas(&["😀 ".as_bytes(), right], USAGE),
            }
        })
        .await;
        let run = Order::mmlu_pro(6).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        for sample in &samples["mmlu_pro"] {
            assert_eq!(sample.finished.as_ref().unwrap().verdict.outcome, Outcome::Correct);
            assert_eq!(sample.history.attempts, 1);
        }
        assert!(world.model.question_counts().values().all(|times| *times == 1));
        for body in bodies(&world, run, "mmlu_pro").await {
            let right = data::right_answer(&body.item_id);
            let (text, joined, replaced) = match body.item_id.as_str() {
                "0" | "4" => (format!("😀 {right}"), 1, 0),
                "1" => (format!("\u{fffd} {right}"), 0, 1),
                "2" => (format!("{right} \u{fffd}"), 0, 1),
                "3" => (format!("\u{fffd}\u{fffd} {right}"), 0, 2),
                _ => (format!("😀 {right}"), 0, 0),
            };
            assert_eq!(body.answer.text, text, "item {}", body.item_id);
            assert_eq!(body.answer.repairs, TextRepairs { joined, replaced }, "item {}", body.item_id);
        }
    });
}

#[test]
fn counts_that_cannot_be_right_are_estimated_and_marked() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| {
            let right = data::right_answer(&request.item);
            let usage = match data::number(&request.item) {
                0 => r#"{"prompt_tokens":1000000000000000000,"completion_tokens":20}"#,
                1 => r#"{"prompt_tokens":100,"completion_tokens":-20}"#,
                2 => r#"{"prompt_tokens":100,"completion_tokens":2.5}"#,
                3 => r#"{"prompt_tokens":1e300,"completion_tokens":1e300}"#,
                4 => r#"{"total_tokens":120}"#,
                _ => USAGE,
            };
            Reply::deltas(&[right.as_bytes()], usage)
        })
        .await;
        let run = Order::mmlu_pro(10).with_budget_tokens(1_000_000).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        for body in bodies(&world, run, "mmlu_pro").await {
            let number = data::number(&body.item_id);
            assert_eq!((body.answer.usage.is_none(), body.answer.usage_rejected), (number < 5, number < 4));
            assert!(body.answer.usage_raw.is_some(), "what was said is kept");
        }
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.usage.total(), report.without_usage), (5 * 120, 5));
        let spent = report.spent.unwrap();
        assert!(spent.estimated_tokens > 0 && spent.estimated_tokens < 10_000, "{spent:?}");
        assert_eq!(spent.total(), 5 * 120 + spent.estimated_tokens);

        // A run without a budget reports the estimates as well.
        let plain = Order::mmlu_pro(10).place(&world).await;
        assert_eq!(world.wait_for_end(plain).await, RunStatus::Succeeded);
        let found = world.stored_run(plain).await;
        assert_eq!(found.benchmarks[0].state.report().unwrap().spent, Some(spent));
        let table = world.stack.exports.build(plain, ExportFormat::Csv).await.unwrap();
        let table = world.stack.blobs.get(&table.key).await.unwrap().unwrap();
        let table = String::from_utf8(table.to_vec()).unwrap();
        let ends = "tokens_known,benchmark_estimated_tokens,benchmark_judge_estimated_tokens,error_code";
        assert!(table.lines().next().unwrap().ends_with(ends), "{table}");
        for (mark, rows) in [("counted", 5), ("estimated", 1), ("rejected", 4)] {
            let cells = format!(",{mark},{},,\r\n", spent.estimated_tokens);
            assert_eq!(table.matches(&cells).count(), rows, "{cells:?} in {table}");
        }
    });
}

/// Keys in the content, split over two chunks, in the reasoning, in names and in errors, of the model and of the
/// judge.
#[test]
fn a_key_that_a_provider_repeats_is_stored_nowhere() {
    log::capture();
    runtime().block_on(async {
        let settings = Settings { concurrency: 4, ..Settings::default() };
        let world = World::start(settings, |request| {
            let key = request.key.clone().unwrap_or_default();
            let (one, two) = key.split_at(key.len() / 2);
            let escaped = key.replace('/', "\\/");
            if request.is_judge {
                return match request.before {
                    0 => Reply::Text(format!("I was asked with {key}")),
                    _ => Reply::deltas(&[b"A ".as_slice(), one.as_bytes(), two.as_bytes()], USAGE),
                };
            }
            match data::number(&request.item) {
                0 => Reply::Status(400, format!(r#"{{"error":{{"message":"no: {}{escaped}"}}}}"#, "x".repeat(960)), vec![]),
                1 if request.before == 0 => Reply::Status(500, format!("broken by Bearer {key}"), vec![]),
                2 => Reply::Events(vec![
                    format!(
                        "data: {{\"id\":\"{key}\",\"model\":\"m-{key}\",\"choices\":[{{\"delta\":{{\"content\":\"A\",\
                         \"reasoning\":\"{one}\"}}}}]}}\n\n"
                    )
                    .into_bytes(),
                    format!(
                        "data: {{\"choices\":[{{\"delta\":{{\"reasoning\":\"{two}\"}},\"finish_reason\":\"{key}\"}}],\
                         \"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1,\"for\":\"{escaped}\"}}}}\n\n\
                         data: [DONE]\n\n"
                    )
                    .into_bytes(),
                ]),
                _ => Reply::deltas(&[b"My key is ".as_slice(), one.as_bytes(), two.as_bytes()], USAGE),
            }
        })
        .await;
        let run = Order::aa_omniscience(6, &world).with_key(KEY).with_judge_key(JUDGE_KEY).place(&world).await;
        world.wait_for_end(run).await;
        let stored = bodies(&world, run, "aa_omniscience").await;
        assert!(stored.len() >= 5 && world.model.total() > 10, "{} bodies", stored.len());
        let redacted: u64 = stored.iter().map(|body| body.answer.keys_redacted).sum();
        assert!(redacted >= 8, "{redacted}");
        assert!(stored.iter().any(|body| body.answer.text == "My key is [redacted]"));
        assert!(stored.iter().any(|body| body.answer.reasoning.as_deref() == Some("[redacted]")));
        let found = world.stored_run(run).await;
        let samples = world.samples(&found, "aa_omniscience").await;
        let events = world.stack.state.events(run, 0, 1_000).await.unwrap();
        let mut public_text = serde_json::to_string(&stored).unwrap();
        public_text.push_str(&format!("{found:?} {samples:?} {events:?}"));
        for key in [KEY, JUDGE_KEY] {
            // The beginning of a key is just as secret: the error of item 0 is cut within the key.
            for part in [key, &key[..16], &key.replace('/', "\\/")] {
                assert!(!public_text.contains(part), "{part} in {public_text}");
                assert_eq!(files_with(&world.data_dir(), part), Vec::<String>::new());
                assert_eq!(log::lines_with(part), Vec::<String>::new());
            }
        }
        assert!(public_text.contains("[redacted]"));
    });
}

/// Returns a key with each of its characters as `\\u0000`.
fn escape_as_json(key: &str) -> String {
    key.bytes().map(|byte| format!("\\u{byte:04X}")).collect()
}

/// Base64 of a name followed by a key.
const BASIC: &str = "YW5uOnNrLWNhbGxlci03N2IxL2QwKzVlPWMzYTE5MDRm";

/// Replies as a provider that repeats the key in every part of its responses, in many forms.
fn key_repeating_reply(request: &ModelRequest) -> Reply {
    let key = request.key.clone().unwrap_or_default();
    let (one, two) = key.split_at(key.len() / 2);
    let (escaped, encoded) = (escape_as_json(&key), key.replace('/', "%2f").replace('+', "%2B"));
    let request_id = vec![("x-request-id", format!("{}{key}", "r".repeat(190)))];
    if request.is_judge {
        return Reply::deltas(&[b"A ".as_slice(), one.as_bytes(), two.as_bytes()], USAGE);
    }
    match data::number(&request.item) {
        0 => Reply::Status(
            200,
            format!(
                r#"{{"id":"{key}","model":"m-{escaped}","choices":[{{"message":{{"content":"A {escaped} {BASIC}",
                    "reasoning":"for {encoded}"}},"finish_reason":"{key}"}}],
                    "usage":{{"prompt_tokens":1,"completion_tokens":1,"{key}":1,"for":"{escaped}"}}}}"#
            ),
            request_id,
        ),
        1 if request.before == 0 => Reply::Status(500, format!("broken by Bearer {key}"), request_id),
        2 => Reply::Status(400, format!(r#"{{"error":{{"message":"no {escaped} {encoded}"}}}}"#), request_id),
        _ => Reply::deltas(&[b"My key is ".as_slice(), one.as_bytes(), two.as_bytes()], USAGE),
    }
}

/// Returns the response to a caller for this path, with the members of an archive one by one, and with every JSON
/// string decoded.
async fn response_bytes(world: &World, path: &str) -> Vec<u8> {
    let request = http::Request::get(path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {KEY}")).body(Body::empty()).unwrap();
    let response = world.stack.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let headers = format!("{:?}\n", response.headers()).into_bytes();
    let body = to_bytes(response.into_body(), 64 << 20).await.unwrap();
    let mut parts = vec![body.to_vec()];
    if body.starts_with(b"PK") {
        let mut archive = zip::ZipArchive::new(Cursor::new(&body)).unwrap();
        assert!(archive.len() >= 3, "{} members", archive.len());
        for index in 0..archive.len() {
            let mut member = Vec::new();
            archive.by_index(index).unwrap().read_to_end(&mut member).unwrap();
            parts.push(member);
        }
    }
    let decoded = parts.iter().filter_map(|part| serde_json::from_slice::<Value>(part).ok());
    let decoded: Vec<Vec<u8>> = decoded.map(|value| value.to_string().into_bytes()).collect();
    [vec![headers], parts, decoded].concat().concat()
}

fn contains(text: &[u8], part: &str) -> bool {
    memmem::find(text, part.as_bytes()).is_some()
}

/// Checks items, events, tables and archives.
#[test]
fn a_key_that_a_provider_repeats_is_handed_out_nowhere() {
    runtime().block_on(async {
        let world =
            World::start(Settings { concurrency: 4, ..Settings::default() }, key_repeating_reply).await;
        let run =
            Order::aa_omniscience(6, &world).with_key(KEY).with_judge_key(JUDGE_KEY).place(&world).await;
        world.wait_for_end(run).await;
        let failing = World::start(Settings::default(), |request| {
            let key = request.key.clone().unwrap_or_default();
            let headers = vec![("x-request-id", key.clone())];
            Reply::Status(
                401,
                format!(r#"{{"error":{{"message":"bad key {} {key}"}}}}"#, escape_as_json(&key)),
                headers,
            )
        })
        .await;
        let failed = Order::mmlu_pro(3).with_key(KEY).place(&failing).await;
        assert_eq!(failing.wait_for_end(failed).await, RunStatus::Failed);

        let of = |run: RunId, rest: &str| format!("/api/runs/{run}{rest}");
        let mut public_text = Vec::new();
        for (world, path, key_repeating_reply) in [
            (&world, of(run, "/benchmarks/aa_omniscience?limit=500"), true),
            (&world, of(run, "/export?format=csv"), true),
            (&world, of(run, "/export?format=zip"), true),
            (&world, of(run, "/events"), false),
            (&world, of(run, "/events?cursor="), false),
            (&world, of(run, "/judgings"), false),
            (&world, of(run, ""), false),
            (&failing, of(failed, "/benchmarks/mmlu_pro"), false),
            (&failing, of(failed, "/export?format=csv"), false),
            (&failing, of(failed, "/export?format=zip"), false),
            (&failing, of(failed, "/events"), true),
            (&failing, of(failed, "/events?cursor="), true),
            (&failing, of(failed, ""), true),
            (&failing, "/api/runs".to_owned(), true),
            (&failing, "/api/ops/overview".to_owned(), false),
        ] {
            let text = response_bytes(world, &path).await;
            // Otherwise the text would not have contained a key in the first place.
            assert!(
                !key_repeating_reply || contains(&text, "[redacted]"),
                "{path}: {}",
                String::from_utf8_lossy(&text)
            );
            public_text.push((path, text));
        }
        for key in [KEY, JUDGE_KEY] {
            let (encoded, end) = (key.replace('/', "%2f").replace('+', "%2B"), &key[key.len() - 12..]);
            for part in [&key[..16], end, &escape_as_json(key)[..48], &encoded[..20], &BASIC[8..40]] {
                for (path, text) in &public_text {
                    assert!(!contains(text, part), "{part} in {path}: {}", String::from_utf8_lossy(text));
                }
                assert_eq!(files_with(&world.data_dir(), part), Vec::<String>::new());
                assert_eq!(files_with(&failing.data_dir(), part), Vec::<String>::new());
            }
        }
    });
}
