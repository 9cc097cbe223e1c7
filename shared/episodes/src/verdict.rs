//! Verdicts of episodes.

use bench_domain::{Code, EpisodeReport, EpisodeStep, Outcome, Verdict};
use bench_terminal_tasks::{Exception, Rewards};

use crate::stop::{
    ARTIFACTS_LIMIT_EXCEEDED, CHANGE_NOT_TEXT, CHANGE_TOO_LARGE, DISK_LIMIT_EXCEEDED, ENVIRONMENT_GONE,
    HOST_UNSUITABLE, TASK_REFUSED, WORKSPACE_LOST, is_by_agent,
};

/// Returns the verdict of an episode. Its reward decides if there is one and each step was graded; otherwise an exception
/// does: that of the step without a grade, or the last one.
pub fn verdict(report: &EpisodeReport) -> Verdict {
    let mut verdict = match (&report.rewards, report.last_exception()) {
        (Some(rewards), _) => match ungraded_step(report) {
            Some(step) => of_step(step),
            None => Rewards::from_map(rewards.clone()).verdict(),
        },
        (None, Some(exception)) => of_exception(&exception.name, &exception.message),
        (None, None) => Verdict::ungraded(Code::SandboxNoVerdict, "the episode ended without a reward"),
    };
    // A correct sample has no reason.
    if verdict.outcome.is_graded()
        && !verdict.reason.is_empty()
        && report.rewards.is_some()
        && let Some(early) = early_end(report)
    {
        verdict.reason.push_str(&format!("; {early}"));
    }
    describe_work(report, &mut verdict);
    verdict
}

/// Adds to a verdict how the agent worked and ended.
pub(crate) fn describe_work(report: &EpisodeReport, verdict: &mut Verdict) {
    let detail = &mut verdict.detail;
    detail.insert("agent".to_owned(), report.agent.as_str().into());
    if !report.engine.is_empty() {
        detail.insert("engine".to_owned(), report.engine.as_str().into());
    }
    let outcome = report.steps.iter().rev().find_map(|step| step.agent.as_ref());
    if let Some(outcome) = outcome {
        detail.insert("prompt".to_owned(), outcome.prompt.as_str().into());
        detail.insert("agent_end".to_owned(), outcome.end.as_str().into());
        detail.insert("turns".to_owned(), outcome.totals.turns.into());
    }
    if let Some(exception) = report.last_exception() {
        detail.insert("exception".to_owned(), exception.name.as_str().into());
    }
}

/// Adds to a verdict on an agent's change how the agent worked and ended. The reason of a wrong one says if it ended early.
pub fn describe_change(report: &EpisodeReport, verdict: &mut Verdict) {
    describe_work(report, verdict);
    if verdict.outcome.is_graded()
        && verdict.outcome != Outcome::Correct
        && let Some(early) = early_end(report)
    {
        let reason = verdict.reason.trim_end_matches('.');
        verdict.reason = format!("{reason}; {early}.");
    }
}

/// Returns how the agent ended, if not by itself and without a problem.
fn early_end(report: &EpisodeReport) -> Option<String> {
    let end = report.steps.iter().rev().find_map(|step| step.agent.as_ref()).map(|agent| agent.end.as_str());
    let known = match end {
        Some("completed") => return None,
        Some("turn_limit") => "the agent reached its limit of turns",
        Some("token_limit") => "the agent's budget of tokens was spent",
        Some("cost_limit") => "the agent's budget of dollars was spent",
        Some("time_limit") => "the agent's time was over",
        Some("context_exceeded") => "the agent's conversation no longer fit into the model's context",
        Some("output_exceeded") => "too many replies of the model in a row were cut by the length limit",
        Some("format_errors") => "too many replies of the model in a row had no valid form",
        Some("terminal_ended") => "the agent's terminal session had ended",
        _ => {
            return report
                .last_exception()
                .map(|exception| exception.message.clone())
                .filter(|why| !why.is_empty());
        }
    };
    Some(known.to_owned())
}

/// Returns true if an episode without a reward may end differently in another sandbox.
pub fn is_retried(report: &EpisodeReport) -> bool {
    let exception = match &report.rewards {
        Some(_) => ungraded_step(report).and_then(|step| step.exception.as_ref()),
        None => report.last_exception(),
    };
    exception.is_some_and(|exception| {
        exception.name != TASK_REFUSED
            && exception.name != HOST_UNSUITABLE
            && !is_by_agent(&exception.name)
            && Exception::of(&exception.name).is_retried
    })
}

/// Returns a step that has no rewards, and not because the agent ended its environment.
fn ungraded_step(report: &EpisodeReport) -> Option<&EpisodeStep> {
    let is_by_agent = |step: &EpisodeStep| step.exception.as_ref().is_some_and(|one| is_by_agent(&one.name));
    report.steps.iter().find(|step| step.rewards.is_none() && !is_by_agent(step))
}

/// Returns the verdict of an episode whose rewards are those of other steps.
fn of_step(step: &EpisodeStep) -> Verdict {
    let verdict = match &step.exception {
        Some(exception) => of_exception(&exception.name, &exception.message),
        None => Verdict::ungraded(Code::SandboxNoVerdict, "it ended without a reward"),
    };
    let reason = format!("step `{}`: {}", step.name.as_deref().unwrap_or_default(), verdict.reason);
    Verdict { reason, ..verdict }
}

pub(crate) fn of_exception(name: &str, message: &str) -> Verdict {
    let why = format!("{name}: {message}");
    match name {
        TASK_REFUSED => return Verdict::ungraded(Code::TaskRefused, message),
        HOST_UNSUITABLE => return Verdict::ungraded(Code::SandboxSetupNeeded, message),
        // Otherwise an agent could avoid a bad grade by ending its own environment.
        ENVIRONMENT_GONE => {
            return Verdict::incorrect(
                "",
                format!(
                    "the environment ended or broke under the agent's commands: the reward is 0 ({message})"
                ),
            );
        }
        DISK_LIMIT_EXCEEDED => {
            return Verdict::incorrect(
                "",
                format!("the environment was ended, because the agent's commands filled its disk: {message}"),
            );
        }
        ARTIFACTS_LIMIT_EXCEEDED => {
            return Verdict::incorrect(
                "",
                format!("the agent left more than the verifier can be given, so the reward is 0: {message}"),
            );
        }
        WORKSPACE_LOST => {
            let why = format!("the sandbox ended or broke under the agent's commands: {message}");
            return with_name("workspace-lost", Verdict::incorrect("", sentence(&why)));
        }
        CHANGE_TOO_LARGE => {
            return with_name("change-too-large", Verdict::incorrect("", sentence(message)));
        }
        CHANGE_NOT_TEXT => {
            return with_name("change-not-text", Verdict::incorrect("", sentence(message)));
        }
        _ => {}
    }
    let Exception { outcome, code, .. } = Exception::of(name);
    match (outcome.is_graded(), code) {
        (false, Some(code)) => Verdict::ungraded(code, why),
        (false, None) => Verdict::ungraded(Code::SandboxNoVerdict, why),
        (true, code) => Verdict { code, ..Verdict::wrong(outcome, why) },
    }
}

/// Returns a message as a sentence, as graders of changes write their reasons.
fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    format!("{}{}.", first.collect::<String>(), chars.as_str().trim_end_matches('.'))
}

/// Names a verdict as graders name theirs.
fn with_name(name: &str, mut verdict: Verdict) -> Verdict {
    verdict.detail.insert("verdict".to_owned(), name.into());
    verdict
}

#[cfg(test)]
mod tests {
    use bench_domain::{AgentOutcome, AgentTotals, EpisodeException, EpisodeStep};

    use super::*;

    fn report(reward: Option<f64>, exception: Option<&str>) -> EpisodeReport {
        let exception = exception
            .map(|name| EpisodeException { name: name.to_owned(), message: "it happened".to_owned() });
        let rewards = reward.map(|reward| [("reward".to_owned(), reward)].into());
        EpisodeReport {
            agent: "oracle".to_owned(),
            rewards: rewards.clone(),
            steps: vec![EpisodeStep { rewards, exception, ..EpisodeStep::default() }],
            ..EpisodeReport::default()
        }
    }

    #[test]
    fn the_reward_decides() {
        for (reward, exception, outcome, score) in [
            (Some(1.0), None, Outcome::Correct, Some(1.0)),
            (Some(0.5), None, Outcome::Partial, Some(0.5)),
            (Some(0.0), None, Outcome::Incorrect, Some(0.0)),
            // A time-out is graded.
            (Some(1.0), Some("AgentTimeoutError"), Outcome::Correct, Some(1.0)),
            (None, Some("VerifierTimeoutError"), Outcome::InfrastructureError, None),
            (None, Some("HealthcheckError"), Outcome::InfrastructureError, None),
            (None, Some(TASK_REFUSED), Outcome::InfrastructureError, None),
            (None, Some(ENVIRONMENT_GONE), Outcome::Incorrect, Some(0.0)),
            (None, Some(DISK_LIMIT_EXCEEDED), Outcome::Incorrect, Some(0.0)),
            (None, Some(ARTIFACTS_LIMIT_EXCEEDED), Outcome::Incorrect, Some(0.0)),
            (None, Some(WORKSPACE_LOST), Outcome::Incorrect, Some(0.0)),
            (None, Some(CHANGE_TOO_LARGE), Outcome::Incorrect, Some(0.0)),
            (None, Some(CHANGE_NOT_TEXT), Outcome::Incorrect, Some(0.0)),
            (None, None, Outcome::InfrastructureError, None),
        ] {
            let verdict = verdict(&report(reward, exception));
            assert_eq!((verdict.outcome, verdict.score), (outcome, score), "{reward:?} {exception:?}");
            assert_eq!(verdict.code.is_some(), !outcome.is_graded(), "{exception:?}");
            assert_eq!(verdict.code == Some(Code::TaskRefused), exception == Some(TASK_REFUSED));
        }
    }

    #[test]
    fn the_reason_says_how_the_agent_ended() {
        let of = |reward: f64, end: Option<&str>, exception: Option<&str>| {
            let mut report = report(Some(reward), exception);
            report.steps[0].agent = end.map(|end| AgentOutcome {
                end: end.to_owned(),
                exception: None,
                prompt: "own".to_owned(),
                elapsed_ms: 1,
                totals: AgentTotals::default(),
                records: 1,
            });
            verdict(&report).reason
        };
        assert_eq!(of(0.0, Some("completed"), None), "the reward is 0");
        assert_eq!(
            of(0.0, Some("turn_limit"), None),
            "the reward is 0; the agent reached its limit of turns"
        );
        assert_eq!(
            of(0.5, Some("time_limit"), Some("AgentTimeoutError")),
            "the reward is 0.5; the agent's time was over"
        );
        assert_eq!(of(1.0, Some("time_limit"), Some("AgentTimeoutError")), "");
        assert_eq!(of(0.0, None, Some("NonZeroAgentExitCodeError")), "the reward is 0; it happened");
        assert_eq!(of(1.0, None, None), "");
    }

    #[test]
    fn reasons_about_changes_are_sentences_as_those_of_their_grader() {
        let reason = |name| verdict(&report(None, Some(name))).reason;
        assert_eq!(reason(CHANGE_TOO_LARGE), "It happened.");
        assert_eq!(
            reason(WORKSPACE_LOST),
            "The sandbox ended or broke under the agent's commands: it happened."
        );
    }

    #[test]
    fn a_step_without_a_grade_is_not_left_out() {
        let of = |exception: &str| {
            let second =
                EpisodeStep { name: Some("two".to_owned()), ..report(None, Some(exception)).steps.remove(0) };
            let mut report = report(Some(1.0), None);
            report.steps.push(second);
            report
        };
        for (exception, outcome, retried) in [
            ("RewardFileNotFoundError", Outcome::InfrastructureError, false),
            ("RuntimeError", Outcome::InfrastructureError, true),
            (TASK_REFUSED, Outcome::InfrastructureError, false),
            ("AgentTimeoutError", Outcome::TooLong, false),
        ] {
            let found = verdict(&of(exception));
            assert_eq!((found.outcome, found.score), (outcome, None), "{exception}");
            assert!(found.reason.starts_with("step `two`: "), "{}", found.reason);
            assert_eq!(is_retried(&of(exception)), retried, "{exception}");
        }
        // It counted as 0 when the rewards were combined.
        let graded =
            EpisodeReport { rewards: Some([("reward".to_owned(), 0.5)].into()), ..of(ENVIRONMENT_GONE) };
        assert_eq!((verdict(&graded).outcome, verdict(&graded).score), (Outcome::Partial, Some(0.5)));
        assert!(!is_retried(&graded));
    }

    #[test]
    fn only_other_people_s_failures_are_tried_again() {
        for (reward, exception, expected) in [
            (None, Some("HealthcheckError"), true),
            (None, Some("MemoryLimitExceededError"), true),
            (None, Some("VerifierTimeoutError"), false),
            (None, Some(TASK_REFUSED), false),
            (None, Some(ENVIRONMENT_GONE), false),
            (Some(0.0), Some("NonZeroAgentExitCodeError"), false),
            (None, None, false),
        ] {
            assert_eq!(is_retried(&report(reward, exception)), expected, "{exception:?}");
        }
    }
}
