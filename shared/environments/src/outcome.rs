//! Outcomes that programs in the sandbox report.

use serde::Deserialize;
use serde_json::Value;

use crate::{EnvironmentError, Limit, ProjectError};

/// Outcome as JSON: `done`, or `failed` with details.
#[derive(Deserialize)]
struct Outcome {
    done: Option<Value>,
    failed: Option<String>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    log: String,
    limit: Option<String>,
    #[serde(default)]
    out_of_memory: bool,
}

/// Reads an outcome: what was done, or the error.
pub(crate) fn read_outcome(operation: &str, outcome: &[u8]) -> Result<Value, EnvironmentError> {
    let unexpected = || EnvironmentError::UnexpectedResult { operation: operation.to_owned() };
    let outcome: Outcome = serde_json::from_slice(outcome).map_err(|_| unexpected())?;
    let Outcome { done, failed, why, log, limit, out_of_memory } = outcome;
    let Some(failed) = failed else { return done.ok_or_else(unexpected) };
    Err(match failed.as_str() {
        "engine" => EnvironmentError::Engine { why, log },
        "no-engine" => EnvironmentError::NoEngine { why, log },
        "project" => EnvironmentError::Project { why, log },
        "refused" => EnvironmentError::Refused(ProjectError::Refused(why)),
        "build" => EnvironmentError::Build { why, log },
        "start" => EnvironmentError::Start { why, log },
        "unhealthy" => EnvironmentError::Unhealthy { why, log },
        "gone" => EnvironmentError::ContainerGone { why, out_of_memory },
        "removed" => EnvironmentError::Removed,
        "limit" => {
            let limit = limit.and_then(|limit| Limit::parse(&limit)).ok_or_else(unexpected)?;
            EnvironmentError::LimitExceeded { limit, why, log }
        }
        _ => unexpected(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn failures_have_kinds() {
        for (record, kind) in [
            (r#"{"failed":"engine","why":"w","log":"l"}"#, ErrorKind::Infrastructure),
            (r#"{"failed":"no-engine","why":"w"}"#, ErrorKind::Unavailable),
            (r#"{"failed":"project","why":"w"}"#, ErrorKind::Task),
            (r#"{"failed":"build","why":"w"}"#, ErrorKind::Task),
            (r#"{"failed":"refused","why":"w"}"#, ErrorKind::Task),
            (r#"{"failed":"start","why":"w"}"#, ErrorKind::Task),
            (r#"{"failed":"unhealthy","why":"w"}"#, ErrorKind::Task),
            (r#"{"failed":"gone","why":"w","out_of_memory":true}"#, ErrorKind::Task),
            (r#"{"failed":"limit","why":"w","limit":"build-time"}"#, ErrorKind::Limit),
            (r#"{"failed":"removed"}"#, ErrorKind::Caller),
            (r#"{"failed":"limit","why":"w","limit":"x"}"#, ErrorKind::Infrastructure),
            (r#"{"failed":"x"}"#, ErrorKind::Infrastructure),
            ("{}", ErrorKind::Infrastructure),
            ("", ErrorKind::Infrastructure),
        ] {
            assert_eq!(read_outcome("s", record.as_bytes()).unwrap_err().kind(), kind, "{record}");
        }
        assert_eq!(read_outcome("s", br#"{"done":{"a":1}}"#).unwrap()["a"], 1);
    }
}
