//! Waiting for runs, with progress reports.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use bench_domain::RunId;

use super::interrupt::Interrupt;
use crate::client::{Client, PollBackoff};
use crate::exit::Problem;
use crate::progress::{DatasetProgress, RunProgress};
use crate::refusal::Refusal;
use crate::views::Run;
use crate::{output, show};

/// Polling interval for a run in this process.
const POLL_INTERVAL_IN_PROCESS: Duration = Duration::from_millis(250);
/// Maximum number of consecutive failures of a server, which may be restarting.
const FAILURES_MAX: u32 = 30;

/// Maximum time to wait for the benchmarks of ended runs to close. After that, they are shown as they are.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// Minimum free disk space, in bytes. With less, the disk counts as full: rolling back a write in progress takes some
/// space.
const DISK_FREE_BYTES_MIN: u64 = 1024 * 1024;

/// Result of the wait.
pub(super) enum WatchResult {
    /// Every run is over.
    Over(Vec<Run>),
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Waits until every run is over and its benchmarks are closed.
pub(super) async fn watch(
    client: &Client,
    runs: &[RunId],
    datasets: &DatasetProgress,
    demo_wanted: bool,
    interrupt: &Interrupt,
    data_dir: Option<&Path>,
) -> anyhow::Result<WatchResult> {
    let mut backoff = PollBackoff::new();
    let mut progress = RunProgress::new();
    let mut warned = HashSet::new();
    let mut failures = 0;
    let mut over_since: Option<Instant> = None;
    let mut seen: Vec<Run> = Vec::new();
    let watched = loop {
        if let Some(dir) = data_dir {
            check_disk(dir, runs)?;
        }
        let mut retry_after = None;
        let fetched = tokio::select! {
            fetched = fetch_runs(client, runs) => fetched,
            () = interrupt.wait() => break WatchResult::Interrupted,
        };
        match fetched {
            Ok(now) => {
                failures = 0;
                seen = now;
                // All benchmarks are planned, so no more downloads follow.
                if seen
                    .iter()
                    .all(|run| run.benchmarks.iter().all(|b| b.planned_samples > 0 || b.status != "pending"))
                {
                    datasets.clear();
                }
                warn_of_notes(&seen, demo_wanted, &mut warned);
                warn_of_missing_judge(&seen, &mut warned);
                progress.update(&seen);
                // An archive made before the benchmarks are closed would show them as running.
                let since =
                    seen.iter().all(Run::is_over).then(|| *over_since.get_or_insert_with(Instant::now));
                if since.is_some_and(|since| seen.iter().all(Run::is_settled) || since.elapsed() > SETTLE_MAX)
                {
                    break WatchResult::Over(seen.clone());
                }
            }
            Err(error) if client.address().is_none() => return Err(error),
            Err(error) => {
                failures += 1;
                let refused = error.downcast_ref::<Refusal>();
                if failures >= FAILURES_MAX || refused.is_some_and(|refused| !refused.may_pass()) {
                    return Err(error);
                }
                retry_after = refused.and_then(Refusal::retry_after);
                tracing::info!(%error, "The server did not answer; trying again");
            }
        }
        // A server is polled less and less often. Polling this process costs nothing.
        let wait =
            if client.address().is_some() { backoff.next(retry_after) } else { POLL_INTERVAL_IN_PROCESS };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = interrupt.wait() => break WatchResult::Interrupted,
        }
    };
    datasets.clear();
    progress.finish(&seen);
    Ok(watched)
}

/// Fails if the disk is full: the worker could store no answers, and would ask for them again forever.
fn check_disk(dir: &Path, runs: &[RunId]) -> anyhow::Result<()> {
    let Ok(disk) = rustix::fs::statvfs(dir) else { return Ok(()) };
    if disk.f_bavail.saturating_mul(disk.f_frsize) >= DISK_FREE_BYTES_MIN {
        return Ok(());
    }
    let problem =
        Problem::failure(format!("the disk of `{}` is full; finished samples are kept", dir.display()));
    let resume: Vec<String> = runs.iter().map(|run| format!("bench run --resume {run}")).collect();
    Err(problem.hint(format!("free some space, then continue with: {}", resume.join("; "))).into())
}

/// Reads the current state of runs.
pub(super) async fn fetch_runs(client: &Client, runs: &[RunId]) -> anyhow::Result<Vec<Run>> {
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        all.push(client.get(&format!("/api/runs/{run}")).await?);
    }
    Ok(all)
}

/// Warns once about a dataset's note, such as an older revision, and about demo data that the user didn't ask for.
fn warn_of_notes(runs: &[Run], demo_wanted: bool, warned: &mut HashSet<String>) {
    for benchmark in runs.iter().flat_map(|run| &run.benchmarks) {
        let Some(dataset) = &benchmark.dataset else { continue };
        let name = &benchmark.benchmark_name;
        let unasked = benchmark.demo && !demo_wanted;
        let text = match &dataset.note {
            Some(note) => format!("{name}: {note}"),
            None if unasked => format!("{name}: demo data is used"),
            None => continue,
        };
        if warned.insert(text.clone()) {
            output::warn(&text);
        }
    }
}

/// Warns once, after all benchmarks are planned, if no model judges the answers.
fn warn_of_missing_judge(runs: &[Run], warned: &mut HashSet<String>) {
    let is_planned =
        |run: &&Run| run.benchmarks.iter().all(|b| b.planned_samples > 0 || b.status != "pending");
    for text in runs.iter().filter(is_planned).filter_map(show::judged_without_model) {
        if warned.insert(text.clone()) {
            output::warn(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_with_the_command_that_continues() {
        let run = RunId::random();
        // A file system without free space.
        let error = check_disk(Path::new("/proc"), &[run]).unwrap_err();
        let problem = error.downcast_ref::<Problem>().unwrap();
        assert!(problem.to_string().contains("`/proc` is full"), "{problem}");
        assert!(check_disk(&std::env::temp_dir(), &[run]).is_ok());
    }
}
