use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn authors_letter(reply: &str) -> Option<String> {
    authors(reply).map(|found| found.letter.to_string())
}

fn simple_evals_letter(reply: &str) -> Option<String> {
    simple_evals(reply).map(String::from)
}

#[test]
fn letters_match_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/gpqa_diamond_extract.jsonl");
    let lines = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for line in lines.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let reply = vector["response"].as_str().unwrap();
        assert_eq!(
            authors_letter(reply).as_deref(),
            vector["official_gpqa_repo"].as_str(),
            "{}",
            vector["id"]
        );
        assert_eq!(
            simple_evals_letter(reply).as_deref(),
            vector["simple_evals"].as_str(),
            "{}",
            vector["id"]
        );
        seen += 1;
    }
    assert_eq!(seen, 170);
}

#[test]
fn replies_are_parsed_as_by_the_protocols() {
    for (reply, by_authors, by_simple_evals) in [
        ("The correct answer is (C).", Some("C"), None),
        ("The correct answer is (C) and not (D).", Some("C"), None),
        ("The correct answer is C", None, None),
        ("Answer: C", None, Some("C")),
        ("ANSWER: c", None, Some("c")),
        ("Answer: (C)", Some("C"), None),
        ("answer: (C)", Some("C"), None),
        ("answer (C)", Some("C"), None),
        ("(C)", Some("C"), None),
        ("Either (B) or (C), but the correct answer is (C).", Some("C"), None),
        ("(1) first, then (C)", None, None),
        ("the answer is (x). Answer: (C)", Some("C"), None),
        ("The correct answer is (insert answer here)", None, None),
        ("The answer is (E). Hmm, (C).", None, None),
        ("Answer: $C$", None, Some("C")),
        ("Answer: $C", None, Some("C")),
        ("Answer:   D then more", None, Some("D")),
        ("Final answer: B\nAnswer: A", None, Some("B")),
        ("**Answer:** A", None, None),
        ("**Answer: A**", None, Some("A")),
        ("Answer: Apple", None, Some("A")),
        ("The answer is Carbon", None, None),
        ("f(A) = (B)", Some("A"), None),
        ("I think (A) is wrong and (D) is right", Some("A"), None),
        ("", None, None),
        ("D", None, None),
        ("**D**", None, None),
        ("Answer : B", None, Some("B")),
        ("Answer\t:\tB", None, Some("B")),
        ("My answer:B!", None, Some("B")),
        ("The correct answer is **(C)**.", Some("C"), None),
        ("\\boxed{C}", None, None),
        ("Answer: \\boxed{C}", None, None),
        // Further cases, with results from Python 3.
        ("Anſwer: B", None, Some("B")),
        ("Answer:\nB", None, None),
        ("Answer:\u{a0}B", None, None),
        ("Answer: $$B", None, None),
        ("Answer: x answer:d", None, Some("d")),
        ("answer answer: A", None, Some("A")),
        ("Answer: Ａ", None, None),
        ("((A)", Some("A"), None),
        ("(()", None, None),
        ("(\n) (B)", Some("B"), None),
        ("(é) (B)", None, None),
        ("answer is (\n) answer is (D)", Some("D"), None),
        ("answer is (AB) answer is (D)", Some("D"), None),
    ] {
        assert_eq!(authors_letter(reply).as_deref(), by_authors, "{reply:?}");
        assert_eq!(simple_evals_letter(reply).as_deref(), by_simple_evals, "{reply:?}");
    }
    assert_eq!(authors("Answer: (C)"), Some(Extraction { letter: 'C', pattern: 2 }));
    assert_eq!(authors("(C)"), Some(Extraction { letter: 'C', pattern: 5 }));
}

/// Texts of 1 MiB that would take hours if a parser scanned them again for each marker.
#[test]
fn large_replies_are_parsed_quickly() {
    let mebibyte = 1 << 20;
    for reply in [
        "Answer: x".repeat(mebibyte / 9),
        format!("Answer{}", " ".repeat(mebibyte)),
        format!("Answer:{}", "\t".repeat(mebibyte)),
        format!("Answer \t: {}", " \t".repeat(mebibyte / 2)),
        "Answer:$x".repeat(mebibyte / 9),
        "answe".repeat(mebibyte / 5),
        "a".repeat(mebibyte),
        "(".repeat(mebibyte),
        "answer is (".repeat(mebibyte / 11),
        "answer is (é".repeat(mebibyte / 13),
        "Answer: (\n)".repeat(mebibyte / 11),
        "(AB)".repeat(mebibyte / 4),
    ] {
        assert_eq!((authors(&reply), simple_evals(&reply)), (None, None));
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "answer",
        "Answer",
        "ANSWER",
        "anſwer",
        " is ",
        ":",
        " ",
        "\t",
        "\n",
        "$",
        "(",
        ")",
        "A",
        "b",
        "C",
        "d",
        "E",
        "x",
        "**",
        "é",
        "日",
        "(A)",
        "(B",
        "The correct answer is (",
        "Answer: ",
        "\u{a0}",
        ".",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

/// Applies the patterns as regular expressions. Their class for `s` includes `ſ`, which Python treats as a case of `s`.
fn parse_with_regex(reply: &str) -> (Option<String>, Option<String>) {
    let first = |pattern: &str| {
        let found = regex::Regex::new(pattern).unwrap().captures(reply)?;
        Some(found[1].to_owned())
    };
    let patterns =
        [r"answer is \((.)\)", r"Answer: \((.)\)", r"answer: \((.)\)", r"answer \((.)\)", r"\((.)\)"];
    let letter = patterns
        .iter()
        .find_map(|pattern| first(pattern).filter(|found| ["A", "B", "C", "D"].contains(&found.as_str())));
    (letter, first(r"[Aa][Nn][SsſS][Ww][Ee][Rr][ \t]*:[ \t]*\$?([A-Da-d])\$?"))
}

proptest! {
    #[test]
    fn no_reply_panics(reply in any::<String>()) {
        authors(&reply);
        simple_evals(&reply);
    }

    #[test]
    fn the_scans_agree_with_the_patterns(reply in pieces()) {
        prop_assert_eq!((authors_letter(&reply), simple_evals_letter(&reply)), parse_with_regex(&reply));
    }

    #[test]
    fn text_after_the_answer_does_not_matter(letter in "[A-D]", before in "[b-z ]{0,40}", after in any::<String>()) {
        let reply = format!("{before}Answer: {letter}{after}");
        prop_assert_eq!(simple_evals_letter(&reply), Some(letter.clone()));
        let reply = format!("{before}The correct answer is ({letter}){after}");
        prop_assert_eq!(authors_letter(&reply), Some(letter));
    }

    #[test]
    fn text_before_the_answer_does_not_matter(letter in "[A-D]", before in "[^aA(]*") {
        prop_assert_eq!(simple_evals_letter(&format!("{before}Answer: {letter}")), Some(letter.clone()));
        prop_assert_eq!(authors_letter(&format!("{before}Answer: ({letter})")), Some(letter));
    }
}
