//! Options of the isolation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Options for the sandboxes of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationOptions {
    /// Program to run as `helper __sandbox …`; its `main` must call [`stage_main`](super::stage_main) first.
    pub helper: PathBuf,
    /// Private folder for the host's files; created if missing. Several hosts may share one.
    pub folder: PathBuf,
    /// Folders that all sandboxes may read. `SANDY_FILES` contains the path of the first.
    pub shared: Vec<SharedFolder>,
    /// Variables of every command with paths inside the sandbox, such as those of shared folders.
    pub variables: BTreeMap<String, PathBuf>,
    /// Folders of programs that come before the system's in `PATH`, as paths inside the sandbox.
    pub path_prefix: Vec<PathBuf>,
    /// If true, programs can reach what this machine can reach, including its loopback addresses. Off unless a
    /// benchmark needs it.
    pub allow_network: bool,
}

impl IsolationOptions {
    /// Returns options without shared folders and without network.
    #[must_use]
    pub fn new(helper: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            helper: helper.into(),
            folder: folder.into(),
            shared: Vec::new(),
            variables: BTreeMap::new(),
            path_prefix: Vec::new(),
            allow_network: false,
        }
    }
}

/// A folder of the machine that sandboxes may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFolder {
    /// Path on the machine.
    pub host: PathBuf,
    /// Path inside the sandbox: absolute, and not below a folder that sandboxes have themselves (`/workspace`, `/tmp`,
    /// `/proc`, `/dev`). Without namespaces, commands see the folder at its path on the machine.
    pub inside: PathBuf,
}
