//! Files that are kept from an episode.

/// File or folder of a container that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Path in the container. Without a leading `/` it is relative to the working directory.
    pub source: String,
    /// Path among the kept files; `None` for the source's path.
    pub destination: Option<String>,
    /// Patterns of files to leave out of a folder.
    pub exclude: Vec<String>,
    /// Service of the container; `None` for the agent's.
    pub service: Option<String>,
}

impl Artifact {
    /// Returns the path among the kept files: the destination, or the source without its leading `/`.
    pub fn kept_path(&self) -> &str {
        self.destination.as_deref().unwrap_or_else(|| self.source.trim_start_matches('/'))
    }
}
