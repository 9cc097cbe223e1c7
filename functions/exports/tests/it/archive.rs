//! The signed archive, built from a run in the embedded services.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::process::{Command, Stdio};

use crate::support::{
    self, Said, Script, Stack, VERSION, after, build_both, config, item_id, key_ring, mixed, script, trusted,
};
use bench_domain::run::{JudgeUse, RejudgedRun};
use bench_domain::{
    Answer, Code, Execution, Generation, HarvestedFile, JobEnd, JobReport, Position, Prompt, RunId,
    SampleBody, Stage, Step, Usage, Verdict,
};
use bench_exports::{ExportError, ExportFormat, ExportsConfig};
use bench_signing::{Limits, SigningKey, canonical, verify_bytes};
use bench_state::{BodyRef, Claim, EventKind, NewEvent, ReplyWithoutVerdict, SampleResult, Transition};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn member(archive: &[u8], name: &str) -> String {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut text = String::new();
    zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn results(archive: &[u8]) -> Value {
    serde_json::from_str(&member(archive, "results.json")).unwrap()
}

/// Ends a run like a fatal failure: its benchmarks are still open.
async fn fail(stack: &Stack, run: RunId) {
    let found = stack.state.run(run).await.unwrap().unwrap();
    let failed = found.state.fail(after(20), Code::JudgeNotUsable, "the judge answered 401").unwrap();
    let event = NewEvent::new(EventKind::RunFailed, "failed");
    let changed = stack.state.change_run(&found, &failed, 1, &event, after(20)).await.unwrap();
    assert_eq!(changed, Transition::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn has_every_field_and_every_sample() {
    let stack = Stack::open().await;
    let script = script(7, mixed);
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    assert_eq!(built.filename, format!("benchmark_results_{}_20260102_042626.zip", script.run));
    assert_eq!(built.content_type, "application/zip");
    let fingerprint = key_ring().unwrap().signing_key().unwrap().fingerprint();
    assert_eq!(built.key, format!("exports/{}/1-{VERSION}-{}.zip", script.run, &fingerprint[..16]));
    let archive = stack.bytes(&built.key).await;
    assert_eq!(built.length, archive.len() as u64);

    let text = member(&archive, "results.json");
    assert_eq!(canonical::canonicalize(&text).unwrap(), text, "canonical");
    for secret in ["hunter2", "model.internal", "AAECAwQFBgcICQ"] {
        assert!(!text.contains(secret) && !member(&archive, "manifest.json").contains(secret), "{secret}");
    }
    let results: Value = serde_json::from_str(&text).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&results), ["benchmarks", "exported_at", "run", "schema_version"]);
    assert_eq!(results["exported_at"], "2026-01-02T04:26:26Z");
    assert_eq!(results["schema_version"], "1.0");

    let run = &results["run"];
    for (field, value) in [
        ("id", json!(script.run.to_string())),
        ("model_slug", json!("=acme/model")),
        ("provider", json!("openai-compatible")),
        ("subset_pct", json!(50)),
        ("subset_count", json!(null)),
        ("subset_seed", json!("+seed")),
        ("status", json!("failed")),
        ("selected_benchmarks", json!(["mmlu_pro"])),
        ("overall_score", json!(null)),
        ("error_message", json!("too little was graded")),
        ("provider_metadata", json!(null)),
        ("created_at", json!("2026-01-02T03:03:05Z")),
        ("started_at", json!("2026-01-02T03:03:06Z")),
        ("completed_at", json!("2026-01-02T04:26:26Z")),
        ("code_version", json!(VERSION)),
        ("git_sha", json!(null)),
        ("demo", json!(false)),
        ("coverage", json!(5.0 / 7.0)),
    ] {
        assert_eq!(run.get(field), Some(&value), "{field}");
    }
    assert!(run["model_id"].is_string());

    let benchmark = &results["benchmarks"][0];
    for (field, value) in [
        ("benchmark_name", json!("mmlu_pro")),
        ("status", json!("failed")),
        ("score", json!(null)),
        ("total_items", json!(12_032)),
        ("sampled_items", json!(7)),
        ("completed_items", json!(6)),
        ("sampled_item_ids", json!((0..7).map(item_id).collect::<Vec<_>>())),
        ("coverage", json!(5.0 / 7.0)),
        ("accuracy_all", json!(2.0 / 7.0)),
        ("models_reported", json!(["acme/model-1", "acme/model-2"])),
    ] {
        assert_eq!(benchmark.get(field), Some(&value), "{field}");
    }
    assert_eq!(benchmark["dataset"]["revision"], "0123abcd");
    assert_eq!(benchmark["outcomes"]["infrastructure-error"], 1);
    let causes =
        json!([{ "message": "the provider answered 500 five times", "code": "provider_error", "count": 1 }]);
    assert_eq!(benchmark["error_causes"], causes);
    let manifest: Value = serde_json::from_str(&member(&archive, "manifest.json")).unwrap();
    assert_eq!(manifest["benchmarks"][0]["error_causes"], causes);
    let metrics = &benchmark["metrics"];
    for field in [
        "accuracy",
        "total_items",
        "sampled_items",
        "sampled_pct",
        "subset_count",
        "subset_seed",
        "correct",
        "score",
    ] {
        assert!(metrics.get(field).is_some(), "{field}");
    }
    assert!(metrics["accuracy"].is_f64() && metrics["correct"] == 2);

    let items = benchmark["items"].as_array().unwrap();
    assert_eq!(items.len(), 7);
    for item in items {
        for field in [
            "item_id",
            "source_id",
            "item_hash",
            "prompt",
            "response",
            "expected",
            "is_correct",
            "score",
            "latency_ms",
            "input_tokens",
            "output_tokens",
            "error",
            "test_code",
            "item_metadata",
            "judge_output",
            "created_at",
        ] {
            assert!(item.get(field).is_some(), "{field}");
        }
    }
    let shown = |index: usize| {
        let item = &items[index];
        json!([item["is_correct"], item["score"], item["error"], item["outcome"]])
    };
    assert_eq!(shown(0), json!([true, 1.0, null, "correct"]));
    assert_eq!(shown(1), json!([false, 0.0, null, "incorrect"]));
    assert_eq!(shown(2), json!([null, null, "the provider answered 500 five times", "infrastructure-error"]));
    assert_eq!(shown(3), json!([false, 0.0, "Model produced empty response", "no-answer"]));
    assert_eq!(shown(4), json!([true, 1.0, "Response truncated (finish_reason=length)", "correct"]));
    assert_eq!(shown(5), json!([false, 0.25, null, "partial"]));
    assert_eq!(shown(6), json!([null, null, "not finished", null]));
    assert_eq!(items[0]["response"], "The answer is (A).");
    assert_eq!(items[1]["response"], "The answer is (B). é 😀 \u{1}");
    assert_eq!((&items[1]["latency_ms"], &items[2]["latency_ms"]), (&json!(0), &json!(null)));
    let metadata = &items[0]["item_metadata"];
    assert_eq!((&metadata["worker_attempt"], &metadata["worker_attempts"]), (&json!(1), &json!(1)));
    assert_eq!((&items[0]["attempts"], &items[4]["finish_reason"]), (&json!(1), &json!("length")));
    assert_eq!(items[0]["created_at"], "2026-01-02T03:03:15Z");
    assert_eq!((&items[6]["item_id"], &items[6]["source_id"]), (&json!("q6"), &json!("=own/6")));
    assert_eq!(items[2]["prompt"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn is_verified_by_the_signing_crate() {
    let stack = Stack::open().await;
    let script =
        script(3, |position| Some(if position.item == 0 { Said::right("A") } else { Said::wrong("B") }));
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;

    let verdict = verify_bytes(&archive, &trusted(), &Limits::default(), jiff::Timestamp::now());
    assert!(verdict.valid, "{:?}", verdict.errors);
    assert_eq!(verdict.run_id, Some(script.run.to_string()));
    assert_eq!(verdict.overall_score, Some(1.0 / 3.0));
    assert_eq!((verdict.subset_pct, verdict.benchmark_count), (Some(50), Some(1)));
    let stranger = SigningKey::generate().unwrap().public_key();
    assert!(
        !verify_bytes(
            &archive,
            &[bench_signing::TrustedKey::given(stranger)],
            &Limits::default(),
            jiff::Timestamp::now()
        )
        .valid
    );

    let mut zip = zip::ZipArchive::new(Cursor::new(&archive)).unwrap();
    let names: Vec<String> =
        (0..zip.len()).map(|index| zip.by_index(index).unwrap().name().unwrap().into_owned()).collect();
    assert_eq!(names, ["results.json", "manifest.json", "signature.txt", "public_key.txt"]);
    let manifest: Value = serde_json::from_str(&member(&archive, "manifest.json")).unwrap();
    let digest = hex::encode(Sha256::digest(member(&archive, "results.json")));
    assert_eq!(manifest["results_sha256"], json!(digest));
    assert_eq!(manifest["generated_at"], "2026-01-02T04:26:26Z");
    assert_eq!(manifest["software"]["version"], VERSION);
    assert_eq!(manifest["coverage"], json!(1.0));
    assert_eq!(manifest["demo"], json!(false));
    assert_eq!(manifest["model"]["reported"], json!(["acme/model-1"]));
    assert_eq!(manifest["sampling"]["generation"]["temperature"], json!(0.0));
    let benchmark = &manifest["benchmarks"][0];
    assert_eq!(benchmark["dataset"]["digest"], json!("ab".repeat(32)));
    assert_eq!(benchmark["prompt_digest"], json!("cd".repeat(32)));
    assert_eq!(benchmark["generation"]["max_tokens"], json!(2048));
    // Archives of runs under the benchmark's own settings have the fields of older versions.
    assert_eq!(benchmark.get("changed_settings"), None);
    assert_eq!(benchmark["generation"].as_object().unwrap().len(), 5);
    assert_eq!(manifest["sampling"].get("limits"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_episodes_name_the_agent_and_its_end() {
    // Programming tasks are episodes under one of their protocols.
    for (benchmark, protocol_name, has_episodes) in
        [("terminal_tasks", "own", true), ("code_lab", "agent", true), ("code_lab", "single-reply", false)]
    {
        let stack = Stack::open().await;
        let said = |_| {
            let mut said = Said::wrong("");
            let detail = json!({ "agent": "bash", "turns": 12, "agent_end": "turn_limit", "exception": "AgentTimeoutError" });
            said.verdict.detail.extend(detail.as_object().unwrap().clone());
            Some(said)
        };
        let script = Script { benchmark, protocol_name, ..script(2, said) };
        script.play(&stack).await;
        let built = stack.exports().build(script.run, ExportFormat::Csv).await.unwrap();
        let table = String::from_utf8(stack.bytes(&built.key).await).unwrap();
        let (header, rows) = table.split_once("\r\n").unwrap();
        let columns = ",error_code,agent,agent_turns,agent_end,exception";
        assert_eq!(header.ends_with(columns), has_episodes, "{protocol_name}: {header}");
        let count = if has_episodes { 2 } else { 0 };
        assert_eq!(rows.matches(",bash,12,turn_limit,AgentTimeoutError\r\n").count(), count, "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn states_the_settings_that_differ_from_the_benchmarks_own() {
    let stack = Stack::open().await;
    let protocol = Generation { temperature: Some(0.5), max_tokens: Some(2048), ..Generation::default() };
    let script = Script { protocol_generation: Some(protocol), ..script(2, |_| Some(Said::right("A"))) };
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;
    assert!(verify_bytes(&archive, &trusted(), &Limits::default(), jiff::Timestamp::now()).valid);
    let manifest: Value = serde_json::from_str(&member(&archive, "manifest.json")).unwrap();
    for benchmark in [&results(&archive)["benchmarks"][0], &manifest["benchmarks"][0]] {
        assert_eq!(benchmark["changed_settings"], json!(["temperature 0 (benchmark: 0.5)"]));
    }
    let built = stack.exports().build(script.run, ExportFormat::Csv).await.unwrap();
    let table = String::from_utf8(stack.bytes(&built.key).await).unwrap();
    let (header, rows) = table.split_once("\r\n").unwrap();
    assert!(header.ends_with(",error_code,changed_settings"), "{header}");
    assert_eq!(rows.matches(",temperature 0 (benchmark: 0.5)\r\n").count(), 2, "{rows}");
    let built = stack.exports().build(script.run, ExportFormat::Jsonl).await.unwrap();
    let lines = String::from_utf8(stack.bytes(&built.key).await).unwrap();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["changed_settings"], json!(["temperature 0 (benchmark: 0.5)"]));
    }
    assert_eq!(lines.lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_protocol_and_judge_and_holds_what_the_judge_said() {
    let stack = Stack::open().await;
    let first: RunId = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f91".parse().unwrap();
    let generation = Generation {
        temperature: Some(0.0),
        seed: Some(-4),
        max_tokens: Some(4096),
        ..Generation::default()
    };
    let script = Script {
        judge: Some(JudgeUse {
            model: "openrouter/acme/judge".to_owned(),
            endpoint_host: None,
            version: 2,
            prompt_digest: "ef".repeat(32),
            prompt_source: "own".to_owned(),
            generation,
        }),
        rejudges: Some(RejudgedRun { run: first, version: 2 }),
        ..script(2, |_| Some(Said::right("A")))
    };
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;
    assert!(verify_bytes(&archive, &trusted(), &Limits::default(), jiff::Timestamp::now()).valid);
    let (text, manifest) = (member(&archive, "results.json"), member(&archive, "manifest.json"));
    for secret in ["hunter2", "judge.internal"] {
        assert!(!text.contains(secret) && !manifest.contains(secret), "{secret}");
    }
    let judge = json!({
        "model": "openrouter/acme/judge", "endpoint_host": null, "version": 2, "prompt_digest": "ef".repeat(32), "prompt_source": "own",
        "temperature": 0.0, "seed": -4, "max_tokens": 4096,
    });
    let rejudges = json!({ "run": first.to_string(), "version": 2 });
    let (results, manifest) = (results(&archive), serde_json::from_str::<Value>(&manifest).unwrap());
    for benchmark in [&results["benchmarks"][0], &manifest["benchmarks"][0]] {
        assert_eq!((&benchmark["judge"], &benchmark["protocol_name"]), (&judge, &json!("five-shot")));
        assert_eq!(benchmark["prompt_source"], "official");
    }
    assert_eq!((&results["run"]["rejudges"], &manifest["rejudges"]), (&rejudges, &rejudges));
    assert_eq!(results["run"]["judge"]["model"], "openrouter/acme/judge");
    assert_eq!(manifest["sampling"]["judge"]["generation"]["seed"], -4);
    let item = &results["benchmarks"][0]["items"][0];
    assert_eq!(item["judge_prompt"], "=Is it right? It should be A.");
    assert_eq!(item["judge_output"]["reply"], "correct: yes");

    let table = stack.exports().build(script.run, ExportFormat::Csv).await.unwrap();
    let mut reader = csv::Reader::from_reader(std::io::Cursor::new(stack.bytes(&table.key).await));
    let header = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    for (column, cell) in [
        ("protocol_name", "five-shot"),
        ("prompt_source", "official"),
        ("judge_model", "openrouter/acme/judge"),
        ("judge_version", "2"),
        ("judge_prompt_source", "own"),
        ("judge_temperature", "0.0"),
        ("judge_seed", "-4"),
        ("judge_max_tokens", "4096"),
        ("rejudges_run", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f91"),
        ("rejudges_version", "2"),
        ("judge_prompt", "'=Is it right? It should be A."),
        ("judge_reply", "correct: yes"),
    ] {
        let index = header.iter().position(|name| name == column).unwrap();
        assert_eq!(&row[index], cell, "{column}");
    }
}

/// Reads the archive with another implementation of ZIP, JSON and SHA-256. Without python3, checks nothing.
#[tokio::test(flavor = "multi_thread")]
async fn is_read_by_another_program() {
    const CHECK: &str = r#"
import base64, hashlib, io, json, sys, zipfile
archive = zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))
assert archive.testzip() is None
assert archive.namelist() == ["results.json", "manifest.json", "signature.txt", "public_key.txt"], archive.namelist()
assert all(info.compress_type == zipfile.ZIP_DEFLATED for info in archive.infolist())
results, manifest = archive.read("results.json"), archive.read("manifest.json")
for raw in (results, manifest):
    again = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert again.encode() == raw, "not canonical"
said = json.loads(manifest)
assert said["results_sha256"] == hashlib.sha256(results).hexdigest()
key = base64.b64decode(archive.read("public_key.txt"), validate=True)
assert said["public_key_fingerprint"] == hashlib.sha256(key).hexdigest()
signature = base64.b64decode(archive.read("signature.txt"), validate=True)
assert len(signature) == 64
try:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    Ed25519PublicKey.from_public_bytes(key).verify(signature, manifest)
except ImportError:
    pass
print(len(json.loads(results)["benchmarks"][0]["items"]))
"#;
    let stack = Stack::open().await;
    let script = script(7, mixed);
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;
    let python = Command::new("python3")
        .args(["-c", CHECK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else { return };
    std::io::Write::write_all(&mut python.stdin.take().unwrap(), &archive).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_built_once_and_the_same_again() {
    let stack = Stack::open().await;
    let script = script(600, |position| Some(Said::right(&format!("{} is the answer", position.item))));
    script.play(&stack).await;
    for format in [ExportFormat::Zip, ExportFormat::Csv] {
        let exports = stack.exports();
        let first = exports.build(script.run, format).await.unwrap();
        let bytes = stack.bytes(&first.key).await;
        // A stored export isn't built again.
        stack.blobs.put(&first.key, b"as it was".to_vec().into(), first.content_type).await.unwrap();
        let second = exports.build(script.run, format).await.unwrap();
        assert_eq!((second.length, &second.key, &second.filename), (9, &first.key, &first.filename));
        // A deleted export is built again with the same bytes, in another process too.
        stack.blobs.delete(&first.key).await.unwrap();
        assert_eq!(stack.exports().build(script.run, format).await.unwrap(), first);
        assert_eq!(stack.bytes(&first.key).await, bytes, "{format:?}");
    }
    // Another version of the program makes a separate file.
    let newer =
        stack.exports_with(key_ring(), ExportsConfig { software_version: "9.8.8".to_owned(), ..config() });
    let newer = newer.build(script.run, ExportFormat::Zip).await.unwrap();
    assert!(newer.key.contains("/1-9.8.8-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_requests_get_the_same_archive() {
    let stack = Stack::open().await;
    let script = script(20, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let exports = stack.exports();
    let (one, two) = tokio::join!(
        exports.build(script.run, ExportFormat::Zip),
        exports.build(script.run, ExportFormat::Zip)
    );
    assert_eq!(one.unwrap(), two.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_order_of_the_plan_over_many_pages() {
    let stack = Stack::open().await;
    let script = script(1_200, |position| Some(Said::right(&format!("response {}", position.item))));
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;
    let results = results(&archive);
    let items = results["benchmarks"][0]["items"].as_array().unwrap();
    assert_eq!(items.len(), 1_200);
    for (index, item) in items.iter().enumerate() {
        assert_eq!(item["item_id"], format!("q{index}"));
        assert_eq!(item["response"], format!("response {index}"));
        assert_eq!(item["item_hash"], format!("{index:016x}"));
    }
    let ids: Vec<String> = (0..1_200).map(item_id).collect();
    assert_eq!(results["benchmarks"][0]["sampled_item_ids"], json!(ids));
    assert!(verify_bytes(&archive, &trusted(), &Limits::default(), jiff::Timestamp::now()).valid);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_samples_of_an_item_are_several_entries() {
    let stack = Stack::open().await;
    let mut script = script(3, |position: Position| match (position.item, position.sample) {
        (2, 3) => None,
        (item, sample) if sample <= item => Some(Said::right(&format!("{item}.{sample}"))),
        (item, sample) => Some(Said::wrong(&format!("{item}.{sample}"))),
    });
    script.samples = 4;
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let results = results(&stack.bytes(&built.key).await);
    let benchmark = &results["benchmarks"][0];
    let items: Vec<(String, u64)> = benchmark["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["item_id"].as_str().unwrap().to_owned(), item["sample"].as_u64().unwrap()))
        .collect();
    let expected: Vec<(String, u64)> =
        (0..3).flat_map(|item| (0..4).map(move |sample| (item_id(item), sample))).collect();
    assert_eq!(items, expected);
    assert_eq!(benchmark["sampled_item_ids"], json!(["q0", "q1", "q2"]));
    assert_eq!((&benchmark["sampled_items"], &benchmark["completed_items"]), (&json!(3), &json!(2)));
    assert_eq!((&benchmark["planned_samples"], &benchmark["completed_samples"]), (&json!(12), &json!(11)));
    assert!(benchmark["pass_at"]["2"]["value"].is_f64());
    assert_eq!(results["run"]["overall_score"], json!(6.0 / 11.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_score_of_zero_is_zero_and_demo_data_is_named() {
    let stack = Stack::open().await;
    let mut script = script(2, |_| Some(Said::wrong("B")));
    script.source = "demo";
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let archive = stack.bytes(&built.key).await;
    let text = member(&archive, "results.json");
    assert!(text.contains("\"overall_score\":0.0,"), "a float stays one");
    let manifest: Value = serde_json::from_str(&member(&archive, "manifest.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    for place in [&manifest, &manifest["benchmarks"][0], &results["run"], &results["benchmarks"][0]] {
        assert_eq!(place["demo"], json!(true));
    }
    assert!(manifest["demo_notice"].as_str().unwrap().contains("DEMO DATA"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_or_damaged_answer_is_an_error_of_its_item_alone() {
    let stack = Stack::open().await;
    let script = script(3, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let (bodies, _) = stack.blobs.list(&bench_blobs::bodies_prefix(script.run), None).await.unwrap();
    assert_eq!(bodies.len(), 3);
    stack.blobs.delete(&bodies[0].key).await.unwrap();
    stack.blobs.put(&bodies[1].key, b"something else".to_vec().into(), "application/zstd").await.unwrap();
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let results = results(&stack.bytes(&built.key).await);
    let items = results["benchmarks"][0]["items"].as_array().unwrap();
    assert_eq!(items[0]["error"], "The stored prompt and answer are missing");
    assert_eq!(items[1]["error"], "The stored prompt and answer are damaged");
    assert_eq!((&items[0]["response"], &items[0]["is_correct"]), (&json!(null), &json!(true)));
    assert_eq!((&items[2]["error"], &items[2]["response"]), (&json!(null), &json!("A")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_record_leaves_an_entry_that_says_so() {
    let stack = Stack::open().await;
    let script = script(3, |_| Some(Said::right("A")));
    script.play(&stack).await;
    stack.lose_record(&format!("RUN#{}#mmlu_pro#1#0", script.run), "S#00000001.0000").await;
    let table = stack.exports().build(script.run, ExportFormat::Csv).await.unwrap();
    let alone = stack.bytes(&table.key).await;
    stack.blobs.delete(&table.key).await.unwrap();
    let (keys, read) = build_both(&stack, script.run).await;
    assert_eq!(read, [3, 4], "the samples are written, summed since the report differs, and written again");
    assert!(stack.bytes(&keys[1]).await == alone, "the table doesn't depend on how it was ordered");
    let results = results(&stack.bytes(&keys[0]).await);
    let benchmark = &results["benchmarks"][0];
    let errors: Vec<&Value> =
        benchmark["items"].as_array().unwrap().iter().map(|item| &item["error"]).collect();
    assert_eq!(errors, [&json!(null), &json!("The sample's record is missing"), &json!(null)]);
    assert_eq!(benchmark["sampled_item_ids"], json!(["q0", "", "q2"]));
    assert_eq!((&benchmark["sampled_items"], &benchmark["completed_items"]), (&json!(3), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_none_of_a_run_that_is_not_over() {
    let stack = Stack::open().await;
    let exports = stack.exports();
    let script = script(1, |_| Some(Said::right("A")));
    let build = || exports.build(script.run, ExportFormat::Zip);
    assert!(matches!(build().await, Err(ExportError::NotFound(_))));
    script.create(&stack).await;
    assert!(matches!(build().await, Err(ExportError::NotCompleted)));
    let run = stack.state.run(script.run).await.unwrap().unwrap();
    let canceled = run.state.cancel(after(1)).unwrap();
    let event = bench_state::NewEvent::new(bench_state::EventKind::RunCanceled, "canceled");
    let changed = stack.state.change_run(&run, &canceled, 1, &event, after(1)).await.unwrap();
    assert_eq!(changed, Transition::Done);
    assert!(matches!(build().await, Err(ExportError::NotCompleted)));
}

/// The finisher closes the benchmarks shortly after the run failed.
#[tokio::test(flavor = "multi_thread")]
async fn there_is_none_until_the_benchmarks_are_closed() {
    let stack = Stack::open().await;
    let exports = stack.exports();
    let script = script(2, |position| (position.item == 0).then(|| Said::right("A")));
    script.work(&stack).await;
    fail(&stack, script.run).await;
    for format in [ExportFormat::Zip, ExportFormat::Csv] {
        assert!(matches!(exports.build(script.run, format).await, Err(ExportError::NotSettled)));
    }
    stack.state.skip_open_benchmarks(script.run, "it ended early", after(21)).await.unwrap();
    let built = exports.build(script.run, ExportFormat::Zip).await.unwrap();
    let results = results(&stack.bytes(&built.key).await);
    assert_eq!(results["run"]["status"], "failed");
    assert_eq!(results["benchmarks"][0]["status"], "skipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_its_verdict_is_shown() {
    let stack = Stack::open().await;
    let script = script(4, |position| match position.item {
        0 => Some(Said::right("A")),
        1 => Some(Said::unjudged("It is A.")),
        2 => Some(Said::failed("the provider answered 500 five times")),
        _ => None,
    });
    script.work(&stack).await;
    fail(&stack, script.run).await;
    stack.state.skip_open_benchmarks(script.run, "it ended early", after(21)).await.unwrap();
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let results = results(&stack.bytes(&built.key).await);
    let benchmark = &results["benchmarks"][0];
    assert_eq!((&benchmark["unjudged_samples"], &benchmark["completed_samples"]), (&json!(1), &json!(2)));
    let item = &benchmark["items"][1];
    for (field, value) in [
        ("prompt", json!("What is it?")),
        ("response", json!("It is A.")),
        ("expected", json!("A")),
        ("outcome", json!(null)),
        ("is_correct", json!(null)),
        ("score", json!(null)),
        ("error", json!("answered, not judged")),
        ("item_hash", json!("0000000000000001")),
        ("latency_ms", json!(12)),
        ("input_tokens", json!(7)),
        ("output_tokens", json!(3)),
        ("reasoning_tokens", json!(0)),
        ("model_reported", json!("acme/model-1")),
        ("finish_reason", json!("stop")),
        ("attempts", json!(1)),
    ] {
        assert_eq!(item.get(field), Some(&value), "{field}");
    }
    assert_eq!(item["body_sha256"].as_str().map(str::len), Some(64));
    assert_eq!(benchmark["items"][3]["error"], "not finished");
    assert_eq!(benchmark["items"][3]["response"], json!(null));
}

/// The archive has steps and executions, and an answer that waits for a sandbox says so.
#[tokio::test(flavor = "multi_thread")]
async fn steps_and_executions_are_in_the_archive() {
    let stack = Stack::open().await;
    let in_steps: fn(&mut SampleBody) = |body| {
        let step = |name: &str, text: String| Step {
            name: name.to_owned(),
            prompt: Prompt::user(format!("Now {name}.")),
            answer: Answer::local(text),
        };
        body.steps = vec![step("1.1", "one".into()), step("1.2", "x".repeat(1_000_000))];
        body.execution = Some(Execution {
            round: 1,
            report: JobReport {
                end: JobEnd::TimedOut,
                files: BTreeMap::from([("log".to_owned(), HarvestedFile::Text("y".repeat(1_000_000)))]),
                stdout_tail: "z".repeat(1_000_000),
                stderr_tail: String::new(),
                elapsed_ms: None,
                isolation: None,
            },
        });
    };
    let script = script(3, |position| match position.item {
        0 => Some(Said { change: in_steps, ..Said::right("A") }),
        1 => Some(Said { stage: Stage::Sandbox, ..Said::unjudged("```python\nx = 1\n```") }),
        _ => Some(Said::right("A")),
    });
    script.work(&stack).await;
    fail(&stack, script.run).await;
    stack.state.skip_open_benchmarks(script.run, "it ended early", after(21)).await.unwrap();
    let exports = stack.exports();
    let built = exports.build(script.run, ExportFormat::Zip).await.unwrap();
    let results = results(&stack.bytes(&built.key).await);
    let benchmark = &results["benchmarks"][0];
    assert_eq!(benchmark["unjudged_samples"], 1);
    let items = &benchmark["items"];
    let steps = items[0]["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["name"], &steps[0]["response"]), (&json!("1.1"), &json!("one")));
    assert_eq!(steps[0]["prompt"], "Now 1.1.");
    assert!(steps[1]["cut"] == true && steps[1]["response"].as_str().unwrap().len() < 300_000);
    let ran = &items[0]["judge_output"];
    assert_eq!((&ran["end"], &ran["exit_code"]), (&json!("timed-out"), &json!(null)));
    assert!(ran.to_string().len() < 100_000);
    assert_eq!(items[0]["test_code"], "A");
    assert_eq!(items[1]["error"], "answered, not graded");
    assert_eq!((&items[1]["steps"], &items[1]["judge_output"]), (&json!(null), &json!(null)));
    assert_eq!(items[2]["steps"], json!(null));
    let csv = exports.build(script.run, ExportFormat::Csv).await.unwrap();
    let table = String::from_utf8(stack.bytes(&csv.key).await).unwrap();
    assert!(table.contains("\"answered, not graded\"") && table.len() < 50_000, "{}", table.len());
}

/// A judge claims the sample after the attempt that asked the model.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_of_a_judge_are_not_those_of_the_model() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::unjudged("It is A.")));
    script.work(&stack).await;
    let benchmark = stack.state.run_with_benchmarks(script.run).await.unwrap().unwrap().benchmarks.remove(0);
    let plan = benchmark.plan.clone().unwrap();
    let sample = bench_domain::SampleRef {
        run: script.run,
        benchmark: benchmark.name.clone(),
        plan: plan.attempt,
        shards: plan.shards,
        position: Position { item: 0, sample: 0 },
    };
    // The first turn puts the sample off; the second ends it with a new body.
    let turn = async || match stack.state.claim(Stage::Judge, &sample, after(30), after(600)).await.unwrap() {
        Claim::Claimed(claimed) => claimed,
        other => panic!("{other:?}"),
    };
    let first = turn().await;
    let stored = first.record.stored_body().unwrap().clone();
    let noted = ReplyWithoutVerdict { body: stored.clone(), usage: None, spent: Usage::default() };
    stack.state.note_reply(&sample, first.attempt, 1, &noted, after(30)).await.unwrap();
    let second = turn().await;
    let (body, _) = stack.blobs.get_body(&sample, stored.attempt, None).await.unwrap().unwrap();
    let sha256 = stack.blobs.put_body(&sample, second.attempt, &body).await.unwrap();
    let ended = second.record.to_finished(Verdict::correct("A"), after(32));
    let ended = SampleResult { body: Some(BodyRef { attempt: second.attempt, sha256 }), ..ended };
    stack
        .state
        .commit(&sample, &benchmark.sort(), second.attempt, &ended, ended.usage.unwrap_or_default())
        .await
        .unwrap();
    script.end(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    let item = results(&stack.bytes(&built.key).await)["benchmarks"][0]["items"][0].clone();
    assert_eq!((&item["attempts"], &item["outcome"]), (&json!(1), &json!("correct")));
    let metadata = &item["item_metadata"];
    for (field, count) in
        [("worker_attempt", 1), ("worker_attempts", 1), ("response_attempts", 1), ("judge_attempts", 2)]
    {
        assert_eq!(metadata[field], count, "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeue_makes_a_new_version() {
    let stack = Stack::open().await;
    let exports = stack.exports();
    let script = script(2, |position| (position.item == 0).then(|| Said::right("A")));
    script.play(&stack).await;
    let first = exports.build(script.run, ExportFormat::Csv).await.unwrap();
    let run = stack.state.run(script.run).await.unwrap().unwrap();
    let event = bench_state::NewEvent::new(bench_state::EventKind::RunRequeued, "again");
    let queued = run.state.requeue().unwrap();
    stack.state.change_run(&run, &queued, 2, &event, after(6_000)).await.unwrap();
    assert!(matches!(exports.build(script.run, ExportFormat::Csv).await, Err(ExportError::NotCompleted)));
    let run = stack.state.run(script.run).await.unwrap().unwrap();
    let failed = run.state.fail(after(6_001), Code::InvalidKey, "again").unwrap();
    stack.state.change_run(&run, &failed, 2, &event, after(6_001)).await.unwrap();
    let second = exports.build(script.run, ExportFormat::Csv).await.unwrap();
    assert!(first.key.contains("/1-") && second.key.contains("/2-"), "{} {}", first.key, second.key);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_there_is_a_table_and_no_archive() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let _alone = support::FAILING_ARCHIVES.lock().await;
    let exports = stack.exports_with(Err(bench_signing::KeyError::NotConfigured), config());
    let refused = exports.build(script.run, ExportFormat::Zip).await.unwrap_err();
    assert_eq!(refused.to_string(), "BENCH_SIGNING_PRIVATE_KEY is not configured");
    assert!(exports.build(script.run, ExportFormat::Csv).await.is_ok());
}

/// The archive is larger than one part of an upload: some parts are sent before the rest is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_archive_is_sent_in_parts() {
    let stack = Stack::open().await;
    let noise = |item: u32| {
        let mut state = u64::from(item) + 1;
        let letter = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b' ' + u8::try_from(state % 95).unwrap())
        };
        (0..200_000).map(letter).collect::<String>()
    };
    let script = script(60, |position| Some(Said::right(&noise(position.item))));
    script.play(&stack).await;
    let built = stack.exports().build(script.run, ExportFormat::Zip).await.unwrap();
    assert!(built.length > 8 * 1024 * 1024, "{}", built.length);
    let archive = stack.bytes(&built.key).await;
    assert_eq!(archive.len() as u64, built.length);
    assert!(verify_bytes(&archive, &trusted(), &Limits::default(), jiff::Timestamp::now()).valid);
    assert_eq!(results(&archive)["benchmarks"][0]["items"][59]["response"], noise(59));
}
