//! `bench schedules`, in a data directory and at a server.

use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::TestDir;

/// Tests the whole life of a schedule. `at` has the options for the place.
fn test_lifecycle(dir: &TestDir, at: &[&str]) {
    let all = |args: &[&str]| {
        [&["schedules"], args, at].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let bench = |args: &[&str]| {
        let args = all(args);
        dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let json = |args: &[&str]| -> Value {
        let args = all(&[args, &["--json"]].concat());
        dir.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(json(&["list"]), json!([]));
    let made = json(&[
        "add",
        "--name",
        "nightly",
        "--cron",
        "30 2 * * *",
        "--time-zone",
        "Europe/Berlin",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--subset-count",
        "3",
        "--demo",
        "--budget-tokens",
        "5000",
        "--webhook-url",
        "https://hooks.example.com/x",
    ]);
    assert_eq!(
        (&made["name"], &made["subset_count"], &made["budget_tokens"]),
        (&json!("nightly"), &json!(3), &json!(5000))
    );
    let id = made["id"].as_str().unwrap();
    let listed = bench(&["list"]);
    assert!(
        listed.code == 0 && listed.stdout.contains("nightly") && listed.stdout.contains("mmlu_pro (DEMO)"),
        "{}",
        listed.stdout
    );
    let shown = bench(&["show", "nightly"]);
    for part in [
        id,
        "30 2 * * * Europe/Berlin",
        "02:30 Europe/Berlin (",
        "5,000 tokens",
        "https://hooks.example.com/x",
    ] {
        assert!(shown.stdout.contains(part), "{part}\n{}{}", shown.stdout, shown.stderr);
    }
    assert_eq!(json(&["show", &id[..8]])["id"], id);

    let edited = json(&["edit", "nightly", "--cron", "0 4 * * MON-FRI", "--no-webhook", "--no-budget"]);
    assert_eq!(
        (&edited["cron"], &edited["webhook_url"], &edited["budget_tokens"]),
        (&json!("0 4 * * MON-FRI"), &Value::Null, &Value::Null)
    );
    assert_eq!(edited["subset_seed"], made["subset_seed"]);
    let set = json(&["edit", "nightly", "--temperature", "0.5", "--timeout", "60", "--tag", "t"]);
    assert_eq!((&set["temperature"], &set["timeout_seconds"]), (&json!(0.5), &json!(60)));
    let unset = json(&["edit", "nightly", "--unset", "temperature,timeout", "--unset", "subset-count"]);
    for field in ["temperature", "timeout_seconds", "subset_count"] {
        assert_eq!(unset[field], Value::Null, "{field}");
    }
    assert_eq!((&unset["tags"], &unset["demo"]), (&json!(["t"]), &json!(true)), "the rest stays");
    bench(&["edit", "nightly", "--unset", "cron"])
        .assert_refused(2, "it must be one of samples, temperature,");
    bench(&["edit", "nightly", "--temperature", "1", "--unset", "temperature"])
        .assert_refused(2, "--unset: `temperature` is both given and removed");
    assert!(bench(&["disable", "nightly"]).stdout.contains("Disabled nightly"));
    bench(&["run", "nightly"]).assert_refused(1, "the schedule is off");
    assert!(bench(&["enable", "nightly"]).stdout.contains("Enabled nightly; next: "));
    assert_eq!(json(&["history", "nightly"]), json!([]));
    assert_eq!(json(&["run", "nightly"])["status"], "starting");
    assert_eq!(json(&["history", "nightly"]).as_array().unwrap().len(), 1);

    bench(&["edit", "nightly"]).assert_refused(2, "no change was given");
    let again = ["add", "--name", "nightly", "--cron", "0 0 * * *", "--model", "oracle", "--demo"];
    bench(&again).assert_refused(1, "you already have a schedule named `nightly`");
    bench(&["edit", "nightly", "--cron", "* * * * *"])
        .assert_refused(2, "cron: two runs must be at least 15");
    bench(&["edit", "nightly", "--time-zone", "Mars/X"])
        .assert_refused(2, "time_zone: unknown time zone `Mars/X`");
    bench(&["show", "other"]).assert_refused(1, "there is no schedule `other`");
    bench(&["add", "--name", "x", "--cron", "0 0 * * *"]).assert_refused(2, "no model was given");
    bench(&["add", "--name", "x", "--cron", "0 0 * * *", "--model", "replay:x.jsonl"])
        .assert_refused(2, "can't be scheduled");
    assert!(bench(&["remove", "nightly"]).stdout.contains("Removed nightly"));
    assert_eq!(json(&["list"]), json!([]));
}

#[test]
fn a_schedule_lives_in_a_data_directory() {
    let dir = TestDir::new();
    let output = dir.bench(&["schedules"]);
    assert!(output.code == 0 && output.stderr.contains("There are no schedules"), "{}", output.stderr);
    assert!(!dir.path("data").exists(), "looking makes nothing");
    test_lifecycle(&dir, &[]);
}

#[test]
fn a_schedule_lives_at_a_server() {
    let home = TestDir::new();
    let server = Server::start(&home, &[]);
    let dir = TestDir::new();
    test_lifecycle(&dir, &["--server", &server.address]);
    assert!(!dir.path("data").exists());
}

#[test]
fn a_schedule_of_an_unknown_benchmark_is_wrong_usage() {
    let dir = TestDir::new();
    let add = ["schedules", "add", "--name", "n", "--cron", "30 2 * * *", "--model", "oracle"];
    let two = ["--benchmark", "mmlu_pro", "--benchmark", "mmlu-pro"];
    dir.bench(&[&add[..], &two].concat()).assert_refused(2, "unknown benchmark `mmlu-pro`");
    assert_eq!(dir.json(&["schedules", "--json"]), json!([]));
}

#[test]
fn help_teaches_cron_and_zones() {
    let dir = TestDir::new();
    for args in [&["schedules", "--help"][..], &["schedules", "add", "--help"]] {
        let output = dir.bench(args);
        for part in ["MON-FRI", "Europe/Berlin", "15 minutes apart", "hour twice"] {
            assert!(output.stdout.contains(part), "{part}\n{}", output.stdout);
        }
    }
}
