//! Results of finished samples.

use aws_sdk_dynamodb::types::AttributeValue;
use bench_domain::{Code, Outcome, Timestamp, Usage, Verdict};

use super::Values;
use crate::attributes::{Reader, json, number, text};
use crate::usage::{JUDGE_USAGE, USAGE, read_usage};
use crate::{BodyRef, StateError};

/// Result of a finished sample, for lists, charts and metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleResult {
    /// Outcome, score, reason, extracted answer, detail.
    pub verdict: Verdict,
    /// Reference to prompt and answer; `None` if there was no answer.
    pub body: Option<BodyRef>,
    /// First 16 hex digits of the digest of the item's identifying text.
    pub item_hash: Option<String>,
    /// True if the token limit cut the answer off.
    pub truncated: bool,
    /// Milliseconds from the request to the end of the answer, or of setup, agent and verifier of an episode.
    pub latency_ms: Option<u64>,
    /// Tokens counted by the provider.
    pub usage: Option<Usage>,
    /// Model id reported by the provider.
    pub model: Option<String>,
    /// Tokens of all replies of the judge, counted by its provider.
    pub judge_usage: Option<Usage>,
    /// Milliseconds from the request to the end of the judge's last reply.
    pub judge_latency_ms: Option<u64>,
    /// Model id of the judge reported by its provider.
    pub judge_model: Option<String>,
    /// Time at which the sample ended.
    pub at: Timestamp,
}

/// Returns the outcome of a sample that is over.
pub(super) fn outcome(reader: &Reader<'_>) -> Result<Outcome, StateError> {
    let outcome = reader.text("outcome")?;
    Outcome::from_name(outcome)
        .ok_or_else(|| StateError::damaged(reader.key(), format!("outcome `{outcome}` is unknown")))
}

impl SampleResult {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Option<Self>, StateError> {
        if reader.maybe_text("state") != Some("done") {
            return Ok(None);
        }
        let outcome = outcome(reader)?;
        let usage = read_usage(reader, USAGE)?;
        let body = BodyRef::read(reader)?;
        Ok(Some(Self {
            verdict: Verdict {
                outcome,
                // Stored as text, since DynamoDB's numbers are decimal.
                score: reader.maybe_json("score")?,
                reason: reader.text_or_empty("reason").to_owned(),
                code: reader.maybe_text("error_code").and_then(Code::from_name),
                extracted: reader.maybe_text("extracted").map(str::to_owned),
                detail: reader.maybe_json("detail")?.unwrap_or_default(),
            },
            body,
            item_hash: reader.maybe_text("item_hash").map(str::to_owned),
            truncated: reader.number_or::<u8>("truncated", 0)? == 1,
            latency_ms: reader.maybe_number("latency_ms")?,
            usage,
            model: reader.maybe_text("model").map(str::to_owned),
            judge_usage: read_usage(reader, JUDGE_USAGE)?,
            judge_latency_ms: reader.maybe_number("judge_latency_ms")?,
            judge_model: reader.maybe_text("judge_model").map(str::to_owned),
            at: reader.time("finished_at")?,
        }))
    }

    /// Returns the update expression's assignments and their values. Attributes without a value are removed, unless `attempt`
    /// is the first: only an earlier attempt can have written them.
    pub(super) fn assignments(&self, attempt: u32) -> Result<(String, Values), StateError> {
        let verdict = &self.verdict;
        let mut values = vec![
            (":outcome", text(verdict.outcome.as_str())),
            (":finished_at", number(self.at.as_micros())),
            (":truncated", number(u8::from(self.truncated))),
        ];
        let mut set = vec!["outcome = :outcome", "finished_at = :finished_at", "truncated = :truncated"];
        let mut remove = Vec::new();
        let mut put = |name: &'static str, assignment, placeholder, value: Option<AttributeValue>| match value
        {
            Some(value) => {
                set.push(assignment);
                values.push((placeholder, value));
            }
            None => remove.push(name),
        };
        let usage = |part: fn(&Usage) -> u64| self.usage.as_ref().map(|usage| number(part(usage)));
        let judge = |part: fn(&Usage) -> u64| self.judge_usage.as_ref().map(|usage| number(part(usage)));
        let some_text = |value: &Option<String>| value.as_ref().map(text);
        put("score", "score = :score", ":score", verdict.score.map(|s| json("score", &s)).transpose()?);
        let reason = (!verdict.reason.is_empty()).then(|| text(&verdict.reason));
        put("reason", "reason = :reason", ":reason", reason);
        put(
            "error_code",
            "error_code = :error_code",
            ":error_code",
            verdict.code.map(|code| text(code.as_str())),
        );
        put("extracted", "extracted = :extracted", ":extracted", some_text(&verdict.extracted));
        let detail = (!verdict.detail.is_empty()).then(|| json("detail", &verdict.detail)).transpose()?;
        put("detail", "detail = :detail", ":detail", detail);
        let body = self.body.as_ref();
        if let Some(body) = body {
            // The attribute stays when the sample is reopened.
            put("counted", "counted = :counted", ":counted", Some(number(body.attempt)));
        }
        put("body_attempt", "body_attempt = :body", ":body", body.map(|body| number(body.attempt)));
        put("body_sha256", "body_sha256 = :sha", ":sha", body.map(|body| text(&body.sha256)));
        put("item_hash", "item_hash = :hash", ":hash", some_text(&self.item_hash));
        put("latency_ms", "latency_ms = :latency", ":latency", self.latency_ms.map(number));
        put("input_tokens", "input_tokens = :input", ":input", usage(|u| u.input_tokens));
        put("output_tokens", "output_tokens = :output", ":output", usage(|u| u.output_tokens));
        put("reasoning_tokens", "reasoning_tokens = :reasoning", ":reasoning", usage(|u| u.reasoning_tokens));
        // `model` isn't a reserved word of DynamoDB. `group` is, and never appears in an expression.
        put("model", "model = :model", ":model", some_text(&self.model));
        let [input, output, reasoning] = JUDGE_USAGE;
        put(input, "judge_input = :judge_input", ":judge_input", judge(|u| u.input_tokens));
        put(output, "judge_output = :judge_output", ":judge_output", judge(|u| u.output_tokens));
        put(
            reasoning,
            "judge_reasoning = :judge_reasoning",
            ":judge_reasoning",
            judge(|u| u.reasoning_tokens),
        );
        let latency = self.judge_latency_ms.map(number);
        put("judge_latency_ms", "judge_latency_ms = :judge_latency", ":judge_latency", latency);
        put("judge_model", "judge_model = :judge_model", ":judge_model", some_text(&self.judge_model));
        let mut expression = set.join(", ");
        if attempt > 1 && !remove.is_empty() {
            expression.push_str(" REMOVE ");
            expression.push_str(&remove.join(", "));
        }
        Ok((expression, values))
    }
}
