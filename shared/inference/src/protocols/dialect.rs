//! Differences between the usual form of a request and the form that a server accepts.

/// Differences from the usual form in the requests to one model of one endpoint.
///
/// Sampling settings that the model refuses are left out, so the answers are not generated with the run's settings.
/// Reports of settings should therefore include the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// `stream_options` is left out; the usage may then be unknown.
    pub omits_stream_options: bool,
    /// The limit is sent as `max_completion_tokens` instead of `max_tokens`.
    pub has_max_completion_tokens: bool,
    /// `temperature` is left out.
    pub omits_temperature: bool,
    /// `top_p` is left out.
    pub omits_top_p: bool,
    /// `seed` is left out.
    pub omits_seed: bool,
    /// `response_format` is left out: the answer may not follow the schema.
    pub omits_reply_schema: bool,
}

impl Dialect {
    /// Number of different refusals that one request can get.
    pub(crate) const STEPS_MAX: usize = 6;
}
