//! Settings of `terminus-2`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::ReplyFormat;
use crate::options::{OptionError, Options};
use crate::usage::Budget;

const AGENT: &str = "terminus-2";
const TURNS: RangeInclusive<u32> = 1..=1_000_000;
const TOKENS: RangeInclusive<u64> = 1..=1_000_000_000_000;
const COLUMNS: RangeInclusive<u16> = 20..=1_000;
const ROWS: RangeInclusive<u16> = 5..=1_000;
const DOLLARS: RangeInclusive<f64> = 0.0..=1_000_000.0;
const SECONDS: RangeInclusive<u64> = 1..=604_800;

/// Settings of `terminus-2`. The defaults are those of Harbor 0.25.0.
#[derive(Debug, Clone, PartialEq)]
pub struct Terminus2Settings {
    /// Form of replies.
    pub format: ReplyFormat,
    /// Maximum number of turns.
    pub turns_max: u32,
    /// True if the conversation is summarized when the context is full.
    pub is_summarizing: bool,
    /// The conversation is summarized when fewer tokens than this are free; 0 if only when it doesn't fit.
    pub summary_threshold_tokens: u64,
    /// Tokens of the model's context.
    pub context_tokens: u64,
    /// Maximum tokens of a reply, if known; named to the model when a reply was cut.
    pub output_tokens: Option<u64>,
    /// Columns of the terminal.
    pub columns: u16,
    /// Rows of the terminal.
    pub rows: u16,
    /// True if the terminal is recorded.
    pub is_recording: bool,
    /// Limits of the episode.
    pub budget: Budget,
}

impl Default for Terminus2Settings {
    fn default() -> Self {
        Self {
            format: ReplyFormat::Json,
            turns_max: *TURNS.end(),
            is_summarizing: true,
            summary_threshold_tokens: 8_000,
            context_tokens: 1_000_000,
            output_tokens: None,
            columns: 160,
            rows: 40,
            is_recording: true,
            budget: Budget::default(),
        }
    }
}

impl Terminus2Settings {
    /// Reads options by name. Official ones have their official names; `max_tokens`, `max_cost_usd` and `max_time_sec`
    /// are the budget.
    ///
    /// # Errors
    /// If an option is unknown or given twice, or its value isn't accepted.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<Self, OptionError> {
        let mut options = Options::new(AGENT, options);
        options.alias("max_turns", &["max_episodes", "episodes"])?;
        let formats = || "`json` or `xml`".to_owned();
        let default = Self::default();
        let settings = Self {
            format: options
                .read("parser_name", formats, |name| match name {
                    "json" => Some(ReplyFormat::Json),
                    "xml" => Some(ReplyFormat::Xml),
                    _ => None,
                })?
                .unwrap_or(default.format),
            turns_max: options.number("max_turns", &TURNS)?.unwrap_or(default.turns_max),
            is_summarizing: options.flag("enable_summarize")?.unwrap_or(default.is_summarizing),
            summary_threshold_tokens: options
                .number("proactive_summarization_threshold", &(0..=*TOKENS.end()))?
                .unwrap_or(default.summary_threshold_tokens),
            context_tokens: options.number("max_input_tokens", &TOKENS)?.unwrap_or(default.context_tokens),
            output_tokens: options.number("max_output_tokens", &TOKENS)?,
            columns: options.number("tmux_pane_width", &COLUMNS)?.unwrap_or(default.columns),
            rows: options.number("tmux_pane_height", &ROWS)?.unwrap_or(default.rows),
            is_recording: options.flag("record_terminal_session")?.unwrap_or(default.is_recording),
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
