//! Reports a worker to operators: a heartbeat once a minute, and the tokens of the answers it received.
//!
//! The pipeline doesn't depend on these records: a failed write is logged, and work goes on.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench_domain::{RunId, Timestamp, Usage};
use bench_state::State;
use bench_state::ops::{Heartbeat, TokenSum};

/// Time for which tokens are gathered before they are written.
const GATHER_FOR: Duration = Duration::from_secs(10);
/// Interval at which a worker that waits for long answers checks whether a new minute has begun.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(20);
const MINUTE_US: i64 = 60_000_000;

/// Name and capacity of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// Id of the process: `SANDY_SANDBOX_ID`, else `WORKER_INSTANCE_ID`, else the Lambda environment, else
    /// the host name.
    pub worker_id: String,
    /// Name of the Lambda function, or else of the machine.
    pub hostname: Option<String>,
    /// Maximum number of runs that the worker works on at once. `WORKER_MAX_CONCURRENT`, default 3.
    pub max_concurrent_runs: u64,
    /// Maximum number of samples that the worker works on at once. `WORKER_ITEM_CONCURRENCY`, default 4.
    pub item_concurrency: u64,
}

impl Default for WorkerIdentity {
    fn default() -> Self {
        Self { worker_id: "worker".to_owned(), hostname: None, max_concurrent_runs: 3, item_concurrency: 4 }
    }
}

impl WorkerIdentity {
    /// Reads the variables named in the field docs. Unset variables get their default.
    ///
    /// # Errors
    /// Returns one sentence that names the variable that isn't a number.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let default = Self::default();
        let number = |name: &str, default: u64| match var(name) {
            None => Ok(default),
            Some(text) => match text.trim().parse::<u64>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(anyhow::anyhow!("{name}: `{text}` is not a whole number from 1")),
            },
        };
        let hostname = var("AWS_LAMBDA_FUNCTION_NAME").or_else(self::hostname);
        // `2026/01/02/[$LATEST]0123…`: each environment has its own stream, while the machine's name
        // identifies nothing.
        let environment = var("AWS_LAMBDA_LOG_STREAM_NAME")
            .and_then(|stream| stream.rsplit(']').next().map(str::to_owned))
            .filter(|id| !id.is_empty());
        let worker_id = var("SANDY_SANDBOX_ID")
            .or_else(|| var("WORKER_INSTANCE_ID"))
            .or(environment)
            .or_else(|| hostname.clone())
            .unwrap_or(default.worker_id);
        Ok(Self {
            worker_id,
            hostname,
            max_concurrent_runs: number("WORKER_MAX_CONCURRENT", default.max_concurrent_runs)?,
            item_concurrency: number("WORKER_ITEM_CONCURRENCY", default.item_concurrency)?,
        })
    }
}

fn hostname() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
    name.filter(|name| !name.is_empty())
}

/// Runs in progress.
#[derive(Default)]
struct Load {
    /// Number of samples in progress, by run.
    now: HashMap<RunId, usize>,
    /// Runs that were in progress at any time since the last heartbeat.
    since: HashSet<RunId>,
    /// Minute of the last heartbeat.
    minute: Option<i64>,
}

#[derive(Default)]
struct TokenBuffer {
    tokens: TokenSum,
    /// True while a background task is waiting to write them.
    flush_scheduled: bool,
}

struct Inner {
    state: State,
    identity: WorkerIdentity,
    load: Mutex<Load>,
    buffer: Mutex<TokenBuffer>,
}

/// Heartbeats and token counts of one pipeline.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Inner>);

/// A sample in progress. Dropping the value ends it.
pub(crate) struct InProgress<'a> {
    activity: &'a Activity,
    run: RunId,
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        let mut load = lock(&self.activity.0.load);
        if let Some(samples) = load.now.get_mut(&self.run) {
            *samples -= 1;
            if *samples == 0 {
                load.now.remove(&self.run);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Activity {
    pub(crate) fn new(state: State, identity: WorkerIdentity) -> Self {
        Self(Arc::new(Inner { state, identity, load: Mutex::default(), buffer: Mutex::default() }))
    }

    /// Counts a sample of a run as in progress until the returned value is dropped.
    pub(crate) fn start(&self, run: RunId) -> InProgress<'_> {
        let mut load = lock(&self.0.load);
        *load.now.entry(run).or_default() += 1;
        load.since.insert(run);
        drop(load);
        InProgress { activity: self, run }
    }

    /// Writes the heartbeat of this minute, unless it was already written or no run was in progress since the
    /// last one.
    pub(crate) async fn write_heartbeat(&self) {
        let now = bench_clock::now();
        let Some(heartbeat) = self.due_heartbeat(now) else { return };
        if let Err(error) = self.0.state.note_heartbeat(&heartbeat).await {
            tracing::debug!(%error, "A heartbeat was not noted");
        }
    }

    /// Writes the heartbeat in the background.
    pub(crate) fn write_heartbeat_in_background(&self) {
        let activity = self.clone();
        tokio::spawn(async move { activity.write_heartbeat().await });
    }

    fn due_heartbeat(&self, now: Timestamp) -> Option<Heartbeat> {
        let minute = now.as_micros().div_euclid(MINUTE_US);
        let mut load = lock(&self.0.load);
        if load.since.is_empty() || load.minute == Some(minute) {
            return None;
        }
        load.minute = Some(minute);
        let worked_on = std::mem::take(&mut load.since);
        load.since = load.now.keys().copied().collect();
        let identity = &self.0.identity;
        Some(Heartbeat {
            worker_id: identity.worker_id.clone(),
            hostname: identity.hostname.clone(),
            running_runs: worked_on.len() as u64,
            max_concurrent_runs: identity.max_concurrent_runs,
            item_concurrency: identity.item_concurrency,
            at: now,
        })
    }

    /// Counts the tokens of an answer. They are written together with others, at most ten seconds later.
    pub(crate) fn count_tokens(&self, usage: Option<Usage>) {
        let Some(usage) = usage.filter(|usage| usage.total() > 0) else { return };
        let tokens = TokenSum { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens };
        let mut buffer = lock(&self.0.buffer);
        buffer.tokens = buffer.tokens.plus(tokens);
        if std::mem::replace(&mut buffer.flush_scheduled, true) {
            return;
        }
        drop(buffer);
        let activity = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GATHER_FOR).await;
            lock(&activity.0.buffer).flush_scheduled = false;
            activity.flush().await;
        });
    }

    /// Writes the gathered tokens. Tokens that can't be written are kept for the next flush.
    pub(crate) async fn flush(&self) {
        let tokens = std::mem::take(&mut lock(&self.0.buffer).tokens);
        if tokens == TokenSum::default() {
            return;
        }
        if let Err(error) = self.0.state.add_tokens(bench_clock::now(), tokens).await {
            tracing::debug!(%error, "Tokens are counted later");
            let mut buffer = lock(&self.0.buffer);
            buffer.tokens = buffer.tokens.plus(tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> anyhow::Result<WorkerIdentity> {
        WorkerIdentity::from_vars(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_worker_is_named_by_what_tells_it_from_others() {
        let lambda = [
            ("AWS_LAMBDA_FUNCTION_NAME", "bench-worker"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/01/02/[$LATEST]0123abcd"),
        ];
        let worker = read(&lambda).unwrap();
        assert_eq!(
            (worker.worker_id.as_str(), worker.hostname.as_deref()),
            ("0123abcd", Some("bench-worker"))
        );
        let named = read(&[("WORKER_INSTANCE_ID", "w1"), ("WORKER_MAX_CONCURRENT", " 2 ")]).unwrap();
        assert_eq!(
            (named.worker_id.as_str(), named.max_concurrent_runs, named.item_concurrency),
            ("w1", 2, 4)
        );
        let sandbox = read(&[("WORKER_INSTANCE_ID", "w1"), ("SANDY_SANDBOX_ID", "s1")]).unwrap();
        assert_eq!(sandbox.worker_id, "s1");
        let here = read(&[]).unwrap();
        assert_eq!(here.hostname.as_ref(), Some(&here.worker_id));
        for bad in ["0", "-1", "many"] {
            let error = read(&[("WORKER_ITEM_CONCURRENCY", bad)]).unwrap_err().to_string();
            assert!(error.starts_with("WORKER_ITEM_CONCURRENCY"), "{error}");
        }
    }
}
