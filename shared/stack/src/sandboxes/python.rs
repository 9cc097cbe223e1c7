//! Python environments for programs in sandboxes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use tokio::process::Command;

/// Folder of the Python environments, in the data directory.
const FOLDER: &str = "python";
/// Link to the folder of the current environment.
const CURRENT: &str = "current";
/// The machine's folders of programs, which every sandbox contains.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];
/// Folders that every sandbox has for itself, so that the machine's folders at these paths aren't visible.
const SANDBOX_FOLDERS: [&str; 4] = ["/workspace", "/tmp", "/proc", "/dev"];
/// Maximum size of an environment's `pyvenv.cfg`, in bytes.
const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// `PATH` of sandboxes.
const SANDBOX_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// Maximum time to search for packages. They are only located, not imported.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(20);
/// Prints the packages that can't be found.
const FIND_MISSING_PACKAGES: &str = "import sys\nfrom importlib.util import find_spec\nprint(*[name for name in sys.argv[1:] if find_spec(name) is None])";

/// Reason why a Python environment is unusable.
#[derive(Debug, thiserror::Error)]
pub enum PythonEnvironmentError {
    /// Sandboxes can't use the folder as an environment.
    #[error("{} is not a Python environment that sandboxes can use: {why}", folder.display())]
    Unusable {
        /// Folder of the environment.
        folder: PathBuf,
        /// Problem with the environment.
        why: String,
    },
    /// The link to the environment can't be read.
    #[error("could not read the link `{}`: {source}", link.display())]
    Link {
        /// Path of the link.
        link: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// A Python environment (venv).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// Real path of its folder, without links.
    pub folder: PathBuf,
    /// Installation folder of its Python, if outside of the machine's program folders. Sandboxes need it, too.
    pub base: Option<PathBuf>,
}

/// Returns the folder of all environments of a data directory.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

/// Returns the path of the link to the current environment.
#[must_use]
pub fn current_link(data_dir: &Path) -> PathBuf {
    folder(data_dir).join(CURRENT)
}

impl PythonEnvironment {
    /// Opens the environment in a folder.
    ///
    /// # Errors
    /// Fails with [`PythonEnvironmentError::Unusable`] if sandboxes can't use the folder as an environment.
    pub fn open(folder: &Path) -> Result<Self, PythonEnvironmentError> {
        let none = |why| PythonEnvironmentError::Unusable { folder: folder.to_owned(), why };
        let real = folder.canonicalize().map_err(|error| none(error.to_string()))?;
        let config = real.join("pyvenv.cfg");
        let is_short = fs::metadata(&config).is_ok_and(|config| config.len() <= CONFIG_BYTES_MAX);
        if !is_short {
            return Err(none("it has no pyvenv.cfg".to_owned()));
        }
        let program = real.join("bin/python3");
        let program = program.canonicalize().map_err(|error| none(format!("bin/python3: {error}")))?;
        let base = if program.starts_with(&real) || SYSTEM.iter().any(|system| program.starts_with(system)) {
            None
        } else {
            // The path has the form PREFIX/bin/python3.N.
            let prefix = program.ancestors().nth(2).filter(|prefix| prefix.components().count() > 1);
            let prefix = prefix.ok_or_else(|| none(format!("its Python is {}", program.display())))?;
            Some(prefix.to_owned())
        };
        if base.iter().any(|base| SANDBOX_FOLDERS.iter().any(|theirs| base.starts_with(theirs))) {
            let why = format!(
                "its Python is {}, and sandboxes have a folder of their own there",
                program.display()
            );
            return Err(none(why));
        }
        Ok(Self { folder: real, base })
    }

    /// Returns the environment that `bench sandy setup` made, or `None` if it made none.
    ///
    /// # Errors
    /// Fails if the environment is no longer usable.
    pub fn current(data_dir: &Path) -> Result<Option<Self>, PythonEnvironmentError> {
        let link = current_link(data_dir);
        match link.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PythonEnvironmentError::Link { link, source }),
            Ok(_) => Self::open(&link).map(Some),
        }
    }
}

/// Returns the program that runs Python in sandboxes: that of `environment`, else the machine's, as sandboxes find it.
#[must_use]
pub fn sandbox_python(environment: Option<&PythonEnvironment>) -> Option<PathBuf> {
    match environment {
        Some(environment) => Some(environment.folder.join("bin/python3")),
        None => SANDBOX_PATH
            .split(':')
            .map(|folder| Path::new(folder).join("python3"))
            .find(|program| program.is_file()),
    }
}

/// Returns the packages that are missing from the Python of sandboxes: that of `environment`, else the machine's. Returns
/// all `packages` if there is no Python, and none if the search fails or times out.
pub async fn missing_packages(environment: Option<&PythonEnvironment>, packages: &[&str]) -> Vec<String> {
    let program = environment.map_or_else(|| PathBuf::from("python3"), |own| own.folder.join("bin/python3"));
    let mut look = Command::new(program);
    look.args(["-I", "-c", FIND_MISSING_PACKAGES]).args(packages).env("PATH", SANDBOX_PATH);
    look.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(SEARCH_TIMEOUT, look.output()).await {
        Ok(Ok(output)) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            packages.iter().map(|package| (*package).to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn environment(folder: &Path, program: &Path) {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        symlink(program, folder.join("bin/python3")).unwrap();
    }

    #[tokio::test]
    async fn missing_packages_are_named() {
        let place = tempfile::tempdir().unwrap();
        let own = PythonEnvironment { folder: place.path().to_owned(), base: None };
        assert_eq!(
            missing_packages(Some(&own), &["json", "numpy"]).await,
            ["json", "numpy"],
            "there is no Python"
        );
        fs::create_dir(place.path().join("bin")).unwrap();
        symlink("/usr/bin/python3", place.path().join("bin/python3")).unwrap();
        let found =
            missing_packages(Some(&own), &["json", "no_such_package_1", "sys", "no_such_package_2"]).await;
        assert_eq!(found, ["no_such_package_1", "no_such_package_2"]);
        assert_eq!(missing_packages(None, &["json", "no_such_package_1"]).await, ["no_such_package_1"]);
    }

    #[test]
    fn only_usable_environments_are_accepted() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().canonicalize().unwrap();
        assert_eq!(PythonEnvironment::current(&data).unwrap(), None);
        let folder = folder(&data).join("env-1");
        environment(&folder, Path::new("/usr/bin/env"));
        symlink("env-1", current_link(&data)).unwrap();
        let current = PythonEnvironment::current(&data).unwrap().unwrap();
        assert_eq!(current, PythonEnvironment { folder: folder.clone(), base: None });

        let error = PythonEnvironment::open(&data).unwrap_err().to_string();
        assert!(error.contains("no pyvenv.cfg"), "{error}");
        fs::remove_file(folder.join("bin/python3")).unwrap();
        assert!(PythonEnvironment::current(&data).is_err());
        fs::remove_dir_all(&folder).unwrap();
        assert!(PythonEnvironment::current(&data).is_err());

        // A Python installed below `/tmp` isn't visible in sandboxes.
        let own = tempfile::tempdir_in("/tmp").unwrap();
        fs::create_dir_all(own.path().join("py/bin")).unwrap();
        fs::write(own.path().join("py/bin/python3.12"), "").unwrap();
        let folder = data.join("another");
        environment(&folder, &own.path().join("py/bin/python3.12"));
        let error = PythonEnvironment::open(&folder).unwrap_err().to_string();
        assert!(error.contains("a folder of their own"), "{error}");
    }
}
