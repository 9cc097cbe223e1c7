//! Functions of `terminus-2`, compared with the official ones.

use bench_agents::terminus2::{ParsedCommand, incremental_output, salvage_truncated_xml};
use bench_agents::{Keystrokes, limit_output};
use serde_json::Value;

use crate::support::{is_same, number, text, vectors};

/// Returns the cases of a function; their number is asserted.
fn cases(function: &str, count: usize) -> Vec<Value> {
    let all: Value = serde_json::from_str(&vectors("terminus2_functions.json")).unwrap();
    let cases = all[function].as_array().unwrap().clone();
    assert_eq!(cases.len(), count, "{function}");
    cases
}

#[test]
fn output_is_limited_as_officially() {
    for case in cases("limit_output", 11) {
        let bytes_max = usize::try_from(case["max_bytes"].as_u64().unwrap()).unwrap();
        assert_eq!(limit_output(&text(&case["input"]), bytes_max), text(&case["output"]), "{}", case["id"]);
    }
    for case in cases("limit_output_twice", 3) {
        let once = limit_output(&text(&case["input"]), 10_000);
        assert_eq!(once, text(&case["once"]), "{}", case["id"]);
        assert_eq!(limit_output(&once, 10_000), text(&case["twice"]), "{}", case["id"]);
    }
}

#[test]
fn the_screen_is_shown_as_officially() {
    for case in cases("incremental_output", 10) {
        let mut mark = None;
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let (shown, next) =
                incremental_output(mark.as_ref(), &text(&step["full"]), &text(&step["visible"]));
            assert_eq!(shown, text(&step["output"]), "{} step {index}", case["id"]);
            mark = Some(next);
        }
    }
}

#[test]
fn cut_replies_are_salvaged_as_officially() {
    for case in cases("salvage_truncated_xml", 11) {
        let expected = (!case["salvaged"].is_null()).then(|| text(&case["salvaged"]));
        assert_eq!(salvage_truncated_xml(&text(&case["reply"])), expected.as_deref(), "{}", case["id"]);
    }
}

#[test]
fn durations_are_capped_as_officially() {
    for case in cases("duration_cap", 7) {
        let command = ParsedCommand { keystrokes: String::new(), duration_s: number(&case["parsed"]) };
        let keystrokes = command.keystrokes();
        let executed = number(&case["executed"]);
        // A wait that isn't a number is none.
        let expected = if executed.is_nan() { 0.0 } else { executed };
        assert!(is_same(keystrokes.duration_s, expected), "{}", case["id"]);
        assert_eq!(keystrokes.wait_ms(), (expected.max(0.0) * 1_000.0) as u64, "{}", case["id"]);
    }
}

#[test]
fn keystrokes_are_sent_as_officially() {
    for case in cases("send_keys", 9) {
        let keystrokes = Keystrokes { keys: text(&case["key"]), duration_s: 1.0 };
        let commands = keystrokes.send_commands("t1");
        match case["paste"].as_bool().unwrap() {
            false => assert_eq!(commands, [text(&case["command"])], "{}", case["id"]),
            true => assert_eq!(commands, keystrokes.paste_commands("t1"), "{}", case["id"]),
        }
    }
}

#[test]
fn long_keystrokes_are_pasted_in_chunks() {
    let keys = "é$'\n".repeat(20_000);
    let commands = Keystrokes { keys: keys.clone(), duration_s: 1.0 }.send_commands("turn-3-1");
    let [first, .., paste, remove] = &commands[..] else { panic!("{} commands", commands.len()) };
    assert!(first.ends_with(" | base64 -d > /tmp/.bench-paste-turn-3-1"));
    assert!(paste.contains("paste-buffer -d -b bench-paste-turn-3-1 -t terminus-2"));
    assert_eq!(remove, "rm -f /tmp/.bench-paste-turn-3-1");
    // The commands do what they say, apart from those of tmux.
    let folder = std::env::temp_dir().join(format!("bench-agents-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("keys");
    for command in &commands[..commands.len() - 2] {
        assert!(command.len() < 66_000);
        let command = command.replace("/tmp/.bench-paste-turn-3-1", file.to_str().unwrap());
        assert!(std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), keys);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn control_characters_are_sent_except_nul() {
    let keystrokes = Keystrokes { keys: "\u{3}a\0b\u{1b}:wq\r\n".to_owned(), duration_s: 0.0 };
    assert_eq!(keystrokes.send_commands("t"), ["tmux send-keys -t terminus-2 -- '\u{3}ab\u{1b}:wq\r\n'"]);
    assert_eq!(Keystrokes { keys: String::new(), duration_s: 0.0 }.paste_commands("t"), Vec::<String>::new());
}
