#![doc = include_str!("step/README.md")]

use std::time::Duration;

use bench_domain::{FileContent, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Version of the official package.
pub const PACKAGE_VERSION: &str = "1.0.1";
/// Name of the variable with the folder of the official package in a sandbox.
pub const PACKAGE_VARIABLE: &str = "SANDY_TAU2";
/// File in that folder that describes the package. Only a complete folder has it.
pub const PACKAGE_MARKER: &str = "bench-tau2.json";
/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

const REQUEST: &str = "request.json";
const RESPONSE: &str = "response.json";
/// Maximum size of a response. The largest are the texts and tools of a task, and the results of many calls.
const RESPONSE_BYTES_MAX: u64 = 8 << 20;
/// Memory of a step: Python with the package needs about 200 MiB.
const MEMORY_BYTES: u64 = 1 << 30;
/// Maximum time of a step. One takes about a second, and more when the package is loaded from a slow disk.
const TIME_LIMIT: Duration = Duration::from_secs(180);

const FILES: [(&str, &str); 3] = [
    ("step.py", include_str!("step/step.py")),
    ("telecom.py", include_str!("step/telecom.py")),
    ("demo.py", include_str!("step/demo.py")),
];

/// Set of tools, texts and tasks of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDomain {
    /// Official domain.
    Telecom,
    /// Small domain of ours, for demo data and tests.
    Demo,
}

impl StepDomain {
    /// Returns the name in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Telecom => "telecom",
            Self::Demo => "demo",
        }
    }

    /// Returns the version of the official package that the domain needs, if any.
    #[must_use]
    pub const fn package(self) -> Option<&'static str> {
        match self {
            Self::Telecom => Some(PACKAGE_VERSION),
            Self::Demo => None,
        }
    }
}

/// Returns the files of the script.
#[must_use]
pub fn files() -> Vec<JobFile> {
    FILES.iter().map(|(path, text)| file(path, text)).collect()
}

/// Returns the command that runs the script in the folder of a job.
#[must_use]
pub fn script(domain: StepDomain) -> String {
    match domain {
        StepDomain::Demo => "exec python3 -I -B step.py\n".to_owned(),
        StepDomain::Telecom => format!("exec \"${PACKAGE_VARIABLE}/bin/python3\" -I -B step.py\n"),
    }
}

/// Returns the command that checks whether a sandbox has what the script needs, and prints what is missing.
#[must_use]
pub fn probe(domain: StepDomain) -> String {
    match domain {
        StepDomain::Demo => "python3 -I -S -c 'import sys; sys.version_info < (3, 10) and sys.exit(print(\"the sandbox has Python \" + sys.version.split()[0] + \": 3.10 or later is needed\") or 1)'".to_owned(),
        StepDomain::Telecom => format!(
            "marker=\"${PACKAGE_VARIABLE}/{PACKAGE_MARKER}\"\n\
             [ -n \"${PACKAGE_VARIABLE}\" ] && [ -f \"$marker\" ] || {{ echo \"the sandbox has no tau2 package; run bench sandy setup tau2 on the sandbox host\"; exit 1; }}\n\
             grep -q '\"version\": *\"{}\"' \"$marker\" || {{ echo \"the sandbox has $(grep -o '\"version\": *\"[^\"]*\"' \"$marker\" | cut -d '\"' -f 4) of the tau2 package, and {PACKAGE_VERSION} is needed; run bench sandy setup tau2 on the sandbox host\"; exit 1; }}",
            PACKAGE_VERSION.replace('.', "\\.")
        ),
    }
}

/// Returns the job of a step. `request` has `op` and the further fields of the operation.
#[must_use]
pub fn job(domain: StepDomain, mut request: Map<String, Value>) -> JobSpec {
    request.insert("version".to_owned(), PROTOCOL.into());
    request.insert("domain".to_owned(), domain.name().into());
    request.insert("package".to_owned(), domain.package().into());
    let mut files = files();
    files.push(file(REQUEST, &Value::Object(request).to_string()));
    JobSpec {
        files,
        script: script(domain),
        time_limit: TIME_LIMIT,
        memory_bytes: MEMORY_BYTES,
        probe: Some(probe(domain)),
        needs_landlock: false,
        results: vec![ResultFile { path: RESPONSE.to_owned(), bytes_max: RESPONSE_BYTES_MAX }],
    }
}

fn file(path: &str, text: &str) -> JobFile {
    JobFile { path: path.to_owned(), content: FileContent::Bytes(text.as_bytes().to_vec()) }
}

/// Reason why a step has no result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct StepProblem {
    /// Kind, as in the protocol, or `no-response`.
    pub kind: String,
    /// One sentence.
    pub message: String,
}

/// Reads the response of a step's job.
///
/// # Errors
/// Fails with the response's error, or if there's no response.
pub fn response(report: &JobReport) -> Result<Map<String, Value>, StepProblem> {
    let none = |message: String| StepProblem { kind: "no-response".to_owned(), message };
    let Some(text) = report.text(RESPONSE) else {
        let end = match report.end {
            JobEnd::TimedOut => "took too long".to_owned(),
            JobEnd::OverLimit => "used more than a sandbox has".to_owned(),
            JobEnd::Exited(code) => format!("exited with {code}"),
            JobEnd::Vanished | JobEnd::Halted => "was killed".to_owned(),
        };
        let last = report.stderr_tail.trim().lines().last().unwrap_or("no output");
        return Err(none(format!("the step script {end} without a response: {last}")));
    };
    let mut response: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| none(format!("the step script's response can't be read: {error}")))?;
    match response.remove("error") {
        None => Ok(response),
        Some(error) => Err(serde_json::from_value(error)
            .unwrap_or_else(|error| none(format!("the step script's error can't be read: {error}")))),
    }
}

#[cfg(test)]
mod tests;
