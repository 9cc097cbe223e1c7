use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Done, Place};

#[test]
fn keys_are_made_rotated_and_never_shown_in_private() {
    let place = Place::new();
    let first = place.json(&["keys", "--json"]);
    let key = first["keys"][0]["public_key"].as_str().unwrap().to_owned();
    assert_eq!(
        (first["keys"].as_array().unwrap().len(), &first["keys"][0]["status"]),
        (1, &json!("current"))
    );
    let again = place.json(&["keys", "show", "--json"]);
    assert_eq!(first, again);
    let rotated = place.json(&["keys", "rotate", "--json"]);
    assert_eq!(rotated["keys"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&rotated["keys"][1]["public_key"], &rotated["keys"][1]["status"]),
        (&json!(key), &json!("retired"))
    );
    let private = std::fs::read_to_string(place.path("data/keys/signing-key.pem")).unwrap();
    let secret = private.lines().nth(1).unwrap();
    let done = place.bench(&["keys"]);
    assert!(done.out.contains(&key) && !format!("{}{}", done.out, done.err).contains(secret));
}

#[test]
fn what_is_no_key_is_wrong_usage() {
    let place = Place::new();
    place.bench(&["keys", "pin", "nonsense"]).refused(2, "neither an Ed25519 public key nor a file");
    place.write("junk.txt", "junk");
    place.bench(&["keys", "pin", "junk.txt"]).refused(2, "holds no Ed25519 public key");
    place.bench(&["keys", "unpin", "0123456789ab"]).refused(2, "no pinned key");
    place.bench(&["verify", "x.zip", "--public-key", "nonsense"]).refused(2, "neither an Ed25519 public key");
}

fn rotate_secret(place: &Place, more: &[&str], secret: &str) -> Done {
    let args = [&["keys", "rotate", "--secret"], more].concat();
    let mut command = place.command(&args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(secret.as_bytes()).unwrap();
    Done::of(&child.wait_with_output().unwrap())
}

/// Tests the command from the runbook: earlier exports of the server verify with the new secret.
#[test]
fn a_stored_secret_is_rotated_through_a_pipe() {
    let place = Place::new();
    let runs =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "1", "--json"];
    let secret = json!({ "BENCH_SIGNING_PRIVATE_KEY": "0f".repeat(32) }).to_string();
    let with = |secret: &str, args: &[&str]| {
        let members: Value = serde_json::from_str(secret).unwrap();
        let mut command = place.command(args);
        command
            .envs(members.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())));
        let done = Done::of(&command.output().unwrap());
        assert!(!done.err.contains("panicked"), "{}", done.err);
        done
    };
    let made: Value = serde_json::from_str(&with(&secret, &runs).out).unwrap();
    let zip = made[0]["files"]["zip"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    assert_eq!(with(&secret, &["verify", &zip]).code, 0);

    let done = rotate_secret(&place, &[], &secret);
    assert_eq!(done.code, 0, "{}", done.err);
    let rotated: Value = serde_json::from_str(&done.out).unwrap();
    let private = rotated["BENCH_SIGNING_PRIVATE_KEY"].as_str().unwrap();
    assert!(private.len() == 64 && private != "0f".repeat(32) && !done.err.contains(private));
    assert!(done.err.contains("still verify"), "{}", done.err);
    assert_eq!(with(&done.out, &["verify", &zip]).code, 0);
    assert!(!place.path("data/keys").exists(), "this machine's own keys are left alone");

    let done = rotate_secret(&place, &["--distrust"], &secret);
    assert!(done.err.contains("verify no longer"), "{}", done.err);
    assert_eq!(with(&done.out, &["verify", &zip]).code, 1);

    rotate_secret(&place, &[], "hush").refused(2, "not a JSON object");
    rotate_secret(&place, &[], "{}").refused(2, "BENCH_SIGNING_PRIVATE_KEY is not configured");
    // The key that signed the archive leaked after it was replaced.
    let again = rotate_secret(&place, &[], &secret);
    let leaked = rotated_key(&again.err);
    let done = rotate_secret(&place, &["--distrust", &leaked[..10]], &again.out);
    assert!(done.err.contains(&format!("{leaked} verify no longer")), "{}", done.err);
    assert_eq!(with(&done.out, &["verify", &zip]).code, 1);
    rotate_secret(&place, &["--distrust", "00000000"], &secret).refused(2, "no key is named `00000000`");
}

/// Extracts the fingerprint of the replaced key from the output.
fn rotated_key(told: &str) -> String {
    let line = told.lines().find(|line| line.contains("still verify")).unwrap_or_else(|| panic!("{told}"));
    line.split(' ').find(|word| word.len() == 64).unwrap().to_owned()
}

/// Runs and exports one item of the demo.
fn exported(place: &Place) -> String {
    let runs = place.json(&[
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--demo",
        "--subset-count",
        "1",
        "--json",
    ]);
    runs[0]["files"]["zip"].as_str().unwrap().to_owned()
}

#[test]
fn a_leaked_key_of_this_machine_is_distrusted() {
    let place = Place::new();
    let first = exported(&place);
    let key = |shown: &Value, at: usize| shown["keys"][at]["key_id"].as_str().unwrap().to_owned();
    let first_key = key(&place.json(&["keys", "--json"]), 0);
    assert_eq!(place.bench(&["verify", &first]).code, 0);

    // Distrusting the present key makes a new one. Only archives signed by the leaked key are rejected.
    let done = place.bench(&["keys", "rotate", "--distrust", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains(&format!("{first_key} verify no longer")), "{}", done.err);
    let shown: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(shown["keys"].as_array().unwrap().len(), 1);
    assert_ne!(key(&shown, 0), first_key);
    let done = place.bench(&["verify", &first]);
    assert_eq!(done.code, 1);
    assert!(
        done.out.contains("key_distrusted: ") && done.out.contains("not trusted any more since"),
        "{}",
        done.out
    );
    let second = exported(&place);
    assert_eq!(place.bench(&["verify", &second]).code, 0);

    // Distrusting an earlier key, named by the start of its fingerprint, keeps the present key.
    let second_key = key(&shown, 0);
    let third_key = key(&place.json(&["keys", "rotate", "--json"]), 0);
    assert_eq!(place.bench(&["verify", &second]).code, 0);
    place.bench(&["keys", "distrust", &second_key[..7]]).refused(2, "no own key is named");
    let shown = place.json(&["keys", "distrust", &second_key[..8], "--json"]);
    assert_eq!((key(&shown, 0), shown["distrusted"].as_array().unwrap().len()), (third_key.clone(), 2));
    assert_eq!(place.bench(&["verify", &second]).code, 1);
    let listed = place.bench(&["keys"]);
    assert!(listed.out.contains("distrusted") && listed.out.contains(&second_key[..12]), "{}", listed.out);
    assert!(!listed.out.contains('.'), "times without fractions: {}", listed.out);

    // Rotates the present key and distrusts an earlier one at once.
    let fourth_key = key(&place.json(&["keys", "rotate", "--json"]), 0);
    let shown = place.json(&["keys", "rotate", "--distrust", &third_key, "--json"]);
    let ids: Vec<_> = (0..2).map(|at| key(&shown, at)).collect();
    assert!(ids[0] != fourth_key && ids[1] == fourth_key, "{shown}");
    place.bench(&["keys", "distrust", &third_key]).refused(2, "is distrusted already");
}

#[test]
fn a_run_from_before_a_rotation_is_exported_with_the_new_key() {
    let place = Place::new();
    exported(&place);
    let run = place.json(&["runs", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.bench(&["keys", "rotate"]).code, 0);
    let zip = place.json(&["export", &run, "--json"])["file"].as_str().unwrap().to_owned();
    let value = place.json(&["verify", &zip, "--json"]);
    assert_eq!((&value["valid"], &value["errors"]), (&json!(true), &json!([])));
    assert!(value["signed_by"].as_str().unwrap().contains("current key"), "{value}");
}

/// An existing data directory that other users can read.
#[test]
fn a_data_directory_that_was_there_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let open = |name: &str, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(name), permissions).unwrap();
    };
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    std::fs::create_dir(place.path("data")).unwrap();
    open("data", 0o755);
    assert_eq!(place.bench(&["keys"]).code, 0);
    assert_eq!((mode("data"), mode("data/keys")), (0o700, 0o700));
    exported(&place);
    let databases = ["dynamodb.sqlite", "sqs.sqlite", "s3/index.sqlite"].map(|name| format!("data/{name}"));
    let folders = ["data", "data/s3", "data/keys"];
    for folder in folders {
        open(folder, 0o755);
    }
    for database in &databases {
        assert_eq!(mode(database), 0o600, "{database}");
        open(database, 0o644);
    }
    exported(&place);
    for folder in folders {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    for database in &databases {
        assert_eq!(mode(database), 0o600, "{database}");
    }

    // A folder with other files in it is left alone.
    std::fs::create_dir(place.path("shared")).unwrap();
    place.write("shared/notes.txt", "mine");
    open("shared", 0o755);
    for args in [&["keys", "--data-dir", "shared"][..], &["runs", "--data-dir", "shared"]] {
        place.bench(args).refused(1, "it holds other files");
    }
    assert_eq!(mode("shared"), 0o755);
}
