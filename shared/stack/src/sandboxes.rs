//! Sandboxes of this machine, for `bench sandy` and the stack: shared folders and limits.

mod engine;
pub mod packages;
pub mod python;
pub mod speed;
pub mod tau2;
pub mod toolchains;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use bench_benchmarks::code_lab::PACKAGES_VARIABLE;
use bench_benchmarks::tau_bench_telecom::step::PACKAGE_VARIABLE;
use bench_embedded::{EmbeddedError, secure_data_dir};
use bench_sandbox::host::{ApiKey, HostConfig, SandboxHost, unavailable_isolation};
use bench_sandbox::isolation::{Isolation, IsolationError, IsolationOptions, SharedFolder, probe};

pub use self::engine::EngineSettings;
use self::python::{PythonEnvironment, PythonEnvironmentError};
pub use bench_engine::{EngineReport, ProbeError};

/// Folder in the data directory for large files that jobs need, each named by its SHA-256.
pub const FILES: &str = "sandbox-files";
/// Folder in the data directory for state of the sandboxes.
const STATE: &str = "sandboxes";
/// Path of the large files inside sandboxes.
const FILES_INSIDE: &str = "/opt/sandbox-files";
/// Path of the Python environment inside sandboxes.
const PYTHON_INSIDE: &str = "/opt/sandbox-python";
/// Maximum number of slots.
pub const SLOTS_MAX: u64 = 1_000;
/// Maximum memory and disk space of a sandbox, in MiB.
pub const MIB_MAX: u64 = 1 << 20;
/// Minimum memory of a sandbox, in MiB. With less, programs don't start.
pub const MEMORY_MIB_MIN: u64 = 16;

/// Reason why sandboxes can't be created with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SandboxesError {
    /// A variable is invalid.
    #[error("{name} is a whole number from {min} to {max}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Minimum value.
        min: u64,
        /// Maximum value.
        max: u64,
    },
    /// The engine isn't named by its address.
    #[error("BENCH_SANDBOX_ENGINE is `auto`, `none` or an address, `unix:///path/to/socket`")]
    Engine,
    /// The path of this program's own file is unknown.
    #[error("could not find this program's own file: {0}")]
    Helper(io::Error),
    /// The Python environment is unusable.
    #[error(transparent)]
    Python(#[from] PythonEnvironmentError),
    /// The data directory is unusable.
    #[error(transparent)]
    DataDir(#[from] EmbeddedError),
    /// A folder in the data directory is unusable.
    #[error("could not use {}: {source}", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// This machine allows no safe kind of sandbox.
    #[error(transparent)]
    Isolation(#[from] IsolationError),
}

/// Settings for sandboxes on this machine.
///
/// | variable | default | meaning |
/// | --- | --- | --- |
/// | `BENCH_SANDBOX_SLOTS` | number of processors | maximum number of sandboxes that work at once |
/// | `BENCH_SANDBOX_MEMORY_MIB` | 4096 | maximum memory of each sandbox; SciCode needs the default |
/// | `BENCH_SANDBOX_DISK_MIB` | 1024 | disk space of each sandbox's working folder |
/// | `BENCH_SANDBOX_PYTHON` | the environment from `bench sandy setup` | Python environment for programs in sandboxes |
///
/// [`EngineSettings`] has further ones.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Data directory.
    pub data_dir: PathBuf,
    /// Program to run as a helper: `bench` itself.
    pub helper: PathBuf,
    /// Maximum number of sandboxes that work at once.
    pub slots: Option<u64>,
    /// Memory of each sandbox, in MiB.
    pub memory_mib: Option<u64>,
    /// Disk space of each sandbox's working folder, in MiB.
    pub disk_mib: Option<u64>,
    /// Python environment for programs in sandboxes, if one was named.
    pub python: Option<PathBuf>,
    /// True if programs may use the network.
    pub allow_network: bool,
    /// Container engine for sandboxes that ask for one.
    pub engine: EngineSettings,
}

impl SandboxSettings {
    /// Reads the settings from variables.
    ///
    /// # Errors
    /// Fails with one sentence that names the invalid variable.
    pub fn from_vars(
        data_dir: &Path,
        helper: Option<PathBuf>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SandboxesError> {
        let number = |name, min, max| {
            let Some(text) = var(name) else { return Ok(None) };
            let number = text.trim().parse().ok().filter(|number| (min..=max).contains(number));
            number.map(Some).ok_or(SandboxesError::Variable { name, min, max })
        };
        Ok(Self {
            data_dir: data_dir.to_owned(),
            helper: helper.map_or_else(Self::own_helper, Ok)?,
            slots: number("BENCH_SANDBOX_SLOTS", 1, SLOTS_MAX)?,
            memory_mib: number("BENCH_SANDBOX_MEMORY_MIB", MEMORY_MIB_MIN, MIB_MAX)?,
            disk_mib: number("BENCH_SANDBOX_DISK_MIB", 1, MIB_MAX)?,
            python: var("BENCH_SANDBOX_PYTHON").map(PathBuf::from),
            allow_network: false,
            engine: EngineSettings::from_vars(&var)?,
        })
    }

    /// Returns the path of this program.
    ///
    /// # Errors
    /// Fails if the system doesn't give the path.
    pub fn own_helper() -> Result<PathBuf, SandboxesError> {
        std::env::current_exe().map_err(SandboxesError::Helper)
    }

    /// Returns the Python environment for sandboxes.
    ///
    /// # Errors
    /// Fails if the environment that was named is unusable.
    pub fn python(&self) -> Result<Option<PythonEnvironment>, PythonEnvironmentError> {
        match &self.python {
            Some(folder) => PythonEnvironment::open(folder).map(Some),
            None => PythonEnvironment::current(&self.data_dir),
        }
    }

    /// Returns the strongest isolation that this machine allows. Tries it out, which takes a moment and blocks.
    ///
    /// # Errors
    /// Fails with [`SandboxesError::Isolation`] if this machine allows no safe kind of sandbox, or with another error
    /// if a folder or the Python environment is unusable.
    pub fn isolation(&self) -> Result<Arc<dyn Isolation>, SandboxesError> {
        secure_data_dir(&self.data_dir)?;
        let files = shared_folder(self.data_dir.join(FILES))?;
        let packages = shared_folder(packages::folder(&self.data_dir))?;
        let mut options = IsolationOptions::new(&self.helper, self.state_folder());
        // `SANDY_FILES` names the first shared folder.
        options.shared.push(SharedFolder { host: files, inside: PathBuf::from(FILES_INSIDE) });
        let inside = PathBuf::from(packages::INSIDE);
        options.variables.insert(PACKAGES_VARIABLE.to_owned(), inside.clone());
        options.shared.push(SharedFolder { host: packages, inside });
        if let Some(python) = self.python()? {
            let inside = PathBuf::from(PYTHON_INSIDE);
            options.path_prefix.push(inside.join("bin"));
            share_python(&mut options, python, inside);
        }
        match tau2::environment(&self.data_dir) {
            Ok(Some(tau2)) => {
                let inside = PathBuf::from(tau2::INSIDE);
                options.variables.insert(PACKAGE_VARIABLE.to_owned(), inside.clone());
                share_python(&mut options, tau2, inside);
            }
            Ok(None) => {}
            // Only conversations need it. Their steps say what is missing.
            Err(error) => tracing::warn!(%error, "Sandboxes have no tau2 package: {error}"),
        }
        for toolchain in toolchains::current(&self.data_dir) {
            options.path_prefix.push(toolchain.programs);
            options.shared.push(toolchain.folder);
        }
        options.allow_network = self.allow_network;
        let isolation = probe(&options)?;
        if isolation.form().name != "namespaces" && rustix::process::geteuid().is_root() {
            // Without namespaces, sandboxes see these folders at their paths on the machine, but only if another user
            // may enter them.
            let closed = options.shared.iter().filter_map(|shared| inaccessible_folder(&shared.host));
            for folder in closed.collect::<BTreeSet<_>>() {
                tracing::warn!(
                    "Sandboxes may not enter {0}, hence find no files and packages below it: run `chmod o+x {0}`, or \
                     use another data directory",
                    folder.display()
                );
            }
        }
        Ok(isolation)
    }

    /// Returns the folder of the host's state, from the root: engines take a relative path of a mount for a volume's name.
    fn state_folder(&self) -> PathBuf {
        // Without a current folder, nothing relative can be opened either.
        std::path::absolute(&self.data_dir).unwrap_or_else(|_| self.data_dir.clone()).join(STATE)
    }

    /// Returns the configuration of the host.
    #[must_use]
    pub fn config(&self, key: Option<ApiKey>) -> HostConfig {
        let slots = self.slots.and_then(|slots| usize::try_from(slots).ok());
        let mut config = slots.map_or_else(HostConfig::default, HostConfig::with_slots);
        if let Some(mib) = self.memory_mib {
            config.limits.memory_bytes = mib << 20;
        }
        if let Some(mib) = self.disk_mib {
            config.limits.disk_bytes = mib << 20;
        }
        config.disk_folder.clone_from(&self.data_dir);
        config.engine = self.engine.config(&self.state_folder(), self.allow_network);
        config.key = key;
        config
    }

    /// Creates a host that always responds: if this machine allows no sandboxes, each response explains why. Blocks
    /// like [`SandboxSettings::isolation`]; must be called within a Tokio runtime.
    pub fn host(&self, key: ApiKey) -> Arc<SandboxHost> {
        let isolation = self.isolation().unwrap_or_else(|error| {
            tracing::warn!(%error, "No code can be run on this machine: {error}");
            let reason = match error {
                SandboxesError::Isolation(reason) => reason,
                error => IsolationError::Unsafe(error.to_string()),
            };
            unavailable_isolation(&reason)
        });
        let form = isolation.form();
        tracing::info!(form.name, form.lacks = ?form.lacks, "Sandboxes of this machine: {}", form.name);
        SandboxHost::new(isolation, self.config(Some(key)))
    }
}

/// Creates a folder if it's missing, and lets all users read it, since programs in sandboxes run as another user.
///
/// # Errors
/// Fails if it can't be created, or its mode can't be changed.
pub fn create_shared_folder(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o055 == 0o055 {
        return Ok(());
    }
    // The caller's umask took these bits.
    fs::set_permissions(folder, fs::Permissions::from_mode((mode | 0o055) & 0o7777))
}

/// Shares a Python environment, and the installation of its Python once.
fn share_python(options: &mut IsolationOptions, python: PythonEnvironment, inside: PathBuf) {
    options.shared.push(SharedFolder { host: python.folder, inside });
    let base = python.base.filter(|base| options.shared.iter().all(|shared| shared.inside != *base));
    options.shared.extend(base.map(|base| SharedFolder { host: base.clone(), inside: base }));
}

/// Creates a shared folder if it's missing, and returns its real path.
fn shared_folder(folder: PathBuf) -> Result<PathBuf, SandboxesError> {
    create_shared_folder(&folder)
        .and_then(|()| folder.canonicalize())
        .map_err(|source| SandboxesError::Folder { folder, source })
}

/// Returns the first folder on the path that other users may not enter.
fn inaccessible_folder(path: &Path) -> Option<PathBuf> {
    let is_closed =
        |folder: &&Path| fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o001 == 0);
    path.ancestors().collect::<Vec<_>>().into_iter().rev().find(is_closed).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_may_not_enter_is_found() {
        let place = tempfile::tempdir().unwrap();
        let open = place.path().join("open");
        fs::create_dir(&open).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&open, 0o755);
        set(place.path(), 0o700);
        assert_eq!(inaccessible_folder(&open).as_deref(), Some(place.path()));
        set(place.path(), 0o711);
        assert_eq!(inaccessible_folder(&open), None);
    }

    #[test]
    fn shared_folders_can_be_read_by_all_users() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("packages");
        let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        create_shared_folder(&folder).unwrap();
        // As a umask of 077 would leave it.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(shared_folder(folder.clone()).unwrap(), folder.canonicalize().unwrap());
        assert_eq!(mode(), 0o755);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).unwrap();
        create_shared_folder(&folder).unwrap();
        assert_eq!(mode(), 0o755);
    }

    #[test]
    fn engines_get_paths_from_the_root() {
        let settings =
            SandboxSettings::from_vars(Path::new("a"), Some("/bin/bench".into()), |_| None).unwrap();
        let folder = settings.config(None).engine.unwrap().folder;
        assert!(folder.starts_with(std::env::current_dir().unwrap().join("a")), "{}", folder.display());
    }

    #[test]
    fn variables_that_cannot_be_used_are_named() {
        let read = |name: &'static str, value: &'static str| {
            let var = move |variable: &str| (variable == name).then(|| value.to_owned());
            SandboxSettings::from_vars(Path::new("/data"), Some("/bin/bench".into()), var)
        };
        let settings = read("BENCH_SANDBOX_SLOTS", " 3 ").unwrap();
        assert_eq!((settings.slots, settings.config(None).slots), (Some(3), 3));
        let config = read("BENCH_SANDBOX_MEMORY_MIB", "512").unwrap().config(None);
        assert_eq!((config.limits.memory_bytes, config.limits.disk_bytes), (512 << 20, 1 << 30));
        for (name, bad) in [
            ("BENCH_SANDBOX_SLOTS", "0"),
            ("BENCH_SANDBOX_SLOTS", "many"),
            ("BENCH_SANDBOX_MEMORY_MIB", "-1"),
            ("BENCH_SANDBOX_MEMORY_MIB", "15"),
            ("BENCH_SANDBOX_DISK_MIB", "99999999999999999999"),
        ] {
            assert!(read(name, bad).unwrap_err().to_string().starts_with(name), "{name} {bad}");
        }
    }
}
