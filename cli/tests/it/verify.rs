use serde_json::{Value, json};

use crate::support::{Place, vector};

const KEY: &str = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
const OTHER_KEY: &str = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=";

#[test]
fn an_archive_of_the_compatible_system_verifies_with_its_key() {
    let place = Place::new();
    let zip = vector("chutes-signed-export.zip");
    let zip = zip.to_str().unwrap();
    let done = place.bench(&["verify", zip, "--public-key", KEY]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.out.starts_with("valid: ") && done.out.contains("56475aa75463"), "{}", done.out);
    let key_file = place.write("key.txt", format!("{KEY}\n"));
    let value = place.json(&["verify", zip, "--json", "--public-key", key_file.to_str().unwrap()]);
    assert_eq!(
        (&value["valid"], &value["run_id"]),
        (&json!(true), &json!("3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"))
    );
    assert_eq!(value["errors"], json!([]));
    assert!(!place.path("data").exists(), "verification makes nothing");
}

#[test]
fn another_key_or_none_is_a_reason() {
    let place = Place::new();
    let zip = vector("chutes-signed-export.zip");
    let zip = zip.to_str().unwrap();
    let done = place.bench(&["verify", zip, "--public-key", OTHER_KEY]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.out.starts_with("unverified: "), "{}", done.out);
    assert!(
        done.out.contains("intact, but signed by `56475aa75463`, which is not one of the given keys"),
        "{}",
        done.out
    );
    let done = place.bench(&["verify", zip]);
    assert_eq!(done.code, 1);
    let unknown = "intact, signed by an unknown key `56475aa75463`; pin it with `bench keys pin`";
    assert!(done.out.starts_with("unverified: ") && done.out.contains(unknown), "{}", done.out);
    assert!(done.out.contains(KEY), "{}", done.out);
    let done = place.bench(&["verify", zip, "--json"]);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&value["valid"], &value["reasons"]), (&json!(false), &json!(["unknown_key"])));
    assert!(!place.path("data").exists());

    // A changed archive isn't intact, regardless of its signer.
    let mut changed = std::fs::read(zip).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    place.write("changed.zip", &changed);
    let done = place.bench(&["verify", "changed.zip"]);
    assert!(done.code == 1 && done.out.starts_with("invalid: "), "{}", done.out);
    assert!(!done.out.contains("intact"), "{}", done.out);

    // The key is trusted after pinning, and no longer after unpinning.
    assert_eq!(place.bench(&["keys", "pin", KEY, "--label", "vectors"]).code, 0);
    let done = place.bench(&["verify", zip]);
    assert_eq!(done.code, 0, "{}", done.out);
    assert!(done.out.contains("pinned as vectors"), "{}", done.out);
    assert_eq!(place.bench(&["keys", "unpin", "56475aa75463"]).code, 0);
    assert_eq!(place.bench(&["verify", zip]).code, 1);
}

#[test]
fn whatever_is_wrong_with_a_file_is_a_verdict() {
    let place = Place::new();
    let mut bytes = std::fs::read(vector("chutes-signed-export.zip")).unwrap();
    place.write("empty.zip", "");
    place.write("cut.zip", &bytes[..bytes.len() / 2]);
    bytes[60] ^= 1;
    place.write("altered.zip", &bytes);
    let done = place.bench(&[
        "verify",
        "--json",
        "--public-key",
        KEY,
        "empty.zip",
        "cut.zip",
        "altered.zip",
        "none.zip",
    ]);
    assert_eq!(done.code, 1, "{}", done.err);
    let all: Vec<Value> = serde_json::from_str(&done.out).unwrap();
    let reasons: Vec<&Value> = all.iter().map(|verdict| &verdict["reasons"][0]).collect();
    assert_eq!(
        (reasons[0], reasons[1], reasons[3]),
        (&json!("not_zip"), &json!("not_zip"), &json!("not_found"))
    );
    assert!(all.iter().all(|verdict| verdict["valid"] == false && verdict["errors"][0].is_string()));
    assert_eq!(place.bench(&["verify", "none.zip"]).out, "not found: none.zip\n");
}

#[test]
fn scores_of_an_archive_are_told_with_what_they_were_measured_on() {
    let place = Place::new();
    let run = ["run", "--model", "oracle", "--benchmark", "hle", "--benchmark", "mmlu_pro", "--demo"];
    let done = place.bench(&run);
    assert_eq!(done.code, 0, "{}", done.err);
    let zip = std::fs::read_dir(place.path("bench-results")).unwrap().map(|entry| entry.unwrap().path());
    let zip = zip.into_iter().find(|path| path.extension().is_some_and(|end| end == "zip")).unwrap();
    let zip = zip.to_str().unwrap();
    let done = place.bench(&["verify", zip]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    for part in [
        "DEMO DATA in ",
        "hle (DEMO): score 100.0 %, coverage 100.0 %, succeeded",
        "mmlu_pro (DEMO): score 100.0 %, coverage 100.0 %, succeeded",
        "dataset:  DEMO@",
        "protocol: mmlu-pro-api",
        "prompt:   ",
        "judge:    oracle",
        "version 1",
    ] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let value = place.json(&["verify", zip, "--json"]);
    let all = value["benchmarks"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|one| one["benchmark"] == name).unwrap();
    assert_eq!(all.len(), 2);
    for one in all {
        assert_eq!((&one["demo"], &one["score"], &one["coverage"]), (&json!(true), &json!(1.0), &json!(1.0)));
        assert!(one["dataset"].as_str().unwrap().contains('@') && one["status"] == "succeeded");
    }
    assert_eq!((&of("hle")["judge"]["version"], &of("mmlu_pro")["judge"]), (&json!(1), &Value::Null));

    // An archive of the compatible system has none of these facts.
    let old = vector("chutes-signed-export.zip");
    let old = ["verify", old.to_str().unwrap(), "--public-key", KEY];
    let done = place.bench(&old);
    assert!(done.code == 0 && !done.out.contains("coverage"), "{}", done.out);
    assert!(place.json(&[&old[..], &["--json"]].concat()).get("benchmarks").is_none());
}
