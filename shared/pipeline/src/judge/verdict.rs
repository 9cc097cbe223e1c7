//! Reading a stored reply: a verdict, or another question.

use std::time::Duration;

use crate::{AskError, InHand, StoredBody};
use bench_benchmarks::NoVerdict;
use bench_domain::sample::Stage;
use bench_domain::{Code, Finish, SampleBody, Timestamp, Usage, Verdict};
use bench_lambda::metrics;
use bench_queue::Message;
use bench_state::{BodyRef, Finished, HandedOver, Reply};

use crate::Turns;
use crate::judge::Case;

/// Characters of a reply that a reason quotes.
const QUOTED_CHARS_MAX: usize = 200;

impl Turns {
    /// Reads a reply that an earlier attempt stored.
    pub(crate) async fn read_again(
        &self,
        hand: &InHand<'_>,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let Some(judge) = benchmark.benchmark.judge() else {
            return self.end_without(hand, Code::InternalError, "this benchmark has no judge").await;
        };
        let item = benchmark.item(&self.desk.blobs, hand).await?;
        self.read(hand, &Case { benchmark, judge, item: &item }, &body, stored).await
    }

    /// Commits the verdict in a stored reply. Without one the judge is asked again, as often as its protocol
    /// allows.
    pub(crate) async fn read(
        &self,
        hand: &InHand<'_>,
        case: &Case<'_>,
        body: &SampleBody,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        let desk = &self.desk;
        let record = &hand.claimed.record;
        let (Some(judgement), Some(turn)) = (&body.judgement, &record.turn) else {
            return self
                .end_without(hand, Code::StoredDataMissing, "the stored reply of the judge is gone")
                .await;
        };
        let reply = &judgement.reply;
        // A reply that was counted, and is read again after a requeue, costs nothing more.
        let counted = record.counted == Some(stored.attempt);
        let (spent, usage) = if counted {
            (Usage::default(), turn.usage)
        } else {
            (hand.run.spent_on(&judgement.prompt, reply), sum(turn.usage, reply.usage))
        };
        let body_ref = BodyRef { attempt: stored.attempt, sha256: stored.sha256 };
        let verdict = match case.judge.read(case.item, &body.answer, reply) {
            Ok(verdict) => {
                metrics::count(metrics::SAMPLES_JUDGED, 1.0);
                noting_truncation(verdict, &reply.finish)
            }
            Err(none) => {
                metrics::count(metrics::REPLIES_WITHOUT_VERDICT, 1.0);
                let replies = turn.replies.saturating_add(1);
                if replies < case.judge.facts().replies_max {
                    let noted = Reply { body: body_ref, usage, spent };
                    return self.ask_again(hand, replies, &noted, reply.usage).await;
                }
                let gated = case.benchmark.is_private();
                let (run, sample) = (hand.sample.run, hand.sample);
                let code = Code::JudgeNoVerdict;
                tracing::warn!(run.id = %run, error.code = %code, "Sample {sample}: no verdict in {replies} replies");
                let why = without_verdict(&judgement.model, replies, &none, &reply.text, gated);
                Verdict::ungraded(code, why)
            }
        };
        let finished = Finished {
            body: Some(body_ref),
            judge_usage: usage,
            judge_latency_ms: Some(reply.latency_ms),
            judge_model: reply.model.clone().or_else(|| Some(judgement.model.clone())),
            ..record.ended(verdict, Timestamp::now())
        };
        desk.told_tokens(reply.usage.filter(|_| !counted));
        desk.commit(hand, case.benchmark, &finished, spent).await
    }

    /// Notes the reply and opens the sample for another one.
    async fn ask_again(
        &self,
        hand: &InHand<'_>,
        replies: u32,
        reply: &Reply,
        usage: Option<Usage>,
    ) -> Result<(), AskError> {
        let desk = &self.desk;
        let (sample, attempt) = (hand.sample, hand.claimed.attempt);
        match desk.state.note_reply(sample, attempt, replies, reply, Timestamp::now()).await? {
            HandedOver::Lost => {
                desk.count_lost(hand, Some(reply.body.attempt), reply.spent).await?;
                tracing::info!(run.id = %sample.run, "Sample {sample} was taken over");
            }
            HandedOver::Done => {
                desk.told_tokens(usage);
                let message = Message::of_stage(Stage::Judge, sample.clone(), hand.run.generation);
                desk.queues.send(&message, Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}

/// A verdict that was complete before its reply was cut off counts, but it is told: what followed is not known.
fn noting_truncation(mut verdict: Verdict, finish: &Finish) -> Verdict {
    if *finish == Finish::Length {
        verdict.detail.insert("judge_truncated".to_owned(), true.into());
    }
    verdict
}

fn sum(before: Option<Usage>, now: Option<Usage>) -> Option<Usage> {
    match (before, now) {
        (Some(before), Some(now)) => Some(before.plus(now)),
        (before, now) => before.or(now),
    }
}

/// Why a sample ended without a verdict. What a reply says about a gated item is not for everybody: then it is not
/// quoted.
fn without_verdict(model: &str, replies: u32, none: &NoVerdict, text: &str, gated: bool) -> String {
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

/// The beginning of a text from outside, without control characters.
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
        let reason = without_verdict("openai/judge", 3, &none, &"é\n".repeat(5_000), false);
        assert!(reason.starts_with(
            "the judge openai/judge gave no verdict in 3 replies: no JSON object; the last one begins `é é "
        ));
        assert!(reason.chars().count() < 400 && reason.ends_with("…`") && !reason.contains('\n'), "{reason}");
        let empty = without_verdict("j", 1, &none, " \n", false);
        assert_eq!(empty, "the judge j gave no verdict in its reply: no JSON object; the last one is empty");
    }

    #[test]
    fn a_verdict_from_a_reply_that_was_cut_off_is_marked() {
        let verdict = Verdict::correct("42".to_owned());
        assert_eq!(noting_truncation(verdict.clone(), &Finish::Stop), verdict);
        let cut = noting_truncation(verdict.clone(), &Finish::Length);
        assert_eq!((cut.outcome, cut.score), (verdict.outcome, verdict.score));
        assert_eq!(cut.detail["judge_truncated"], true);
    }

    #[test]
    fn nothing_of_a_gated_item_is_in_a_reason() {
        let none = NoVerdict("`secret` is no verdict".to_owned());
        let reason = without_verdict("j", 2, &none, "the secret is 42", true);
        assert_eq!(reason, "the judge j gave no verdict in 2 replies");
    }

    #[test]
    fn tokens_of_replies_add_up_where_they_were_counted() {
        let some = Some(Usage::counted(3, 2, 1));
        assert_eq!((sum(None, None), sum(some, None), sum(None, some)), (None, some, some));
        assert_eq!(sum(some, some).map(Usage::total), Some(10));
    }
}
