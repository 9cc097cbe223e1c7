//! The measured server: `bench serve` as a child process.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bench_tests::process::{CpuOf, cpu_ms, peak_kib};
use bench_tests::sandy_server::KEY;
use reqwest::multipart::{Form, Part};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// Time limit of the server's start.
const START_MAX: Duration = Duration::from_secs(60);
/// Interval at which the run's status is read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Samples of a page of results.
const PAGE: usize = 500;

/// A running server with a data directory of its own. Killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    http: reqwest::Client,
    address: String,
    /// Deleted with the server.
    dir: tempfile::TempDir,
}

/// Resources that the server has used so far.
pub(crate) struct Usage {
    pub(crate) cpu_ms: f64,
    pub(crate) peak_mib: f64,
}

impl Server {
    /// Starts a server that works on `concurrency` samples at once, in sandboxes of the host at `sandy`, or of its own. Models
    /// of `openai-compatible` are asked at `model`.
    pub(crate) async fn start(
        bench: &Path,
        sandy: Option<&str>,
        model: &str,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("log");
        let mut command = Command::new(bench);
        match sandy {
            Some(address) => command.env("SANDY_BASE_URL", address).env("SANDY_API_KEY", KEY),
            None => command.env_remove("SANDY_BASE_URL"),
        };
        let mut child = command
            .args(["serve", "--host", "127.0.0.1", "--port", "0"])
            .args(["--concurrency", &concurrency.to_string()])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .env("HF_HUB_OFFLINE", "1")
            .env("OPENAI_COMPATIBLE_BASE_URL", model)
            .env("OPENAI_COMPATIBLE_API_KEY", "sk-measured")
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let address = match tokio::time::timeout(START_MAX, address(output)).await {
            Ok(Ok(address)) => address,
            _ => bail!("`bench serve` did not start: {}", fs::read_to_string(&log).unwrap_or_default()),
        };
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self { child, http, address, dir })
    }

    /// Uploads a task and returns its id.
    pub(crate) async fn upload(&self, name: &str, archive: Vec<u8>) -> anyhow::Result<u64> {
        let form = Form::new().part("file", Part::bytes(archive).file_name("task.zip"));
        let url = format!("{}/api/tasks?name={name}&agent=oracle", self.address);
        let task = body(self.http.post(url).multipart(form).send().await?).await?;
        task["id"].as_u64().context("the task has no id")
    }

    /// Orders one run. Returns its id and the time until the order was accepted.
    pub(crate) async fn order(&self, order: &Value) -> anyhow::Result<(String, Duration)> {
        let begun = Instant::now();
        let run =
            body(self.http.post(format!("{}/api/runs", self.address)).json(order).send().await?).await?;
        let accepted = begun.elapsed();
        Ok((run["id"].as_str().context("the run has no id")?.to_owned(), accepted))
    }

    /// Waits for the end of a run, at most `time_limit`.
    pub(crate) async fn wait(&self, run: &str, time_limit: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let view = self.get(&format!("/api/runs/{run}")).await?;
            match view["status"].as_str() {
                Some("succeeded") => return Ok(()),
                Some("failed" | "canceled") => bail!("the run ended: {}", view["error_message"]),
                _ => {}
            }
            ensure!(begun.elapsed() < time_limit, "the run took longer than {} s", time_limit.as_secs());
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns all samples of a benchmark of a run, without their texts.
    pub(crate) async fn samples(&self, run: &str, benchmark: &str) -> anyhow::Result<Vec<Value>> {
        let mut samples = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let path =
                format!("/api/runs/{run}/benchmarks/{benchmark}?texts=false&limit={PAGE}&cursor={cursor}");
            let mut view = self.get(&path).await?;
            let page = view["items"].take();
            samples.extend(page["items"].as_array().context("the page has no samples")?.iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => return Ok(samples),
            }
        }
    }

    /// Returns the size of all stored objects, in bytes.
    pub(crate) fn stored_bytes(&self) -> anyhow::Result<f64> {
        let index = self.dir.path().join("data/s3/index.sqlite");
        let index = Connection::open_with_flags(index, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(index.query_row("SELECT total(size) FROM object", [], |row| row.get(0))?)
    }

    /// Returns the resources used so far.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        let process = self.child.id().context("the server has ended")?;
        Ok(Usage {
            cpu_ms: cpu_ms(&process.to_string(), CpuOf::Process)?,
            peak_mib: peak_kib(process)? as f64 / 1_024.0,
        })
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        body(self.http.get(format!("{}{path}", self.address)).send().await?).await
    }
}

/// Reads the server's address, which it prints once it answers. Drops whatever it prints later.
async fn address(output: ChildStdout) -> anyhow::Result<String> {
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = line.strip_prefix("Serving ") {
            let address = address.trim().to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(address);
        }
    }
    bail!("the server printed no address")
}

async fn body(response: reqwest::Response) -> anyhow::Result<Value> {
    let status = response.status();
    let text = response.text().await?;
    ensure!(status.is_success(), "the server answered {status}: {text}");
    Ok(serde_json::from_str(&text)?)
}
