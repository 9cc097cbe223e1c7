//! Episodes of `terminus-2` with scripted models.

use bench_agents::terminus2::{ReplyFormat, TaskText, Terminus2, Terminus2Settings, Terminus2Texts};
use bench_agents::{Act, Budget, End, ModelFailureKind, Role, Seen, StepError, Transcript};
use proptest::prelude::*;

use crate::driver::{Episode, cut, dead, failure, json_reply, overflow, reply, reply_with, screen};

#[test]
fn the_first_message_has_format_task_and_terminal() {
    for episode in [Episode::json(), Episode::xml()] {
        let request = episode.request();
        assert_eq!(request.len(), 1);
        let (role, text) = &request[0];
        assert_eq!(*role, Role::User);
        assert!(
            text.contains("Make {it} work.") && text.ends_with("Current Terminal Screen:\n$ \n"),
            "{text}"
        );
        assert!(!text.contains("{{") && !text.contains("{instruction}"));
    }
    let texts = Terminus2Texts::own(ReplyFormat::Json);
    let task = TaskText { instruction: "Do it.".to_owned(), additions: "\n\nSkills: none".to_owned() };
    let agent = Terminus2::new(Terminus2Settings::default(), &texts, task).unwrap();
    let mut episode = Episode::with(agent);
    episode.give(screen("$ "));
    assert!(episode.question().contains("Do it.\n\nSkills: none\n"));
    episode.turn(&json_reply(&[], false));
    episode.give(overflow());
    assert!(episode.question().contains("Do it.") && !episode.question().contains("Skills"));
}

#[test]
fn a_task_is_complete_after_a_confirmation() {
    let mut episode = Episode::json();
    episode.turn(&json_reply(&["ls\n", "C-c"], false));
    let question = episode.question();
    assert!(
        question.starts_with("Previous response had warnings:\nWARNINGS: - ") || question.starts_with("New")
    );
    episode.turn(&json_reply(&["make\n"], true));
    let question = episode.question();
    assert!(question.starts_with("Current terminal state:\nNew Terminal Output:\n$ \n\n"), "{question}");
    assert!(question.contains("`\"task_complete\": true`"));
    episode.give(reply(&json_reply(&["echo last\n"], true)));
    episode.give(screen("$ echo last\nlast\n$ "));
    assert_eq!(episode.end(), End::Completed);
    assert_eq!(episode.typed, ["ls\n", "C-c", "make\n", "echo last\n"]);
    assert_eq!(episode.state.turns(), 3);
}

#[test]
fn a_task_may_be_complete_at_once() {
    let mut episode = Episode::json();
    for _ in 0..2 {
        episode.turn(&json_reply(&[], true));
    }
    assert_eq!((episode.end(), episode.state.turns()), (End::Completed, 2));
    assert!(episode.typed.is_empty());
}

#[test]
fn a_reply_without_completion_withdraws_it() {
    let mut episode = Episode::xml();
    let done = "<response><analysis>a</analysis><plan>p</plan><commands></commands><task_complete>true</task_complete>\
                </response>";
    let more = "<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration=\"1\">ls\n</keystrokes>\
                </commands></response>";
    for text in [done, more, done, more] {
        episode.turn(text);
    }
    episode.turn(done);
    assert!(episode.question().contains("<task_complete>true</task_complete>"));
    // An invalid reply doesn't withdraw it.
    episode.turn("no");
    episode.turn(done);
    assert_eq!(episode.end(), End::Completed);
}

#[test]
fn an_invalid_reply_executes_nothing() {
    let mut episode = Episode::json();
    episode.give(reply(r#"x {"analysis": 1} y"#));
    let expected = "Previous response had parsing errors:\nERROR: Missing required fields: plan, commands\nWARNINGS: - Extra \
                    text detected before JSON object\n- Extra text detected after JSON object\n\n";
    assert!(episode.question().starts_with(expected), "{}", episode.question());
    assert_eq!(episode.request().len(), 3);
    assert_eq!(episode.state.turns(), 2);
    assert!(episode.typed.is_empty());
}

#[test]
fn warnings_precede_the_output() {
    let mut episode = Episode::json();
    episode.turn(&json_reply(&["a", "b\n"], false));
    let question = episode.question();
    assert!(
        question.starts_with("Previous response had warnings:\nWARNINGS: - Command 1 should end"),
        "{question}"
    );
    assert!(question.ends_with("\n\nNew Terminal Output:\n$ "), "{question}");
}

#[test]
fn long_output_is_limited_twice() {
    let mut episode = Episode::json();
    episode.give(reply(&json_reply(&[], false)));
    episode.give(screen(&format!("$ {}", "x".repeat(20_000))));
    assert!(
        episode.question().contains("\n[... output limited to 10000 bytes; 71 interior bytes omitted ...]\n")
    );
    // Neither do warnings without end fill the context.
    episode.turn(&json_reply(&vec!["a"; 1_000], false));
    assert!(episode.question().len() < 10_500);
    episode.give(reply(&json_reply(&vec!["a"; 1_001], true)));
    assert!(
        episode
            .question()
            .contains("\nERROR: Reply has 1001 commands, but at most 1000 are executed\nWARNINGS: - ")
    );
}

#[test]
fn a_cut_reply_is_asked_for_again() {
    let settings = Terminus2Settings { output_tokens: Some(4_096), ..Terminus2Settings::default() };
    let mut episode = Episode::open(settings);
    let text = r#"{"analysis": "long"#;
    episode.give(cut(text));
    assert_eq!(episode.state.turns(), 1);
    let request = episode.request();
    assert_eq!(request.len(), 3);
    assert_eq!(request[1], (Role::Assistant, text.to_owned()));
    assert!(
        request[2].1.contains("longer than 4096 tokens")
            && request[2].1.ends_with("- No valid JSON object found")
    );
    episode.turn(&json_reply(&[], false));
    assert_eq!(episode.state.turns(), 2);
    assert_eq!(episode.state.used().input_tokens, 200);
    for _ in 0..=100 {
        episode.give(cut(text));
    }
    assert_eq!(episode.end(), End::OutputExceeded);
}

#[test]
fn a_complete_beginning_of_a_cut_reply_is_used() {
    let complete = "<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration=\"1\">ls\n</keystrokes>\
                    </commands></response>";
    let mut episode = Episode::xml();
    episode.give(cut(&format!("{complete}\nAnd then")));
    assert!(matches!(episode.act(), Act::Type(keystrokes) if keystrokes[0].keys == "ls\n"));
    episode.give(screen("$ ls\n$ "));
    assert_eq!(episode.request()[1], (Role::Assistant, complete.to_owned()));
    episode.give(cut("<response><analysis>"));
    assert!(episode.question().contains("longer than the maximum output length"));
}

#[test]
fn a_reply_above_the_limit_counts_as_cut() {
    let mut episode = Episode::json();
    let long = format!(r#"{{"analysis":"{}"#, "é".repeat(bench_agents::REPLY_BYTES_MAX / 2));
    episode.give(reply(&long));
    assert_eq!(episode.state.turns(), 1);
    assert_eq!(episode.request()[1].1.len(), bench_agents::REPLY_BYTES_MAX - 1);
}

#[test]
fn limits_end_an_episode_between_turns() {
    let budget = |tokens_max, cost_usd_max, time_ms_max| Budget { tokens_max, cost_usd_max, time_ms_max };
    for (turns_max, budget, turns, end) in [
        (2, Budget::default(), 2, End::TurnLimit),
        (9, budget(Some(300), None, None), 3, End::TokenLimit),
        (9, budget(None, Some(0.5), None), 2, End::CostLimit),
        (9, budget(None, None, Some(4_000)), 4, End::TimeLimit),
        (9, budget(Some(0), None, None), 0, End::TokenLimit),
    ] {
        let mut episode =
            Episode::open(Terminus2Settings { turns_max, budget, ..Terminus2Settings::default() });
        while !matches!(episode.act(), Act::End(_)) {
            episode.elapsed_ms += 1_000;
            episode.turn(&json_reply(&["ls\n"], false));
        }
        assert_eq!((episode.end(), episode.state.turns()), (end, turns));
    }
}

#[test]
fn a_terminal_that_is_gone_ends_the_episode() {
    let mut episode = Episode::new(Terminus2Settings::default());
    episode.give(dead());
    assert_eq!(episode.end(), End::TerminalEnded);
    for (complete, end) in [(false, End::TerminalEnded), (true, End::Completed)] {
        let mut episode = Episode::json();
        episode.turn(&json_reply(&["make\n"], true));
        episode.give(reply(&json_reply(&["exit\n"], complete)));
        episode.give(dead());
        assert_eq!(episode.end(), end);
    }
}

#[test]
fn a_model_that_fails_for_good_ends_the_episode() {
    let mut episode = Episode::json();
    episode.give(failure(ModelFailureKind::Other));
    assert_eq!(episode.end(), End::ModelFailed { message: "no model".to_owned() });
    assert_eq!(episode.end().exception(), Some("UnknownApiError"));
}

#[test]
fn observations_of_other_steps_are_refused() {
    let episode = Episode::json();
    let observation = episode.observation(screen("$ "));
    let error = episode.agent.step(&episode.state, &episode.transcript, observation).unwrap_err();
    assert_eq!(error.to_string(), "step 1 waits for a reply of the model, not for the terminal");
    let observation = episode.observation(reply("x"));
    let error = episode.agent.step(&episode.state, &Transcript::default(), observation).unwrap_err();
    assert_eq!(error.to_string(), "the state was saved after 1 parts of the transcript, but 0 are loaded");
    assert_eq!(
        episode.agent.act(&episode.state, &Transcript::default()),
        Err(StepError::OtherTranscript { given: 0, expected: 1 })
    );
}

#[test]
fn stored_bytes_grow_linearly() {
    let mut episode = Episode::json();
    let mut at_50 = 0;
    let mut history = String::new();
    for turn in 0..200 {
        history.push_str(&format!("$ make {turn}\n{}\n", "output ".repeat(100)));
        episode.give(reply(&json_reply(&["make\n"], false)));
        episode.give(screen(&history));
        if turn == 49 {
            at_50 = episode.stored_bytes;
        }
    }
    assert!(episode.stored_bytes < at_50 * 4 + at_50 / 10, "{} and {at_50}", episode.stored_bytes);
    assert_eq!(episode.request().len(), 401);
}

#[test]
fn a_template_without_its_fields_is_refused() {
    let texts = Terminus2Texts { task: "{instruction}".to_owned(), ..Terminus2Texts::own(ReplyFormat::Json) };
    let error = Terminus2::new(Terminus2Settings::default(), &texts, "x").unwrap_err();
    assert_eq!(error.to_string(), "template `task` lacks the field `{terminal_state}`");
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let texts = prop::sample::select(vec![
        json_reply(&["ls\n"], false),
        json_reply(&["C-c", "x"], true),
        json_reply(&[], true),
        "no json".to_owned(),
        "{".to_owned(),
    ]);
    prop_oneof![
        4 => (texts.clone(), 0..30_000_u64).prop_map(|(text, tokens)| reply_with(&text, tokens)),
        1 => any::<Vec<u8>>().prop_map(|bytes| reply(&String::from_utf8_lossy(&bytes))),
        1 => texts.prop_map(|text| cut(&text)),
        4 => "[a$\n é]{0,40}".prop_map(|text| screen(&text)),
        1 => Just(dead()),
        1 => Just(overflow()),
        1 => Just(failure(ModelFailureKind::Other)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn every_course_is_repeatable_and_has_a_trajectory(seen in prop::collection::vec(any_seen(), 0..80)) {
        let settings = Terminus2Settings { context_tokens: 20_000, turns_max: 30, ..Terminus2Settings::default() };
        let mut episode = Episode::open(settings);
        for seen in seen {
            let is_expected = match episode.act() {
                Act::End(_) => break,
                Act::Type(_) | Act::Look => matches!(seen, Seen::Terminal(_)),
                Act::AskModel(call) => {
                    let request = episode.transcript.request(&call);
                    prop_assert_eq!(request.last().map(|message| message.role), Some(Role::User));
                    matches!(seen, Seen::Reply(_) | Seen::ModelFailed(_))
                }
                Act::Run(_) => false,
            };
            if is_expected {
                episode.give(seen);
            } else {
                let observation = episode.observation(seen);
                prop_assert!(episode.agent.step(&episode.state, &episode.transcript, observation).is_err());
            }
        }
        crate::trajectories::check(&episode);
    }
}
