//! Responses whose status is not the one of their code.

use crate::Code;

/// Declares [`UnusualStatus`] from one list: variant, status, code.
macro_rules! unusual_statuses {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal, $code:ident;)+) => {
        /// Response whose status is not [`Code::status`]. It keeps its status because existing clients expect it.
        ///
        /// Every other response has the status of its code. `docs/codes.md` lists these exceptions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UnusualStatus {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl UnusualStatus {
            /// Every exception, in the order of the list in `docs/codes.md`.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the code of the response.
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$variant => Code::$code,)+
                }
            }

            /// Returns the HTTP status of the response.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)+
                }
            }

            /// Returns the request and the cause in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

unusual_statuses! {
    /// `POST /api/runs/{run_id}/rejudge`: the run is still open.
    RejudgeOfOpenRun = 409, RunNotOver;
    /// `GET /api/runs/{run_id}/export`: the run is over, but its results are not complete yet.
    ExportOfUnsettledRun = 409, RunNotOver;
    /// `POST /api/runs/{run_id}/rejudge`: the run that asked the model was deleted.
    RejudgeOfDeletedRun = 400, RunDeleted;
    /// `GET /api/runs/{run_id}/judgings`: the run that asked the model was deleted.
    JudgingsOfDeletedRun = 404, RunDeleted;
    /// `POST /api/admin/sync-models`: the provider can't be reached.
    SyncWithUnreachableProvider = 500, ProviderUnreachable;
    /// Any path: the request has more than one `Host` header.
    RepeatedHost = 400, InvalidRequest;
    /// The sandbox host: too many requests of this caller, or of all callers, are waiting.
    SandboxQueueFull = 429, ServerBusy;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_differs_from_the_status_of_its_code() {
        for exception in UnusualStatus::ALL {
            assert!((400..600).contains(&exception.status()), "{exception:?}");
            assert!(
                exception.code().status().is_some_and(|usual| usual != exception.status()),
                "{exception:?}"
            );
        }
    }

    #[test]
    fn the_documented_exceptions_are_this_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/codes.md");
        let text = std::fs::read_to_string(path).unwrap();
        // Rows of this table begin with a status, rows of the table of codes with a code.
        let is_row =
            |line: &&str| line.strip_prefix("| ").is_some_and(|row| row.starts_with(char::is_numeric));
        let described: Vec<&str> = text.lines().filter(is_row).collect();
        let row = |it: &UnusualStatus| format!("| {} | `{}` | {} |", it.status(), it.code(), it.meaning());
        let expected: Vec<String> = UnusualStatus::ALL.iter().map(row).collect();
        assert_eq!(described, expected);
    }
}
