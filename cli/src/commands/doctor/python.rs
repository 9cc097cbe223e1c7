//! Checks of the Python that sandboxes use and of the packages that graders need.

use std::collections::BTreeSet;
use std::time::Duration;

use bench_sandbox::isolation::{Exec, Isolation, IsolationError, Limits, Output};
use bench_stack::sandboxes::python::{PythonEnvironment, PythonEnvironmentError};

use super::finding::{Check, Finding, with_timeout};
use crate::commands::sandy::setup;
use crate::exit::{last_line, sentence};

/// Maximum time for Python to print its version.
const LOOK_LIMIT: Duration = Duration::from_secs(15);
/// Maximum time to import and use the packages.
const TRY_LIMIT: Duration = Duration::from_secs(30);
/// Extra time to create and remove the sandbox.
const SPARE: Duration = Duration::from_secs(10);
/// Prints the version and the packages that can't be found. Contains no quotation mark that a shell would interpret.
const LOOK: &str = "import sys; from importlib.util import find_spec; print(sys.version.split()[0], \
                    *[name for name in sys.argv[1:] if find_spec(name) is None])";
/// Exit code of a shell for an unknown command.
const NOT_FOUND: i32 = 127;

fn python_check() -> Check {
    Check::new("python", "Python in sandboxes")
}

/// Reports that a sandbox service brings its own Python.
pub(super) fn in_service() -> Finding {
    python_check().skipped("the sandbox service has its own")
}

/// Reports that Python was not tried, because no sandbox could be created.
pub(super) fn not_tried() -> Finding {
    python_check().skipped("there is no sandbox to run it in")
}

pub(super) async fn check(
    isolation: &dyn Isolation,
    limits: &Limits,
    environment: Result<Option<PythonEnvironment>, PythonEnvironmentError>,
) -> Finding {
    let check = python_check();
    let is_own = match environment {
        Ok(environment) => environment.is_some(),
        Err(error) => {
            let fix =
                "`bench sandy setup` makes one; BENCH_SANDBOX_PYTHON must name a Python environment (venv)";
            return check.problem(error.to_string(), fix);
        }
    };
    let packages: BTreeSet<&str> = graders().flat_map(|(_, packages)| packages).copied().collect();
    let look = format!("python3 -I -c \"{LOOK}\" {}", packages.into_iter().collect::<Vec<_>>().join(" "));
    let busy = "try again when the machine is less busy";
    let output =
        match with_timeout(LOOK_LIMIT + SPARE, run(isolation, limits, setup::in_sandbox(look, LOOK_LIMIT)))
            .await
        {
            None => return check.problem("a sandbox took too long", busy),
            Some(Err(error)) => return check.problem(error.to_string(), busy),
            Some(Ok(output)) => output,
        };
    let (version, missing) = match (output.exit_code, parse(&output.stdout)) {
        (Some(0), Some(found)) => found,
        (Some(NOT_FOUND), _) => {
            let fix =
                "install Python 3 (Debian: apt install python3 python3-venv), then run `bench sandy setup`";
            return check.not_set_up(format!("python3 is not installed; {} need it", names(|_| true)), fix);
        }
        (None, _) => return check.problem("python3 takes too long to start", busy),
        _ => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let reason = last_line(&stderr).unwrap_or("it prints no reason");
            return check.problem(format!("python3 doesn't work: {reason}"), "install Python 3 again");
        }
    };
    if !missing.is_empty() {
        let affected =
            names(|packages| packages.iter().any(|package| missing.iter().any(|it| it == package)));
        let fact = format!("Python {version} without {}, which {affected} needs", missing.join(", "));
        return check.not_set_up(fact, setup_fix(is_own).await);
    }
    match with_timeout(TRY_LIMIT + SPARE, run(isolation, limits, setup::package_check(TRY_LIMIT))).await {
        Some(Ok(Output { exit_code: Some(0), .. })) => {
            check.ok(format!("Python {version} with all packages"))
        }
        Some(Ok(Output { exit_code: Some(_), stderr, .. })) => {
            let stderr = String::from_utf8_lossy(&stderr);
            let reason = last_line(&stderr).unwrap_or("they print no reason");
            let fact = format!("Python {version}, whose packages don't work: {reason}");
            check.problem(fact, "run `bench sandy setup --again`")
        }
        Some(Err(error)) => check.problem(error.to_string(), busy),
        Some(Ok(Output { exit_code: None, .. })) | None => {
            check.warning(format!("Python {version}, whose packages load slowly"), busy)
        }
    }
}

/// Explains how to install missing packages, and what `bench sandy setup` lacks on this machine.
async fn setup_fix(is_own: bool) -> String {
    let again = if is_own { " --again" } else { "" };
    match with_timeout(LOOK_LIMIT, setup::missing_prerequisite()).await.flatten() {
        None => format!("run `bench sandy setup{again}`"),
        Some(error) => {
            format!("run `bench sandy setup{again}` after installing a Python for it: {}", sentence(&error))
        }
    }
}

/// Lists the benchmarks that run programs, with the Python packages that each needs.
fn graders() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    bench_benchmarks::all()
        .iter()
        .filter_map(|benchmark| Some((benchmark.name(), benchmark.sandbox()?.metadata().packages)))
}

fn names(affected: impl Fn(&[&str]) -> bool) -> String {
    graders().filter(|(_, packages)| affected(packages)).map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// Parses the version and the missing packages.
fn parse(stdout: &[u8]) -> Option<(String, Vec<String>)> {
    let text = String::from_utf8_lossy(stdout);
    let mut words = text.split_whitespace().map(str::to_owned);
    let version = words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some((version, words.collect()))
}

/// Runs a command in a sandbox of its own.
pub(super) async fn run(
    isolation: &dyn Isolation,
    limits: &Limits,
    exec: Exec,
) -> Result<Output, IsolationError> {
    let sandbox = isolation.create(limits).await?;
    let output = sandbox.exec(&exec).await;
    sandbox.end().await;
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_missing_packages_are_read() {
        let parse = |text: &str| parse(text.as_bytes());
        assert_eq!(parse("3.13.5\n"), Some(("3.13.5".into(), vec![])));
        assert_eq!(
            parse("3.12.1 numpy h5py\n"),
            Some(("3.12.1".into(), vec!["numpy".into(), "h5py".into()]))
        );
        assert_eq!(parse("Traceback"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn benchmarks_are_named_by_what_they_need() {
        assert_eq!(names(|_| true), "livecodebench, scicode, code_lab");
        assert_eq!(names(|packages| packages.contains(&"numpy")), "scicode");
        assert!(!LOOK.contains(['"', '$', '`']));
    }
}
