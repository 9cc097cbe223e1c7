//! Python programs of this machine that can make an environment.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use tokio::process::Command;

use super::packages::{MINOR_MAX, MINOR_MIN};
use crate::exit::Problem;

/// Versions of Python that an environment can have, and where to look for them.
#[derive(Debug, Clone)]
pub(super) struct Versions {
    /// Minor versions of Python 3 for which all packages have builds.
    pub(super) minors: RangeInclusive<u32>,
    /// Places to look, in this order. Every sandbox sees the machine's own Python, others only if they can be shared.
    pub(super) places: Vec<PathBuf>,
}

impl Versions {
    /// Returns those of the packages of code benchmarks.
    fn packages() -> Self {
        let places = [
            "/usr/bin/python3",
            "/usr/bin/python3.12",
            "/usr/bin/python3.11",
            "/usr/bin/python3.10",
            "python3",
            "python3.12",
        ];
        Self { minors: MINOR_MIN..=MINOR_MAX, places: places.map(PathBuf::from).to_vec() }
    }

    /// Returns the range in words.
    fn named(&self) -> String {
        format!("3.{} to 3.{}", self.minors.start(), self.minors.end())
    }
}

/// Prints the version as JSON, and whether Python can make environments.
const PROBE: &str = "import json, sys\ntry:\n    import venv, ensurepip\n    has_venv = True\nexcept ImportError:\n    has_venv = False\n\
    print(json.dumps({'major': sys.version_info[0], 'minor': sys.version_info[1], 'version': sys.version.split()[0], 'has_venv': has_venv}))";

/// Python program of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct PythonProgram {
    #[serde(skip)]
    pub(super) path: PathBuf,
    major: u32,
    minor: u32,
    pub(super) version: String,
    has_venv: bool,
}

impl PythonProgram {
    /// Returns the reason why the program can't make an environment, if any.
    fn problem(&self, versions: &Versions) -> Option<String> {
        if self.major != 3 || !versions.minors.contains(&self.minor) {
            return Some(format!(
                "{} is Python {}: the packages are built for {}",
                self.path.display(),
                self.version,
                versions.named()
            ));
        }
        (!self.has_venv).then(|| {
            let (path, minor) = (self.path.display(), self.minor);
            format!("{path} cannot make environments: install its venv module (Debian: apt install python3.{minor}-venv)")
        })
    }
}

/// Finds the Python that makes the environment: the one that was named, else the first usable one of this machine.
pub(super) async fn find_python(named: Option<&Path>) -> anyhow::Result<PythonProgram> {
    find_python_of(named, &Versions::packages()).await
}

/// Like [`find_python`], with other versions.
pub(super) async fn find_python_of(
    named: Option<&Path>,
    versions: &Versions,
) -> anyhow::Result<PythonProgram> {
    if let Some(path) = named {
        let program = inspect(path.as_os_str()).await.map_err(|why| {
            Problem::usage(format!("--program: `{}` is not a usable Python: {why}", path.display()))
        })?;
        return match program.problem(versions) {
            None => Ok(program),
            Some(problem) => Err(Problem::failure(format!("--program: {problem}")).into()),
        };
    }
    let mut problems = Vec::new();
    for place in &versions.places {
        let Ok(program) = inspect(place.as_os_str()).await else { continue };
        match program.problem(versions) {
            None => return Ok(program),
            Some(problem) if !problems.contains(&problem) => problems.push(problem),
            Some(_) => {}
        }
    }
    let why = if problems.is_empty() { "python3 is not installed".to_owned() } else { problems.join("; ") };
    Err(Problem::failure(format!("could not find a Python for the environment: {why}"))
        .hint(format!(
            "install Python {} with its venv module (Debian: apt install python3-venv), or name one with --program",
            versions.named()
        ))
        .into())
}

/// Runs a Python and reads its version.
async fn inspect(name: &OsStr) -> Result<PythonProgram, String> {
    let output =
        Command::new(name).args(["-I", "-c", PROBE]).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = output.await.map_err(|error| error.to_string())?;
    let mut program: PythonProgram =
        serde_json::from_slice(&output.stdout).map_err(|_| "it does not print its version".to_owned())?;
    program.path = PathBuf::from(name);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_python_that_has_builds_is_used() {
        let program = |major, minor, has_venv| PythonProgram {
            path: "/p".into(),
            major,
            minor,
            version: format!("{major}.{minor}.1"),
            has_venv,
        };
        let versions = Versions::packages();
        assert_eq!(program(3, 11, true).problem(&versions), None);
        for (major, minor) in [(3, 9), (3, 13), (2, 11), (4, 11)] {
            assert!(program(major, minor, true).problem(&versions).unwrap().contains("3.10 to 3.12"));
        }
        assert!(program(3, 11, false).problem(&versions).unwrap().contains("python3.11-venv"));
    }
}
