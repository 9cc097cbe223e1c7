//! Output on terminals with and without UTF-8.

use crate::preview::in_terminal_with;
use crate::support::TestDir;

const DEMO: [&str; 6] = ["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro,ifbench"];

#[test]
fn a_locale_without_utf8_gets_ascii_and_nothing_moves_the_cursor() {
    for (all, ctype, lang) in [("C", "", "C.UTF-8"), ("", "POSIX", "C.UTF-8"), ("", "", "")] {
        let dir = TestDir::new();
        let locale = [("LC_ALL", all), ("LC_CTYPE", ctype), ("LANG", lang)];
        let shown = in_terminal_with(&dir, "", &DEMO, &locale);
        assert_eq!(shown.code, 0, "{}", shown.stdout);
        assert!(shown.stdout.is_ascii(), "{locale:?}: {}", shown.stdout);
        // Sequences for colors end in `m`.
        let sequences = shown.stdout.split("\u{1b}[").skip(1);
        let moves: Vec<&str> = sequences.filter(|text| !ends_in_color(text)).collect();
        assert!(moves.is_empty(), "{locale:?}: {moves:?}");
        assert!(shown.stdout.contains("mmlu_pro (DEMO) "), "{}", shown.stdout);
    }
    let shown = in_terminal_with(&TestDir::new(), "", &DEMO, &[("LC_ALL", "C.UTF-8")]);
    assert!(shown.stdout.contains('\u{2588}'), "bars: {}", shown.stdout);
}

fn ends_in_color(sequence: &str) -> bool {
    sequence.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

#[test]
fn results_below_bars_are_not_erased_by_messages() {
    let dir = TestDir::new();
    dir.write("replies.jsonl", "{\"item_id\":\"#0\",\"response\":\"The answer is (A).\"}\n");
    let args =
        ["run", "--model", "replay:replies.jsonl", "--demo", "--benchmark", "mmlu_pro", "--samples", "4"];
    let shown = in_terminal_with(&dir, "", &args, &[("LC_ALL", "C.UTF-8")]);
    assert_eq!(shown.code, 1, "{}", shown.stdout);
    // The run failed: errors and hints follow its results.
    let (_, after) = shown.stdout.rsplit_once("pass@1").expect(&shown.stdout);
    assert!(after.contains("hint:") && !after.contains("\u{1b}[1A"), "{after:?}");
}

#[test]
fn a_data_directory_that_does_not_exist_is_named() {
    let dir = TestDir::new();
    for args in [&["runs"][..], &["runs", "latest"], &["runs", "--json"]] {
        let args = [args, &["--data-dir", "mistyped"]].concat();
        dir.bench(&args).assert_refused(1, "the data directory `mistyped` does not exist");
    }
    // A new installation has none yet.
    let shown = dir.bench(&["runs"]);
    assert_eq!(shown.code, 0);
    assert!(
        shown.stderr.contains(&format!("`{}` does not exist", dir.path("data").display())),
        "{}",
        shown.stderr
    );
    assert!(!dir.path("mistyped").exists() && !dir.path("data").exists());
}
