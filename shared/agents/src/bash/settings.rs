//! Settings of `bash`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::options::{OptionError, Options};
use crate::usage::Budget;

const AGENT: &str = "bash";
const FOLDER_BYTES_MAX: usize = 1_024;
const TURNS: RangeInclusive<u32> = 1..=100_000;
const FORMAT_ERRORS: RangeInclusive<u32> = 1..=100;
const COMMAND_SECONDS: RangeInclusive<u64> = 1..=3_600;
const OUTPUT_BYTES: RangeInclusive<usize> = 100..=1_000_000;
const TOKENS: RangeInclusive<u64> = 1..=1_000_000_000_000;
const DOLLARS: RangeInclusive<f64> = 0.0..=1_000_000.0;
const SECONDS: RangeInclusive<u64> = 1..=604_800;

/// Settings of `bash`.
#[derive(Debug, Clone, PartialEq)]
pub struct BashSettings {
    /// Absolute path of the folder in which every command starts.
    pub folder: String,
    /// Maximum number of turns.
    pub turns_max: u32,
    /// Maximum number of replies in a row without a valid form.
    pub format_errors_max: u32,
    /// Time after which a command is killed, in milliseconds.
    pub command_time_ms: u64,
    /// Maximum length of a command's output in a message, in bytes.
    pub output_bytes_max: usize,
    /// True if processes that a command leaves go on after it.
    pub keeps_processes: bool,
    /// Limits of the episode.
    pub budget: Budget,
}

impl BashSettings {
    /// Creates the default settings for a folder.
    pub fn new(folder: impl Into<String>) -> Self {
        Self {
            folder: folder.into(),
            turns_max: 100,
            format_errors_max: 5,
            command_time_ms: 120_000,
            output_bytes_max: 10_000,
            keeps_processes: true,
            budget: Budget::default(),
        }
    }

    /// Reads options by name. `folder` is the one that is used if they don't name another.
    ///
    /// # Errors
    /// If an option is unknown or given twice, or its value isn't accepted.
    pub fn parse(options: &BTreeMap<String, String>, folder: &str) -> Result<Self, OptionError> {
        let mut options = Options::new(AGENT, options);
        let path = || "an absolute path without control characters".to_owned();
        let default = Self::new(folder);
        let settings = Self {
            folder: options
                .read("folder", path, |text| is_folder(text).then(|| text.to_owned()))?
                .unwrap_or(default.folder),
            turns_max: options.number("max_turns", &TURNS)?.unwrap_or(default.turns_max),
            format_errors_max: options
                .number("max_format_errors", &FORMAT_ERRORS)?
                .unwrap_or(default.format_errors_max),
            command_time_ms: options
                .number("command_timeout_sec", &COMMAND_SECONDS)?
                .map_or(default.command_time_ms, |seconds| seconds * 1_000),
            output_bytes_max: options
                .number("max_output_bytes", &OUTPUT_BYTES)?
                .unwrap_or(default.output_bytes_max),
            keeps_processes: default.keeps_processes,
            budget: Budget {
                tokens_max: options.number("max_tokens", &TOKENS)?,
                cost_usd_max: options.number("max_cost_usd", &DOLLARS)?,
                time_ms_max: options.number("max_time_sec", &SECONDS)?.map(|seconds| seconds * 1_000),
            },
        };
        options.finish()?;
        Ok(settings)
    }
}

fn is_folder(text: &str) -> bool {
    text.starts_with('/') && text.len() <= FOLDER_BYTES_MAX && !text.contains(char::is_control)
}
