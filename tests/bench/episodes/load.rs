//! One order of many episodes on the scripted host.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::{Value, json};

use crate::server::Server;
use bench_tests::scripted_host::ScriptedHost;
use bench_tests::scripted_host::task;

/// Samples that the server works on at once: more than episodes, so that none waits for a place.
const CONCURRENCY: usize = 750;
/// Address of a model that nobody asks.
pub(crate) const NO_MODEL: &str = "http://127.0.0.1:9/v1";
/// Time limit of a run.
pub(crate) const RUN_MAX: Duration = Duration::from_secs(900);

/// An order, and the script of the host.
pub(crate) struct Load {
    pub(crate) tasks: usize,
    /// Episodes of each task.
    pub(crate) samples: u32,
    /// Turns in which each operation is still running.
    pub(crate) polls: u32,
}

/// Result of an order.
pub(crate) struct Measured {
    pub(crate) episodes: usize,
    /// Turns of all episodes: how often a worker has claimed one of them.
    pub(crate) turns: u64,
    /// Commands that were run in sandboxes.
    pub(crate) commands: u64,
    /// Time until the order was accepted.
    pub(crate) accepted: Duration,
    /// Time until the run had ended.
    pub(crate) wall: Duration,
    /// CPU time of the server, from the order to the end of the run.
    pub(crate) cpu_ms: f64,
    /// Peak resident memory of the server.
    pub(crate) peak_mib: f64,
}

/// Orders episodes at a new server and waits until all of them are graded as correct.
pub(crate) async fn measure(bench: &Path, load: &Load) -> anyhow::Result<Measured> {
    let host = ScriptedHost::start(load.polls).await?;
    let server = Server::start(bench, Some(host.base_url()), NO_MODEL, CONCURRENCY).await?;
    let mut tasks = Vec::with_capacity(load.tasks);
    for number in 0..load.tasks {
        tasks.push(server.upload(&format!("task-{number}"), task::archive(number)?).await?);
    }
    let before = server.usage()?;
    let begun = Instant::now();
    let (run, accepted) =
        server.order(&json!({ "tasks": tasks, "samples": load.samples, "agent": "oracle" })).await?;
    let ended = server.wait(&run, RUN_MAX).await;
    if let Some(problem) = host.problem() {
        bail!("{problem}");
    }
    ended?;
    let wall = begun.elapsed();
    let after = server.usage()?;
    let samples = server.samples(&run, "terminal_tasks").await?;
    let turns = check(&samples, load)?;
    ensure!(host.open_sandboxes() == 0, "{} sandboxes were not ended", host.open_sandboxes());
    Ok(Measured {
        episodes: samples.len(),
        turns,
        commands: host.calls(),
        accepted,
        wall,
        cpu_ms: after.cpu_ms - before.cpu_ms,
        peak_mib: after.peak_mib,
    })
}

/// Checks that all episodes are graded as correct. Returns their turns.
fn check(samples: &[Value], load: &Load) -> anyhow::Result<u64> {
    let ordered = load.tasks * load.samples as usize;
    ensure!(samples.len() == ordered, "{} episodes instead of {ordered}", samples.len());
    let mut turns = 0;
    for sample in samples {
        ensure!(sample["outcome"] == "correct", "an episode is not correct: {sample}");
        let Some(attempts) = sample.pointer("/item_metadata/episode_attempts").and_then(Value::as_u64) else {
            bail!("an episode has no number of turns: {sample}");
        };
        turns += attempts;
    }
    Ok(turns)
}
