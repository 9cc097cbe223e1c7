//! One sample of an item: the question, the answer, and its grade.

use bench_domain::body::JudgeReply;
use bench_domain::{Answer, Code, Outcome, SampleBody, Stage, TextRepairs, Timestamp};
use bench_state::{BenchmarkRecord, RunRecord, SampleRecord, SampleResult};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::error::CodeSchema;
use uuid::Uuid;

use super::clean::{clean, clean_object, clean_value, object};
use super::episode::episode_results;
use super::execution::{StepView, steps, test_results};
use super::verification::verified;

/// Error of an answer that the token limit cut off; clients of the compatible system look for this text.
const TRUNCATED: &str = "Response truncated (finish_reason=length)";
const EMPTY: &str = "Model produced empty response";

/// Returns true if an error contains nothing of the question or answer.
fn is_own_error(error: &str) -> bool {
    [TRUNCATED, EMPTY].contains(&error) || Stage::ALL.iter().any(|stage| stage.unfinished_text() == error)
}

/// A sample. Samples are listed in the order of the plan. Samples that aren't over have neither outcome nor score.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ItemView {
    /// Id of the sample; it never changes.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Index of the item's row in the dataset, from 0.
    pub item_id: String,
    /// The dataset's own id of the item, such as its `question_id`; null if it has none. Orders and stored responses
    /// name items by it.
    pub source_id: Option<String>,
    /// First 16 hexadecimal digits of the digest of the item's identifying text.
    pub item_hash: Option<String>,
    /// Prompt of the question.
    pub prompt: Option<String>,
    /// The model's answer.
    pub response: Option<String>,
    /// Correct answer according to the dataset.
    pub expected: Option<String>,
    /// True if the answer is correct; null if it wasn't graded.
    pub is_correct: Option<bool>,
    /// Score of the sample, from 0 to 1 (for `aa_omniscience` from -1 to 1); null if it wasn't graded.
    pub score: Option<f64>,
    /// The judge's `reply` with its metadata. If the answer was run in a sandbox instead: `end`, `exit_code`, the
    /// ends of its output, and the files that it left, each cut to a limit. Of an episode: `agent`, `engine`, `rewards`,
    /// `episode_steps`, `exception`, `test_output`, and the ends of its `logs`. Null otherwise.
    #[schema(value_type = Option<Object>)]
    pub judge_output: Option<Map<String, Value>>,
    /// Prompt of the judge; null if no judge was asked.
    pub judge_prompt: Option<String>,
    /// Time from the request to the end of the answer, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, including reasoning.
    pub output_tokens: Option<u64>,
    /// Reason why the sample has no grade, or a problem with a graded answer.
    pub error: Option<String>,
    /// Code that was run to grade the answer; null if none was run.
    pub test_code: Option<String>,
    /// Further data about the answer. Of an episode that isn't over, `episode_started`: false while it waits for its first
    /// sandbox.
    #[schema(value_type = Option<Object>)]
    pub item_metadata: Option<Map<String, Value>>,
    /// Time at which the sample ended; if it isn't over, time at which the benchmark was planned.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,

    /// Index of the item in the plan, from 0.
    pub position: u32,
    /// Index of the sample among those of its item, from 0.
    pub sample: u32,
    /// Code of the reason why the sample has no grade; null if it has one, or if the reason was stored without a
    /// code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// Outcome: `correct`, `incorrect`, `partial`, `no-answer`, `unparsed`, `truncated`, `refused`, `too-long`,
    /// `unsupported` or `infrastructure-error`; null if the sample isn't over.
    #[schema(value_type = Option<String>)]
    pub outcome: Option<Outcome>,
    /// Reason for the outcome, in one sentence.
    pub reason: Option<String>,
    /// Answer that the parser found in the response.
    pub extracted: Option<String>,
    /// Further data from the grader.
    #[schema(value_type = Option<Object>)]
    pub detail: Option<Map<String, Value>>,
    /// Questions of an item with several steps, in order; `prompt` and `response` are those of the last one. Null for
    /// an item with one question.
    pub steps: Option<Vec<StepView>>,
    /// Group of the item within its benchmark, such as a category.
    pub group: Option<String>,
    /// True if the token limit cut the answer off, even if it is correct.
    pub truncated: bool,
    /// Reasoning that the provider sent separately from the answer.
    pub reasoning: Option<String>,
    /// Model id that the provider reported.
    pub model_reported: Option<String>,
    /// SHA-256 of the stored prompt and answer.
    pub body_sha256: Option<String>,
    /// True if texts are left out, because the dataset is gated and the caller doesn't own the run.
    pub hidden: bool,
    /// Number of attempts to answer, without attempts of a judge or a sandbox.
    pub attempts: u32,
    /// Reason why the model stopped, as the provider reported it; null without an answer.
    pub finish_reason: Option<String>,
}

/// Creates the view of a sample, with its stored body if there is one.
pub fn item_view(
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    record: &SampleRecord,
    body: Option<&SampleBody>,
) -> ItemView {
    let position = record.position;
    let started_at = benchmark.state.started_at().unwrap_or(run.spec.created_at);
    let mut view = ItemView {
        id: run.spec.id.derive(&format!("{}/{position}", benchmark.name)),
        item_id: record.item_id.clone(),
        source_id: record.source_id.as_deref().map(clean),
        item_hash: None,
        prompt: body.map(|body| clean(&body.prompt.as_text())),
        response: body.map(|body| clean(&body.answer.text)),
        expected: body.map(|body| clean(&body.expected)),
        is_correct: None,
        score: None,
        judge_output: body.and_then(|body| match (&body.judge_reply, &body.execution) {
            (Some(judge_reply), _) => Some(judge_output(judge_reply)),
            (None, Some(execution)) => Some(test_results(execution)),
            (None, None) => match (&body.verification, &body.episode) {
                (Some(report), episode) => Some(verified(report, episode.as_ref())),
                (None, episode) => episode.as_ref().map(episode_results),
            },
        }),
        judge_prompt: body
            .and_then(|body| body.judge_reply.as_ref())
            .map(|judge_reply| clean(&judge_reply.prompt.as_text())),
        latency_ms: None,
        input_tokens: None,
        output_tokens: None,
        error: None,
        test_code: None,
        item_metadata: Some(metadata(run, benchmark, record, body)),
        created_at: started_at,
        position: position.item,
        sample: position.sample,
        error_code: None,
        outcome: None,
        reason: None,
        extracted: None,
        detail: None,
        steps: body.and_then(|body| steps(&body.steps)),
        group: record.group.clone(),
        truncated: false,
        reasoning: body.and_then(|body| body.answer.reasoning.as_deref()).map(clean),
        model_reported: None,
        body_sha256: None,
        hidden: false,
        attempts: record.attempts().0,
        finish_reason: body.and_then(|body| body.answer.finish.as_wire()).map(clean),
    };
    view.body_sha256 = record.stored_body().map(|body| body.sha256.clone());
    let Some(finished) = &record.finished else {
        let is_over = !run.state.status().is_open();
        view.error = is_over.then(|| record.stage().unfinished_text().to_owned());
        view.error_code = is_over.then_some(Code::RunEnded);
        let Some(answer) = record.unjudged_answer() else { return view };
        view.item_hash.clone_from(&answer.item_hash);
        view.latency_ms = answer.latency_ms;
        view.input_tokens = answer.usage.map(|usage| usage.input_tokens);
        view.output_tokens = answer.usage.map(|usage| usage.output_tokens);
        view.truncated = answer.truncated;
        view.model_reported.clone_from(&answer.model);
        if is_over && answer.truncated {
            view.add_error(TRUNCATED);
        }
        return view;
    };
    let verdict = &finished.verdict;
    view.item_hash.clone_from(&finished.item_hash);
    view.is_correct = verdict.is_correct();
    view.score = verdict.score;
    view.latency_ms = finished.latency_ms;
    view.input_tokens = finished.usage.map(|usage| usage.input_tokens);
    view.output_tokens = finished.usage.map(|usage| usage.output_tokens);
    view.error = item_error(finished);
    view.error_code = verdict.code;
    view.created_at = finished.at;
    view.outcome = Some(verdict.outcome);
    view.reason = Some(clean(&verdict.reason)).filter(|reason| !reason.is_empty());
    view.extracted = verdict.extracted.as_deref().map(clean);
    if body.is_some_and(|body| body.execution.is_some()) {
        view.test_code.clone_from(&view.extracted);
    }
    view.detail = (!verdict.detail.is_empty()).then(|| clean_object(verdict.detail.clone()));
    view.truncated = finished.truncated;
    view.model_reported.clone_from(&finished.model);
    view
}

impl ItemView {
    /// Removes the parts that a gated dataset's terms keep private; ids, digests and verdicts stay. Texts
    /// from others are removed as well, since a provider's message or a judge's reply may quote the item.
    #[must_use]
    pub fn hide(mut self) -> Self {
        self.prompt = None;
        self.response = None;
        self.expected = None;
        self.reasoning = None;
        // Both contain the question and the gold answer.
        self.judge_prompt = None;
        self.judge_output = None;
        self.steps = None;
        // The extracted answer and the grader's details may be the gold answer.
        self.extracted = None;
        self.detail = None;
        self.reason = None;
        self.judge_output = None;
        self.test_code = None;
        self.error = self.error.as_deref().map(|error| self.error_of_outcome(error));
        self.hidden = true;
        self
    }

    /// Returns the part of an error that the outcome reveals anyway.
    fn error_of_outcome(&self, error: &str) -> String {
        let own = error.split(" | ").filter(|part| is_own_error(part));
        let own = own.collect::<Vec<_>>().join(" | ");
        match self.outcome {
            Some(outcome) if own.is_empty() => outcome.as_str().to_owned(),
            _ => own,
        }
    }

    /// Sets the code that was executed, if the benchmark knows it better than the extracted answer does.
    pub fn set_executed_code(&mut self, code: Option<String>) {
        if let Some(code) = code.filter(|_| self.test_code.is_some() || self.judge_output.is_some()) {
            self.test_code = Some(clean(&code)).filter(|code| !code.is_empty());
        }
    }

    /// Appends an error; several are joined as in the compatible system.
    pub fn add_error(&mut self, problem: &str) {
        self.error = join_error(self.error.take(), problem);
    }
}

/// Returns the `error` of a sample that is over. A wrong or unreadable answer isn't an error. An empty
/// answer, a refusal, a truncated answer and a failure are.
pub fn item_error(finished: &SampleResult) -> Option<String> {
    let verdict = &finished.verdict;
    let mut error = match verdict.outcome {
        Outcome::NoAnswer => Some(EMPTY.to_owned()),
        Outcome::Refused | Outcome::TooLong | Outcome::Unsupported | Outcome::InfrastructureError
            if verdict.reason.is_empty() =>
        {
            Some(verdict.outcome.as_str().to_owned())
        }
        Outcome::Refused | Outcome::TooLong | Outcome::Unsupported | Outcome::InfrastructureError => {
            Some(clean(&verdict.reason))
        }
        _ => None,
    };
    if finished.truncated || verdict.outcome == Outcome::Truncated {
        error = join_error(error, TRUNCATED);
    }
    error
}

fn join_error(error: Option<String>, problem: &str) -> Option<String> {
    Some(match error {
        None => problem.to_owned(),
        Some(error) if error.split(" | ").any(|part| part == problem) => error,
        Some(error) => format!("{error} | {problem}"),
    })
}

fn metadata(
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    record: &SampleRecord,
    body: Option<&SampleBody>,
) -> Map<String, Value> {
    let (attempts, later_attempts) = record.attempts();
    let mut metadata = object(json!({
        // The judge's attempt stores a judged body, but the answer is from an earlier attempt.
        "worker_attempt": record.stored_body().map_or(attempts, |body| body.attempt.min(attempts)),
        "worker_attempts": attempts,
        "waits": record.history.waits,
    }));
    if record.history.lost > 0 {
        metadata.insert("lost_attempts".to_owned(), record.history.lost.into());
    }
    if let Some(name) = record.stage().attempts_field() {
        metadata.insert(name.to_owned(), later_attempts.into());
    }
    if let Some(group) = &record.group {
        metadata.insert("category".to_owned(), clean(group).into());
    }
    // Archives, which are made of runs that are over, keep their bytes.
    let is_open = record.finished.is_none() && run.state.status().is_open();
    if is_open && matches!(record.stage(), Stage::Episode | Stage::Verification) {
        metadata.insert(
            "episode_started".to_owned(),
            record.episode_start().is_some_and(|start| start.is_made()).into(),
        );
        // Only while an image is pulled again and again.
        if let Some(why) = record.delay_reason() {
            metadata.insert("waits_for".to_owned(), clean(&why).into());
        }
    }
    let Some(body) = body else { return metadata };
    let answer = &body.answer;
    let usage: Option<Value> = answer.usage_raw.as_deref().and_then(|raw| serde_json::from_str(raw).ok());
    let reasoning = answer.reasoning.as_deref().unwrap_or_default();
    let source = match (answer.text.is_empty(), reasoning.is_empty()) {
        (false, _) => Some("content"),
        (true, false) => Some("reasoning"),
        (true, true) => None,
    };
    let plan = benchmark.plan.as_ref();
    metadata.extend(object(json!({
        "usage": usage.map(clean_value),
        "model": answer.model.as_deref().map(clean),
        "finish_reason": answer.finish.as_wire().map(clean),
        "choices_count": 1,
        "response_source": source,
        "content_length": answer.text.chars().count(),
        "reasoning_length": reasoning.chars().count(),
        "response_attempts": attempts,
        "max_tokens": plan.and_then(|plan| plan.generation.max_tokens),
        "request_id": answer.request_id.as_deref().map(clean),
        "first_token_ms": answer.first_token_ms,
    })));
    let last = std::slice::from_ref(answer);
    let all =
        body.steps.iter().map(|step| &step.answer).chain(if body.steps.is_empty() { last } else { &[] });
    metadata.extend(repairs(all));
    metadata
}

/// Returns the repairs of answers before they were stored, and rejected token counts; empty if there were none.
fn repairs<'a>(answers: impl Iterator<Item = &'a Answer>) -> Map<String, Value> {
    let (mut text, mut keys, mut is_rejected) = (TextRepairs::default(), 0_u64, false);
    for answer in answers {
        text.joined += answer.repairs.joined;
        text.replaced += answer.repairs.replaced;
        keys += answer.keys_redacted;
        is_rejected |= answer.usage_rejected;
    }
    let mut fields = Map::new();
    if is_rejected {
        fields.insert("usage_rejected".to_owned(), true.into());
    }
    if !text.is_none() {
        fields.insert("text_repairs".to_owned(), json!(text));
    }
    if keys > 0 {
        fields.insert("keys_redacted".to_owned(), keys.into());
    }
    fields
}

/// Returns the judge's reply about an answer.
fn judge_output(judge_reply: &JudgeReply) -> Map<String, Value> {
    let reply = &judge_reply.reply;
    let mut output = object(json!({
        "judge": clean(&judge_reply.model),
        "reply": clean(&reply.text),
        "reasoning": reply.reasoning.as_deref().map(clean),
        "finish_reason": reply.finish.as_wire().map(clean),
        "model": reply.model.as_deref().map(clean),
        "request_id": reply.request_id.as_deref().map(clean),
        "latency_ms": reply.latency_ms,
        "input_tokens": reply.usage.map(|usage| usage.input_tokens),
        "output_tokens": reply.usage.map(|usage| usage.output_tokens),
    }));
    output.extend(repairs(std::iter::once(reply)));
    output
}
