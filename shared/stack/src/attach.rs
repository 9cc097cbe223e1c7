//! Opening a data directory that another process may own.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, Instant};

use bench_domain::RunId;
use bench_embedded::socket::{RETRY_WAIT, SILENCE_MAX, SocketClient, SocketError};
use bench_embedded::{Embedded, EmbeddedError, EmbeddedOptions};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::VERSION;
use crate::holds::HoldGuard;
use crate::options::OnWait;
use crate::owner::Owner;
use crate::socket::{HOLD_PATH, HoldRequest, resume_path};

/// Maximum time for which the lock's file may be empty.
const UNDESCRIBED_MAX: Duration = Duration::from_secs(1);
/// Minimum wait for an owner that users see a note about.
const NOTED_WAIT: Duration = Duration::from_secs(2);
/// Time without a sign of life after which an owner counts as silent.
const SILENT_AFTER: Duration = Duration::from_secs(4);
/// Maximum time for which a process waits until the owner has delivered a run's messages again.
const RESUME_TIME: Duration = Duration::from_secs(10);

/// Errors of using a data directory that another process owns.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The owner is another version of the program, which may have other records.
    #[error(
        "the data directory {dir} is in use by {} (`{command}`), which is version {theirs} of this program, not {}",
        process(*pid), build()
    )]
    OtherVersion {
        /// The data directory.
        dir: PathBuf,
        /// Id of the owner, if it is known.
        pid: Option<u32>,
        /// Command of the owner.
        command: String,
        /// Version of the owner.
        theirs: String,
    },
    /// The owner accepts connections, but doesn't answer.
    #[error("the data directory {dir} is in use by {}, which does not answer", process(*pid))]
    Silent {
        /// The data directory.
        dir: PathBuf,
        /// Id of the owner, if it is known.
        pid: Option<u32>,
    },
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// Connection to the owner of a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) client: SocketClient,
    pub(crate) owner: Owner,
}

/// Opens the services, or uses those of the process that owns the data directory. Waits for an owner that is starting or
/// ending.
pub(crate) async fn open_or_attach(
    options: &EmbeddedOptions,
    on_wait: Option<&OnWait>,
) -> anyhow::Result<(Embedded, Option<Attachment>)> {
    let since = Instant::now();
    let mut is_noted = false;
    loop {
        let (pid, in_use) = match Embedded::open(options.clone()) {
            Ok(embedded) => return Ok((embedded, None)),
            Err(error @ EmbeddedError::InUse { pid, shares: true, .. }) => (pid, error),
            // A process that has just created the lock's file hasn't described itself yet.
            Err(EmbeddedError::InUse { pid: None, .. }) if since.elapsed() < UNDESCRIBED_MAX => {
                sleep(RETRY_WAIT).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(Attachment { client, owner }) = connect(&options.data_dir, pid).await? {
            let embedded = Embedded::attach(options.clone(), client.clone(), owner.epoch)?;
            return Ok((embedded, Some(Attachment { client, owner })));
        }
        match on_wait {
            None if since.elapsed() > SILENCE_MAX => return Err(in_use.into()),
            Some(note) if !is_noted && since.elapsed() > NOTED_WAIT => {
                note(pid);
                is_noted = true;
            }
            _ => {}
        }
        sleep(RETRY_WAIT).await;
    }
}

/// Connects to the owner. Returns `None` if no process listens. `pid` is the process that holds the lock.
async fn connect(dir: &Path, pid: Option<u32>) -> anyhow::Result<Option<Attachment>> {
    let Ok(client) = SocketClient::new(dir) else { return Ok(None) };
    let described = match Owner::ask(&client).await {
        Ok(described) => described,
        Err(SocketError::Silent { .. }) => {
            return Err(AttachError::Silent { dir: dir.to_owned(), pid }.into());
        }
        Err(error) => {
            tracing::debug!(%error, "The owner of the data directory can't be reached");
            return Ok(None);
        }
    };
    let text = |name: &str| described.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let (command, theirs) = (text("command"), text("version"));
    match serde_json::from_value(described) {
        Ok(owner) if theirs == build() => Ok(Some(Attachment { client, owner })),
        _ => Err(AttachError::OtherVersion { dir: dir.to_owned(), pid, command, theirs }.into()),
    }
}

/// Returns the version and commit of this program. Other builds may have other records.
pub(crate) fn build() -> String {
    match option_env!("BENCH_GIT_SHA") {
        Some(commit) => format!("{VERSION} ({commit})"),
        None => VERSION.to_owned(),
    }
}

impl Attachment {
    /// Delivers the messages of a run that was interrupted.
    pub(crate) async fn resume_group(&self, run: RunId) {
        match self.client.post(&resume_path(run), &(), RESUME_TIME).await {
            Ok(()) => {}
            Err(error @ SocketError::Refused { .. }) => {
                tracing::warn!(%error, run.id = %run, "Run {run} is not worked on: {error}; resume it again");
            }
            // The next owner delivers them.
            Err(error) => {
                tracing::debug!(%error, run.id = %run, "The owner of the data directory has ended");
            }
        }
    }

    /// Makes the owner work on runs until the hold is dropped or the owner ends.
    pub(crate) async fn hold(&self, runs: Vec<RunId>, concurrency: usize) -> Hold {
        let (send, events) = mpsc::channel(1);
        let signs = match self.client.stream(HOLD_PATH, &HoldRequest { runs, concurrency }).await {
            Ok(signs) => signs,
            Err(error) => {
                // The dropped sender ends the hold.
                tracing::debug!(%error, "The owner of the data directory doesn't work on the run");
                return Hold::There { events, _task: None };
            }
        };
        let task = tokio::spawn(async move {
            let mut signs = pin!(signs);
            let mut is_silent = false;
            loop {
                let event = match timeout(SILENT_AFTER, signs.next()).await {
                    Ok(Some(Ok(_))) if is_silent => HoldEvent::Answers,
                    Ok(Some(Ok(_))) => continue,
                    Ok(_) => return,
                    Err(_) if is_silent => continue,
                    Err(_) => HoldEvent::Silent,
                };
                is_silent = event == HoldEvent::Silent;
                if send.send(event).await.is_err() {
                    return;
                }
            }
        });
        Hold::There { events, _task: Some(AbortOnDropHandle::new(task)) }
    }
}

/// Work on runs, in this process or by the owner of the data directory.
pub enum Hold {
    /// This process works on the runs.
    Here(HoldGuard),
    /// The owner works on the runs, until the events end.
    There {
        /// Changes of the owner.
        events: mpsc::Receiver<HoldEvent>,
        /// Connection to the owner; `None` if it had ended before, or refused.
        _task: Option<AbortOnDropHandle<()>>,
    },
}

/// Change of the owner of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEvent {
    /// It doesn't answer; it may have been stopped.
    Silent,
    /// It answers again.
    Answers,
    /// It has ended, or doesn't work on one of the runs.
    Ended,
}

impl Hold {
    /// Waits for the next change of the owner. Never returns if that is this process.
    pub async fn event(&mut self) -> HoldEvent {
        match self {
            Self::Here(_) => std::future::pending().await,
            Self::There { events, .. } => events.recv().await.unwrap_or(HoldEvent::Ended),
        }
    }
}
