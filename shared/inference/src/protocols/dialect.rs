//! Differences between the usual form of a request and what a server understands.

/// Differences of the requests to one model of one endpoint from the usual form.
///
/// A sampling setting that the model refuses altogether is left out, so the answers are not made with the
/// run's settings: reports of settings should include the dialect.
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
    /// `response_format` is left out: nothing binds the answer to a schema.
    pub omits_reply_schema: bool,
}

impl Dialect {
    /// Number of different refusals that one request can meet.
    pub(crate) const STEPS_MAX: usize = 6;
}
