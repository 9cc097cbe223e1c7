//! `bench verify`: keys, damaged archives, and the facts that it shows.

use serde_json::{Value, json};

use crate::support::{TestDir, vector_path};

const KEY: &str = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
const OTHER_KEY: &str = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=";

#[test]
fn an_archive_of_the_compatible_system_verifies_with_its_key() {
    let dir = TestDir::new();
    let zip = vector_path("chutes-signed-export.zip");
    let zip = zip.to_str().unwrap();
    let output = dir.bench(&["verify", zip, "--public-key", KEY]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.starts_with("valid: ") && output.stdout.contains("56475aa75463"),
        "{}",
        output.stdout
    );
    let key_file = dir.write("key.txt", format!("{KEY}\n"));
    let value = dir.json(&["verify", zip, "--json", "--public-key", key_file.to_str().unwrap()]);
    assert_eq!(
        (&value["valid"], &value["run_id"]),
        (&json!(true), &json!("3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"))
    );
    assert_eq!(value["errors"], json!([]));
    assert!(!dir.path("data").exists(), "verification makes nothing");
}

#[test]
fn another_key_or_none_is_a_reason() {
    let dir = TestDir::new();
    let zip = vector_path("chutes-signed-export.zip");
    let zip = zip.to_str().unwrap();
    let output = dir.bench(&["verify", zip, "--public-key", OTHER_KEY]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stdout.starts_with("unverified: "), "{}", output.stdout);
    assert!(
        output.stdout.contains("intact, but signed by `56475aa75463`, which is not one of the given keys"),
        "{}",
        output.stdout
    );
    let output = dir.bench(&["verify", zip]);
    assert_eq!(output.code, 1);
    let unknown = "intact, signed by an unknown key `56475aa75463`; pin it with `bench keys pin`";
    assert!(
        output.stdout.starts_with("unverified: ") && output.stdout.contains(unknown),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains(KEY), "{}", output.stdout);
    let output = dir.bench(&["verify", zip, "--json"]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&value["valid"], &value["reasons"]), (&json!(false), &json!(["unknown_key"])));
    assert!(!dir.path("data").exists());

    // A changed archive isn't intact, regardless of its signer.
    let mut changed = std::fs::read(zip).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    dir.write("changed.zip", &changed);
    let output = dir.bench(&["verify", "changed.zip"]);
    assert!(output.code == 1 && output.stdout.starts_with("invalid: "), "{}", output.stdout);
    assert!(!output.stdout.contains("intact"), "{}", output.stdout);

    // The key is trusted after pinning, and no longer after unpinning.
    assert_eq!(dir.bench(&["keys", "pin", KEY, "--label", "vectors"]).code, 0);
    let output = dir.bench(&["verify", zip]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(output.stdout.contains("pinned as vectors"), "{}", output.stdout);
    assert_eq!(dir.bench(&["keys", "unpin", "56475aa75463"]).code, 0);
    assert_eq!(dir.bench(&["verify", zip]).code, 1);
}

#[test]
fn whatever_is_wrong_with_a_file_is_a_verdict() {
    let dir = TestDir::new();
    let mut bytes = std::fs::read(vector_path("chutes-signed-export.zip")).unwrap();
    dir.write("empty.zip", "");
    dir.write("cut.zip", &bytes[..bytes.len() / 2]);
    bytes[60] ^= 1;
    dir.write("altered.zip", &bytes);
    let output = dir.bench(&[
        "verify",
        "--json",
        "--public-key",
        KEY,
        "empty.zip",
        "cut.zip",
        "altered.zip",
        "none.zip",
    ]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let all: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let reasons: Vec<&Value> = all.iter().map(|verdict| &verdict["reasons"][0]).collect();
    assert_eq!(
        (reasons[0], reasons[1], reasons[3]),
        (&json!("not_zip"), &json!("not_zip"), &json!("not_found"))
    );
    assert!(all.iter().all(|verdict| verdict["valid"] == false && verdict["errors"][0].is_string()));
    assert_eq!(dir.bench(&["verify", "none.zip"]).stdout, "not found: none.zip\n");
}

#[test]
fn scores_of_an_archive_are_shown_with_dataset_and_protocol() {
    let dir = TestDir::new();
    let run = ["run", "--model", "oracle", "--benchmark", "hle", "--benchmark", "mmlu_pro", "--demo"];
    let output = dir.bench(&run);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let zip = std::fs::read_dir(dir.path("bench-results")).unwrap().map(|entry| entry.unwrap().path());
    let zip = zip.into_iter().find(|path| path.extension().is_some_and(|end| end == "zip")).unwrap();
    let zip = zip.to_str().unwrap();
    let output = dir.bench(&["verify", zip]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    for part in [
        "DEMO DATA in ",
        "hle (DEMO): score 100.0%, coverage 100.0%, succeeded",
        "mmlu_pro (DEMO): score 100.0%, coverage 100.0%, succeeded",
        "dataset:  DEMO@",
        "protocol: mmlu-pro-api",
        "prompt:   ",
        "judge:    oracle",
        "version 1",
    ] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let value = dir.json(&["verify", zip, "--json"]);
    let all = value["benchmarks"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|one| one["benchmark"] == name).unwrap();
    assert_eq!(all.len(), 2);
    for one in all {
        assert_eq!((&one["demo"], &one["score"], &one["coverage"]), (&json!(true), &json!(1.0), &json!(1.0)));
        assert!(one["dataset"].as_str().unwrap().contains('@') && one["status"] == "succeeded");
    }
    assert_eq!((&of("hle")["judge"]["version"], &of("mmlu_pro")["judge"]), (&json!(1), &Value::Null));

    // An archive of the compatible system has none of these facts.
    let old = vector_path("chutes-signed-export.zip");
    let old = ["verify", old.to_str().unwrap(), "--public-key", KEY];
    let output = dir.bench(&old);
    assert!(output.code == 0 && !output.stdout.contains("coverage"), "{}", output.stdout);
    assert!(dir.json(&[&old[..], &["--json"]].concat()).get("benchmarks").is_none());
}
