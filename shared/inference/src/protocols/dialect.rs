//! Differences between the usual form of a request and the form that a server accepts.

/// Differences from the usual form in the requests to one model of one endpoint.
///
/// None of them changes what is measured: settings of sampling that a model refuses are never left out on their own, since
/// the score would state settings that were not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// `stream_options` is left out; the usage may then be unknown.
    pub omits_stream_options: bool,
    /// The limit is sent as `max_completion_tokens` instead of `max_tokens`.
    pub has_max_completion_tokens: bool,
    /// `response_format` is left out: the answer may not follow the schema.
    pub omits_reply_schema: bool,
}

impl Dialect {
    /// Number of different refusals that one request can get.
    pub(crate) const STEPS_MAX: usize = 3;
}
