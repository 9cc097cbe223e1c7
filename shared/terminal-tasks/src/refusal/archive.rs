//! Problems of archives and of the paths in them.

use super::Quoted;

/// Advice about a file that is too large for a task with an image.
pub(crate) const FILE_TO_IMAGE: &str = "make it smaller, or let the task's image provide it";
/// Advice about files that are too large for a task with an image.
pub(crate) const FILES_TO_IMAGE: &str = "leave out files that its image can provide";

/// Reason for which an archive can't be read safely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// The bytes aren't a ZIP archive.
    #[error("this is not a ZIP archive; pack the folder with `zip -r NAME.zip FOLDER`")]
    NotZip,
    /// The archive could not be read; this says nothing about its content.
    #[error("the archive could not be read: {cause}; upload it again")]
    Unreadable {
        /// Failure of the reader.
        cause: String,
    },
    /// Headers, compressed data or checksums are damaged.
    #[error("the archive is damaged: {cause}; pack the folder again")]
    Damaged {
        /// Part that is damaged.
        cause: String,
    },
    /// The archive uses ZIP64, several disks, or another unsupported feature.
    #[error("the archive uses {feature}, which is not supported; pack the folder again without it")]
    UnsupportedFeature {
        /// Feature of the format.
        feature: &'static str,
    },
    /// An entry uses a method other than stored and deflate.
    #[error("the entry is compressed with {method}; only stored and deflated entries are supported")]
    UnsupportedCompression {
        /// Compression method.
        method: String,
    },
    /// An entry is encrypted.
    #[error("the entry is encrypted; pack the folder without a password")]
    Encrypted,
    /// The archive is too large.
    #[error(
        "the archive has more than {bytes_max} bytes; leave out files that the task can download or generate"
    )]
    ArchiveTooLarge {
        /// Limit in bytes.
        bytes_max: u64,
    },
    /// The archive has too many entries.
    #[error("there are more than {entries_max} files and folders; pack many small files into one archive")]
    TooManyEntries {
        /// Limit on the number of entries.
        entries_max: usize,
    },
    /// A file is too large.
    #[error("the file has more than {bytes_max} bytes; {advice}")]
    FileTooLarge {
        /// Limit in bytes.
        bytes_max: u64,
        /// Advice to the task's author.
        advice: &'static str,
    },
    /// All files together are too large.
    #[error("the task has more than {bytes_max} bytes; {advice}")]
    TaskTooLarge {
        /// Limit in bytes.
        bytes_max: u64,
        /// Advice to the task's author.
        advice: &'static str,
    },
    /// A file grows too much when it is decompressed.
    #[error("the file grows more than {ratio_max} times when decompressed; let the task generate such data")]
    RatioTooHigh {
        /// Limit on the ratio.
        ratio_max: u64,
    },
    /// A path isn't valid UTF-8.
    #[error("the name of an entry is not valid UTF-8; rename the file")]
    NameNotUtf8,
    /// A path is absolute, leaves the folder, or contains characters that paths must not have.
    #[error("the path {reason}; use a path inside the folder")]
    UnsafePath {
        /// Property of the path that makes it unsafe.
        reason: &'static str,
    },
    /// A path is too long or too deep.
    #[error("the path has more than {path_bytes_max} bytes or {depth_max} folders; shorten it")]
    PathTooLong {
        /// Limit on the length of a path, in bytes.
        path_bytes_max: usize,
        /// Limit on the number of components.
        depth_max: usize,
    },
    /// Two entries have the same path.
    #[error("the path occurs twice; keep one of the two files")]
    DuplicatePath,
    /// Two paths differ only in case or in the Unicode form of their characters.
    #[error("the path differs from {} only in case or Unicode form; rename one of them", Quoted(other))]
    PathCollision {
        /// The other path.
        other: String,
    },
    /// A path is a file and also the folder of another file.
    #[error("the path is both a file and a folder; rename one of them")]
    FileIsFolder,
    /// An entry is a link, a device or another kind of special file.
    #[error("this is a {kind}; replace it by a regular file")]
    NotARegularFile {
        /// Kind of entry.
        kind: &'static str,
    },
}

impl ArchiveProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotZip => "not_zip",
            Self::Unreadable { .. } => "archive_unreadable",
            Self::Damaged { .. } => "archive_damaged",
            Self::UnsupportedFeature { .. } => "unsupported_archive_feature",
            Self::UnsupportedCompression { .. } => "unsupported_compression",
            Self::Encrypted => "archive_encrypted",
            Self::ArchiveTooLarge { .. } => "archive_too_large",
            Self::TooManyEntries { .. } => "too_many_entries",
            Self::FileTooLarge { .. } => "file_too_large",
            Self::TaskTooLarge { .. } => "task_too_large",
            Self::RatioTooHigh { .. } => "ratio_too_high",
            Self::NameNotUtf8 => "name_not_utf8",
            Self::UnsafePath { .. } => "unsafe_path",
            Self::PathTooLong { .. } => "path_too_long",
            Self::DuplicatePath => "duplicate_path",
            Self::PathCollision { .. } => "path_collision",
            Self::FileIsFolder => "file_is_folder",
            Self::NotARegularFile { .. } => "not_a_regular_file",
        }
    }
}
