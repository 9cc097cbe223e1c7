//! Data directories of earlier versions (`tests/data/earlier/make.py`): opening, listing, resuming and verifying.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::TestDir;

/// Port of the model in these directories, the same as in `make.py`.
const PORT: u16 = 28_471;
/// Maximum time to wait for the port while another process uses it, such as the same test in another checkout.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Unpacks the directory of a version.
fn data_dir_of(version: &str) -> TestDir {
    let dir = TestDir::new();
    let archive = format!("{}/tests/data/earlier/{version}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("tar").args(["xzf", &archive, "-C"]).arg(dir.path("")).status().unwrap();
    assert!(status.success(), "tar could not unpack {archive}");
    dir
}

fn model(runtime: &Runtime) -> ModelServer {
    let answer = |request: &ModelRequest| {
        match request.is_judge {
        true => Reply::Text(
            json!({"correct": "yes", "extracted_final_answer": "x", "reasoning": "x", "confidence": 90, "strict": true})
                .to_string(),
        ),
        false => Reply::Text("The answer is (B).".to_owned()),
    }
    };
    let began = Instant::now();
    loop {
        match runtime.block_on(ModelServer::start_on(PORT, Duration::ZERO, Arc::new(answer))) {
            Ok(server) => return server,
            Err(error) => assert!(began.elapsed() < TIMEOUT, "{error:#}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the listed run of this benchmark with this status.
fn listed(dir: &TestDir, benchmark: &str, status: &str) -> Value {
    let runs = dir.json(&["runs", "--json"]);
    let is_it = |run: &&Value| run["status"] == status && run["benchmarks"].to_string().contains(benchmark);
    runs.as_array()
        .unwrap()
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {status} run of {benchmark} in {runs}"))
        .clone()
}

/// Resumes the killed run of this benchmark, and returns its id.
fn resume(dir: &TestDir, benchmark: &str) -> String {
    let run = listed(dir, benchmark, "running");
    assert_eq!(run["interrupted"], true, "{run}");
    let id = run["id"].as_str().unwrap().to_owned();
    let output = dir.bench(&["run", "--resume", &id, "--concurrency", "2"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("(verified)"), "{}", output.stdout);
    id
}

/// Counts the correct samples of a run.
fn correct(dir: &TestDir, id: &str) -> usize {
    let items = dir.json(&["runs", id, "--items", "--json"]);
    items.as_array().unwrap().iter().filter(|item| item["is_correct"] == true).count()
}

#[test]
fn what_0_1_0_left_is_listed_and_its_archive_verified() {
    let dir = data_dir_of("0.1.0");
    assert_eq!(dir.json(&["runs", "--json"]).as_array().unwrap().len(), 4);
    let schedules = dir.json(&["schedules", "--json"]);
    assert_eq!((&schedules[0]["name"], &schedules[0]["cron"]), (&json!("nightly"), &json!("30 3 * * *")));

    let archive = dir.path("archive.zip");
    let verified = dir.bench(&["verify", archive.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);

    // Shows the run's results and exports its archive with the current version.
    let over = listed(&dir, "hle", "succeeded");
    assert_eq!(correct(&dir, over["id"].as_str().unwrap()), 3);
    let exported = dir.bench(&["export", over["id"].as_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}{}", exported.stdout, exported.stderr);
}

#[test]
fn runs_started_by_0_1_0_can_be_resumed() {
    let dir = data_dir_of("0.1.0");
    let runtime = Runtime::new().unwrap();
    let server = model(&runtime);

    // The directory has messages in both queues, a lease of a process that is gone, and answers that were paid for.
    let id = resume(&dir, "mmlu_pro");
    assert_eq!(correct(&dir, &id), 8);
    let asked: HashMap<String, u64> = server.question_counts().into_iter().collect();
    let expected = ["hangs", "c0", "c1", "c2"].map(|item| (item.to_owned(), 1));
    assert_eq!(asked, HashMap::from(expected), "answers that were stored are not asked for again");

    // The judge had not replied.
    let id = resume(&dir, "hle");
    assert_eq!(correct(&dir, &id), 3);
    let model_questions =
        server.question_counts().into_iter().filter(|(item, _)| item.is_empty()).map(|(_, times)| times);
    assert!(model_questions.sum::<u64>() < 3, "the answer that was to be judged is not asked for again");

    // The sandbox is gone.
    let id = resume(&dir, "livecodebench");
    assert_eq!(correct(&dir, &id), 4);
}
