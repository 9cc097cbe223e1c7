//! Requests that the sandbox client sends as commands: Python programs with arguments, on one line for a shell.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Parameters of the jobs' programs, by which they are recognized.
const UNPACK: &str = "job, path, sha, length";
const RUN: &str = "job, limit_ms, stale_s, wait_ms, bundle, *asked";
const STOP: &str = "job, why=\"stopped\"";
const QUERY: &str = "request, workspace";
/// Name of an operation's request in its bundle.
const REQUEST_FILE: &str = "request.json";

/// A decoded command.
pub(crate) struct Request {
    /// Text that begins each line of the answer.
    pub(crate) mark: String,
    pub(crate) kind: RequestKind,
}

pub(crate) enum RequestKind {
    /// Puts uploaded files in place.
    Unpack,
    /// Starts an operation, or polls it.
    Run(RunRequest),
    /// Ends an operation.
    Stop,
    /// Asks for the facts about the engine.
    Probe,
    /// Lists what environments have on the engine.
    Leftovers,
    /// Removes an environment.
    Remove,
}

/// Request to run an operation, or to poll it.
pub(crate) struct RunRequest {
    /// Name of the operation's job.
    pub(crate) job: String,
    /// Maximum time to wait for the operation's end.
    pub(crate) wait: Duration,
    /// Names of the result files that are asked for.
    pub(crate) results: Vec<String>,
    bundle: String,
}

impl RunRequest {
    /// Returns the files that were sent, in base64.
    pub(crate) fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Reads the operation's own request from the bundle: the number of files, length and path of each, then their bytes.
    pub(crate) fn operation(&self) -> anyhow::Result<Value> {
        let bundle = STANDARD.decode(&self.bundle).context("the bundle is not base64")?;
        let mut rest = bundle.as_slice();
        let mut line = || -> anyhow::Result<String> {
            let end = memchr::memchr(b'\n', rest).context("the bundle ends early")?;
            let (line, left) = rest.split_at(end);
            rest = left.get(1..).unwrap_or_default();
            Ok(String::from_utf8(line.to_vec())?)
        };
        let count: usize = line()?.parse()?;
        let headers = (0..count).map(|_| line()).collect::<Result<Vec<_>, _>>()?;
        for header in headers {
            let (length, path) = header.split_once(' ').context("a file of the bundle has no path")?;
            let (file, left) = rest.split_at_checked(length.parse()?).context("a file ends early")?;
            if path == REQUEST_FILE {
                return Ok(serde_json::from_slice(file)?);
            }
            rest = left;
        }
        bail!("the bundle has no `{REQUEST_FILE}`")
    }
}

impl Request {
    /// Decodes a command.
    pub(crate) fn parse(command: &str) -> anyhow::Result<Self> {
        let words = shell_words(command)?;
        let code_at = words.iter().position(|word| word == "-c").context("the command is no program")? + 1;
        let (Some(code), Some(mark)) = (words.get(code_at), words.get(code_at + 1)) else {
            bail!("the command has no program, or no mark");
        };
        let arguments = words.get(code_at + 2..).unwrap_or_default();
        let kind = match parameters(code)? {
            UNPACK => RequestKind::Unpack,
            STOP => RequestKind::Stop,
            RUN => RequestKind::Run(run_request(arguments)?),
            // Each query has another field in its answer.
            QUERY if code.contains("\"host_workspace\":") => RequestKind::Probe,
            QUERY if code.contains("{\"environments\":") => RequestKind::Leftovers,
            QUERY if code.contains("{\"removed\":") => RequestKind::Remove,
            other => bail!("the scripted host has no answer to a program with `main({other})`"),
        };
        Ok(Self { mark: mark.clone(), kind })
    }
}

/// Returns the parameters of the last function `main` of a program.
fn parameters(code: &str) -> anyhow::Result<&str> {
    let (_, last) = code.rsplit_once("def main(").context("the program has no `main`")?;
    let (parameters, _) = last.split_once("):").context("`main` has no end")?;
    Ok(parameters)
}

fn run_request(arguments: &[String]) -> anyhow::Result<RunRequest> {
    let [job, _limit, _stale, wait, bundle, _room, asked @ ..] = arguments else {
        bail!("the request to run a job has {} arguments", arguments.len());
    };
    Ok(RunRequest {
        job: job.clone(),
        wait: Duration::from_millis(wait.parse()?),
        // Each name is followed by a size limit.
        results: asked.iter().step_by(2).cloned().collect(),
        bundle: bundle.clone(),
    })
}

/// Splits a command line of plain words and single quotes, as the client writes them.
fn shell_words(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let mut word = String::new();
        loop {
            let end = rest.find(['\'', '\\', ' ']).unwrap_or(rest.len());
            let (plain, left) = rest.split_at(end);
            word.push_str(plain);
            rest = left;
            if let Some(quoted) = rest.strip_prefix('\'') {
                let (text, left) = quoted.split_once('\'').context("a quote has no end")?;
                word.push_str(text);
                rest = left;
            } else if let Some(escaped) = rest.strip_prefix('\\') {
                ensure!(escaped.starts_with('\''), "an escaped character is no quote");
                word.push('\'');
                rest = escaped.get(1..).unwrap_or_default();
            } else {
                rest = rest.strip_prefix(' ').unwrap_or_default();
                break;
            }
        }
        words.push(word);
    }
    Ok(words)
}
