//! Verdicts of episodes.

use bench_domain::{Code, EpisodeReport, Verdict};
use bench_terminal_tasks::{Exception, Rewards};

use crate::stop::{DISK_LIMIT_EXCEEDED, ENVIRONMENT_GONE, TASK_REFUSED};

/// Returns the verdict of an episode. Its reward decides if there is one; otherwise its last exception does.
pub fn verdict(report: &EpisodeReport) -> Verdict {
    let mut verdict = match (&report.rewards, report.last_exception()) {
        (Some(rewards), _) => Rewards::from_map(rewards.clone()).verdict(),
        (None, Some(exception)) => of_exception(&exception.name, &exception.message),
        (None, None) => Verdict::ungraded(Code::SandboxNoVerdict, "the episode ended without a reward"),
    };
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
    verdict
}

/// Returns true if an episode without a reward may end differently in another sandbox.
pub fn is_retried(report: &EpisodeReport) -> bool {
    let exception = report.last_exception().filter(|_| report.rewards.is_none());
    exception.is_some_and(|exception| {
        !matches!(exception.name.as_str(), TASK_REFUSED | ENVIRONMENT_GONE | DISK_LIMIT_EXCEEDED)
            && Exception::of(&exception.name).is_retried
    })
}

fn of_exception(name: &str, message: &str) -> Verdict {
    let why = format!("{name}: {message}");
    match name {
        TASK_REFUSED => return Verdict::ungraded(Code::TaskRefused, message),
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
        _ => {}
    }
    let Exception { outcome, code, .. } = Exception::of(name);
    match (outcome.is_graded(), code) {
        (false, Some(code)) => Verdict::ungraded(code, why),
        (false, None) => Verdict::ungraded(Code::SandboxNoVerdict, why),
        (true, code) => Verdict { code, ..Verdict::wrong(outcome, why) },
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{EpisodeException, EpisodeStep, Outcome};

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
            (None, None, Outcome::InfrastructureError, None),
        ] {
            let verdict = verdict(&report(reward, exception));
            assert_eq!((verdict.outcome, verdict.score), (outcome, score), "{reward:?} {exception:?}");
            assert_eq!(verdict.code.is_some(), !outcome.is_graded(), "{exception:?}");
            assert_eq!(verdict.code == Some(Code::TaskRefused), exception == Some(TASK_REFUSED));
        }
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
