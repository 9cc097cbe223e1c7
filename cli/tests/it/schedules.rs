//! `bench schedules`, in a data directory and at a server.

use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::Place;

/// Tests the whole life of a schedule. `at` has the options for the place.
fn life(place: &Place, at: &[&str]) {
    let all = |args: &[&str]| {
        [&["schedules"], args, at].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let bench = |args: &[&str]| {
        let args = all(args);
        place.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let json = |args: &[&str]| -> Value {
        let args = all(&[args, &["--json"]].concat());
        place.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
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
        listed.code == 0 && listed.out.contains("nightly") && listed.out.contains("mmlu_pro (DEMO)"),
        "{}",
        listed.out
    );
    let shown = bench(&["show", "nightly"]);
    for part in [
        id,
        "30 2 * * * Europe/Berlin",
        "02:30 Europe/Berlin (",
        "5,000 tokens",
        "https://hooks.example.com/x",
    ] {
        assert!(shown.out.contains(part), "{part}\n{}{}", shown.out, shown.err);
    }
    assert_eq!(json(&["show", &id[..8]])["id"], id);

    let edited = json(&["edit", "nightly", "--cron", "0 4 * * MON-FRI", "--no-webhook", "--no-budget"]);
    assert_eq!(
        (&edited["cron"], &edited["webhook_url"], &edited["budget_tokens"]),
        (&json!("0 4 * * MON-FRI"), &Value::Null, &Value::Null)
    );
    assert_eq!(edited["subset_seed"], made["subset_seed"]);
    assert!(bench(&["disable", "nightly"]).out.contains("nightly is off"));
    bench(&["run", "nightly"]).refused(1, "switched off");
    assert!(bench(&["enable", "nightly"]).out.contains("nightly is on; next: "));
    assert_eq!(json(&["history", "nightly"]), json!([]));
    assert_eq!(json(&["run", "nightly"])["status"], "starting");
    assert_eq!(json(&["history", "nightly"]).as_array().unwrap().len(), 1);

    bench(&["edit", "nightly"]).refused(2, "nothing is to be changed");
    let again = ["add", "--name", "nightly", "--cron", "0 0 * * *", "--model", "oracle", "--demo"];
    bench(&again).refused(1, "You have a schedule named `nightly` already");
    bench(&["edit", "nightly", "--cron", "* * * * *"]).refused(2, "cron: two runs must be at least 15");
    bench(&["edit", "nightly", "--time-zone", "Mars/X"]).refused(2, "time_zone: `Mars/X`");
    bench(&["show", "other"]).refused(1, "there is no schedule `other`");
    bench(&["add", "--name", "x", "--cron", "0 0 * * *"]).refused(2, "no model was given");
    bench(&["add", "--name", "x", "--cron", "0 0 * * *", "--model", "replay:x.jsonl"])
        .refused(2, "cannot be scheduled");
    assert!(bench(&["remove", "nightly"]).out.contains("Removed nightly"));
    assert_eq!(json(&["list"]), json!([]));
}

#[test]
fn a_schedule_lives_in_a_data_directory() {
    let place = Place::new();
    let done = place.bench(&["schedules"]);
    assert!(done.code == 0 && done.err.contains("There are no schedules"), "{}", done.err);
    assert!(!place.path("data").exists(), "looking makes nothing");
    life(&place, &[]);
}

#[test]
fn a_schedule_lives_at_a_server() {
    let home = Place::new();
    let server = Server::start(&home, &[]);
    let place = Place::new();
    life(&place, &["--server", &server.address]);
    assert!(!place.path("data").exists());
}

#[test]
fn a_schedule_of_an_unknown_benchmark_is_wrong_usage() {
    let place = Place::new();
    let add = ["schedules", "add", "--name", "n", "--cron", "30 2 * * *", "--model", "oracle"];
    let two = ["--benchmark", "mmlu_pro", "--benchmark", "mmlu-pro"];
    place.bench(&[&add[..], &two].concat()).refused(2, "there is no benchmark `mmlu-pro`");
    assert_eq!(place.json(&["schedules", "--json"]), json!([]));
}

#[test]
fn help_teaches_cron_and_zones() {
    let place = Place::new();
    for args in [&["schedules", "--help"][..], &["schedules", "add", "--help"]] {
        let done = place.bench(args);
        for part in ["MON-FRI", "Europe/Berlin", "15 minutes apart", "hour twice"] {
            assert!(done.out.contains(part), "{part}\n{}", done.out);
        }
    }
}
