use proptest::prelude::*;

use super::*;

fn count(pattern: &str, text: &str) -> usize {
    Pattern::new(pattern).unwrap().count(text)
}

#[test]
fn classes_and_boundaries_are_those_of_python() {
    for (pattern, text, expected) in [
        (r"\w+", "½ x² cafe\u{301} a", 4),
        (r"\W", "a\u{301}b_", 1),
        (r"\s", "\u{1c}\u{85}\u{200b}\u{feff}\u{3000}", 3),
        (r"\d", "7٧²", 2),
        (r"[^\d\s]", "7 x", 1),
        (r"(?i)i", "iIİı", 4),
        (r"(?i)[h-j]", "İıK", 2),
        (r"(?i)k", "kK\u{212a}", 3),
        (r"(?i)\u0130\x69", "iı", 1),
        (r"(?i)s", "sSſ", 3),
        (r"i", "iIİı", 1),
        (r"(?i:i)i", "Ii II", 1),
        (r"\bcafe\b", "cafe\u{301} x", 1),
        (r"\bx\b", "x² x", 1),
        (r"\bx²\b", "x² x", 1),
        (r"\be\u0301\b", "e\u{301} e\u{301}x", 1),
        (r"(?i)\brock\b", "_rock_ Rock! rock-solid", 2),
        (r"a.b", "a\rb a\u{2028}b a\nb", 2),
        (r"(?s)a.b", "a\nb", 1),
        (r"x$", "x\nx\n", 1),
        (r"(?m)^.*$", "a\r\nb", 2),
        (r"\Ax\Z", "x", 1),
        (r"a{2}", "aaaa a{2}", 2),
        (r"a{,2}b", "aab", 1),
        (r"a{x}", "a{x}", 1),
        (r"{", "{", 1),
        (r"[]a]", "]a", 2),
        (r"[a-]", "-a", 2),
        (r"[[&~]", "[&~", 3),
        (r"[\b]", "\u{8}", 1),
        (r"c++", "C c++ ccc", 3 - 1),
        (r"a\.b", "a.b axb", 1),
        (r"(?P<n>a|b)c", "acbc", 2),
        (r"x*?y", "xxy", 1),
        (r"\0", "\0", 1),
    ] {
        assert_eq!(count(pattern, text), expected, "{pattern:?} {text:?}");
    }
}

#[test]
fn patterns_that_python_rejects_are_rejected() {
    for pattern in [
        "(", ")", "a)", "*", "+a", "a**", "a{2}{3}", "[a", "[z-a]", r"\y", r"\", r"\x1", "^*", r"\b+",
        "a{3,2}", "(?P<>a)", "(?k)", r"[\d-z]", r"[a-\d]",
    ] {
        assert!(matches!(Pattern::new(pattern), Err(PatternError::Syntax(_))), "{pattern:?}");
    }
    for pattern in ["(?=a)", "(?<!a)b", r"(a)\1", "(?P=a)", "(?>a)", "a++a", "(?#x)", "(?x) a", r"\N{DOT}"] {
        assert!(matches!(Pattern::new(pattern), Err(PatternError::Unsupported(_))), "{pattern:?}");
    }
    let deep = "(".repeat(5000) + &")".repeat(5000);
    assert_eq!(Pattern::new(&deep).unwrap_err(), PatternError::TooLarge);
    assert_eq!(Pattern::new("((a{1000}){1000}){1000}").unwrap_err(), PatternError::TooLarge);
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in r"[\[\](){}|*+?\\.^$a-dbwWsSdDxu0-9:<>=!,iPİ²\u{301}-]{0,16}", text in "\\PC{0,30}") {
        if let Ok(pattern) = Pattern::new(&pattern) {
            let found = pattern.is_found(&text);
            prop_assert_eq!(found, pattern.count(&text) > 0);
        }
    }

    #[test]
    fn literal_text_is_found(before in "\\PC{0,10}", word in "[a-zà-ü0-9 ]{1,10}", after in "\\PC{0,10}") {
        let text = format!("{before}{word}{after}");
        prop_assert!(Pattern::new(&word).unwrap().is_found(&text));
        let any_case = Pattern::new(&format!("(?i){word}")).unwrap();
        prop_assert!(any_case.is_found(&text.to_uppercase()) || !word.is_ascii());
    }
}
