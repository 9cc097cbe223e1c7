//! Values of generation settings on the command line.

use std::ops::RangeInclusive;
use std::path::Path;

use bench_domain::{MaxTokensField, OmittedSetting, ReasoningEffort, RunLimits};
use bench_runs::settings::{EXTRA_BODY_BYTES_MAX, STOP_CHARS_MAX, STOP_MAX, SYSTEM_PROMPT_BYTES_MAX};
use serde_json::{Map, Value};

use crate::exit::Problem;

/// Time limits for one answer that can be given, in seconds.
const TIMEOUT_SECONDS: RangeInclusive<u32> = 1..=RunLimits::TIMEOUT_SECONDS_MAX;

/// Parses a temperature.
pub(crate) fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.trim().parse::<f64>().ok().filter(|temperature| (0.0..=2.0).contains(temperature));
    temperature.ok_or_else(|| "it must be a number from 0 to 2".to_owned())
}

/// Parses a number of seconds.
pub(super) fn parse_timeout(text: &str) -> Result<u32, String> {
    let seconds = text.trim().parse::<u32>().ok().filter(|seconds| TIMEOUT_SECONDS.contains(seconds));
    seconds.ok_or_else(|| {
        let (min, max) = (TIMEOUT_SECONDS.start(), TIMEOUT_SECONDS.end());
        format!("it must be a whole number of seconds from {min} to {max}")
    })
}

/// Parses the share of nucleus sampling.
pub(super) fn parse_top_p(text: &str) -> Result<f64, String> {
    let share = text.trim().parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "it must be a number above 0, and at most 1".to_owned())
}

/// Parses a system prompt, or reads it from the file after an `@`. The file's last line break isn't part of the prompt.
pub(super) fn parse_system_prompt(text: &str) -> Result<String, String> {
    let prompt = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(file) => read_text(Path::new(file))?,
    };
    if prompt.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if prompt.len() > SYSTEM_PROMPT_BYTES_MAX {
        return Err(format!("it has {} bytes, and the maximum is {SYSTEM_PROMPT_BYTES_MAX}", prompt.len()));
    }
    Ok(prompt)
}

fn read_text(file: &Path) -> Result<String, String> {
    let bytes =
        std::fs::read(file).map_err(|error| format!("could not read `{}`: {error}", file.display()))?;
    let text =
        String::from_utf8(bytes).map_err(|_| format!("`{}` is not a text in UTF-8", file.display()))?;
    let end = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(end.unwrap_or(&text).to_owned())
}

/// Parses an effort of reasoning.
pub(super) fn parse_effort(text: &str) -> Result<ReasoningEffort, String> {
    ReasoningEffort::from_name(text).ok_or_else(|| format!("it must be one of {}", ReasoningEffort::names()))
}

/// Parses a JSON object.
pub(super) fn parse_extra_body(text: &str) -> Result<Map<String, Value>, String> {
    let object = serde_json::from_str::<Map<String, Value>>(text)
        .map_err(|error| format!("it must be a JSON object, such as '{{\"min_p\": 0.05}}' ({error})"))?;
    if text.len() > EXTRA_BODY_BYTES_MAX {
        return Err(format!("it has {} bytes, and the maximum is {EXTRA_BODY_BYTES_MAX}", text.len()));
    }
    Ok(object)
}

/// Parses the name of a setting to leave out.
pub(super) fn parse_omitted(text: &str) -> Result<OmittedSetting, String> {
    OmittedSetting::from_name(text).ok_or_else(|| format!("it must be one of {}", OmittedSetting::names()))
}

/// Parses the name of a request's field.
pub(super) fn parse_field(text: &str) -> Result<MaxTokensField, String> {
    MaxTokensField::from_name(text).ok_or_else(|| format!("it must be one of {}", MaxTokensField::names()))
}

/// Rejects too many and too long texts that end an answer.
pub(super) fn check_stop(stop: &[String]) -> anyhow::Result<()> {
    let problem = match stop.iter().find(|text| text.is_empty() || text.chars().count() > STOP_CHARS_MAX) {
        _ if stop.len() > STOP_MAX => format!("--stop: at most {STOP_MAX} texts can be given"),
        Some(_) => format!("--stop: a text must have 1 to {STOP_CHARS_MAX} characters"),
        None => return Ok(()),
    };
    Err(Problem::usage(problem).into())
}
