//! The Python environment that programs in sandboxes find.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use tokio::process::Command;

/// Python environments, within the data directory.
const FOLDER: &str = "python";
/// The one that is used: a link to its folder.
const CURRENT: &str = "current";
/// Folders of the machine's programs: every sandbox has them.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];
/// Folders that sandboxes have themselves: nothing of the machine's can be seen below them.
const THEIRS: [&str; 4] = ["/workspace", "/tmp", "/proc", "/dev"];
/// Bytes of the file that tells what an environment was made of.
const CONFIG_BYTES_MAX: u64 = 64 << 10;

/// Where sandboxes look for programs.
const SANDBOX_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// How long looking for packages may take: they are found, not loaded.
const LOOK_TIMEOUT: Duration = Duration::from_secs(20);
/// Says which packages cannot be found.
const LOOK: &str = "import sys\nfrom importlib.util import find_spec\nprint(*[name for name in sys.argv[1:] if find_spec(name) is None])";

/// Why a Python environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PythonEnvironmentError {
    /// It is none that sandboxes can use.
    #[error("{} is no Python environment that sandboxes can use: {why}", folder.display())]
    Unusable {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The link to it cannot be read.
    #[error("could not look at {}: {source}", link.display())]
    Link {
        /// The link.
        link: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A Python environment (venv).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// Its folder; no link.
    pub folder: PathBuf,
    /// Where its Python was installed, if not among the machine's programs: sandboxes need it, too.
    pub base: Option<PathBuf>,
}

/// The folder of all environments of a data directory.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

/// The link to the environment that is used.
#[must_use]
pub fn current_link(data_dir: &Path) -> PathBuf {
    folder(data_dir).join(CURRENT)
}

impl PythonEnvironment {
    /// The environment in this folder.
    ///
    /// # Errors
    /// [`PythonEnvironmentError::Unusable`] where it is none that a sandbox can use.
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
            // PREFIX/bin/python3.N
            let prefix = program.ancestors().nth(2).filter(|prefix| prefix.components().count() > 1);
            let prefix = prefix.ok_or_else(|| none(format!("its Python is {}", program.display())))?;
            Some(prefix.to_owned())
        };
        if base.iter().any(|base| THEIRS.iter().any(|theirs| base.starts_with(theirs))) {
            let why = format!(
                "its Python is {}, and sandboxes have a folder of their own there",
                program.display()
            );
            return Err(none(why));
        }
        Ok(Self { folder: real, base })
    }

    /// The environment that `bench sandy setup` made, if it did.
    ///
    /// # Errors
    /// When it cannot be used any more.
    pub fn current(data_dir: &Path) -> Result<Option<Self>, PythonEnvironmentError> {
        let link = current_link(data_dir);
        match link.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PythonEnvironmentError::Link { link, source }),
            Ok(_) => Self::open(&link).map(Some),
        }
    }
}

/// Which of these packages the Python that sandboxes get does not have: that of the environment, else the machine's. All
/// of them where there is no Python, none where that cannot be told.
pub async fn lacking(environment: Option<&PythonEnvironment>, packages: &[&str]) -> Vec<String> {
    let program = environment.map_or_else(|| PathBuf::from("python3"), |own| own.folder.join("bin/python3"));
    let mut look = Command::new(program);
    look.args(["-I", "-c", LOOK]).args(packages).env("PATH", SANDBOX_PATH);
    look.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(LOOK_TIMEOUT, look.output()).await {
        Ok(Ok(told)) if told.status.success() => {
            String::from_utf8_lossy(&told.stdout).split_whitespace().map(str::to_owned).collect()
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
    async fn packages_that_are_not_there_are_named() {
        let place = tempfile::tempdir().unwrap();
        let own = PythonEnvironment { folder: place.path().to_owned(), base: None };
        assert_eq!(lacking(Some(&own), &["json", "numpy"]).await, ["json", "numpy"], "there is no Python");
        fs::create_dir(place.path().join("bin")).unwrap();
        symlink("/usr/bin/python3", place.path().join("bin/python3")).unwrap();
        let found = lacking(Some(&own), &["json", "no_such_package_1", "sys", "no_such_package_2"]).await;
        assert_eq!(found, ["no_such_package_1", "no_such_package_2"]);
        assert_eq!(lacking(None, &["json", "no_such_package_1"]).await, ["no_such_package_1"]);
    }

    #[test]
    fn what_a_sandbox_can_use_is_told_from_what_it_cannot() {
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

        // An own Python below /tmp cannot be seen where it is.
        let own = tempfile::tempdir_in("/tmp").unwrap();
        fs::create_dir_all(own.path().join("py/bin")).unwrap();
        fs::write(own.path().join("py/bin/python3.12"), "").unwrap();
        let folder = data.join("another");
        environment(&folder, &own.path().join("py/bin/python3.12"));
        let error = PythonEnvironment::open(&folder).unwrap_err().to_string();
        assert!(error.contains("a folder of their own"), "{error}");
    }
}
