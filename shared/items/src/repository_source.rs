//! Files of a repository on GitHub that hold the items of a dataset.

/// Files that hold the items of a dataset that no hub has. Their digests are pinned, so that the items are always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepositorySource {
    /// Repository on GitHub, as `OWNER/NAME`.
    pub repository: &'static str,
    /// Commit or tag.
    pub revision: &'static str,
    /// Files, in the order in which [`Layout::repository_rows`](crate::Layout::repository_rows) gets them.
    pub files: &'static [PinnedFile],
}

/// File with a pinned digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path within the repository.
    pub path: &'static str,
    /// SHA-256 of the file, lowercase hex.
    pub sha256: &'static str,
}
