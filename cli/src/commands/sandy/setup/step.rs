//! Programs that setup runs, with their progress and their errors.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use bench_code_tasks::PackageManager;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::exit::{Problem, last_line};
use crate::output;

/// Maximum number of bytes of a program's error output to keep.
const ERROR_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of characters of a line from pip if the terminal width is unknown.
const LINE_CHARS_MAX: usize = 100;
const INDENT: &str = "  ";
/// Runs a module as `python -m` does, and has the kernel end it with its parent process: nothing else would if the
/// parent is killed. On systems without `prctl`, the module runs without this.
const RUN_MODULE: &str = "import runpy, sys\ntry:\n    import ctypes\n    ctypes.CDLL(None).prctl(1, 9)\n\
    except Exception:\n    pass\ndel sys.argv[0]\nrunpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";
/// Builds a command for a Python module that ends with this process.
pub(super) fn python_module(python: &Path, module: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-I", "-c", RUN_MODULE, module]);
    command
}

/// Process group of a program and its children. Dropping it kills them all.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Disarms the group after the program ended: its id may soon belong to other processes.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails if no process is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Shortens a line to the maximum length at a word boundary, with an ellipsis.
fn truncate(line: &str, chars_max: usize) -> String {
    if line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    let is_between = line.get(kept.len()..).is_some_and(|rest| rest.starts_with(' '));
    let words = if is_between {
        kept.as_str()
    } else {
        kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words)
    };
    format!("{}…", words.trim_end_matches([' ', ',']))
}

/// Runs a program to its end and shows its progress.
pub(super) async fn run_step(command: Command, failure: &str) -> anyhow::Result<()> {
    run_to_end(command, failure).await?.map_err(|text| summarize(failure, &text).into())
}

/// Runs a package manager's client to its end and shows its progress.
pub(super) async fn run_client(
    command: Command,
    failure: &str,
    manager: PackageManager,
) -> anyhow::Result<()> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    match run_to_end(command, failure).await {
        Ok(done) => done.map_err(|text| client_problem(failure, manager, &text).into()),
        Err(error) if is_missing(&error) => {
            Err(Problem::failure(format!("{failure}: this machine has no {program}"))
                .hint(format!("install {program}, and run this again"))
                .into())
        }
        Err(error) => Err(error),
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
}

/// Summarizes the error output of a package manager in one sentence.
fn client_problem(failure: &str, manager: PackageManager, error_output: &str) -> Problem {
    if manager == PackageManager::Pip {
        return summarize(failure, error_output);
    }
    const UNREACHABLE: [&str; 10] = [
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ETIMEDOUT",
        "Could not resolve host",
        "Couldn't resolve host",
        "Could not connect to server",
        "Couldn't connect to server",
        "dial tcp",
    ];
    if UNREACHABLE.iter().any(|part| error_output.contains(part)) {
        let index = match manager {
            PackageManager::Go => "the module proxy",
            _ => "the registry",
        };
        return Problem::failure(format!("{failure}: {index} cannot be reached")).hint(format!(
            "connect to the network, or name one that can be reached in the settings of {manager}"
        ));
    }
    // The cause comes last, but for npm, which names its log there.
    let lines = error_output.lines().map(|line| line.strip_prefix("npm error").unwrap_or(line).trim());
    let lines: Vec<&str> = lines
        .filter(|line| {
            !line.is_empty() && !line.starts_with("code ") && !line.contains("complete log of this run")
        })
        .collect();
    let cause = match manager {
        PackageManager::Npm => lines.first(),
        _ => lines.last(),
    };
    let cause: String = cause.copied().unwrap_or("it printed no reason").chars().take(300).collect();
    Problem::failure(format!("{failure}: {cause}"))
}

/// Runs a program to its end and shows its progress. Returns the error output of one that failed.
async fn run_to_end(mut command: Command, failure: &str) -> anyhow::Result<Result<(), String>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Only this process receives Ctrl-C. It then ends the other program and its children.
    command.process_group(0);
    // The caller's Python settings must not affect this Python.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env_remove("VIRTUAL_ENV");
    let mut child = command.spawn().with_context(|| failure.to_owned())?;
    let group = ProcessGroup::new(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let chars_max = output::error_width().map_or(LINE_CHARS_MAX, usize::from).saturating_sub(INDENT.len());
    let progress = async {
        let mut other = String::new();
        let Some(stdout) = stdout else { return other };
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if ["Collecting ", "Downloading ", "Installing "]
                .iter()
                .any(|start| line.trim().starts_with(start))
            {
                output::note(&format!("{INDENT}{}", truncate(line.trim(), chars_max)));
            } else if other.len() < LINE_CHARS_MAX * 10 {
                other = format!("{other}{line}\n");
            }
        }
        other
    };
    let errors = async {
        let mut kept = Vec::new();
        let Some(mut stderr) = stderr else { return kept };
        // Error output that can't be read is dropped. The exit code is reported in any case.
        let _ = (&mut stderr).take(ERROR_BYTES_MAX).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        kept
    };
    let (status, other, error_output) = tokio::join!(child.wait(), progress, errors);
    group.disarm();
    if status.with_context(|| failure.to_owned())?.success() {
        return Ok(Ok(()));
    }
    let error_output = String::from_utf8_lossy(&error_output);
    Ok(Err(if error_output.trim().is_empty() { other } else { error_output.into_owned() }))
}

/// Summarizes the error output of pip or Python in one sentence.
pub(super) fn summarize(failure: &str, error_output: &str) -> Problem {
    let unreachable = [
        "NewConnectionError",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "Connection refused",
        "ProxyError",
        "ConnectTimeoutError",
        "Read timed out",
        "SSLError",
    ];
    if unreachable.iter().any(|part| error_output.contains(part)) {
        return Problem::failure(format!("{failure}: the package index cannot be reached"))
            .hint("connect to the network, or set PIP_INDEX_URL to an index that can be reached");
    }
    if error_output.contains("(from versions: none)") {
        return Problem::failure(format!("{failure}: the package index has none, or cannot be reached"))
            .hint("connect to the network, or set PIP_INDEX_URL to an index that can be reached");
    }
    if error_output.contains("No matching distribution found") {
        let line = error_output.lines().find(|line| line.contains("No matching distribution found"));
        let line = line.unwrap_or_default().trim().trim_start_matches("ERROR: ");
        return Problem::failure(format!("{failure}: {line}")).hint(
            "the package index has no build of it for this Python and machine; another Python may have one",
        );
    }
    if error_output.contains("No module named pip") {
        return Problem::failure(format!("{failure}: there is no pip"))
            .hint("install it (Debian: apt install python3-venv), or name another Python with --program");
    }
    if error_output.contains("No space left on device") {
        return Problem::failure(format!("{failure}: the disk is full"))
            .hint("the packages take about 500 MiB");
    }
    let last: String = last_line(error_output).unwrap_or("it printed no reason").chars().take(300).collect();
    Problem::failure(format!("{failure}: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_output_becomes_one_sentence() {
        let failure = "the packages could not be installed";
        for (error_output, part) in [
            (
                "WARNING: Retrying… NewConnectionError('<pip…>: Failed to establish')\nERROR: No matching distribution found for numpy==1.26.4",
                "cannot be reached",
            ),
            (
                "ERROR: Could not find a version\nERROR: No matching distribution found for numpy==1.26.4\n",
                "No matching distribution found for numpy==1.26.4",
            ),
            ("/x/python3: No module named pip", "there is no pip"),
            ("OSError: [Errno 28] No space left on device", "disk is full"),
            ("a\nb: broken\n\n", "b: broken"),
            ("", "it printed no reason"),
        ] {
            let text = summarize(failure, error_output).to_string();
            assert!(text.starts_with(failure) && text.contains(part) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn output_of_package_managers_becomes_one_sentence() {
        let failure = "it failed";
        for (manager, error_output, expected) in [
            (
                PackageManager::Npm,
                "npm error code ENOTFOUND\nnpm error network request failed",
                "it failed: the registry cannot be reached",
            ),
            (
                PackageManager::Go,
                "go: x@v1: Get \"https://proxy.example\": dial tcp: lookup failed",
                "it failed: the module proxy cannot be reached",
            ),
            (
                PackageManager::Npm,
                "npm error code EUSAGE\nnpm error\nnpm error `npm ci` needs a lock\nnpm error A complete log of this run is in: /x",
                "it failed: `npm ci` needs a lock",
            ),
            (
                PackageManager::Cargo,
                "    Updating index\nerror: checksum mismatch\n",
                "it failed: error: checksum mismatch",
            ),
            (PackageManager::Cargo, "\n", "it failed: it printed no reason"),
            (
                PackageManager::Pip,
                "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
                "it failed: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
            ),
        ] {
            assert_eq!(client_problem(failure, manager, error_output).to_string(), expected);
        }
    }

    #[test]
    fn lines_are_cut_between_words() {
        let line = "Installing collected packages: mpmath, numpy, packaging";
        assert_eq!(truncate(line, 100), line);
        assert_eq!(truncate(line, line.len()), line);
        assert_eq!(truncate(line, line.len() - 1), "Installing collected packages: mpmath, numpy…");
        assert_eq!(truncate("one two three", 8), "one two…");
        assert_eq!(truncate("one two three", 7), "one…");
        assert_eq!(truncate("ééééé", 3), "éé…");
        assert_eq!(truncate("x y", 0), "…");
    }

    #[tokio::test]
    async fn modules_run_as_programs() {
        let mut module = python_module(Path::new("python3"), "json.tool");
        let done = module.arg("--help").output().await.unwrap();
        assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("infile"));
        let missing = python_module(Path::new("python3"), "no_such_module").output().await.unwrap();
        assert!(String::from_utf8_lossy(&missing.stderr).contains("No module named no_such_module"));
    }
}
