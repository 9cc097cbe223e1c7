//! Starting, looking, stopping.

use std::time::Duration;

use bench_domain::{JobEnd, JobSpec};

use super::command::{LOOK, START, STOP};
use super::{JobError, JobName, check};
use crate::{Sandy, SandyError};

/// A wrapper that gave no sign of life for so long, and whose process is not there, is no more.
const STALE_S: &str = "15";
/// What ending a job and noting it may take, beyond its time limit.
const END_MARGIN: Duration = Duration::from_secs(30);

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// It was not started, or it has removed its folder.
    NotStarted,
    /// It runs.
    Running {
        /// For how long, as the sandbox's clock says; a job can make this wrong.
        elapsed: Duration,
    },
    /// It ended.
    Over(JobEnd),
}

impl JobStatus {
    /// The same for a job of which it is known that it was started: when there is nothing of it, something removed it.
    #[must_use]
    pub fn once_started(self) -> Self {
        match self {
            Self::NotStarted => Self::Over(JobEnd::Vanished),
            status => status,
        }
    }
}

/// After so long a job cannot be running any more by itself: whoever still sees it running stops it, and takes it as
/// timed out. A job can keep its wrapper from ending it.
pub fn overdue(time_limit: Duration) -> Duration {
    time_limit + END_MARGIN
}

/// Starts the script, unless it was started or stopped before. When this fails it may have been started.
///
/// # Errors
/// Among others [`JobError::Failed`] when the job's files are not there.
pub async fn start(sandy: &Sandy, sandbox: &str, job: &JobName, spec: &JobSpec) -> Result<(), JobError> {
    check(spec)?;
    let limit = spec.time_limit.as_millis().to_string();
    let words_of_start = [job.as_str(), &limit];
    let started = match spec.needs_landlock {
        true => START.run_with_landlock(sandy, sandbox, &words_of_start).await,
        false => START.run(sandy, sandbox, &words_of_start).await,
    };
    let lines = match started {
        // It was, and has gone over a limit already: a look tells.
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(()),
        lines => lines?,
    };
    match words(&lines).as_slice() {
        ["started" | "already"] => Ok(()),
        _ => Err(START.garbled()),
    }
}

/// Where the job stands: one short call. It takes a second more where there is nothing of the job. A job whose wrapper is
/// found stopped is ended: a second call.
pub async fn look(sandy: &Sandy, sandbox: &str, job: &JobName) -> Result<JobStatus, JobError> {
    let lines = match LOOK.run(sandy, sandbox, &[job.as_str(), STALE_S]).await {
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(JobStatus::Over(JobEnd::OverLimit)),
        lines => lines?,
    };
    match words(&lines).as_slice() {
        ["none"] => Ok(JobStatus::NotStarted),
        ["running", elapsed] => {
            let millis = elapsed.parse().map_err(|_| LOOK.garbled())?;
            Ok(JobStatus::Running { elapsed: Duration::from_millis(millis) })
        }
        // Anybody in the sandbox may have written the note: whatever makes no sense says nothing.
        ["over", noted @ ..] => {
            Ok(JobStatus::Over(read_note(noted).map_or(JobEnd::Vanished, |(end, _)| end)))
        }
        ["vanished"] => Ok(JobStatus::Over(JobEnd::Vanished)),
        ["halted"] => {
            stop_for(sandy, sandbox, &[job.as_str(), "halted"]).await?;
            Ok(JobStatus::Over(JobEnd::Halted))
        }
        _ => Err(LOOK.garbled()),
    }
}

/// Ends what the job has running, and sees to it that it is not started later. Does nothing when it is over.
pub async fn stop(sandy: &Sandy, sandbox: &str, job: &JobName) -> Result<(), JobError> {
    stop_for(sandy, sandbox, &[job.as_str()]).await
}

async fn stop_for(sandy: &Sandy, sandbox: &str, asked: &[&str]) -> Result<(), JobError> {
    let lines = match STOP.run(sandy, sandbox, asked).await {
        // Nothing runs any more.
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return Ok(()),
        lines => lines?,
    };
    match words(&lines).as_slice() {
        ["stopped"] => Ok(()),
        _ => Err(STOP.garbled()),
    }
}

/// How a job ended and after how many milliseconds, as its wrapper notes it.
pub(super) fn read_note(words: &[&str]) -> Option<(JobEnd, Option<u64>)> {
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
    fn notes_say_how_a_job_ended() {
        for (note, end, elapsed) in [
            ("exited 0 12", JobEnd::Exited(0), Some(12)),
            ("exited 255 1", JobEnd::Exited(255), Some(1)),
            ("signal 9 5", JobEnd::Exited(137), Some(5)),
            ("timed-out 60000", JobEnd::TimedOut, Some(60_000)),
            ("halted 6000", JobEnd::Halted, Some(6_000)),
            ("exited 1 -5", JobEnd::Exited(1), None),
        ] {
            let words: Vec<&str> = note.split(' ').collect();
            assert_eq!(read_note(&words), Some((end, elapsed)), "{note}");
        }
        for note in ["", "exited", "exited 0", "exited 256 1", "exited x 1", "signal 0 1", "signal 65 1", "0"]
        {
            let words: Vec<&str> = note.split(' ').collect();
            assert_eq!(read_note(&words), None, "{note}");
        }
    }
}
