//! Starts, polls and stops jobs.

use std::time::Duration;

use bench_domain::{JobEnd, JobSpec};

use super::command::{LOOK, START, STOP};
use super::{JobError, JobName, check};
use crate::{Sandy, SandyError};

/// Seconds after which a wrapper counts as dead if it gave no heartbeat and its process can't be found.
pub(super) const STALE_S: &str = "15";
/// Time that ending a job and recording its end may take beyond its time limit.
const END_MARGIN: Duration = Duration::from_secs(30);

/// Status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// The job wasn't started, or has removed its folder.
    NotStarted,
    /// The job is running.
    Running {
        /// Time since its start by the sandbox's clock; a job can falsify this.
        elapsed: Duration,
    },
    /// The job has ended.
    Over(JobEnd),
}

impl JobStatus {
    /// Interprets the status of a job that was certainly started: if nothing of it is found, something removed its
    /// folder.
    #[must_use]
    pub fn once_started(self) -> Self {
        match self {
            Self::NotStarted => Self::Over(JobEnd::Vanished),
            status => status,
        }
    }
}

/// Returns the time after which a job can't still be running regularly. Callers that still see it running then stop it
/// and treat it as timed out, since a job may have kept its wrapper from ending it.
pub fn overdue(time_limit: Duration) -> Duration {
    time_limit + END_MARGIN
}

/// Starts the script, unless it was started or stopped before. If this fails, the script may have been started.
///
/// # Errors
/// All of [`JobError`]; [`JobError::Failed`] if the job's files are missing.
pub async fn start(sandy: &Sandy, sandbox: &str, job: &JobName, spec: &JobSpec) -> Result<(), JobError> {
    check(spec)?;
    let limit = spec.time_limit.as_millis().to_string();
    let arguments = [job.as_str(), &limit];
    let started = match spec.needs_landlock {
        true => START.run_with_landlock(sandy, sandbox, &arguments).await,
        false => START.run(sandy, sandbox, &arguments).await,
    };
    let lines = match started {
        // It was started and has exceeded a limit already, which a poll reports.
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(()),
        lines => lines?,
    };
    match words(&lines).as_slice() {
        ["started" | "already"] => Ok(()),
        _ => Err(START.unexpected_answer()),
    }
}

/// Polls the status of a job with one short call. The call takes a second longer if nothing of the job is found. If its
/// wrapper was stopped, a second call ends the job.
pub async fn look(sandy: &Sandy, sandbox: &str, job: &JobName) -> Result<JobStatus, JobError> {
    let lines = match LOOK.run(sandy, sandbox, &[job.as_str(), STALE_S]).await {
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(JobStatus::Over(JobEnd::OverLimit)),
        lines => lines?,
    };
    read_status(sandy, sandbox, job, &words(&lines)).await?.ok_or_else(|| LOOK.unexpected_answer())
}

/// Interprets the words of a status; `None` if they have no meaning. If the job's wrapper was stopped, ends the job.
pub(super) async fn read_status(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    words: &[&str],
) -> Result<Option<JobStatus>, JobError> {
    Ok(match words {
        ["none"] => Some(JobStatus::NotStarted),
        ["running", elapsed] => {
            elapsed.parse().ok().map(|millis| JobStatus::Running { elapsed: Duration::from_millis(millis) })
        }
        // Any program in the sandbox may have written the record, so invalid ones are ignored.
        ["over", record @ ..] => {
            Some(JobStatus::Over(read_record(record).map_or(JobEnd::Vanished, |(end, _)| end)))
        }
        ["vanished"] => Some(JobStatus::Over(JobEnd::Vanished)),
        ["halted"] => {
            stop_with(sandy, sandbox, &[job.as_str(), "halted"]).await?;
            Some(JobStatus::Over(JobEnd::Halted))
        }
        _ => None,
    })
}

/// Ends everything that the job is running, and prevents a later start. Does nothing if the job has ended.
pub async fn stop(sandy: &Sandy, sandbox: &str, job: &JobName) -> Result<(), JobError> {
    stop_with(sandy, sandbox, &[job.as_str()]).await
}

async fn stop_with(sandy: &Sandy, sandbox: &str, arguments: &[&str]) -> Result<(), JobError> {
    let lines = match STOP.run(sandy, sandbox, arguments).await {
        // The sandbox has ended, and with it the job.
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(()),
        lines => lines?,
    };
    match words(&lines).as_slice() {
        ["stopped"] => Ok(()),
        _ => Err(STOP.unexpected_answer()),
    }
}

/// Parses the wrapper's record: how a job ended, and its duration in milliseconds.
pub(super) fn read_record(words: &[&str]) -> Option<(JobEnd, Option<u64>)> {
    let (end, elapsed) = match words {
        ["exited", code, elapsed] => (JobEnd::Exited(i32::from(code.parse::<u8>().ok()?)), elapsed),
        ["signal", signal, elapsed] => {
            let signal = signal.parse::<u8>().ok().filter(|signal| (1..=64).contains(signal))?;
            (JobEnd::Exited(128 + i32::from(signal)), elapsed)
        }
        ["timed-out", elapsed] => (JobEnd::TimedOut, elapsed),
        ["halted", elapsed] => (JobEnd::Halted, elapsed),
        _ => return None,
    };
    Some((end, elapsed.parse().ok()))
}

pub(super) fn words(lines: &[Vec<String>]) -> Vec<&str> {
    lines.first().map(|line| line.iter().map(String::as_str).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_wrapper_are_parsed() {
        for (note, end, elapsed) in [
            ("exited 0 12", JobEnd::Exited(0), Some(12)),
            ("exited 255 1", JobEnd::Exited(255), Some(1)),
            ("signal 9 5", JobEnd::Exited(137), Some(5)),
            ("timed-out 60000", JobEnd::TimedOut, Some(60_000)),
            ("halted 6000", JobEnd::Halted, Some(6_000)),
            ("exited 1 -5", JobEnd::Exited(1), None),
        ] {
            let words: Vec<&str> = note.split(' ').collect();
            assert_eq!(read_record(&words), Some((end, elapsed)), "{note}");
        }
        for note in ["", "exited", "exited 0", "exited 256 1", "exited x 1", "signal 0 1", "signal 65 1", "0"]
        {
            let words: Vec<&str> = note.split(' ').collect();
            assert_eq!(read_record(&words), None, "{note}");
        }
    }
}
