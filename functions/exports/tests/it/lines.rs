//! Lines of JSON, built from a run in the embedded services.

use bench_exports::ExportFormat;
use serde_json::{Value, json};

use crate::support::{Said, Stack, VERSION, script};

#[tokio::test(flavor = "multi_thread")]
async fn each_sample_is_a_line_with_its_whole_texts() {
    let stack = Stack::open().await;
    let long = "😀 line\n".repeat(600);
    let script = script(4, |position| match position.item {
        0 => Some(Said { prompt: long.clone(), ..Said::right("says \"A\",\r\nthen\u{2028}stops") }),
        1 => Some(Said::wrong("=HYPERLINK(\"http://x\")")),
        2 => Some(Said::failed("the provider is down")),
        _ => None,
    });
    script.play(&stack).await;
    let run = script.run;
    let built = stack.exports().build(run, ExportFormat::Jsonl).await.unwrap();
    assert_eq!(built.filename, format!("benchmark_samples_{run}_20260102_042626.jsonl"));
    assert_eq!(built.content_type, "application/x-ndjson");
    assert_eq!(built.key, format!("exports/{run}/1-{VERSION}.jsonl"));
    let text = String::from_utf8(stack.bytes(&built.key).await).unwrap();
    assert!(text.ends_with('\n'));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "every planned sample has a line");
    for (position, line) in lines.iter().enumerate() {
        for (field, value) in [
            ("run_id", json!(run.to_string())),
            ("benchmark", json!("mmlu_pro")),
            ("software_version", json!(VERSION)),
            ("demo", json!(false)),
            ("position", json!(position)),
            ("sample", json!(0)),
        ] {
            assert_eq!(line[field], value, "{position} {field}");
        }
        for field in ["model", "protocol", "dataset_id", "dataset_revision", "attempts", "finish_reason"] {
            assert!(line.get(field).is_some(), "{position} {field}");
        }
        assert_eq!(line["changed_settings"], json!([]), "the settings are the benchmark's own");
    }
    assert_eq!((&lines[0]["prompt"], &lines[0]["outcome"]), (&json!(long), &json!("correct")));
    assert_eq!(lines[0]["response"], "says \"A\",\r\nthen\u{2028}stops");
    assert_eq!(
        (&lines[1]["response"], &lines[1]["score"]),
        (&json!("=HYPERLINK(\"http://x\")"), &json!(0.0))
    );
    assert_eq!((&lines[2]["score"], &lines[2]["is_correct"]), (&json!(null), &json!(null)));
    assert!(lines[2]["error"].as_str().unwrap().contains("the provider is down"));
    // The same version of the run gives the same bytes, from the stored file.
    let again = stack.exports().build(run, ExportFormat::Jsonl).await.unwrap();
    assert_eq!(again, built);
}
