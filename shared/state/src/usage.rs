//! Token counts in the record of a sample.

use bench_domain::Usage;

use crate::StateError;
use crate::attributes::Reader;

/// Attributes of the model's tokens, and of the judge's: prompts, answers, reasoning.
pub(crate) const USAGE: [&str; 3] = ["input_tokens", "output_tokens", "reasoning_tokens"];
pub(crate) const JUDGE_USAGE: [&str; 3] = ["judge_input", "judge_output", "judge_reasoning"];

/// Reads the tokens from these attributes; `None` if the first is missing.
pub(crate) fn read_usage(reader: &Reader<'_>, names: [&str; 3]) -> Result<Option<Usage>, StateError> {
    let [input, output, reasoning] = names;
    let Some(input_tokens) = reader.maybe_number(input)? else { return Ok(None) };
    let (output_tokens, reasoning_tokens) = (reader.number_or(output, 0)?, reader.number_or(reasoning, 0)?);
    Ok(Some(Usage::counted(input_tokens, output_tokens, reasoning_tokens)))
}
