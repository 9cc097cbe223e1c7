//! Official files of single items.

/// Official files that each item has, such as the programs that run and read its tests. They are loaded for the items of a
/// run, before any of them is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfficialFiles {
    /// Repository on GitHub, as `OWNER/NAME`.
    pub repository: &'static str,
    /// Commit to which they are pinned.
    pub commit: &'static str,
    /// Files of an item.
    pub files: &'static [OfficialFile],
    /// Files of the demo items.
    pub demo: &'static [DemoFile],
}

/// An official file that each item has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfficialFile {
    /// Name within the item.
    pub name: &'static str,
    /// Path within the repository, in which `{id}` stands for the item's own id. Local folders with the dataset have the same
    /// layout.
    pub path: &'static str,
}

impl OfficialFile {
    /// Returns the path of an item's file.
    pub fn path_for(&self, id: &str) -> String {
        self.path.replace("{id}", id)
    }
}

/// File of a demo item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoFile {
    /// The item's own id.
    pub id: &'static str,
    /// Name within the item.
    pub name: &'static str,
    /// Content.
    pub text: &'static str,
}
