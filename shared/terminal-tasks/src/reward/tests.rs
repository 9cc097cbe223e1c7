use bench_domain::Outcome;

use super::*;

fn text(content: &str) -> Result<Rewards, RewardError> {
    parse_rewards(None, Some(content.as_bytes()))
}

fn json(content: &str) -> Result<Rewards, RewardError> {
    parse_rewards(Some(content.as_bytes()), None)
}

fn verdict(rewards: Result<Rewards, RewardError>) -> Verdict {
    rewards.map_or_else(|error| error.verdict(), |rewards| rewards.verdict())
}

#[test]
fn only_the_full_reward_passes() {
    for (content, outcome, score) in [
        ("1", Outcome::Correct, 1.0),
        (" 1.0\n", Outcome::Correct, 1.0),
        ("1e0", Outcome::Correct, 1.0),
        ("0", Outcome::Incorrect, 0.0),
        ("-0.0", Outcome::Incorrect, 0.0),
        ("-3", Outcome::Incorrect, 0.0),
        ("0.5", Outcome::Partial, 0.5),
        (".999999", Outcome::Partial, 0.999999),
    ] {
        let verdict = verdict(text(content));
        assert_eq!((verdict.outcome, verdict.score, verdict.code), (outcome, Some(score), None), "{content}");
        assert_eq!(verdict.reason.is_empty(), outcome == Outcome::Correct);
    }
}

#[test]
fn every_unusable_reward_has_a_name_and_no_grade() {
    let large = "1".repeat(REWARD_BYTES_MAX + 1);
    let cases = [
        (parse_rewards(None, None), "RewardFileNotFoundError", "neither"),
        (text(""), "RewardFileEmptyError", "`/logs/verifier/reward.txt` is empty"),
        (json(""), "RewardFileEmptyError", "`/logs/verifier/reward.json` is empty"),
        (text(&large), "VerifierOutputParseError", "more than 65536 bytes"),
        (text("\n"), "VerifierOutputParseError", "not one number"),
        (text("1\n0"), "VerifierOutputParseError", "not one number"),
        (text("pass"), "VerifierOutputParseError", "`pass`, not one number"),
        (text("nan"), "VerifierOutputParseError", "not finite"),
        (text("-inf"), "VerifierOutputParseError", "not finite"),
        (text("1e999"), "VerifierOutputParseError", "not finite"),
        (json("1"), "VerifierOutputParseError", "an object of numbers"),
        (json("{}"), "VerifierOutputParseError", "an object of numbers"),
        (json("{\"reward\": NaN}"), "VerifierOutputParseError", "an object of numbers"),
        (json("{\"reward\": \"1\"}"), "VerifierOutputParseError", "an object of numbers"),
        (json("{\"reward\": [1]}"), "VerifierOutputParseError", "an object of numbers"),
        (json("{\"reward\": 1, \"reward\": 0}"), "VerifierOutputParseError", "different keys"),
        (json("{\"reward\": 1e999}"), "VerifierOutputParseError", "an object of numbers"),
        (json("{\"reward\": 1} x"), "VerifierOutputParseError", "an object of numbers"),
    ];
    for (result, exception, part) in cases {
        let error = result.unwrap_err();
        assert_eq!(error.exception_name(), exception, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        let verdict = error.verdict();
        assert_eq!(
            (verdict.outcome, verdict.code),
            (Outcome::InfrastructureError, Some(Code::SandboxNoVerdict))
        );
        let cause = crate::exception::Exception::of(exception).cause;
        assert_eq!(cause, crate::exception::ExceptionCause::Verifier);
    }
    // A byte that isn't UTF-8 isn't a number.
    assert!(parse_rewards(None, Some(b"1\xff")).is_err());
}

#[test]
fn json_wins_and_booleans_are_numbers() {
    let both = parse_rewards(Some(b"{\"reward\": true}"), Some(b"0")).unwrap();
    assert_eq!(both.main(), Ok(1.0));
    // The wrong file doesn't make the right one count.
    assert!(parse_rewards(Some(b"x"), Some(b"1")).is_err());
}

#[test]
fn several_rewards_need_a_main_one() {
    let several = json("{\"reward\": 0.25, \"style\": 1}").unwrap();
    assert_eq!((several.main(), several.all().len()), (Ok(0.25), 2));
    assert_eq!(several.verdict().detail["rewards"]["style"], 1.0);
    assert_eq!(json("{\"accuracy\": 1}").unwrap().verdict().outcome, Outcome::Correct);
    let ambiguous = json("{\"a\": 1, \"b\": 1}").unwrap();
    assert_eq!(ambiguous.main(), Err(RewardError::Ambiguous { count: 2 }));
    assert_eq!(ambiguous.verdict().outcome, Outcome::InfrastructureError);
    assert_eq!(text("1.5").unwrap().verdict().outcome, Outcome::InfrastructureError);
}

fn rewards(entries: &[(&str, f64)]) -> Option<Rewards> {
    Some(Rewards(entries.iter().map(|(key, reward)| ((*key).to_owned(), *reward)).collect()))
}

#[test]
fn steps_are_combined_as_the_task_says() {
    let steps = [rewards(&[("reward", 1.0), ("a", 1.0)]), None, rewards(&[("reward", 0.5)])];
    assert_eq!(Rewards::combine(RewardStrategy::Mean, &steps), rewards(&[("reward", 0.75), ("a", 0.5)]));
    assert_eq!(Rewards::combine(RewardStrategy::Final, &steps), rewards(&[("reward", 0.5)]));
    assert_eq!(Rewards::combine(RewardStrategy::Final, &steps[..2]), None);
    assert_eq!(Rewards::combine(RewardStrategy::Mean, &[None]), None);
    assert_eq!(Rewards::combine(RewardStrategy::Mean, &[]), None);
    // Steps that the agent can't pass any more count.
    let ended = [rewards(&[("reward", 1.0)]), Some(Rewards::none()), Some(Rewards::none())];
    assert_eq!(Rewards::combine(RewardStrategy::Mean, &ended), rewards(&[("reward", 1.0 / 3.0)]));
    assert_eq!(Rewards::combine(RewardStrategy::Final, &ended), None);
    assert_eq!(Rewards::combine(RewardStrategy::Mean, &ended[1..]), None);
}

#[test]
fn any_content_has_a_verdict() {
    proptest::proptest!(|(content in r#"[0-9.eE+\-{}":, nNaAiIfFtrueword\[\]]{0,24}"#)| {
        for verdict in [verdict(text(&content)), verdict(json(&content))] {
            let is_pass = verdict.outcome == Outcome::Correct;
            proptest::prop_assert_eq!(is_pass, verdict.score == Some(1.0));
            proptest::prop_assert!(verdict.score.is_none_or(|score| (0.0..=1.0).contains(&score)));
        }
    });
}
