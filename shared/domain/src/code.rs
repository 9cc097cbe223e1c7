//! Stable codes of errors: programs act on codes, sentences are for people and may change.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// Declares [`Code`] from one list: variant, name, and the HTTP status of a response with the code.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal $(, $status:literal)?;)+) => {
        /// Stable code of an error: of a response, a run, a benchmark of a run, or a sample without a grade.
        ///
        /// The meaning of a code never changes. `docs/codes.md` lists all codes with advice on what to do about them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the table in `docs/codes.md`.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name in JSON, tables and exports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the meaning in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }

            /// Returns the HTTP status of a response with this code, except for the responses of
            /// [`UnusualStatus`](crate::UnusualStatus). `None` for causes that only runs, benchmarks and samples have.
            pub const fn status(self) -> Option<u16> {
                let status: &[u16] = match self {
                    $(Self::$variant => &[$($status)?],)+
                };
                status.first().copied()
            }
        }
    };
}

codes! {
    // Requests in general

    /// A field of the body, a parameter of the query or a header is missing or not what it should be.
    InvalidRequest = "invalid_request", 422;
    /// The body is not JSON.
    InvalidJson = "invalid_json", 422;
    /// The body is not a multipart form, or a damaged one.
    InvalidForm = "invalid_form", 400;
    /// The path is not valid UTF-8 after decoding.
    InvalidPath = "invalid_path", 400;
    /// The body ended before its announced length.
    IncompleteBody = "incomplete_body", 400;
    /// The body did not arrive in time.
    BodyTimeout = "body_timeout", 408;
    /// The body or the file is larger than the server takes.
    BodyTooLarge = "body_too_large", 413;
    /// The request has too many header fields, or too large ones.
    HeadersTooLarge = "headers_too_large", 431;
    /// The server has nothing at this path.
    RouteNotFound = "route_not_found", 404;
    /// The path exists, but not for this method.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The request's `Host` or `Origin` is not this machine, which is all that a local server answers.
    HostNotAllowed = "host_not_allowed", 403;
    /// Pages of this origin may not use the API from a browser.
    OriginNotAllowed = "origin_not_allowed", 400;
    /// The request lacks the key, access token or admin secret that it needs.
    MissingCredentials = "missing_credentials", 401;
    /// The `Authorization`, `X-Judge-Authorization` or `X-User-Authorization` header is malformed.
    InvalidCredentials = "invalid_credentials", 401;
    /// The key is in the query string, where this server takes none.
    KeyInQuery = "key_in_query", 400;
    /// The admin secret is wrong.
    InvalidAdminSecret = "invalid_admin_secret", 401;
    /// The access token is unknown, was revoked or has expired.
    InvalidAccessToken = "invalid_access_token", 401;
    /// The run or schedule belongs to another caller.
    NotOwner = "not_owner", 403;
    /// The request changes something on behalf of a signed-in user, and may come from another site's page.
    CrossSiteRequest = "cross_site_request", 403;
    /// Too many wrong admin secrets, keys that a provider refused, or sign-ins came from this address.
    TooManyAttempts = "too_many_attempts", 429;
    /// Another caller changed the same thing at the same time.
    ConcurrentChange = "concurrent_change", 409;
    /// The session of a signed-in user was ended, is over, or is no longer accepted by the sign-in provider.
    SessionInvalid = "session_invalid", 401;
    /// The session pays for open runs, which the sign-out would end.
    RunsOpen = "runs_open", 409;
    /// The server has no sign-in.
    SignInNotConfigured = "sign_in_not_configured", 501;
    /// This server or this machine can't do that.
    NotSupported = "not_supported", 501;
    /// The operator has stopped new orders for now.
    Maintenance = "maintenance", 503;
    /// The server has as many connections or requests of this kind as it can handle.
    ServerBusy = "server_busy", 503;
    /// The server failed; its log has the cause.
    InternalError = "internal_error", 500;

    // Orders

    /// The order names no known benchmark.
    NoBenchmarks = "no_benchmarks", 400;
    /// There is no benchmark of this name.
    BenchmarkNotFound = "benchmark_not_found", 404;
    /// The benchmark has no protocol of this name.
    ProtocolNotFound = "protocol_not_found", 404;
    /// Settings were given for a benchmark that is not part of the order.
    BenchmarkNotOrdered = "benchmark_not_ordered", 422;
    /// The provider is unknown or not enabled.
    UnsupportedProvider = "unsupported_provider", 400;
    /// The model's name can't be parsed, or names another provider than the order.
    InvalidModel = "invalid_model", 400;
    /// Neither the catalog nor the provider has this model.
    ModelNotFound = "model_not_found", 404;
    /// The provider's address or key is missing or unusable in this server's settings, or its address isn't the run's.
    ProviderNotConfigured = "provider_not_configured", 400;
    /// The provider refuses the key, or the key may not use this model.
    InvalidKey = "invalid_key", 403;
    /// The provider accepts any key, so that this key confirms no caller.
    KeyNotConfirmable = "key_not_confirmable", 403;
    /// The access policy takes no such orders from this caller.
    OrderNotAllowed = "order_not_allowed", 403;
    /// The session of the signed-in user may not call models on the user's account.
    ScopeMissing = "scope_missing", 403;
    /// The dataset is gated, and this caller may not order what reveals it.
    GatedBenchmark = "gated_benchmark", 403;
    /// Too many orders came in this minute.
    OrderRateLimit = "order_rate_limit", 429;
    /// As many runs are open as this caller or this server may have.
    OpenRunsLimit = "open_runs_limit", 429;
    /// The order has more samples than this server takes in one.
    SamplesLimit = "samples_limit", 422;
    /// A budget in dollars needs the price of the model or of the judge, which is not known.
    PriceUnknown = "price_unknown", 400;
    /// The new budget is spent already.
    BudgetTooSmall = "budget_too_small", 400;
    /// A benchmark of the order is judged by a model, and none was named.
    JudgeMissing = "judge_missing", 400;
    /// The run uses a key of the caller, which must be sent again.
    KeyRequired = "key_required", 400;
    /// The judge needs a key of the caller.
    JudgeKeyRequired = "judge_key_required", 400;
    /// The user model needs a key of the caller.
    UserKeyRequired = "user_key_required", 400;
    /// This `Idempotency-Key` was used for another order.
    IdempotencyKeyReused = "idempotency_key_reused", 422;

    // Runs, schedules and related resources

    /// There is no such run, or it was deleted.
    RunNotFound = "run_not_found", 404;
    /// The run that this request builds on was deleted, and its answers with it.
    RunDeleted = "run_deleted", 409;
    /// The run must be over first.
    RunNotOver = "run_not_over", 400;
    /// The run can't be canceled: it is over, or there is none.
    RunNotCancelable = "run_not_cancelable", 400;
    /// The run can't be requeued: it is neither failed nor canceled, or there is none.
    RunNotRequeueable = "run_not_requeueable", 400;
    /// No sample of the run ended with an infrastructure-error, or the chosen sample is missing or was graded.
    NothingToRequeue = "nothing_to_requeue", 400;
    /// The run has no answers that a judge could judge again.
    NothingToJudge = "nothing_to_judge", 400;
    /// The run has no such benchmark.
    BenchmarkNotInRun = "benchmark_not_in_run", 404;
    /// The benchmark has no index of its items: it isn't over, or was closed by an older version.
    NoItemIndex = "no_item_index", 404;
    /// The runs have no benchmark in common.
    NothingToCompare = "nothing_to_compare", 400;
    /// The runs have more samples than can be compared in one request.
    ComparisonTooLarge = "comparison_too_large", 400;
    /// There is no such schedule.
    ScheduleNotFound = "schedule_not_found", 404;
    /// The schedule is switched off.
    ScheduleDisabled = "schedule_disabled", 400;
    /// The caller has a schedule of this name already.
    ScheduleNameTaken = "schedule_name_taken", 409;
    /// As many schedules exist as this caller or this server may have.
    SchedulesLimit = "schedules_limit", 409;
    /// There is no such access entry.
    AccessEntryNotFound = "access_entry_not_found", 404;
    /// The name or the key is listed already.
    AccessEntryExists = "access_entry_exists", 409;
    /// As many access entries exist as the server keeps.
    AccessEntriesLimit = "access_entries_limit", 409;
    /// The server's signing key is missing or unusable.
    SigningKeyInvalid = "signing_key_invalid", 503;
    /// This server takes files in the request itself, not by upload.
    UploadsNotOffered = "uploads_not_offered", 404;
    /// There is no such upload, or it has expired or belongs to another caller.
    UploadNotFound = "upload_not_found", 404;
    /// Too many uploads were begun in this minute.
    UploadRateLimit = "upload_rate_limit", 429;
    /// The archive is not a terminal task that this system can run.
    TaskRefused = "task_refused", 400;
    /// There is no such terminal task, or it belongs to another caller.
    TaskNotFound = "task_not_found", 404;
    /// The task or the episode was started already.
    TaskStarted = "task_started", 400;
    /// The task must be over first.
    TaskNotOver = "task_not_over", 400;
    /// An open run has episodes of this task and of others.
    TaskInUse = "task_in_use", 409;
    /// This version has no such agent.
    AgentNotSupported = "agent_not_supported", 400;
    /// The archive is not a custom agent.
    AgentRefused = "agent_refused", 400;
    /// There is no such custom agent, or it belongs to another caller.
    AgentNotFound = "agent_not_found", 404;
    /// An open run or a schedule needs the custom agent.
    AgentInUse = "agent_in_use", 409;
    /// The episode has no log of this name.
    LogNotFound = "log_not_found", 404;
    /// The run has no such sample.
    SampleNotFound = "sample_not_found", 404;
    /// There is no such sandbox, or it was ended.
    SandboxNotFound = "sandbox_not_found", 404;
    /// The sandbox was ended because its programs exceeded a limit.
    SandboxOverLimit = "sandbox_over_limit", 404;
    /// The file can't be written because of another file or folder in the sandbox.
    FileConflict = "file_conflict", 409;
    /// The sandbox service's response doesn't match its API.
    SandboxBadResponse = "sandbox_bad_response", 502;

    // Benchmarks and datasets of a run

    /// The dataset is gated at the hub, and the server has no token that may read it.
    DatasetGated = "dataset_gated";
    /// The dataset or its official texts aren't available: not found, unreachable, damaged or not imported.
    DatasetUnavailable = "dataset_unavailable", 400;
    /// The dataset has none, or more than one, of the items that the order names.
    ItemNotFound = "item_not_found";
    /// The dataset lacks rows that prompts need, such as few-shot examples.
    DatasetRowsMissing = "dataset_rows_missing";
    /// No item is left after the order's subset and options, or the stored responses fit none.
    NoItems = "no_items";
    /// The plan could not be made before the message ran out of deliveries.
    PlanFailed = "plan_failed";
    /// The run's results could not be put together before the message ran out of deliveries.
    FinishFailed = "finish_failed";
    /// The benchmarks failed; each has its own code.
    BenchmarksFailed = "benchmarks_failed";
    /// Too few samples of the benchmark were graded for a score.
    TooFewGraded = "too_few_graded";
    /// The run ended before this benchmark or this sample was over.
    RunEnded = "run_ended";
    /// The budget of the run was reached.
    BudgetReached = "budget_reached";
    /// The provider refused the first samples of the run with the same error.
    AllRequestsRejected = "all_requests_rejected";
    /// As many samples of the run ended as infrastructure-error or too-long as its order allows (`max_failures`).
    TooManyFailures = "too_many_failures";

    // Samples: the provider of the model

    /// The provider kept asking to wait.
    RateLimited = "rate_limited";
    /// No connection to the provider, or it broke off.
    ProviderUnreachable = "provider_unreachable", 503;
    /// The provider failed: a 5xx, an incomplete answer, or a response that is not an answer.
    ProviderError = "provider_error";
    /// The provider sent nothing for too long.
    ProviderTimeout = "provider_timeout";
    /// The account at the provider lacks money or quota.
    QuotaExhausted = "quota_exhausted";
    /// The provider rejects the request; it would reject it again.
    RequestRejected = "request_rejected";
    /// The provider's policy holds the prompt or the answer back.
    ContentFiltered = "content_filtered";
    /// The prompt does not fit the model's context.
    ContextTooLong = "context_too_long";
    /// The answer was not complete within the sample's time limit.
    AnswerTimeout = "answer_timeout";
    /// The answer is larger than what is kept.
    AnswerTooLarge = "answer_too_large";
    /// The model doesn't accept images.
    ImagesUnsupported = "images_unsupported";

    // Samples: judge, sandbox, and the item itself

    /// The judge's provider kept asking to wait.
    JudgeRateLimited = "judge_rate_limited";
    /// The judge could not be asked: its provider is unreachable, too slow or failed.
    JudgeUnavailable = "judge_unavailable";
    /// The judge's provider refuses the key or the account, or does not have the model.
    JudgeNotUsable = "judge_not_usable";
    /// The judge's provider rejects the request; it would reject it again.
    JudgeRequestRejected = "judge_request_rejected";
    /// The judge replied as often as its protocol allows, each time without a verdict.
    JudgeNoVerdict = "judge_no_verdict";
    /// Every attempt at judging ended without a result, as when the process ends each time; the answer is kept.
    JudgeAttemptsLost = "judge_attempts_lost";
    /// The sandbox service could not be reached, or had no room for too long.
    SandboxUnavailable = "sandbox_unavailable", 503;
    /// The sandbox service or its key is not configured, or refused.
    SandboxNotConfigured = "sandbox_not_configured";
    /// The sandboxes of this machine lack Python or packages that the job needs.
    SandboxSetupNeeded = "sandbox_setup_needed";
    /// The sandboxes don't keep programs apart as the grader needs it.
    SandboxNotIsolated = "sandbox_not_isolated";
    /// The job failed in several sandboxes, or its sandboxes were lost.
    SandboxFailed = "sandbox_failed";
    /// The job ran in as many sandboxes as the benchmark allows, each time without a verdict.
    SandboxNoVerdict = "sandbox_no_verdict";
    /// The item can't be asked or graded: its data are incomplete or contradictory.
    InvalidItem = "invalid_item";
    /// The stored responses have none for this sample.
    NoStoredResponse = "no_stored_response";
    /// The earlier run has no answer for this sample, or its record, stored answer or reply is gone.
    StoredDataMissing = "stored_data_missing";
    /// Every attempt ended without a result, as when the process ends each time.
    AttemptsLost = "attempts_lost";
}

impl Code {
    /// Returns the code with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// Returns the code for the same failure of the judge's provider, if `self` is a failure of the model's provider.
    #[must_use]
    pub const fn for_judge(self) -> Self {
        match self {
            Self::RateLimited => Self::JudgeRateLimited,
            Self::ProviderUnreachable | Self::ProviderError | Self::ProviderTimeout | Self::AnswerTimeout => {
                Self::JudgeUnavailable
            }
            Self::InvalidKey
            | Self::ModelNotFound
            | Self::QuotaExhausted
            | Self::ProviderNotConfigured
            | Self::UnsupportedProvider => Self::JudgeNotUsable,
            Self::RequestRejected
            | Self::ContentFiltered
            | Self::ContextTooLong
            | Self::AnswerTooLarge
            | Self::ImagesUnsupported => Self::JudgeRequestRejected,
            Self::KeyRequired => Self::JudgeKeyRequired,
            Self::AttemptsLost => Self::JudgeAttemptsLost,
            other => other,
        }
    }

    /// Returns true if the code is about judging: the model's answer is stored and isn't requested again.
    pub const fn is_about_judge(self) -> bool {
        matches!(
            self,
            Self::JudgeRateLimited
                | Self::JudgeUnavailable
                | Self::JudgeNotUsable
                | Self::JudgeRequestRejected
                | Self::JudgeNoVerdict
                | Self::JudgeAttemptsLost
                | Self::JudgeKeyRequired
        )
    }

    /// Returns true if another attempt at the same run would end the same way, because the cause is the item or the
    /// order.
    pub const fn is_permanent(self) -> bool {
        matches!(
            self,
            Self::InvalidItem
                | Self::TaskRefused
                | Self::NoStoredResponse
                | Self::ItemNotFound
                | Self::DatasetRowsMissing
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Deserializes an optional code of a record or a response. Codes of newer versions become `None`.
///
/// # Errors
/// If the value is neither a string nor null.
pub fn deserialize_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Code>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.as_deref().and_then(Code::from_name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_snake_case_and_the_serialized_ones() {
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(Code::from_name(code.as_str()), Some(*code));
            assert!(code.status().is_none_or(|status| (400..600).contains(&status)), "{code}");
        }
    }

    #[test]
    fn the_documented_table_is_this_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/codes.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
            .map(|row| row.split(" | ").collect())
            .collect();
        let described: Vec<(&str, &str, &str)> = rows
            .iter()
            .map(|row| {
                assert!(row.len() == 4 && row[3].len() > 5, "what to do is missing: {row:?}");
                (row[0].trim_end_matches('`'), row[1], row[2])
            })
            .collect();
        let status = |code: &Code| code.status().map_or_else(String::new, |status| status.to_string());
        let statuses: Vec<String> = Code::ALL.iter().map(status).collect();
        let listed = Code::ALL.iter().zip(&statuses);
        let expected: Vec<(&str, &str, &str)> =
            listed.map(|(code, status)| (code.as_str(), status.as_str(), code.meaning())).collect();
        assert_eq!(described, expected);
    }

    #[test]
    fn a_code_of_a_newer_program_is_none() {
        #[derive(Deserialize)]
        struct Record {
            #[serde(default, deserialize_with = "deserialize_known")]
            code: Option<Code>,
        }
        let read = |text| serde_json::from_str::<Record>(text).unwrap().code;
        assert_eq!(read(r#"{"code":"rate_limited"}"#), Some(Code::RateLimited));
        for text in [r#"{"code":"not_invented_yet"}"#, r#"{"code":null}"#, "{}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_judges_failure_has_codes_of_its_own() {
        assert_eq!(Code::RateLimited.for_judge(), Code::JudgeRateLimited);
        assert_eq!(Code::InvalidItem.for_judge(), Code::InvalidItem);
        for code in Code::ALL {
            assert!(code.for_judge().is_about_judge() || code.for_judge() == *code, "{code}");
        }
    }
}
