//! Places where the work on runs is done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_domain::{RunId, RunStatus, Secret};
use bench_runs::Orders;
use bench_stack::{CONCURRENCY_MAX, Hold, HoldEvent, Owner, Stack, StackOptions, is_disk_full};
use bench_state::Scope;
use serde_json::Value;

use super::interrupt::Interrupt;
use super::results::ResultsForm;
use super::watch::{self, Shown, WatchResult};
use super::{WorkArgs, requeue_path, results};
use crate::again;
use crate::client::{Client, ServerArgs};
use crate::commands::interrupted;
use crate::data_dir::{DataArgs, DurabilityArg, open_when_free};
use crate::exit::{ExitStatus, Problem, disk_full};
use crate::helper_keys::HelperKeys;
use crate::progress::DatasetProgress;
use crate::views::Run;
use crate::{format, logs, output};

/// Time for calls in progress to end after Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);
/// Time for the stack to close after all work is done.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Wait before the work on a run continues elsewhere.
const RETRY_WAIT: Duration = Duration::from_millis(100);
/// Maximum time for the owner of the data directory to notice that a command no longer waits for a run.
const RELEASE_MAX: Duration = Duration::from_secs(1);
/// Minimum wait for calls in progress at which users see a message.
const SILENT_SETTLE_MAX: Duration = Duration::from_secs(1);

/// Place where the work on runs is done: the stack in this process, the process that owns the data directory, or a
/// server.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// `None` if a server does the work.
    local: Option<Local>,
    datasets: Arc<DatasetProgress>,
}

/// A data directory, with the settings to open it.
struct Local {
    stack: Stack,
    settings: LocalSettings,
    /// Keeps the owner of the data directory at work.
    hold: Option<Hold>,
    /// Holds of runs that aren't watched yet.
    unwatched: Vec<Hold>,
    /// True if an earlier owner has ended while this command was waiting.
    is_restarted: bool,
}

struct LocalSettings {
    data: DataArgs,
    scope: Scope,
    durability: DurabilityArg,
    concurrency: usize,
    key: Option<Secret>,
    datasets: Arc<DatasetProgress>,
}

/// Result of watching runs in a data directory.
enum Watched {
    /// The runs are over and their results shown, or the user pressed Ctrl-C.
    Ended(ExitStatus),
    /// The process that works on the runs has ended, or doesn't work on one of them.
    OwnerEnded,
}

impl Session {
    pub(crate) async fn open(work: &WorkArgs, server: &ServerArgs, data: &DataArgs) -> anyhow::Result<Self> {
        Self::open_in(Scope::Foreground, work, server, data).await
    }

    /// Opens a session for runs in `scope`. Those of [`Scope::Server`] are left to a server.
    pub(crate) async fn open_in(
        scope: Scope,
        work: &WorkArgs,
        server: &ServerArgs,
        data: &DataArgs,
    ) -> anyhow::Result<Self> {
        let datasets = Arc::new(DatasetProgress::default());
        again::remember(server, data);
        again::remember_out(&work.out);
        if let Some(client) = server.client()? {
            return Ok(Self {
                client: client.with_helper_keys(HelperKeys::from_variables()),
                local: None,
                datasets,
            });
        }
        let data_dir = data.path()?;
        if is_disk_full(&data_dir, false) {
            return Err(disk_full(&data_dir).into());
        }
        let settings = LocalSettings {
            data: data.clone(),
            scope,
            durability: work.durability,
            concurrency: usize::try_from(work.concurrency).unwrap_or(CONCURRENCY_MAX),
            key: server.named_key()?,
            datasets: Arc::clone(&datasets),
        };
        let (stack, client) = settings.open().await?;
        Ok(Self {
            client,
            local: Some(Local { stack, settings, hold: None, unwatched: Vec::new(), is_restarted: false }),
            datasets,
        })
    }

    /// Returns the stack in this process, which may use the services of another one; `None` if a server makes the runs.
    pub(crate) fn stack(&self) -> Option<&Stack> {
        self.local.as_ref().map(|local| &local.stack)
    }

    /// Returns the order service of this process, or `None` if a server makes the runs.
    pub(crate) fn orders(&self) -> Option<&Orders> {
        self.stack().map(|stack| stack.orders.as_ref())
    }

    /// Keeps holds until the runs are watched.
    pub(crate) fn keep_until_watched(&mut self, holds: Vec<Hold>) {
        if let Some(local) = &mut self.local {
            local.unwatched = holds;
        }
    }

    /// Returns the receiver of the progress of downloads.
    pub(crate) fn datasets(&self) -> &DatasetProgress {
        &self.datasets
    }

    pub(crate) async fn close(self, grace: Duration) {
        if let Some(Local { stack, hold, .. }) = self.local {
            stack.stop(grace).await;
            drop(hold);
        }
    }

    /// Closes a session that has no runs.
    pub(crate) async fn give_up(mut self) {
        self.hand_over(&Interrupt::listen()).await;
        self.close(Duration::ZERO).await;
    }

    /// Works until the runs are over, and shows their results. Then calls `then` while the API is still available.
    pub(crate) async fn finish_runs(
        mut self,
        runs: &[RunId],
        demo_wanted: bool,
        work: &WorkArgs,
        form: ResultsForm,
        then: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitStatus> {
        logs::show_only(runs);
        let interrupt = Interrupt::listen();
        let mut worked = self.finish_here_or_there(runs, demo_wanted, work, form, &interrupt).await;
        if matches!(worked, Ok(ExitStatus::Success | ExitStatus::Failure))
            && let Err(error) = then(&self.client).await
        {
            worked = Err(error);
        }
        let interrupted = matches!(worked, Ok(ExitStatus::Interrupted));
        let is_remote = self.client.address().is_some();
        let is_owner = self.stack().is_some_and(|stack| stack.owner().is_none());
        if interrupted && is_owner {
            let seconds = INTERRUPT_GRACE.as_secs();
            let commands: Vec<String> = runs.iter().map(again::resume).collect();
            output::note(&format!(
                "Stopping. Work in progress has {seconds} s to finish; finished samples are kept.{} Press Ctrl-C again to stop \
                 now, and continue with: {}",
                self.lost_episodes(runs).await,
                commands.join("; ")
            ));
        }
        if !interrupted && worked.is_ok() {
            self.hand_over(&interrupt).await;
        }
        let commands: Vec<String> = runs.iter().map(again::resume).collect();
        let continued_by = if interrupted { self.release(runs).await } else { Vec::new() };
        self.close(if interrupted { INTERRUPT_GRACE } else { CLOSE_GRACE }).await;
        if interrupted {
            for (run, resume) in runs.iter().zip(commands) {
                let other = continued_by.iter().find(|(continued, _)| continued == run);
                match other {
                    _ if is_remote => {
                        output::note(&format!("The run continues at the server. Watch it with: {resume}"))
                    }
                    Some((_, Owner { pid, command, .. })) => output::note(&format!(
                        "Process {pid} (`{command}`) continues the run. Watch it with: {resume}"
                    )),
                    None => output::note(&format!("Continue with: {resume}")),
                }
            }
        }
        worked
    }

    /// Says that episodes in sandboxes of this process start over, if the runs have episodes.
    async fn lost_episodes(&self, runs: &[RunId]) -> &'static str {
        if !self.stack().is_some_and(Stack::has_own_sandboxes) {
            return "";
        }
        for run in runs {
            let found = self.client.get::<Run>(&format!("/api/runs/{run}")).await;
            if found.is_ok_and(|run| run.has_episodes()) {
                return " Sandboxes end with this process, so episodes that are still running start over later.";
            }
        }
        ""
    }

    /// Stops waiting for runs that another process works on. Returns those that it continues for other commands, each with
    /// the process.
    async fn release(&mut self, runs: &[RunId]) -> Vec<(RunId, Owner)> {
        let Some(local) = &mut self.local else { return Vec::new() };
        let Some(owner) = local.stack.owner().cloned() else { return Vec::new() };
        local.hold = None;
        let mut continued = Vec::new();
        let deadline = Instant::now() + RELEASE_MAX;
        for run in runs {
            let is_continued = loop {
                match self.client.get::<Run>(&format!("/api/runs/{run}")).await {
                    Ok(found) if found.status.is_open() && !found.interrupted => {
                        if Instant::now() >= deadline {
                            break true;
                        }
                        tokio::time::sleep(RETRY_WAIT).await;
                    }
                    Ok(_) | Err(_) => break false,
                }
            };
            if is_continued {
                continued.push((*run, owner.clone()));
            }
        }
        continued
    }

    /// Watches the runs until they are over. If the process that works on them ends, another one takes over.
    async fn finish_here_or_there(
        &mut self,
        runs: &[RunId],
        demo_wanted: bool,
        work: &WorkArgs,
        form: ResultsForm,
        interrupt: &Interrupt,
    ) -> anyhow::Result<ExitStatus> {
        let mut shown = Shown::new();
        loop {
            match self.watch_and_show(runs, demo_wanted, work, form, interrupt, &mut shown).await? {
                Watched::Ended(status) => return Ok(status),
                Watched::OwnerEnded => self.take_over(runs).await.map_err(|error| {
                    let resume: Vec<String> =
                        runs.iter().map(|run| format!("`{}`", again::resume(run))).collect();
                    error.context(
                        Problem::failure("the process that worked on the run has ended")
                            .hint(format!("finished samples are kept; continue with {}", resume.join(", "))),
                    )
                })?,
            }
        }
    }

    async fn watch_and_show(
        &mut self,
        runs: &[RunId],
        demo_wanted: bool,
        work: &WorkArgs,
        form: ResultsForm,
        interrupt: &Interrupt,
        shown: &mut Shown,
    ) -> anyhow::Result<Watched> {
        if let Some(local) = &mut self.local {
            local.start(runs).await?;
        }
        let mut over = loop {
            let data_dir = self.stack().map(|stack| stack.embedded.data_dir().to_owned());
            let dir = data_dir.as_deref();
            let watching =
                watch::watch(&self.client, runs, &self.datasets, demo_wanted, interrupt, dir, shown);
            let watched = tokio::select! {
                biased;
                watched = watching => watched?,
                () = until_owner_ended(self.local.as_mut()) => return Ok(Watched::OwnerEnded),
            };
            match watched {
                WatchResult::Over(over) => break over,
                WatchResult::Interrupted => return Ok(Watched::Ended(ExitStatus::Interrupted)),
                // The command that held a run before has just ended.
                WatchResult::Abandoned => {
                    tokio::time::sleep(RETRY_WAIT).await;
                    continue_interrupted(&self.client, runs).await?;
                }
            }
        };
        if let Some(Local { stack, .. }) = &mut self.local
            && stack.owner().is_none()
            // Answers of other commands aren't stopped.
            && stack.runs_of_others() == 0
            && over.iter().any(|run| run.status != RunStatus::Succeeded)
        {
            // Calls in progress cost money, so their answers go into the results. Arriving later, they would make the
            // results differ from the archive.
            tokio::select! {
                () = settle(stack) => {}
                () = interrupt.wait() => {}
            }
            // The results must not change any more after they are shown.
            stack.abort().await;
            over = watch::fetch_runs(&self.client, runs).await?;
        }
        results::show(&self.client, self.stack(), &over, &work.out, form).await.map(Watched::Ended)
    }

    /// Opens the data directory again after its owner has ended, and continues the runs that no process works on.
    async fn take_over(&mut self, runs: &[RunId]) -> anyhow::Result<()> {
        let Some(Local { stack, settings, hold, .. }) = self.local.take() else { return Ok(()) };
        drop(hold);
        stack.stop(Duration::ZERO).await;
        tokio::time::sleep(RETRY_WAIT).await;
        let (stack, client) = settings.open().await?;
        self.client = client;
        self.local = Some(Local { stack, settings, hold: None, unwatched: Vec::new(), is_restarted: true });
        for run in runs {
            self.check_endpoints(*run).await?;
        }
        continue_interrupted(&self.client, runs).await
    }

    /// Fails if another process would work on the run with another address or key than this terminal has.
    pub(crate) async fn check_endpoints(&self, run: RunId) -> anyhow::Result<()> {
        let Some(stack) = self.stack() else { return Ok(()) };
        let (Some(owner), Some(provider)) = (stack.owner(), stack.conflicting_provider(run).await?) else {
            return Ok(());
        };
        let Owner { pid, command, .. } = owner;
        let name = provider.display_name;
        let message = format!(
            "process {pid} (`{command}`), which works in this data directory, has another address or key for {name} than \
             this terminal"
        );
        Err(Problem::failure(message).hint("wait until it ends, or set the same variables here").into())
    }

    /// Finishes the answers in progress that other commands have asked for, since they are paid for. Asks for no more: those
    /// commands continue their runs when this process has ended.
    async fn hand_over(&mut self, interrupt: &Interrupt) {
        let Some(Local { stack, .. }) = &mut self.local else { return };
        if stack.runs_of_others() == 0 || stack.drain(SILENT_SETTLE_MAX).await {
            return;
        }
        let samples = format::plural(stack.samples_in_progress().await, "answer");
        output::note(&format!(
            "Finishing {samples} for runs of other terminals, which then continue there. Press Ctrl-C to leave: answers that \
             are missing then are asked for again."
        ));
        let time = stack.sample_time();
        tokio::select! {
            _ = stack.drain(time) => {}
            () = interrupt.wait() => {}
        }
    }
}

impl Local {
    /// Starts the work on the runs, here or by the owner of the data directory.
    async fn start(&mut self, runs: &[RunId]) -> anyhow::Result<()> {
        match self.stack.owner() {
            Some(Owner { pid, command, .. }) if self.is_restarted => {
                output::note(&format!("Process {pid} (`{command}`) continues the work"));
            }
            Some(Owner { pid, command, .. }) => {
                output::note(&format!("Process {pid} (`{command}`) does the work; this command watches"));
            }
            None => match self.is_restarted {
                true => output::note("The process that did the work has ended; this one continues it"),
                false => interrupted::list(&self.stack, runs, None).await,
            },
        }
        self.hold = self.stack.hold(runs, self.settings.concurrency).await;
        self.unwatched.clear();
        Ok(())
    }
}

/// Returns when the owner of the data directory has ended. Notes when it doesn't answer.
async fn until_owner_ended(local: Option<&mut Local>) {
    let Some(Local { stack, hold: Some(hold), .. }) = local else { return std::future::pending().await };
    loop {
        match hold.event().await {
            HoldEvent::Ended => return,
            HoldEvent::Answers => {}
            HoldEvent::Silent => {
                if let Some(Owner { pid, command, .. }) = stack.owner() {
                    output::warn(&format!(
                        "process {pid} (`{command}`), which does the work, does not answer; continue it with `fg` in its \
                         terminal if it was stopped there, or end it"
                    ));
                }
            }
        }
    }
}

/// Continues the runs that no process works on.
async fn continue_interrupted(client: &Client, runs: &[RunId]) -> anyhow::Result<()> {
    for run in runs {
        let found: Run = client.get(&format!("/api/runs/{run}")).await?;
        if found.status.is_open() && found.interrupted {
            client.post::<Value>(&requeue_path(*run), None).await?;
        }
    }
    Ok(())
}

impl LocalSettings {
    /// Opens the stack in the data directory, or uses the one of the process that owns it.
    async fn open(&self) -> anyhow::Result<(Stack, Client)> {
        let options = || {
            anyhow::Ok(StackOptions {
                durability: self.durability.into(),
                concurrency: self.concurrency,
                progress: Arc::clone(&self.datasets) as _,
                scope: self.scope,
                works: self.scope == Scope::Foreground,
                ..self.data.options()?
            })
        };
        let mut stack = open_when_free(options, |owner| owner.works).await?;
        if stack.owner().is_none() && self.scope == Scope::Foreground {
            // Other commands rely on it, also while this one asks its user something.
            stack.start().await?;
        }
        let client = Client::in_process(stack.router(), stack.embedded.data_dir().to_owned());
        Ok((stack, client.with_key(self.key.clone()).with_helper_keys(HelperKeys::from_variables())))
    }
}

/// Waits a limited time for samples in progress to end, with a message if it takes long.
async fn settle(stack: &mut Stack) {
    if !stack.drain(SILENT_SETTLE_MAX).await {
        let seconds = INTERRUPT_GRACE.as_secs();
        output::note(&format!(
            "Waiting up to {seconds} s for answers in progress. Press Ctrl-C to see the results now."
        ));
        stack.drain(INTERRUPT_GRACE).await;
    }
}
