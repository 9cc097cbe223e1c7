use proptest::prelude::*;

use super::*;

fn letter(reply: &str) -> Option<char> {
    extract(reply).map(|found| found.letter)
}

#[test]
fn letters_match_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/mmlu_pro_extract.jsonl");
    let lines = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for line in lines.lines() {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        let found = extract(vector["response"].as_str().unwrap());
        let text = found.map(|found| found.letter.to_string());
        assert_eq!(text.as_deref(), vector["official"].as_str(), "{}", vector["id"]);
        // The other official scripts leave bold marks in the text.
        let reply = vector["response"].as_str().unwrap();
        let without = find_in_stages(reply).map(|found| found.letter.to_string());
        assert_eq!(without.as_deref(), vector["official_no_bold_strip"].as_str(), "{}", vector["id"]);
        let first = after_answer_is(reply).map(|letter| letter.to_string());
        assert_eq!(first.as_deref(), vector["level1_only"].as_str(), "{}", vector["id"]);
        seen += 1;
    }
    assert_eq!(seen, 170);
}

#[test]
fn replies_are_parsed_as_by_the_protocol() {
    for (reply, expected, stage) in [
        ("The answer is **(C)**. Option B is a trap.", 'C', 1),
        ("The answer is Apple.", 'A', 1),
        ("The answer is (B). Wait, the answer is (C).", 'B', 1),
        ("<think>The answer is (B)</think>Answer: C", 'B', 1),
        ("Answer: Because nothing fits", 'B', 2),
        ("answer:\n\nC", 'C', 2),
        ("Answer: B\nAnswer: C", 'B', 2),
        ("x Answer: B, Answer: C", 'C', 2),
        ("Answer: x Answer:\nD\nAnswer: E", 'D', 2),
        ("The Answer Is C", 'C', 3),
        ("ANSWER: C", 'C', 3),
        ("The answer is not (B), it is (C).", 'C', 3),
        ("F_1 is J", 'J', 3),
        ("C\u{301} mark", 'C', 3),
        ("\\boxed{C}", 'C', 3),
    ] {
        assert_eq!(extract(reply), Some(Extraction { letter: expected, stage }), "{reply:?}");
    }
    for reply in
        ["", "c", "None of them.", "The answer is (K).", "C日本 is right", "Answer: Ａ", "Ａ", "A1 B_ ²C"]
    {
        assert_eq!(letter(reply), None, "{reply:?}");
    }
}

/// Texts of 1 MiB that would take hours if a stage scanned them again for each marker.
#[test]
fn large_replies_are_parsed_quickly() {
    let mebibyte = 1 << 20;
    for (reply, expected) in [
        ("answer is ".repeat(mebibyte / 10), None),
        ("answer is (x".repeat(mebibyte / 12), None),
        ("Answer: x".repeat(mebibyte / 9), None),
        ("nswer:".repeat(mebibyte / 6), None),
        (format!("Answer:{}", " ".repeat(mebibyte)), None),
        (format!("Answer:{}", "\n".repeat(mebibyte)), None),
        ("Answer:\n".repeat(mebibyte / 8), Some('A')),
        ("AB ".repeat(mebibyte / 3), None),
        ("A_".repeat(mebibyte / 2), None),
        ("*".repeat(mebibyte), None),
        ("** *".repeat(mebibyte / 4), None),
        ("{".repeat(mebibyte / 2) + &"}".repeat(mebibyte / 2), None),
        ("A ".repeat(mebibyte / 2), Some('A')),
        (format!("{}J", "Answer: A".repeat(mebibyte / 9)), Some('A')),
        (format!("{}.", "Answer: A, Answer: B ".repeat(mebibyte / 21)), Some('B')),
    ] {
        assert_eq!(letter(&reply), expected, "{:?}", reply.get(..20));
    }
}

fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
    let pieces = vec![
        "answer is ",
        "Answer is ",
        "answer:",
        "Answer:",
        "ANSWER:",
        "nswer:",
        "a",
        "A",
        "B",
        "J",
        "K",
        "c",
        "(",
        ")",
        " ",
        "\n",
        ".",
        "*",
        "**",
        "_",
        "1",
        "é",
        "日",
        "The answer is (",
        "Answer: ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24)
}

/// Applies the official patterns as regular expressions, the third one by its last match.
fn parse_with_regex(reply: &str) -> Option<String> {
    let text = reply.replace("**", "");
    let first = |pattern: &str| {
        let found = regex::Regex::new(pattern).unwrap().captures(&text)?;
        Some(found[1].to_owned())
    };
    let lone = || Some(regex::Regex::new(r"\b[A-J]\b").unwrap().find_iter(&text).last()?.as_str().to_owned());
    first(r"answer is \(?([A-J])\)?").or_else(|| first(r".*[aA]nswer:\s*([A-J])")).or_else(lone)
}

proptest! {
    #[test]
    fn no_reply_panics(reply in any::<String>()) {
        extract(&reply);
    }

    #[test]
    fn the_requested_sentence_is_found(before in "[a-z ]{0,40}", letter in "[A-J]") {
        let found = extract(&format!("{before}The answer is ({letter})."));
        prop_assert_eq!(found.map(|found| found.letter.to_string()), Some(letter));
    }

    #[test]
    fn the_scans_agree_with_the_patterns(pieces in pieces()) {
        let reply = pieces.concat();
        prop_assert_eq!(letter(&reply).map(String::from), parse_with_regex(&reply));
    }

    #[test]
    fn bold_does_not_matter(pieces in pieces(), at in 0_usize..25) {
        let mut bold = pieces.clone();
        bold.insert(at.min(pieces.len()), "**");
        prop_assert_eq!(extract(&pieces.concat()), extract(&bold.concat()));
    }

    #[test]
    fn text_after_the_answer_does_not_matter(letter in "[A-J]", after in any::<String>()) {
        let found = extract(&format!("So the answer is ({letter}).{after}"));
        prop_assert_eq!(found.map(|found| (found.letter.to_string(), found.stage)), Some((letter, 1)));
    }
}
