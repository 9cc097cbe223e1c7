//! Verification of a stored answer in a container.

use serde::{Deserialize, Serialize};

use crate::{EpisodeException, EpisodeLog};

/// Beginning of the names of logs that say why an output file was left out.
pub const LEFT_OUT_FOLDER: &str = "left-out/";

/// Result of a verification. Containers have written its texts and numbers, so all of them are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerificationReport {
    /// Number of the verification's sandbox, from 1.
    pub round: u32,
    /// Name and version of the container engine; empty if none was reached.
    #[serde(default)]
    pub engine: String,
    /// Exit code of the command; `None` if its time limit ended it, or it didn't begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True if the command's time limit ended it.
    #[serde(default)]
    pub is_timed_out: bool,
    /// Exception that ended the verification before its outputs were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<EpisodeException>,
    /// Milliseconds from the start of the first operation to the running container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_ms: Option<u64>,
    /// Run time of the command in milliseconds; `None` if it did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_ms: Option<u64>,
    /// Output files that were found, named by their paths in the container's working folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<EpisodeLog>,
    /// Other texts: the engine's output, and outputs that could not be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<EpisodeLog>,
}

impl VerificationReport {
    /// Returns the text of an output file; `None` if it wasn't found, or only a part of it was kept.
    pub fn output(&self, name: &str) -> Option<&str> {
        let found = self.outputs.iter().find(|output| output.name == name && output.omitted == 0);
        found.map(|output| output.text.as_str())
    }

    /// Returns why an output file was left out, in one line; `None` if it wasn't found, or if it was kept.
    pub fn left_out(&self, name: &str) -> Option<&str> {
        let is_note = |log: &&EpisodeLog| log.name.strip_prefix(LEFT_OUT_FOLDER) == Some(name);
        self.logs.iter().find(is_note).map(|log| log.text.trim_end())
    }

    /// Returns the time of setup and command together in milliseconds; `None` if neither was measured.
    pub fn duration_ms(&self) -> Option<u64> {
        [self.setup_ms, self.command_ms].into_iter().flatten().reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_was_left_out_says_why() {
        let log = EpisodeLog {
            name: "left-out/a".to_owned(),
            text: "not a regular file\n".to_owned(),
            bytes: 19,
            omitted: 0,
        };
        let report = VerificationReport { logs: vec![log], ..VerificationReport::default() };
        assert_eq!((report.left_out("a"), report.left_out("b")), (Some("not a regular file"), None));
    }

    #[test]
    fn an_output_without_its_middle_is_not_read() {
        let log = |name: &str, omitted| EpisodeLog {
            name: name.to_owned(),
            text: "text".to_owned(),
            bytes: 4,
            omitted,
        };
        let report = VerificationReport { outputs: vec![log("a", 0), log("b", 7)], ..Default::default() };
        assert_eq!((report.output("a"), report.output("b"), report.output("c")), (Some("text"), None, None));
    }
}
