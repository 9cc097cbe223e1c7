//! Durable operations: work in the sandbox that is done once, however often it is asked for.

use std::time::Duration;

use bench_domain::{FileContent, HarvestedFile, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use bench_sandy::job::{self, JobName, JobStatus, NoFiles, RUN_BYTES_MAX, RunStatus, UploadProgress};
use serde_json::Value;

use crate::host::JOB_MEMORY_BYTES;
use crate::outcome::read_outcome;
use crate::{EngineHost, Environment, EnvironmentError, Limit, OperationName};

/// Time that an operation may take beyond its own limit: for the engine to start what it runs, to end that, and to write the
/// result.
const OPERATION_MARGIN: Duration = Duration::from_secs(90);
/// Maximum size of an operation's result, in bytes of JSON.
const RESULT_BYTES_MAX: u64 = 32 << 20;
const RESULT: &str = "result.json";
const SCRIPT: &str = "exec python3 -I -S -X utf8 program.py";

/// Progress of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<T> {
    /// Its files are being uploaded: repeat the call.
    Uploading,
    /// It is running: repeat the call after a wait.
    Running,
    /// It has succeeded.
    Done(T),
}

/// An operation of an environment. Implemented by the types of this crate only.
pub trait Operation: sealed::Program + Sync {
    /// Result of the operation.
    type Output;

    #[doc(hidden)]
    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<Self::Output, EnvironmentError>;
}

/// Result files of an operation besides its outcome.
#[doc(hidden)]
#[derive(Debug)]
pub struct OperationResult<'a> {
    pub(crate) operation: &'a str,
    pub(crate) report: &'a JobReport,
}

impl OperationResult<'_> {
    pub(crate) fn unexpected(&self) -> EnvironmentError {
        EnvironmentError::UnexpectedResult { operation: self.operation.to_owned() }
    }

    /// Returns the text of a result file.
    pub(crate) fn text(&self, path: &str) -> Result<&str, EnvironmentError> {
        self.report.text(path).ok_or_else(|| self.unexpected())
    }

    /// Parses the outcome.
    pub(crate) fn parse<T: serde::de::DeserializeOwned>(&self, done: Value) -> Result<T, EnvironmentError> {
        serde_json::from_value(done).map_err(|_| self.unexpected())
    }
}

pub(crate) mod sealed {
    use super::*;

    /// The program of an operation.
    pub trait Program {
        /// Source text of the program.
        fn program(&self) -> &'static str;
        /// The program's request.
        fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError>;
        /// Time limit of the operation's work.
        fn time_limit(&self) -> Duration;
        /// Further files.
        fn files(&self) -> Result<Vec<JobFile>, EnvironmentError> {
            Ok(Vec::new())
        }
        /// Further results.
        fn results(&self) -> Vec<ResultFile> {
            Vec::new()
        }
    }
}

impl EngineHost<'_> {
    /// Starts an operation, unless it was started before, waits up to `wait` (30 s) until it ends, and returns its result.
    /// Usually takes one call to the sandbox host.
    ///
    /// # Errors
    /// The error that ended the operation, again for every repeated call; or one of the call itself (see
    /// [`EnvironmentError::kind`]).
    pub async fn advance<S: Operation>(
        &self,
        environment: &Environment,
        name: &OperationName,
        operation: &S,
        wait: Duration,
    ) -> Result<Progress<S::Output>, EnvironmentError> {
        let spec = spec(environment, operation)?;
        let job = environment.name.job(name)?;
        let status = match is_small(&spec) {
            true => job::run(self.sandy, self.sandbox, &job, &spec, wait).await?,
            false => match self.upload_and_start(&job, &spec).await? {
                Some(status) => status,
                None => return Ok(Progress::Uploading),
            },
        };
        match status {
            RunStatus::Running => Ok(Progress::Running),
            RunStatus::Over(report) => {
                let outcome = outcome(name.as_str(), &report)?;
                operation
                    .read(outcome, &OperationResult { operation: name.as_str(), report: &report })
                    .map(Progress::Done)
            }
        }
    }

    /// Does the same in several calls, for an operation with large files; `None` while they are being uploaded.
    async fn upload_and_start(
        &self,
        job: &JobName,
        spec: &JobSpec,
    ) -> Result<Option<RunStatus>, EnvironmentError> {
        let (sandy, sandbox) = (self.sandy, self.sandbox);
        match job::upload(sandy, sandbox, job, spec, &NoFiles).await? {
            UploadProgress::Underway { .. } => return Ok(None),
            UploadProgress::Ready => job::start(sandy, sandbox, job, spec).await?,
        }
        match job::look(sandy, sandbox, job).await?.once_started() {
            JobStatus::Over(end) => {
                Ok(Some(RunStatus::Over(job::harvest(sandy, sandbox, job, spec, end).await?)))
            }
            JobStatus::NotStarted | JobStatus::Running { .. } => Ok(Some(RunStatus::Running)),
        }
    }
}

fn spec<S: Operation>(environment: &Environment, operation: &S) -> Result<JobSpec, EnvironmentError> {
    let request = operation.request(environment)?.to_string();
    let text = |path: &str, text: &str| JobFile {
        path: path.to_owned(),
        content: FileContent::Bytes(text.as_bytes().to_vec()),
    };
    let mut files = vec![text("program.py", operation.program()), text("request.json", &request)];
    files.extend(operation.files()?);
    let mut results = vec![ResultFile { path: RESULT.to_owned(), bytes_max: RESULT_BYTES_MAX }];
    results.extend(operation.results());
    Ok(JobSpec {
        files,
        script: SCRIPT.to_owned(),
        time_limit: operation.time_limit().saturating_add(OPERATION_MARGIN),
        memory_bytes: JOB_MEMORY_BYTES,
        probe: None,
        needs_landlock: false,
        results,
    })
}

/// Returns true if a job fits into one call. Allows for the lengths of paths and numbers.
fn is_small(spec: &JobSpec) -> bool {
    let bytes = spec.files.iter().map(|file| match &file.content {
        FileContent::Bytes(bytes) => bytes.len() + file.path.len() + 32,
        FileContent::Stored(_) => usize::MAX / 2,
    });
    bytes.fold(spec.script.len() + 64, usize::saturating_add) <= RUN_BYTES_MAX
}

/// Returns what the operation's program wrote, or the error that ended it.
fn outcome(operation: &str, report: &JobReport) -> Result<Value, EnvironmentError> {
    let ended_by = |limit: Limit| EnvironmentError::LimitExceeded {
        limit,
        why: format!("operation `{operation}` was ended"),
        log: report.stderr_tail.clone(),
    };
    match (report.files.get(RESULT), report.end) {
        (Some(HarvestedFile::Text(text)), _) => read_outcome(operation, text.as_bytes()),
        (_, JobEnd::TimedOut) => Err(ended_by(Limit::OperationTime)),
        (_, JobEnd::OverLimit) => Err(ended_by(Limit::Sandbox)),
        _ => Err(EnvironmentError::Vanished { operation: operation.to_owned() }),
    }
}
