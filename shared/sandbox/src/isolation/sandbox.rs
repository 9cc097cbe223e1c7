//! The host's side of a sandbox.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::pipe::PipeFlags;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::launched::LaunchedSandbox;
use super::output::{Capture, drain};
use super::resources::SandboxResources;
use super::stage::{descendants, folder_bytes, relative, total_usage};
use super::wire::{self, ExecBody, Refusal, StageMessage, StageRequest, WriteBody, WriteRefusal};
use super::{EnginePlace, Exec, IsolationError, Output, Sandbox, Usage};

/// Time for which output is still read after a command has ended, if background processes hold its pipes.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// Maximum time to wait for the exit of a killed command before reporting it.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of pipes that are drained for background processes of one sandbox; the oldest is closed to make room.
const DRAINS_MAX: usize = 64;

/// One sandbox on this machine.
pub(crate) struct LocalSandbox {
    channel: Arc<StageChannel>,
    reader: JoinHandle<()>,
    resources: tokio::sync::Mutex<Option<SandboxResources>>,
    over_limit: Arc<OnceLock<String>>,
    /// Folder of its files, if it has no file system of its own.
    folder: Option<PathBuf>,
    engine_place: Option<EnginePlace>,
    drains: Mutex<VecDeque<AbortHandle>>,
}

impl LocalSandbox {
    pub(crate) fn new(launched: LaunchedSandbox) -> io::Result<Self> {
        let LaunchedSandbox { control, resources, folder, engine_place, .. } = launched;
        let control = std::os::unix::net::UnixDatagram::from(control);
        control.set_nonblocking(true)?;
        let channel = Arc::new(StageChannel {
            control: UnixDatagram::from_std(control)?,
            waiting: Mutex::new(BTreeMap::new()),
            next_id: AtomicU64::new(1),
            has_ended: AtomicBool::new(false),
        });
        Ok(Self {
            reader: tokio::spawn(channel.clone().listen()),
            channel,
            folder,
            engine_place,
            resources: tokio::sync::Mutex::new(Some(resources)),
            over_limit: Arc::default(),
            drains: Mutex::new(VecDeque::new()),
        })
    }

    /// Keeps the pipes of background processes open and drops what they write.
    fn drain(&self, pipes: impl IntoIterator<Item = Receiver>) {
        let mut drains = lock(&self.drains);
        drains.retain(|drain| !drain.is_finished());
        for pipe in pipes {
            if drains.len() >= DRAINS_MAX
                && let Some(oldest) = drains.pop_front()
            {
                oldest.abort();
            }
            drains.push_back(tokio::spawn(drain(pipe)).abort_handle());
        }
    }

    /// Disconnects from the second stage, which ends with its sandbox.
    fn hang_up(&self) {
        self.channel.hang_up();
        self.reader.abort();
        for drain in lock(&self.drains).drain(..) {
            drain.abort();
        }
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn exec(&self, exec: &Exec) -> Result<Output, IsolationError> {
        let failed = |error: io::Error| IsolationError::Failed(error.to_string());
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()));
        let ((out, out_writer), (err, err_writer)) = (pipe()?, pipe()?);
        let mut streams = Streams {
            out: Capture::new(out, exec.output_bytes_max).map_err(failed)?,
            err: Capture::new(err, exec.output_bytes_max).map_err(failed)?,
        };
        let body = ExecBody { command: exec.command.clone(), cwd: exec.cwd.clone(), env: exec.env.clone() };
        let body = wire::anonymous_json_file(&body).map_err(failed)?;
        let deadline = Instant::now().checked_add(exec.timeout);
        let mut request = self
            .channel
            .request(|id| StageRequest::Exec { id }, &[body.as_fd(), out_writer.as_fd(), err_writer.as_fd()])
            .await?;
        drop((body, out_writer, err_writer));

        let exit_code = match streams.read_until(&mut request.answer, deadline).await {
            Some(answer) => match answer? {
                StageMessage::Exit { code, .. } => Some(code),
                StageMessage::Refused { reason: Refusal::Shell { code, text }, .. } => {
                    streams.err.kept.extend_from_slice(text.as_bytes());
                    streams.err.kept.truncate(exec.output_bytes_max);
                    Some(code)
                }
                StageMessage::Refused { reason: Refusal::Sandbox(reason), .. } => {
                    return Err(IsolationError::Failed(reason));
                }
                _ => return Err(IsolationError::Gone),
            },
            None => {
                request.kill().await?;
                let killed = Instant::now().checked_add(KILL_WAIT);
                if let Some(answer) = streams.read_until(&mut request.answer, killed).await {
                    answer?;
                }
                None
            }
        };
        request.done();
        streams.settle().await;
        let (stdout, out_dropped, out) = streams.out.into_rest();
        let (stderr, err_dropped, err) = streams.err.into_rest();
        self.drain([out, err].into_iter().flatten());
        Ok(Output { stdout, stderr, dropped_bytes: out_dropped + err_dropped, exit_code })
    }

    async fn write(&self, path: &str, content: &[u8]) -> Result<(), IsolationError> {
        if relative(path).is_none() {
            return Err(IsolationError::Path(path.to_owned()));
        }
        let failed = |error: io::Error| IsolationError::Failed(error.to_string());
        let body = wire::anonymous_json_file(&WriteBody { path: path.to_owned() }).map_err(failed)?;
        let content = wire::anonymous_file(content).map_err(failed)?;
        let mut request =
            self.channel.request(|id| StageRequest::Write { id }, &[body.as_fd(), content.as_fd()]).await?;
        let answer = (&mut request.answer).await;
        request.done();
        match answer {
            Ok(StageMessage::Written { .. }) => Ok(()),
            Ok(StageMessage::NotWritten { reason: WriteRefusal::Path, .. }) => {
                Err(IsolationError::Path(path.to_owned()))
            }
            Ok(StageMessage::NotWritten { reason: WriteRefusal::Failed(reason), .. }) => {
                Err(IsolationError::Write(reason))
            }
            _ => Err(IsolationError::Gone),
        }
    }

    async fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        if let Some(resources) = self.resources.lock().await.as_ref() {
            usage.cpu_seconds = resources.group.cpu_seconds();
            usage.memory_bytes = resources.group.memory_bytes();
            if let Some(guard) = resources.guard()
                && (usage.cpu_seconds.is_none() || usage.memory_bytes.is_none())
            {
                let counted = total_usage(descendants(guard));
                usage.cpu_seconds = usage.cpu_seconds.or(Some(counted.cpu_seconds));
                usage.memory_bytes = usage.memory_bytes.or(Some(counted.memory_bytes));
            }
        }
        usage.disk_bytes = match self.folder.clone() {
            Some(folder) => tokio::task::spawn_blocking(move || folder_bytes(&folder)).await.ok(),
            None => match self.channel.request(|id| StageRequest::Disk { id }, &[]).await {
                Ok(mut request) => {
                    let answer = (&mut request.answer).await;
                    request.done();
                    match answer {
                        Ok(StageMessage::Disk { bytes, .. }) => bytes,
                        _ => None,
                    }
                }
                Err(_) => None,
            },
        };
        usage
    }

    fn is_over(&self) -> bool {
        self.channel.has_ended.load(Ordering::Acquire)
    }

    async fn end(&self) {
        self.hang_up();
        // A concurrent caller waits until the first has finished.
        let mut resources_guard = self.resources.lock().await;
        if let Some(resources) = resources_guard.take() {
            // If the caller stops waiting, the thread still finishes.
            let over_limit = self.over_limit.clone();
            let close = move || resources.close().map(|limit| over_limit.set(limit));
            let _ = tokio::task::spawn_blocking(close).await;
        }
    }

    fn engine_place(&self) -> Option<&EnginePlace> {
        self.engine_place.as_ref()
    }

    fn over_limit(&self) -> Option<&str> {
        self.over_limit.get().map(String::as_str)
    }
}

impl Drop for LocalSandbox {
    fn drop(&mut self) {
        self.hang_up();
        if let Some(resources) = self.resources.get_mut().take() {
            // Closing takes a moment, so a thread does it.
            let builder = std::thread::Builder::new().name("sandbox-end".to_owned());
            // If no thread can be started, the closure is dropped here, which closes the sandbox as well.
            let _ = builder.spawn(move || drop(resources.close()));
        }
    }
}

/// Both output streams of a command.
struct Streams {
    out: Capture,
    err: Capture,
}

impl Streams {
    /// Reads until the answer arrives; `None` if the time is up first.
    async fn read_until(
        &mut self,
        answer: &mut oneshot::Receiver<StageMessage>,
        until: Option<Instant>,
    ) -> Option<Result<StageMessage, IsolationError>> {
        let time_is_up = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_is_up);
        loop {
            tokio::select! {
                biased;
                answer = &mut *answer => return Some(answer.map_err(|_| IsolationError::Gone)),
                () = &mut time_is_up => return None,
                () = self.out.read() => {}
                () = self.err.read() => {}
            }
        }
    }

    /// Reads what was written before the end, and briefly what background processes add.
    async fn settle(&mut self) {
        let moment = tokio::time::sleep(SETTLE_TIME);
        tokio::pin!(moment);
        while !(self.out.is_over() && self.err.is_over()) {
            tokio::select! {
                () = self.out.read() => {}
                () = self.err.read() => {}
                () = &mut moment => return,
            }
        }
    }
}

/// Connection to the second stage.
struct StageChannel {
    /// A connected socket that preserves message boundaries (`SOCK_SEQPACKET`). Tokio has no type for it; waiting on a
    /// datagram socket works the same way.
    control: UnixDatagram,
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<StageMessage>>>,
    next_id: AtomicU64,
    has_ended: AtomicBool,
}

impl StageChannel {
    /// Delivers answers to the waiting requests until the sandbox is gone.
    async fn listen(self: Arc<Self>) {
        let receive = || Ok(wire::receive::<StageMessage>(self.control.as_fd())?);
        while let Ok(Some(received)) = self.control.async_io(Interest::READABLE, receive).await {
            let (StageMessage::Exit { id, .. }
            | StageMessage::Refused { id, .. }
            | StageMessage::Written { id }
            | StageMessage::NotWritten { id, .. }
            | StageMessage::Disk { id, .. }) = &received.message
            else {
                continue;
            };
            if let Some(waiting) = lock(&self.waiting).remove(id) {
                // The send fails if the caller has stopped waiting.
                let _ = waiting.send(received.message);
            }
        }
        self.hang_up();
    }

    async fn request(
        self: &Arc<Self>,
        make_request: impl FnOnce(u64) -> StageRequest,
        files: &[BorrowedFd<'_>],
    ) -> Result<PendingRequest, IsolationError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        let request = PendingRequest { channel: self.clone(), id, answer, is_done: false };
        // Checked after the insertion: a concurrent `hang_up` either finds the request or is seen here.
        if self.has_ended.load(Ordering::Acquire) {
            return Err(IsolationError::Gone);
        }
        self.send(&make_request(id), files).await?;
        Ok(request)
    }

    async fn send(&self, request: &StageRequest, files: &[BorrowedFd<'_>]) -> Result<(), IsolationError> {
        let send = || Ok(wire::send(self.control.as_fd(), request, files)?);
        self.control.async_io(Interest::WRITABLE, send).await.map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => IsolationError::Gone,
            _ => IsolationError::Failed(error.to_string()),
        })
    }

    fn hang_up(&self) {
        self.has_ended.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Both);
        lock(&self.waiting).clear();
    }
}

/// A request that waits for its answer. Dropping it early kills its command.
struct PendingRequest {
    channel: Arc<StageChannel>,
    id: u64,
    answer: oneshot::Receiver<StageMessage>,
    is_done: bool,
}

impl PendingRequest {
    async fn kill(&self) -> Result<(), IsolationError> {
        self.channel.send(&StageRequest::Kill { id: self.id }, &[]).await
    }

    /// Marks the request as finished.
    fn done(&mut self) {
        self.is_done = true;
        lock(&self.channel.waiting).remove(&self.id);
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if !self.is_done {
            self.done();
            // If the socket is full, the second stage hangs and will end with its sandbox.
            let _ = wire::send(self.channel.control.as_fd(), &StageRequest::Kill { id: self.id }, &[]);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can't leave the values half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
