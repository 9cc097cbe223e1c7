use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::Instructions;
use super::*;

/// Returns the lines of a file of vectors.
fn vectors(name: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/data/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_agreement(vectors: &[Value]) {
    for vector in vectors {
        let instructions = Instructions::from_row(vector.as_object().unwrap(), check).ok().unwrap();
        let followed = instructions.check(vector["response"].as_str().unwrap());
        assert_eq!(json!(followed.strict), vector["strict"], "strict: {vector}");
        assert_eq!(json!(followed.loose), vector["loose"], "loose: {vector}");
    }
}

#[test]
fn verdicts_match_the_vectors() {
    let vectors = vectors("ifeval_extract.jsonl");
    assert_agreement(&vectors);
    assert_eq!(vectors.len(), 640);
}

#[test]
fn verdicts_match_the_cases_of_the_protocol() {
    let vectors = vectors("ifeval_cases.jsonl");
    assert_agreement(&vectors);
    assert_eq!(vectors.len(), CASES);
}

fn problem(id: &str, kwargs: Value) -> String {
    let Value::Object(kwargs) = kwargs else { panic!("no object") };
    check(id, &kwargs, None).unwrap().err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn invalid_parameters_are_named() {
    for (id, kwargs, name, what) in [
        ("keywords:existence", json!({}), "keywords", "is missing"),
        ("keywords:existence", json!({"keywords": []}), "keywords", "is empty"),
        ("keywords:existence", json!({"keywords": "a"}), "keywords", "is not a list"),
        ("keywords:existence", json!({"keywords": [1]}), "keywords", "has an entry that is not a string"),
        (
            "keywords:forbidden_words",
            json!({"forbidden_words": ["("]}),
            "forbidden_words",
            "is not a pattern: missing ), unterminated subpattern",
        ),
        (
            "keywords:frequency",
            json!({"keyword": "", "frequency": 1, "relation": "at least"}),
            "keyword",
            "is empty",
        ),
        (
            "keywords:frequency",
            json!({"keyword": 7, "frequency": 1, "relation": "at least"}),
            "keyword",
            "is not a string",
        ),
        (
            "keywords:letter_frequency",
            json!({"letter": "ab", "let_frequency": 1, "let_relation": "at least"}),
            "letter",
            "is more than one character",
        ),
        ("language:response_language", json!({"language": "xx"}), "language", "is not one of the 30 codes"),
        (
            "length_constraints:number_words",
            json!({"num_words": "3", "relation": "at least"}),
            "num_words",
            "is not a number",
        ),
        (
            "length_constraints:number_words",
            json!({"num_words": true, "relation": "at least"}),
            "num_words",
            "is not a number",
        ),
        (
            "length_constraints:number_words",
            json!({"num_words": -1, "relation": "at least"}),
            "num_words",
            "is negative",
        ),
        ("length_constraints:number_words", json!({"num_words": 3}), "relation", "is missing"),
        (
            "length_constraints:number_words",
            json!({"num_words": 3, "relation": "at most"}),
            "relation",
            "is neither `at least` nor `less than`",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            json!({"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"}),
            "nth_paragraph",
            "is not a whole number from 1",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            json!({"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}),
            "nth_paragraph",
            "is more than num_paragraphs",
        ),
        ("combination:repeat_prompt", json!({}), "prompt_to_repeat", "is missing"),
        (
            "detectable_content:postscript",
            json!({"postscript_marker": []}),
            "postscript_marker",
            "is not a string",
        ),
    ] {
        assert_eq!(problem(id, kwargs), format!("instruction `{id}`: parameter `{name}` {what}"));
    }
    // Integers may come from a column of floats.
    assert_eq!(
        problem("length_constraints:number_words", json!({"num_words": 3.0, "relation": "at least"})),
        ""
    );
    for id in
        ["", "punctuation", "punctuation:", "punctuation:no_commas", "keywords:json_format", "startend:title"]
    {
        assert!(check(id, &Kwargs::new(), None).is_none(), "{id}");
    }
}

/// Returns a check of each instruction type.
fn all() -> Vec<(&'static str, Box<dyn Check>)> {
    let mut seen = std::collections::BTreeMap::new();
    for vector in vectors("ifeval_cases.jsonl") {
        let kwargs = vector["kwargs"][0].as_object().unwrap().clone();
        let id: &'static str =
            Box::leak(vector["instruction_id_list"][0].as_str().unwrap().to_owned().into());
        seen.insert(id, check(id, &kwargs, None).unwrap().ok().unwrap());
    }
    assert_eq!(seen.len(), 25);
    seen.into_iter().collect()
}

#[test]
fn letters_that_are_not_letters_are_counted() {
    let kwargs = json!({"letter": "#", "let_frequency": 4, "let_relation": "at least"});
    let hashes = check("keywords:letter_frequency", kwargs.as_object().unwrap(), None).unwrap().ok().unwrap();
    assert!(hashes.follows("# a ## b #") && !hashes.follows("# ## a"));
    let kwargs = json!({"letter": "K", "let_frequency": 2, "let_relation": "at least"});
    let letters =
        check("keywords:letter_frequency", kwargs.as_object().unwrap(), None).unwrap().ok().unwrap();
    assert!(letters.follows("k\u{212a}") && !letters.follows("k\u{138}"));
}

#[test]
fn other_markers_and_splitters_are_patterns() {
    let follows = |id: &str, kwargs: Value, text: &str| {
        check(id, kwargs.as_object().unwrap(), None).unwrap().ok().unwrap().follows(text)
    };
    let postscript = |marker: &str, text: &str| {
        follows("detectable_content:postscript", json!({"postscript_marker": marker}), text)
    };
    assert!(postscript("P.S.", "x p. s. y") && !postscript("P.S.", "ps. y") && !postscript("P.S.", "p.  s."));
    assert!(postscript("P.P.S", "P.P.S") && !postscript("P.P.S", "P.S."));
    assert!(postscript("Note", "a NOTE") && postscript("n.te", "NOTE") && !postscript("N.B.", "n-b"));
    let sections = |splitter: &str, number: u32, text: &str| {
        let kwargs = json!({"section_spliter": splitter, "num_sections": number});
        follows("detectable_format:multiple_sections", kwargs, text)
    };
    assert!(sections("SECTION", 2, "SECTION 1 SECTION 2") && !sections("SECTION", 3, "SECTION 1 SECTION 2"));
    assert!(sections("Section|Part", 2, "Section 1 Part 2"));
    assert!(sections("aa", 1, "aaa1") && !sections("a", 1, "a  1") && sections("1", 2, "11 1\u{a0}22"));
}

#[test]
fn large_replies_are_checked_quickly() {
    let checks = all();
    // The length is limited by the time that all checks together take in a build without optimization.
    let bytes = 1 << 18;
    for piece in [
        "*",
        "* ",
        "**a** ",
        "[",
        "[]",
        "<<",
        ">>",
        "\n",
        "\n\n",
        "\n* ",
        "-\n",
        "\"",
        "'",
        "a",
        "A ",
        ". ",
        "{\"a\":",
        "[[",
        "******",
        "*** ",
        "Section 1 ",
        "Section",
        "p. s",
        " ",
        "```",
        "My answer is ",
        "cat",
        "\u{130}",
    ] {
        let text = piece.repeat(bytes / piece.len());
        for (_, check) in &checks {
            check.follows(&text);
        }
    }
}

proptest! {
    #[test]
    fn no_reply_panics_and_loose_is_at_least_strict(reply in "[\\PC\n*\\[\\]<>.\"-]{0,80}") {
        let rows = vectors("ifeval_cases.jsonl");
        for row in rows.iter().step_by(7) {
            let instructions = Instructions::from_row(row.as_object().unwrap(), check).ok().unwrap();
            let followed = instructions.check(&reply);
            prop_assert!(!followed.strict[0] || followed.loose[0]);
        }
    }

    #[test]
    fn order_and_padding_of_parameters_do_not_matter(reply in "[A-Za-z .,?!'\n]{1,80}") {
        let row = |kwargs: Value| {
            let row = json!({"instruction_id_list": ["length_constraints:number_words", "keywords:existence",
                "length_constraints:number_sentences"], "kwargs": kwargs});
            let instructions = Instructions::from_row(row.as_object().unwrap(), check).ok().unwrap();
            instructions.check(&reply)
        };
        let plain = json!([{"num_words": 5, "relation": "at least"}, {"keywords": ["a", "b"]},
            {"num_sentences": 2, "relation": "less than"}]);
        let padded = json!([{"relation": "at least", "num_words": 5.0, "letter": null},
            {"keywords": ["b", "a"], "num_words": null}, {"num_sentences": 2, "relation": "less than", "x": null}]);
        prop_assert_eq!(row(plain), row(padded));
    }
}

/// Number of rows in the protocol's table.
const CASES: usize = 117;
