//! Waiting for runs, with progress reports.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use bench_domain::RunId;

use super::interrupt::Interrupt;
use crate::again;
use crate::client::{Client, PollBackoff};
use crate::exit::Problem;
use crate::progress::{DatasetProgress, EpisodePage, RunProgress};
use crate::refusal::Refusal;
use crate::views::Run;
use crate::{output, show};

/// Polling interval for a run in this process.
const POLL_INTERVAL_IN_PROCESS: Duration = Duration::from_millis(250);
/// Minimum interval of requests for episodes in this process, and of those to a server.
const EPISODES_EVERY_IN_PROCESS: Duration = Duration::from_secs(1);
const EPISODES_EVERY: Duration = Duration::from_secs(3);
/// Wait after a request for episodes that failed.
const EPISODES_AFTER_FAILURE: Duration = Duration::from_secs(30);
/// Maximum number of requests for the episodes that ended last, after the runs are over.
const LAST_PAGES_MAX: usize = 10;
/// Maximum number of consecutive failures of a server, which may be restarting.
const FAILURES_MAX: u32 = 30;

/// Maximum time to wait for the benchmarks of ended runs to close. After that, they are shown as they are.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// Maximum time to wait for room on a full disk. Answers in progress wait as long.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(60);

/// Result of the wait.
pub(super) enum WatchResult {
    /// Every run is over.
    Over(Vec<Run>),
    /// The user pressed Ctrl-C.
    Interrupted,
    /// No process works on one of the runs.
    Abandoned,
}

/// Progress that users have seen. It is kept when another process takes the work over, so that nothing is shown twice.
#[derive(Debug)]
pub(super) struct Shown {
    progress: RunProgress,
    warned: HashSet<String>,
}

impl Shown {
    /// Starts without showing anything.
    pub(super) fn new() -> Self {
        Self { progress: RunProgress::new(), warned: HashSet::new() }
    }
}

/// Waits until every run is over and its benchmarks are closed.
pub(super) async fn watch(
    client: &Client,
    runs: &[RunId],
    datasets: &DatasetProgress,
    demo_wanted: bool,
    interrupt: &Interrupt,
    data_dir: Option<&Path>,
    shown: &mut Shown,
) -> anyhow::Result<WatchResult> {
    let mut backoff = PollBackoff::new();
    let Shown { progress, warned } = shown;
    let mut failures = 0;
    let mut over_since: Option<Instant> = None;
    let mut seen: Vec<Run> = Vec::new();
    let mut disk = data_dir.map(DiskWatch::new);
    let watched = loop {
        let disk_is_full = disk.as_mut().map_or(Ok(false), |disk| disk.check(runs))?;
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
                warn_of_notes(&seen, demo_wanted, warned);
                warn_of_missing_judge(&seen, warned);
                let every = match client.address() {
                    Some(_) => EPISODES_EVERY,
                    None => EPISODES_EVERY_IN_PROCESS,
                };
                progress.update(&seen);
                if let Some(page) = progress.next_page(&seen, every) {
                    let is_read = tokio::select! {
                        is_read = read_page(client, progress, &page) => is_read,
                        () = interrupt.wait() => break WatchResult::Interrupted,
                    };
                    if is_read {
                        progress.update(&seen)
                    } else {
                        progress.delay_pages(EPISODES_AFTER_FAILURE)
                    }
                }
                // The process that worked on it has interrupted it, or has ended.
                if data_dir.is_some() && seen.iter().any(|run| run.status.is_open() && run.interrupted) {
                    break WatchResult::Abandoned;
                }
                // An archive made before the benchmarks are closed would show them as running.
                let since =
                    seen.iter().all(Run::is_over).then(|| *over_since.get_or_insert_with(Instant::now));
                if since.is_some_and(|since| seen.iter().all(Run::is_settled) || since.elapsed() > SETTLE_MAX)
                {
                    break WatchResult::Over(seen.clone());
                }
            }
            Err(error) if disk_is_full => tracing::debug!(%error, "The runs can't be read"),
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
    if matches!(watched, WatchResult::Over(_)) {
        tokio::select! {
            () = read_last_pages(client, progress, &seen) => {}
            () = interrupt.wait() => {}
        }
    }
    datasets.clear();
    if !matches!(watched, WatchResult::Abandoned) {
        progress.finish(&seen);
    }
    Ok(watched)
}

/// Reads a page of episodes. Returns false if that failed: the table is then older than the bar below it.
async fn read_page(client: &Client, progress: &mut RunProgress, page: &EpisodePage) -> bool {
    match client.get(&page.path()).await {
        Ok(view) => progress.add_page(page, view),
        Err(error) => {
            tracing::debug!(%error, "The episodes can't be read");
            return false;
        }
    }
    true
}

/// Reads the episodes that ended last.
async fn read_last_pages(client: &Client, progress: &mut RunProgress, runs: &[Run]) {
    let mut read = Vec::new();
    while let Some(page) = progress.any_page(runs).filter(|page| !read.contains(page)) {
        if read.len() == LAST_PAGES_MAX || !read_page(client, progress, &page).await {
            return;
        }
        read.push(page);
    }
}

/// Watches the disk of the data directory. While it is full, the process that works on the runs asks for nothing more.
struct DiskWatch<'a> {
    dir: &'a Path,
    full_since: Option<Instant>,
}

impl<'a> DiskWatch<'a> {
    const fn new(dir: &'a Path) -> Self {
        Self { dir, full_since: None }
    }

    /// Returns true if the disk is full, and says when it becomes full or has room again.
    ///
    /// # Errors
    /// Fails if the disk has been full for too long.
    fn check(&mut self, runs: &[RunId]) -> anyhow::Result<bool> {
        let dir = self.dir.display();
        let is_full = bench_stack::is_disk_full(self.dir, self.full_since.is_some());
        match self.full_since {
            None if is_full => {
                output::warn(&format!(
                    "the disk of `{dir}` is full: nothing more is asked for; the run goes on if there is room within {} s",
                    ROOM_WAIT_MAX.as_secs()
                ));
                self.full_since = Some(Instant::now());
            }
            Some(_) if !is_full => {
                output::note("There is room on the disk again; the run goes on");
                self.full_since = None;
            }
            Some(since) if since.elapsed() > ROOM_WAIT_MAX => {
                let problem =
                    Problem::failure(format!("the disk of `{dir}` is full; finished samples are kept"));
                let resume: Vec<String> = runs.iter().map(again::resume).collect();
                let hint = format!("free some space, then continue with: {}", resume.join("; "));
                return Err(problem.hint(hint).into());
            }
            None | Some(_) => {}
        }
        Ok(is_full)
    }
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
        let name = benchmark.listed_name();
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
    fn a_disk_that_stays_full_is_an_error_with_the_command_that_continues() {
        let run = RunId::random();
        // A file system without free space.
        let mut disk = DiskWatch::new(Path::new("/proc"));
        assert!(disk.check(&[run]).unwrap() && disk.full_since.is_some(), "it waits for room");
        assert!(disk.check(&[run]).unwrap());
        disk.full_since = Instant::now().checked_sub(ROOM_WAIT_MAX * 2);
        let error = disk.check(&[run]).unwrap_err();
        let problem = error.downcast_ref::<Problem>().unwrap();
        assert!(problem.to_string().contains("`/proc` is full"), "{problem}");
        let temp = std::env::temp_dir();
        let mut disk = DiskWatch { dir: &temp, full_since: Some(Instant::now()) };
        assert!(!disk.check(&[run]).unwrap() && disk.full_since.is_none(), "it goes on");
    }
}
