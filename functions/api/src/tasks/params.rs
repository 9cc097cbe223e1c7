//! Parameters of paths and queries, whose problems are reported together.

use bench_web::{ApiError, FieldError, FieldReader};
use http::Uri;

/// Maximum time that a request may wait for an episode, in seconds.
const TIMEOUT_MAX_S: u64 = 86_400;
/// Default of `timeout_seconds`.
const TIMEOUT_DEFAULT_S: u64 = 1_200;

/// Reader of the parameters of a request.
pub(crate) struct Params {
    path: FieldReader,
    pub(crate) query: FieldReader,
}

impl Params {
    /// Creates a reader of these parameters of the path, and of the query.
    pub(crate) fn new(path: &[(&str, &str)], uri: &Uri) -> Self {
        Self { path: FieldReader::from_path(path), query: FieldReader::from_query(uri) }
    }

    /// Reads an id in the path. A negative number is 0, which no id is.
    pub(crate) fn id(&mut self, name: &str) -> u64 {
        let number = self.path.maybe_signed(name).unwrap_or_default();
        u64::try_from(number).unwrap_or_default()
    }

    /// Reads `timeout_seconds`.
    pub(crate) fn timeout_seconds(&mut self) -> u64 {
        self.query.integer("timeout_seconds", TIMEOUT_DEFAULT_S, 1, TIMEOUT_MAX_S)
    }

    /// Returns all problems, those of the path first.
    pub(crate) fn into_problems(self) -> Vec<FieldError> {
        let mut problems = self.path.into_problems();
        problems.extend(self.query.into_problems());
        problems
    }

    /// Completes the reading.
    ///
    /// # Errors
    /// 422 with all problems.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let problems = self.into_problems();
        if problems.is_empty() { Ok(()) } else { Err(ApiError::validation(problems)) }
    }
}
