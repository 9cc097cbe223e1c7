use proptest::prelude::*;

use super::*;

#[test]
fn texts_are_split_as_by_the_protocol() {
    for (text, expected) in [
        ("Dr. Smith arrived.", &["Dr. Smith arrived."][..]),
        ("Hi there! Bye.", &["Hi there!", "Bye."]),
        ("One... two", &["One... two"]),
        ("It was 3.5 km. then more", &["It was 3.5 km.", "then more"]),
        ("He met J. R. Tanaka. She left.", &["He met J. R. Tanaka.", "She left."]),
        ("\"Stop!\" he said. (Really?) Yes.", &["\"Stop!\"", "he said.", "(Really?)", "Yes."]),
        ("a title\n\nwithout a mark", &["a title\n\nwithout a mark"]),
        ("acting!!! Now", &["acting!!!", "Now"]),
        ("", &[]),
        (" \n\n ", &[]),
    ] {
        assert_eq!(sentences(text), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn sentences_are_parts_in_order(text in "[A-Za-z0-9.?! \n\"')(-]{0,120}") {
        let mut rest = text.as_str();
        for sentence in sentences(&text) {
            prop_assert!(!sentence.is_empty());
            let (between, after) = rest.split_once(sentence).unwrap();
            prop_assert!(between.trim().is_empty(), "{between:?}");
            rest = after;
        }
        prop_assert!(rest.trim().is_empty());
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,120}") {
        sentences(&text);
    }
}

#[test]
fn large_texts_are_processed_quickly() {
    let megabyte = 1 << 20;
    for piece in
        [". ", "a. ", ".", "?", "! ", "a.b", "\"", ".)", ". . ", "--", "Mr. ", "1. ", "x\n\n", ".\u{301} "]
    {
        sentences(&piece.repeat(megabyte / piece.len()));
    }
    sentences(&format!("a.{}b", " ".repeat(megabyte)));
}
