//! Errors of dataset preparation.

use std::fmt;

use bench_blobs::BlobError;

/// Reasons for which a dataset can't be prepared.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The dataset is gated: its authors require users to accept their terms first.
    #[error(
        "`{dataset}` is gated: accept its terms at {terms_url}, then {}",
        if *.token_given { "use a token of the account that did (HF_TOKEN)" } else { "set HF_TOKEN to a token of that account" }
    )]
    Gated {
        /// Id at the hub.
        dataset: String,
        /// Address of the page on which users accept the terms.
        terms_url: String,
        /// True if a token was sent; its account hasn't accepted the terms then.
        token_given: bool,
    },
    /// The hub doesn't accept the token.
    #[error("the hub at {hub} rejects the token in HF_TOKEN: {problem}")]
    TokenRefused {
        /// Address of the hub.
        hub: String,
        /// The hub's message.
        problem: String,
    },
    /// The hub could not be reached, or gave no valid response within the retry limits.
    #[error("the hub at {hub} could not be reached: {problem}")]
    Unreachable {
        /// Address of the hub.
        hub: String,
        /// Outcome of the last attempt.
        problem: String,
    },
    /// The hub has no such dataset, revision or file.
    #[error("`{dataset}` was not found at the hub: {problem}")]
    NotFound {
        /// Id at the hub.
        dataset: String,
        /// The part that is missing.
        problem: String,
    },
    /// The hub refused a request, and repeating it wouldn't help.
    #[error("the hub refused a request for `{dataset}`: {problem}")]
    Refused {
        /// Id at the hub.
        dataset: String,
        /// Status of the response, if it was the reason.
        status: Option<u16>,
        /// The hub's message.
        problem: String,
    },
    /// A download differs from what the hub announced.
    #[error("the download of `{file}` is damaged: {problem}")]
    Checksum {
        /// Name of the file.
        file: String,
        /// Description of the difference.
        problem: String,
    },
    /// A file or a dataset exceeds its size limit.
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The file or dataset.
        what: String,
        /// Limit in bytes.
        limit_bytes: u64,
    },
    /// A file has invalid content.
    #[error("{0}")]
    Content(ContentError),
    /// The path doesn't exist, or holds no dataset.
    #[error("{path}: {problem}")]
    Path {
        /// The path as given.
        path: String,
        /// Description of the problem.
        problem: String,
    },
    /// The local dataset was never imported, or has been removed.
    #[error("no local dataset of {benchmark} has revision {revision}; give its file with --dataset again")]
    NotImported {
        /// The benchmark.
        benchmark: String,
        /// Requested revision.
        revision: String,
    },
    /// An official text that a plan was made with is no longer in the blob store.
    #[error("the official text `{name}` with SHA-256 {sha256} is no longer stored")]
    TemplateGone {
        /// Name of the text in the benchmark's layout.
        name: String,
        /// SHA-256 of the text, lowercase hex.
        sha256: String,
    },
    /// The cache folder can't be used.
    #[error("could not {verb} {path}: {source}")]
    Disk {
        /// Operation that failed, as a verb.
        verb: &'static str,
        /// File or folder.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// A thread ended without a result.
    #[error("reading a dataset was interrupted: {0}")]
    Interrupted(String),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// An invalid part of a file, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentError {
    /// Name of the file.
    pub file: String,
    /// Number of the row, or of the line of a text file, counted from 1.
    pub row: Option<u64>,
    /// Name of the column.
    pub column: Option<String>,
    /// Description of the problem.
    pub problem: String,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(row) = self.row {
            write!(f, ", row {row}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column `{column}`")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl DatasetError {
    pub(crate) fn content(
        file: &str,
        row: impl Into<Option<u64>>,
        column: Option<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::Content(ContentError {
            file: file.to_owned(),
            row: row.into(),
            column,
            problem: problem.into(),
        })
    }

    pub(crate) fn disk(verb: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Disk { verb, path: path.display().to_string(), source }
    }

    pub(crate) fn not_found(dataset: &str, problem: impl Into<String>) -> Self {
        Self::NotFound { dataset: dataset.to_owned(), problem: problem.into() }
    }
}
