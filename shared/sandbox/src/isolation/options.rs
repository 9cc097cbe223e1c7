//! What a host tells its isolation.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How sandboxes are made here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationOptions {
    /// Program to run as `helper __sandbox …`; its `main` calls [`stage_main`](super::stage_main) first.
    pub helper: PathBuf,
    /// A private folder for what sandboxes need outside; made when missing. Several hosts may share one.
    pub folder: PathBuf,
    /// Folders that all sandboxes may read. The first is named by `SANDY_FILES`.
    pub shared: Vec<SharedFolder>,
    /// Folders of programs, as seen inside, that come before the system's.
    pub path_prefix: Vec<PathBuf>,
    /// Whether programs reach what this machine reaches, its own loopback addresses included. Off unless a benchmark
    /// needs it.
    pub allow_network: bool,
}

impl IsolationOptions {
    /// Options with nothing shared and no network.
    #[must_use]
    pub fn new(helper: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            helper: helper.into(),
            folder: folder.into(),
            shared: Vec::new(),
            path_prefix: Vec::new(),
            allow_network: false,
        }
    }
}

/// A folder of the machine that sandboxes may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFolder {
    /// Where it is.
    pub host: PathBuf,
    /// Where commands see it: an absolute path, not below a folder that sandboxes have themselves (`/workspace`,
    /// `/tmp`, `/proc`, `/dev`). Without namespaces they see it where it is.
    pub inside: PathBuf,
}
