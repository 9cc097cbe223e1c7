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
    assert!(done.out.starts_with("invalid: "), "{}", done.out);
    assert!(done.out.contains("signature_invalid: Signature verification failed\n"), "{}", done.out);
    let done = place.bench(&["verify", zip]);
    assert_eq!(done.code, 1);
    assert!(
        done.out.contains("keys_unavailable: No key is trusted: give one with --public-key"),
        "{}",
        done.out
    );
    assert!(!place.path("data").exists());

    // Trusted once it is pinned, and no longer after that.
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
        (&json!("not_zip"), &json!("not_zip"), &json!("read_failed"))
    );
    assert!(all.iter().all(|verdict| verdict["valid"] == false && verdict["errors"][0].is_string()));
}
