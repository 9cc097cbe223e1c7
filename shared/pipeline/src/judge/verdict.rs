//! Reads a stored reply of the judge: commits its verdict, or asks again.

use std::time::Duration;

use bench_benchmarks::NoVerdict;
use bench_domain::body::JudgeReply;
use bench_domain::{Answer, Code, Finish, ModelRole, Stage, Usage, Verdict};
use bench_inference::tokens::usage_or_estimate;
use bench_lambda::metrics;
use bench_state::{Handover, ReplyWithoutVerdict, SampleResult};

use super::{JudgeCase, JudgeSource};
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Maximum number of characters of a reply that a reason quotes.
const QUOTED_CHARS_MAX: usize = 200;

impl Pipeline {
    /// Commits the verdict in a stored reply. Without a verdict, asks the judge again, as often as its
    /// protocol allows.
    pub(super) async fn read_reply(
        &self,
        case: JudgeCase<'_>,
        answer: &Answer,
        judge_reply: &JudgeReply,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        let JudgeCase { claimed, turn, judge, item } = case;
        let JudgeReply { model, prompt, reply } = judge_reply;
        // A reply that was already counted, and is read again after a requeue, adds no cost.
        let counted = claimed.record.counted == Some(stored.attempt);
        let (spent, usage) = match self.judge_source(claimed) {
            _ if counted => (Usage::ZERO, turn.usage),
            JudgeSource::Model(_) => (usage_or_estimate(prompt, reply), sum_usage(turn.usage, reply.usage)),
            JudgeSource::Oracle | JudgeSource::Unavailable(_) => {
                (Usage::ZERO, sum_usage(turn.usage, reply.usage))
            }
        };
        let tokens = reply.usage.filter(|_| !counted);
        let body = stored.into();
        let verdict = match judge.read(item, answer, reply) {
            Ok(verdict) => {
                metrics::count(metrics::SAMPLES_JUDGED, 1.0);
                note_truncation(verdict, &reply.finish)
            }
            Err(none) => {
                metrics::count(metrics::REPLIES_WITHOUT_VERDICT, 1.0);
                let replies = turn.replies.saturating_add(1);
                if replies < judge.metadata().replies_max {
                    let noted = ReplyWithoutVerdict { body, usage, spent };
                    return self.ask_again(claimed, replies, &noted, tokens).await;
                }
                let gated = claimed.benchmark.is_private();
                let sample = &claimed.sample;
                let code = Code::JudgeNoVerdict;
                tracing::warn!(run.id = %sample.run, error.code = %code, "Sample {sample}: no verdict in {replies} replies");
                let why = no_verdict_reason(model, replies, &none, &reply.text, gated);
                Verdict::ungraded(code, why)
            }
        };
        let finished = SampleResult {
            body: Some(body),
            judge_usage: usage,
            judge_latency_ms: Some(reply.latency_ms),
            judge_model: reply.model.clone().or_else(|| Some(model.clone())),
            ..claimed.record.to_finished(verdict, bench_clock::now())
        };
        self.commit(claimed, &finished, ModelRole::Judge.spending(spent), tokens).await
    }

    /// Records the reply and opens the sample for another one.
    async fn ask_again(
        &self,
        claimed: &ClaimedSample,
        replies: u32,
        reply: &ReplyWithoutVerdict,
        tokens: Option<Usage>,
    ) -> Result<(), PipelineError> {
        let (sample, attempt) = (&claimed.sample, claimed.attempt);
        match self.state.note_reply(sample, attempt, replies, reply, bench_clock::now()).await? {
            Handover::Lost => {
                let spent = ModelRole::Judge.spending(reply.spent);
                self.count_lost(claimed, Some(reply.body.attempt), spent).await?;
                tracing::info!(run.id = %sample.run, "Another attempt took over sample {sample}");
            }
            Handover::Done => {
                self.activity.count_tokens(tokens);
                self.queues.send(&claimed.message(Stage::Judge), Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}

/// Marks a verdict whose reply was cut off after it. The verdict counts, although the rest of the reply is
/// unknown.
fn note_truncation(mut verdict: Verdict, finish: &Finish) -> Verdict {
    if *finish == Finish::Length {
        verdict.detail.insert("judge_truncated".to_owned(), true.into());
    }
    verdict
}

fn sum_usage(before: Option<Usage>, now: Option<Usage>) -> Option<Usage> {
    match (before, now) {
        (Some(before), Some(now)) => Some(before.plus(now)),
        (before, now) => before.or(now),
    }
}

/// Returns the reason why a sample ended without a verdict. The reply isn't quoted if the item is gated,
/// since not everyone may see it.
fn no_verdict_reason(model: &str, replies: u32, none: &NoVerdict, text: &str, gated: bool) -> String {
    let times = if replies == 1 { "its reply".to_owned() } else { format!("{replies} replies") };
    let start = format!("the judge {model} gave no verdict in {times}");
    if gated {
        return start;
    }
    let NoVerdict(problem) = none;
    let problem = excerpt(problem);
    match excerpt(text).as_str() {
        "" => format!("{start}: {problem}; the last one is empty"),
        text => format!("{start}: {problem}; the last one begins `{text}`"),
    }
}

/// Returns the beginning of an untrusted text, without control characters.
fn excerpt(text: &str) -> String {
    let text = text.trim();
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut quoted: String = text.chars().take(QUOTED_CHARS_MAX).map(clean).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_quotes_a_bounded_part_of_the_reply() {
        let none = NoVerdict("no JSON object".to_owned());
        let reason = no_verdict_reason("openai/judge", 3, &none, &"é\n".repeat(5_000), false);
        assert!(reason.starts_with(
            "the judge openai/judge gave no verdict in 3 replies: no JSON object; the last one begins `é é "
        ));
        assert!(reason.chars().count() < 400 && reason.ends_with("…`") && !reason.contains('\n'), "{reason}");
        let empty = no_verdict_reason("j", 1, &none, " \n", false);
        assert_eq!(empty, "the judge j gave no verdict in its reply: no JSON object; the last one is empty");
    }

    #[test]
    fn a_verdict_from_a_reply_that_was_cut_off_is_marked() {
        let verdict = Verdict::correct("42".to_owned());
        assert_eq!(note_truncation(verdict.clone(), &Finish::Stop), verdict);
        let cut = note_truncation(verdict.clone(), &Finish::Length);
        assert_eq!((cut.outcome, cut.score), (verdict.outcome, verdict.score));
        assert_eq!(cut.detail["judge_truncated"], true);
    }

    #[test]
    fn nothing_of_a_gated_item_is_in_a_reason() {
        let none = NoVerdict("`secret` is no verdict".to_owned());
        let reason = no_verdict_reason("j", 2, &none, "the secret is 42", true);
        assert_eq!(reason, "the judge j gave no verdict in 2 replies");
    }

    #[test]
    fn tokens_of_replies_add_up_where_they_were_counted() {
        let some = Some(Usage::counted(3, 2, 1));
        assert_eq!((sum_usage(None, None), sum_usage(some, None), sum_usage(None, some)), (None, some, some));
        assert_eq!(sum_usage(some, some).map(Usage::total), Some(10));
    }
}
