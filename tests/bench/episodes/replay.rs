//! Steps of conversations: the time that a sandbox takes to rebuild an environment from the recorded messages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_benchmarks::tau_bench_telecom::PACKAGE_VERSION;
use bench_benchmarks::tau_bench_telecom::step::{PACKAGE_VARIABLE, files, script};
use bench_domain::FileContent;
use bench_stack::sandboxes::tau2;
use bench_tests::process::{CpuOf, cpu_ms};
use serde_json::{Value, json};

/// Messages before the measured call. Every second one is the result of a call, all of which are repeated.
const MESSAGES: [usize; 2] = [2, 200];
const REPEATS: usize = 5;

/// A domain, with a tool of the user that changes nothing.
struct Domain<'a> {
    name: &'a str,
    tool: &'a str,
    /// Folder of the official package.
    package: Option<&'a Path>,
}

/// Time of a step.
struct Taken {
    median: Duration,
    cpu_ms: f64,
}

/// Measures steps in the demo domain and, if `bench sandy setup tau2` has installed it, in the official package.
pub(crate) fn measure() -> anyhow::Result<()> {
    println!();
    Domain { name: "demo", tool: "look_at_bicycle", package: None }.measure()?;
    let package = package_folder();
    match &package {
        Some(folder) => Domain { name: "telecom", tool: "check_status_bar", package: Some(folder) }.measure(),
        None => {
            println!("steps of the official package were left out: `bench sandy setup tau2` installs it");
            Ok(())
        }
    }
}

/// Returns the folder of the official package in the data directory, if it is there.
fn package_folder() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = || var("XDG_DATA_HOME").or_else(|| Some(var("HOME")?.join(".local/share")));
    let data_dir = std::env::var_os("BENCH_HOME").map(PathBuf::from);
    let data_dir = data_dir.or_else(|| Some(base()?.join("bench-runner")))?;
    tau2::InstalledTau2::current(&data_dir).filter(|found| found.version == PACKAGE_VERSION)?;
    tau2::current_link(&data_dir).canonicalize().ok()
}

impl Domain<'_> {
    fn measure(&self) -> anyhow::Result<()> {
        let listed = self.step(json!({ "op": "list" }))?;
        let task = listed["tasks"][0].as_str().context("the domain has no task")?.to_owned();
        let calls: Vec<Value> = (0..MESSAGES[1] / 2).map(|at| self.call(at)).collect();
        let answer = self.step(json!({ "op": "call", "task_id": task, "messages": [], "calls": calls }))?;
        let results = answer["results"].as_array().context("the calls have no results")?;
        ensure!(results.len() == calls.len(), "{} results of {} calls", results.len(), calls.len());
        let pairs = calls.iter().zip(results).flat_map(|(call, result)| {
            [json!({ "role": "user", "content": null, "tool_calls": [call] }), result.clone()]
        });
        let messages: Vec<Value> = pairs.collect();
        for count in MESSAGES {
            let before = messages.get(..count).context("there are too few messages")?;
            let request = json!({
                "op": "call", "task_id": task, "messages": before, "calls": [self.call(count)],
            });
            let Taken { median, cpu_ms } = self.time(&request)?;
            println!(
                "a call of the domain {} after {count} messages takes {:.0} ms and {cpu_ms:.0} ms of CPU time, with the start \
                 of Python",
                self.name,
                median.as_secs_f64() * 1_000.0
            );
        }
        Ok(())
    }

    fn call(&self, at: usize) -> Value {
        json!({ "id": format!("c{at}"), "name": self.tool, "arguments": {}, "requestor": "user" })
    }

    /// Takes the same step several times.
    fn time(&self, request: &Value) -> anyhow::Result<Taken> {
        let before = cpu_ms("self", CpuOf::EndedChildren)?;
        let mut times = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            let began = Instant::now();
            let answer = self.step(request.clone())?;
            times.push(began.elapsed());
            ensure!(answer["results"].as_array().map(Vec::len) == Some(1), "the step failed: {answer}");
        }
        times.sort_unstable();
        let median = *times.get(REPEATS / 2).context("nothing was measured")?;
        Ok(Taken { median, cpu_ms: (cpu_ms("self", CpuOf::EndedChildren)? - before) / REPEATS as f64 })
    }

    /// Runs the step script, and returns its response.
    fn step(&self, mut request: Value) -> anyhow::Result<Value> {
        (request["version"], request["domain"]) = (1.into(), self.name.into());
        request["package"] = self.package.map_or(Value::Null, |_| PACKAGE_VERSION.into());
        let job = tempfile::tempdir()?;
        for file in files(&request.to_string()) {
            let FileContent::Bytes(bytes) = file.content else { continue };
            fs::write(job.path().join(file.path), bytes)?;
        }
        let mut command = Command::new("sh");
        command.args(["-c", script()]).current_dir(job.path()).env_remove(PACKAGE_VARIABLE);
        if let Some(folder) = self.package {
            command.env(PACKAGE_VARIABLE, folder);
        }
        ensure!(command.status()?.success(), "the step script failed");
        let response: Value = serde_json::from_slice(&fs::read(job.path().join("response.json"))?)?;
        ensure!(response.get("error").is_none(), "the step script failed: {response}");
        Ok(response)
    }
}
