use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

fn answer(reply: &str) -> Option<String> {
    extract(reply).text
}

#[test]
fn answers_match_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/aime_2025_extract.jsonl");
    let lines = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for line in lines.lines() {
        let vector: Json = serde_json::from_str(line).unwrap();
        let extraction = extract(vector["response"].as_str().unwrap());
        let gold: BigInt = vector["gold"].as_str().unwrap().parse().unwrap();
        assert_eq!(extraction.text.as_deref(), vector["matharena_answer"].as_str(), "{}", vector["id"]);
        assert_eq!(
            extraction.equals(&gold),
            vector["matharena_correct"].as_bool().unwrap(),
            "{}",
            vector["id"]
        );
        let warning = serde_json::to_value(extraction.warning).unwrap();
        assert_eq!(
            warning.as_str().unwrap().to_uppercase(),
            vector["matharena_warning"].as_str().unwrap(),
            "{}",
            vector["id"]
        );
        seen += 1;
    }
    assert_eq!(seen, 190);
}

#[test]
fn replies_are_parsed_as_by_the_protocol() {
    for (reply, expected) in [
        ("so $\\boxed{70}$", Some("70")),
        ("\\boxed{70, 16}", Some("[70,16]")),
        ("\\boxed{x, 70}", Some("70")),
        ("\\boxed{}", Some("[]")),
        ("\\boxed{\\text{70}}", Some("[]")),
        ("\\boxed{70", Some("70")),
        ("\\boxed{70_{10}}", Some("70")),
        ("\\boxed{{7+63}}", Some("70")),
        ("\\boxed{70\\%}", Some("70")),
        ("\\boxed{7²}", None),
        ("⎧70⎫", Some("70")),
        ("\\boxed{٧٠}", Some("70")),
        ("no integer", None),
        ("", None),
    ] {
        assert_eq!(answer(reply).as_deref(), expected, "{reply:?}");
    }
}

#[test]
fn a_gold_of_zero_never_matches() {
    assert!(!extract("\\boxed{0}").equals(&BigInt::from(0)));
    assert!(extract("\\boxed{70.00000000000001}").equals(&BigInt::from(70)));
    assert!(!extract("\\boxed{70.000001}").equals(&BigInt::from(70)));
}

#[test]
fn large_replies_are_parsed_quickly() {
    let megabyte = 1 << 20;
    for reply in [
        "\\boxed{".repeat(megabyte / 7),
        format!("{}70{}", "\\boxed{".repeat(100_000), "}".repeat(100_000)),
        format!("\\boxed{{{}}}", "(".repeat(megabyte)),
        format!("\\boxed{{{}7{}}}", "(".repeat(megabyte / 2), ")".repeat(megabyte / 2)),
        format!("\\boxed{{{}}}", "\\\\(".repeat(megabyte / 3)),
        format!("\\boxed{{{}}}", "\\".repeat(megabyte)),
        format!("\\boxed{{{}}}", "\\text{".repeat(megabyte / 6)),
        format!("\\boxed{{{}}}", "9".repeat(megabyte)),
        format!("\\boxed{{{}}}", "{".repeat(megabyte / 2) + &"}".repeat(megabyte / 2)),
        format!("\\boxed{{{}}}", "\\begin{align}".repeat(megabyte / 13)),
        format!("\\boxed{{{}}}", "1,".repeat(499)),
        format!("\\boxed{{(1)(2{}}}", ",".repeat(480)),
        format!("\\boxed{{{}}}", "\\frac{1}{".repeat(80) + &"}".repeat(80)),
        format!("\\boxed{{(1)(2{}7{}}}", "(".repeat(400), ")".repeat(401)),
        format!("\\boxed{{(1){}7{}}}", "\\sqrt{2(".repeat(90), ")}".repeat(90)),
        format!("\\boxed{{2 {}", "f(".repeat(400)),
        format!("\\boxed{{7 {}}}", "+ ".repeat(450)),
        format!("\\boxed{{7 {}cm}}", "x ".repeat(450)),
        format!("\\boxed{{1{}}}", "+1".repeat(490)),
        format!("\\boxed{{{}}}", "\\sqrt 4".repeat(megabyte / 7)),
        format!("\\boxed{{{}}}", "1,".repeat(megabyte / 2)),
        format!("\\boxed{{{}}}", "\\text{a".repeat(megabyte / 7)),
        format!("\\boxed{{{}}}", "\\mathrm{".repeat(megabyte / 8)),
        format!("\\boxed{{{}}}", "\\\\\n(".repeat(megabyte / 4)),
        format!("\\boxed{{{}}}", "\\approx =".repeat(megabyte / 10)),
        "\\boxed{7} ".repeat(megabyte / 10),
        "\\boxed{x} \\fbox{".repeat(megabyte / 16),
        "}{".repeat(megabyte / 2),
        "\n│7│".repeat(megabyte / 8),
        "⎧".repeat(megabyte / 3),
        "7_".repeat(megabyte / 2),
        "9".repeat(megabyte),
        "7 ".repeat(megabyte / 2),
        "\\boxed{9^{9^{9^9}}}".to_owned(),
        "\\boxed{10000000!}".to_owned(),
    ] {
        extract(&reply);
    }
}

proptest! {
    #[test]
    fn no_reply_panics(reply in any::<String>()) {
        extract(&reply);
    }

    #[test]
    fn no_boxed_content_panics(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "7", "70", "0", ".", ",", "(", ")", "{", "}", "[", "]", "\\frac", "\\sqrt", "\\binom", "^", "_", "+", "-",
                "*", "/", "!", "=", "\\cdot", "x", "pi", "\\pi", "|", "\\lfloor", "\\rfloor", "\\text{", "\\n", " ",
                "\\log", "\\boxed{", "%", "\\%", "e", "i", "E", "**", "//", "sqrt(", "٧", "²", "\\approx", "\\\\", "&",
                "\\int", "\\langle", "\\to", "'", ":", "<", "~", "not ", "in", "1e9", "0x", "$",
            ]),
            0..24,
        )
    ) {
        extract(&format!("\\boxed{{{}}}", pieces.concat()));
    }

    #[test]
    fn a_plain_integer_in_a_box_is_the_answer(value in -1_000_000_i64..1_000_000, before in "[a-z0-9 .]{0,40}") {
        let extraction = extract(&format!("{before} \\boxed{{{value}}} done"));
        prop_assert_eq!(extraction.text, Some(value.to_string()));
        prop_assert_eq!(extraction.source, Source::Box);
    }

    #[test]
    fn earlier_boxes_and_text_around_the_last_do_not_matter(
        value in 0_i64..1_000,
        earlier in prop::collection::vec("[0-9a-z+{(,=\\\\]{0,12}", 0..4),
        before in "[a-zA-Z0-9 .,$\n]{0,40}",
        after in "[a-zA-Z0-9 .,$\n]{0,40}",
        blanks in " {0,3}",
    ) {
        let boxes: String = earlier.iter().map(|content| format!("\\boxed{{{}}}\n", content.replace('{', ""))).collect();
        let extraction = extract(&format!("{boxes}{before}$\\boxed{{{blanks}{value}{blanks}}}$.{after}"));
        prop_assert_eq!(&extraction.text, &Some(value.to_string()));
        prop_assert_eq!((extraction.source, extraction.warning), (Source::Box, Warning::None));
        prop_assert_eq!(extraction.equals(&BigInt::from(value)), value != 0);
    }

    #[test]
    fn without_a_box_the_last_number_is_the_answer(value in 0_i64..1_000_000, before in "[a-z0-9 .]{0,40}", after in "[a-z .]{0,40}") {
        let extraction = extract(&format!("{before} {value}. {after}"));
        prop_assert_eq!(extraction.text, Some(value.to_string()));
        prop_assert_eq!((extraction.source, extraction.warning), (Source::LastInteger, Warning::Major));
    }
}
