//! Full contexts of `terminus-2`: summaries, and what replaces them.

use bench_agents::terminus2::Terminus2Settings;
use bench_agents::{Act, End, ModelFailureKind};

use crate::driver::{Episode, INSTRUCTION, cut, failure, json_reply, overflow, reply, reply_with, screen};

#[test]
fn a_full_context_is_summarized() {
    let settings = Terminus2Settings { context_tokens: 20_000, ..Terminus2Settings::default() };
    let mut episode = Episode::open(settings);
    let first = episode.question();
    let text = json_reply(&["ls\n"], false);
    for input_tokens in [5_000, 9_000, 15_990] {
        episode.give(reply_with(&text, input_tokens));
        episode.give(screen("$ "));
        if input_tokens == 15_990 {
            // 4,000 tokens are free, which is less than the threshold.
            assert!(episode.question().contains("Another agent is going to take over"));
        }
    }
    assert_eq!(episode.request().len(), 7);
    episode.give(reply("SUMMARY"));
    assert_eq!(episode.act(), Act::Look);
    episode.give(screen("SCREEN"));
    let request = episode.request();
    assert_eq!(request.len(), 1);
    assert!(request[0].1.contains("SUMMARY") && request[0].1.contains("SCREEN"));
    let asked = request[0].1.clone();
    episode.give(reply("QUESTIONS"));
    let request = episode.request();
    assert_eq!(request.len(), 9);
    assert_eq!(request[7].1, "SUMMARY");
    assert!(request[8].1.ends_with("\n\nQUESTIONS"));
    episode.give(reply("ANSWERS"));
    let request = episode.request();
    let texts: Vec<_> = request.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts[..3], [first.as_str(), &asked, "QUESTIONS"]);
    assert!(texts[3].contains("ANSWERS") && texts.len() == 4);
    episode.turn(&text);
    assert_eq!(episode.request().len(), 6);
    assert_eq!((episode.state.summaries(), episode.state.turns()), (1, 5));
}

#[test]
fn an_unsuccessful_summary_changes_nothing_before_an_overflow() {
    let settings = Terminus2Settings { context_tokens: 10_000, ..Terminus2Settings::default() };
    for fails_at in 0..3 {
        let mut episode = Episode::open(settings.clone());
        episode.give(reply_with(&json_reply(&["ls\n"], false), 5_000));
        episode.give(screen("$ ls\n$ "));
        for stage in 0..=fails_at {
            if matches!(episode.act(), Act::Look) {
                episode.give(screen("$ "));
            }
            let failing = if fails_at == 1 { cut("half") } else { failure(ModelFailureKind::Other) };
            episode.give(if stage == fails_at { failing } else { reply("text") });
        }
        assert_eq!(episode.request().len(), 3);
        assert_eq!(episode.question(), "New Terminal Output:\n$ ls\n$ ");
        // The reply that follows belongs to the conversation again.
        episode.give(reply_with(&json_reply(&["ls\n"], false), 100));
        episode.give(screen("$ ls\n$ "));
        assert_eq!(episode.request().len(), 5);
    }
}

#[test]
fn an_overflow_frees_tokens_and_is_summarized() {
    let settings = Terminus2Settings {
        context_tokens: 20_000,
        summary_threshold_tokens: 0,
        ..Terminus2Settings::default()
    };
    let mut episode = Episode::open(settings);
    for input_tokens in [3_000, 9_000, 15_991, 19_000] {
        episode.give(reply_with(&json_reply(&["ls\n"], false), input_tokens));
        episode.give(screen("$ "));
    }
    assert_eq!(episode.request().len(), 9);
    episode.give(overflow());
    // Of four pairs, two leave 4,000 tokens free; the request follows them.
    assert_eq!(episode.request().len(), 5);
    for text in ["SUMMARY", "QUESTIONS", "ANSWERS"] {
        episode.give(reply(text));
        if matches!(episode.act(), Act::Look) {
            episode.give(screen("$ "));
        }
    }
    assert_eq!(episode.request().len(), 4);
    assert!(episode.question().contains("ANSWERS"));
    episode.turn(&json_reply(&["ls\n"], false));
    assert_eq!(episode.request().len(), 6);
}

#[test]
fn without_a_summary_less_and_less_is_asked_for() {
    let mut episode = Episode::json();
    episode.turn(&json_reply(&["ls\n"], false));
    episode.give(overflow());
    episode.give(overflow());
    assert_eq!(episode.act(), Act::Look);
    episode.give(screen(&format!("{}END", "x".repeat(2_000))));
    let request = episode.request();
    assert_eq!(request.len(), 1);
    assert!(request[0].1.contains(&format!("\n{}END\n", "x".repeat(997))));
    let mut other = Episode::resume(&episode.agent, &episode.state, &episode.transcript);
    other.give(reply("SHORT"));
    assert_eq!(other.question(), format!("{INSTRUCTION}\n\nSummary of the work so far: SHORT"));
    episode.give(overflow());
    assert!(episode.question().starts_with(INSTRUCTION) && episode.question().ends_with("END"));
    // Not even this can be asked: the turn ends with a reply that nobody gave.
    let before = episode.state.turns();
    episode.give(overflow());
    assert_eq!(episode.state.turns(), before + 1);
    assert!(episode.question().contains("ERROR: No valid JSON found in response"));
    assert_eq!(episode.request().len(), 3);
    // Nor is a reply used that was cut.
    other.give(cut("half"));
    assert_eq!(other.question(), episode.question());
    assert_eq!(other.request().len(), 3);
}

#[test]
fn a_task_that_fills_the_context_is_not_summarized() {
    let mut episode = Episode::json();
    episode.give(overflow());
    assert_eq!(episode.act(), Act::Look);
    let mut episode =
        Episode::open(Terminus2Settings { is_summarizing: false, ..Terminus2Settings::default() });
    episode.give(overflow());
    assert_eq!(episode.end(), End::ContextExceeded);
    // A context smaller than the threshold is full at the beginning, but there is nothing to summarize.
    let mut episode =
        Episode::open(Terminus2Settings { context_tokens: 100, ..Terminus2Settings::default() });
    assert_eq!(episode.request().len(), 1);
    episode.turn(&json_reply(&[], false));
    assert_eq!(episode.state.summaries(), 1);
}
