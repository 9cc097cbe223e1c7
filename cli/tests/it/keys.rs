//! `bench keys`: rotation, distrust, and the permissions of the data directory.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir};

#[test]
fn keys_are_made_rotated_and_never_shown_in_private() {
    let dir = TestDir::new();
    let first = dir.json(&["keys", "--json"]);
    let key = first["keys"][0]["public_key"].as_str().unwrap().to_owned();
    assert_eq!(
        (first["keys"].as_array().unwrap().len(), &first["keys"][0]["status"]),
        (1, &json!("current"))
    );
    let again = dir.json(&["keys", "show", "--json"]);
    assert_eq!(first, again);
    let rotated = dir.json(&["keys", "rotate", "--json"]);
    assert_eq!(rotated["keys"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&rotated["keys"][1]["public_key"], &rotated["keys"][1]["status"]),
        (&json!(key), &json!("retired"))
    );
    let private = std::fs::read_to_string(dir.path("data/keys/signing-key.pem")).unwrap();
    let secret = private.lines().nth(1).unwrap();
    let output = dir.bench(&["keys"]);
    assert!(output.stdout.contains(&key) && !format!("{}{}", output.stdout, output.stderr).contains(secret));
}

#[test]
fn an_invalid_key_is_a_usage_error() {
    let dir = TestDir::new();
    dir.bench(&["keys", "pin", "nonsense"]).assert_refused(2, "neither an Ed25519 public key nor a file");
    dir.write("junk.txt", "junk");
    dir.bench(&["keys", "pin", "junk.txt"]).assert_refused(2, "has no Ed25519 public key");
    dir.bench(&["keys", "unpin", "0123456789ab"]).assert_refused(2, "no pinned key");
    dir.bench(&["verify", "x.zip", "--public-key", "nonsense"])
        .assert_refused(2, "neither an Ed25519 public key");
}

fn rotate_secret(dir: &TestDir, more: &[&str], secret: &str) -> CommandOutput {
    let args = [&["keys", "rotate", "--secret"], more].concat();
    let mut command = dir.command(&args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(secret.as_bytes()).unwrap();
    CommandOutput::new(&child.wait_with_output().unwrap())
}

/// Tests the command from the runbook: earlier exports of the server verify with the new secret.
#[test]
fn a_stored_secret_is_rotated_through_a_pipe() {
    let dir = TestDir::new();
    let runs =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "1", "--json"];
    let secret = json!({ "BENCH_SIGNING_PRIVATE_KEY": "0f".repeat(32) }).to_string();
    let with = |secret: &str, args: &[&str]| {
        let members: Value = serde_json::from_str(secret).unwrap();
        let mut command = dir.command(args);
        command
            .envs(members.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())));
        let output = CommandOutput::new(&command.output().unwrap());
        assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
        output
    };
    let made: Value = serde_json::from_str(&with(&secret, &runs).stdout).unwrap();
    let zip = made[0]["files"]["zip"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    assert_eq!(with(&secret, &["verify", &zip]).code, 0);

    let output = rotate_secret(&dir, &[], &secret);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let rotated: Value = serde_json::from_str(&output.stdout).unwrap();
    let private = rotated["BENCH_SIGNING_PRIVATE_KEY"].as_str().unwrap();
    assert!(private.len() == 64 && private != "0f".repeat(32) && !output.stderr.contains(private));
    assert!(output.stderr.contains("still verify"), "{}", output.stderr);
    assert_eq!(with(&output.stdout, &["verify", &zip]).code, 0);
    assert!(!dir.path("data/keys").exists(), "this machine's own keys are left alone");

    let output = rotate_secret(&dir, &["--distrust"], &secret);
    assert!(output.stderr.contains("no longer verify"), "{}", output.stderr);
    assert_eq!(with(&output.stdout, &["verify", &zip]).code, 1);

    rotate_secret(&dir, &[], "hush").assert_refused(2, "not a JSON object");
    rotate_secret(&dir, &[], "{}").assert_refused(2, "BENCH_SIGNING_PRIVATE_KEY is not configured");
    // The key that signed the archive leaked after it was replaced.
    let again = rotate_secret(&dir, &[], &secret);
    let leaked = rotated_key(&again.stderr);
    let output = rotate_secret(&dir, &["--distrust", &leaked[..10]], &again.stdout);
    assert!(output.stderr.contains(&format!("{leaked} no longer verify")), "{}", output.stderr);
    assert_eq!(with(&output.stdout, &["verify", &zip]).code, 1);
    rotate_secret(&dir, &["--distrust", "00000000"], &secret).assert_refused(2, "no key is named `00000000`");
}

/// Extracts the fingerprint of the replaced key from the output.
fn rotated_key(message: &str) -> String {
    let line =
        message.lines().find(|line| line.contains("still verify")).unwrap_or_else(|| panic!("{message}"));
    line.split(' ').find(|word| word.len() == 64).unwrap().to_owned()
}

/// Runs and exports one item of the demo.
fn exported(dir: &TestDir) -> String {
    let runs = dir.json(&[
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
    let dir = TestDir::new();
    let first = exported(&dir);
    let key = |shown: &Value, at: usize| shown["keys"][at]["key_id"].as_str().unwrap().to_owned();
    let first_key = key(&dir.json(&["keys", "--json"]), 0);
    assert_eq!(dir.bench(&["verify", &first]).code, 0);

    // Distrusting the current key makes a new one. Only archives signed by the leaked key are rejected.
    let output = dir.bench(&["keys", "rotate", "--distrust", "--json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stderr.contains(&format!("{first_key} no longer verify")), "{}", output.stderr);
    let shown: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(shown["keys"].as_array().unwrap().len(), 1);
    assert_ne!(key(&shown, 0), first_key);
    let output = dir.bench(&["verify", &first]);
    assert_eq!(output.code, 1);
    assert!(
        output.stdout.contains("key_distrusted: ") && output.stdout.contains("not trusted any more since"),
        "{}",
        output.stdout
    );
    let second = exported(&dir);
    assert_eq!(dir.bench(&["verify", &second]).code, 0);

    // Distrusting an earlier key, named by the start of its fingerprint, keeps the current key.
    let second_key = key(&shown, 0);
    let third_key = key(&dir.json(&["keys", "rotate", "--json"]), 0);
    assert_eq!(dir.bench(&["verify", &second]).code, 0);
    dir.bench(&["keys", "distrust", &second_key[..7]]).assert_refused(2, "there is no own key");
    let shown = dir.json(&["keys", "distrust", &second_key[..8], "--json"]);
    assert_eq!((key(&shown, 0), shown["distrusted"].as_array().unwrap().len()), (third_key.clone(), 2));
    assert_eq!(dir.bench(&["verify", &second]).code, 1);
    let listed = dir.bench(&["keys"]);
    assert!(
        listed.stdout.contains("distrusted") && listed.stdout.contains(&second_key[..12]),
        "{}",
        listed.stdout
    );
    assert!(!listed.stdout.contains('.'), "times without fractions: {}", listed.stdout);

    // Rotates the current key and distrusts an earlier one at once.
    let fourth_key = key(&dir.json(&["keys", "rotate", "--json"]), 0);
    let shown = dir.json(&["keys", "rotate", "--distrust", &third_key, "--json"]);
    let ids: Vec<_> = (0..2).map(|at| key(&shown, at)).collect();
    assert!(ids[0] != fourth_key && ids[1] == fourth_key, "{shown}");
    dir.bench(&["keys", "distrust", &third_key]).assert_refused(2, "is already distrusted");
}

#[test]
fn a_run_from_before_a_rotation_is_exported_with_the_new_key() {
    let dir = TestDir::new();
    exported(&dir);
    let run = dir.json(&["runs", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(dir.bench(&["keys", "rotate"]).code, 0);
    let zip = dir.json(&["export", &run, "--json"])["file"].as_str().unwrap().to_owned();
    let value = dir.json(&["verify", &zip, "--json"]);
    assert_eq!((&value["valid"], &value["errors"]), (&json!(true), &json!([])));
    assert!(value["signed_by"].as_str().unwrap().contains("current key"), "{value}");
}

/// An existing data directory that other users can read.
#[test]
fn a_data_directory_that_was_there_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new();
    let open = |name: &str, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path(name), permissions).unwrap();
    };
    let mode = |name: &str| std::fs::metadata(dir.path(name)).unwrap().permissions().mode() & 0o777;
    std::fs::create_dir(dir.path("data")).unwrap();
    open("data", 0o755);
    assert_eq!(dir.bench(&["keys"]).code, 0);
    assert_eq!((mode("data"), mode("data/keys")), (0o700, 0o700));
    exported(&dir);
    let databases = ["dynamodb.sqlite", "sqs.sqlite", "s3/index.sqlite"].map(|name| format!("data/{name}"));
    let folders = ["data", "data/s3", "data/keys"];
    for folder in folders {
        open(folder, 0o755);
    }
    for database in &databases {
        assert_eq!(mode(database), 0o600, "{database}");
        open(database, 0o644);
    }
    exported(&dir);
    for folder in folders {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    for database in &databases {
        assert_eq!(mode(database), 0o600, "{database}");
    }

    // A folder with other files in it is left alone.
    std::fs::create_dir(dir.path("shared")).unwrap();
    dir.write("shared/notes.txt", "mine");
    open("shared", 0o755);
    for args in [&["keys", "--data-dir", "shared"][..], &["runs", "--data-dir", "shared"]] {
        dir.bench(args).assert_refused(1, "it holds other files");
    }
    assert_eq!(mode("shared"), 0o755);
}
