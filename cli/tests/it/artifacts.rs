//! Artifacts of episodes: listed, printed, written, and exported as a job of Harbor. The sandbox host is scripted.

use std::path::Path;

use bench_tests::scripted_host::ScriptedHost;
use serde_json::Value;

use crate::support::{CommandOutput, TestDir};

/// Runs two episodes of a sample task.
fn ran() -> TestDir {
    let dir = TestDir::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let host = runtime.block_on(ScriptedHost::start(0)).unwrap();
    let task = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-tasks/fix-csv");
    let mut command = dir.command(&["run", "--task", task, "--agent", "oracle", "--samples", "2"]);
    command.env("SANDY_BASE_URL", host.base_url()).env("SANDY_API_KEY", "sandy-test-key");
    let output = CommandOutput::new(&command.output().unwrap());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    dir
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn artifacts_are_listed_printed_and_written() {
    let dir = ran();
    let listed = dir.json(&["artifacts", "latest", "--json"]);
    let episodes = listed.as_array().unwrap();
    assert_eq!(episodes.len(), 2);
    let task = episodes[0]["task"].as_str().unwrap();
    let files: Vec<&str> =
        episodes[0]["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert!(files.contains(&"verifier/reward.txt"), "{files:?}");
    let table = dir.bench(&["artifacts", "latest"]);
    assert!(table.stdout.contains("verifier/reward.txt"), "{}", table.stdout);
    let one = ["artifacts", "latest", "--task", "fix-csv", "--sample", "2", "--file", "verifier/reward.txt"];
    assert_eq!(dir.bench(&one).stdout, "1\n");

    let wrote = dir.bench(&["artifacts", "latest", "--out", "art"]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    for sample in ["1", "2"] {
        for file in &files {
            assert!(dir.path("art").join(task).join(sample).join(file).is_file(), "{sample} {file}");
        }
    }
    dir.bench(&["artifacts", "latest", "--file", "x"]).assert_refused(2, "2 are meant");
    dir.bench(&["artifacts", "latest", "--task", "nothing"]).assert_refused(2, "no episode of the run");
    let missing = ["artifacts", "latest", "--sample", "1", "--file", "x"];
    dir.bench(&missing).assert_refused(2, "the episode has no file `x`");
    dir.bench(&["artifacts", "latest", "--out", "art"]).assert_refused(2, "exists already");
    assert_eq!(dir.bench(&["artifacts", "latest", "--out", "art", "--force"]).code, 0);
    let other = TestDir::new();
    assert_eq!(other.bench(&["run", "--demo", "--model", "oracle", "--benchmark", "mmlu_pro"]).code, 0);
    other.bench(&["artifacts", "latest"]).assert_refused(1, "no episodes");
    other.bench(&["export", "latest", "--format", "harbor"]).assert_refused(1, "no episodes");
}

#[test]
fn a_run_becomes_a_job_of_harbor() {
    let dir = ran();
    std::fs::create_dir(dir.path("jobs")).unwrap();
    let wrote = dir.bench(&["export", "latest", "--format", "harbor", "--out", "jobs"]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    let job = dir.path("").join(wrote.stdout.trim());
    let result = read(&job.join("result.json"));
    assert_eq!(result["n_total_trials"], 2);
    let stats = &result["stats"]["evals"]["oracle__adhoc"];
    assert_eq!((&stats["n_trials"], &stats["pass_at_k"]["2"]), (&2.into(), &1.0.into()), "{result:#}");
    assert_eq!(stats["metrics"][0]["mean"], 1.0);
    let names = stats["reward_stats"]["reward"]["1.0"].as_array().unwrap();
    assert_eq!(names.len(), 2, "{stats:#}");
    for name in names {
        let trial = job.join(name.as_str().unwrap());
        let result = read(&trial.join("result.json"));
        assert_eq!((&result["trial_name"], &result["task_name"]), (name, &"fix-csv".into()));
        assert_eq!(result["agent_info"]["model_info"], Value::Null);
        assert_eq!(result["verifier_result"]["rewards"]["reward"], 1.0);
        let (setup, agent) = (&result["environment_setup"], &result["agent_execution"]);
        assert!(
            setup["finished_at"].is_string() && setup["finished_at"] == agent["started_at"],
            "{result:#}"
        );
        assert_eq!(read(&trial.join("config.json")), result["config"]);
        assert_eq!(std::fs::read_to_string(trial.join("verifier/reward.txt")).unwrap(), "1\n");
    }
    let again = dir.bench(&["export", "latest", "--format", "harbor", "--out", "jobs"]);
    again.assert_refused(2, "exists already");
    std::fs::write(job.join("left-over"), "x").unwrap();
    let forced = dir.bench(&["export", "latest", "--format", "harbor", "--out", "jobs", "--force"]);
    assert_eq!((forced.code, &forced.stdout), (0, &wrote.stdout), "{}", forced.stderr);
    assert!(job.join("result.json").is_file() && !job.join("left-over").exists());
    // A missing folder is made, but not a whole path.
    assert_eq!(dir.bench(&["export", "latest", "--format", "harbor", "--out", "none"]).code, 0);
    assert!(dir.path("none").is_dir());
    let deep = ["export", "latest", "--format", "harbor", "--out", "no/such/folder"];
    dir.bench(&deep).assert_refused(2, "there is no folder");
    dir.bench(&["export", "latest", "--format", "harbor", "--out", "-"]).assert_refused(2, "not a folder");
}
