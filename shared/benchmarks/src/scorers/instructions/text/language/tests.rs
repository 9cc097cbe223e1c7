use proptest::prelude::*;

use super::*;

fn language(text: &str) -> Option<&'static str> {
    NormalizedText::new(text).language()
}

#[test]
fn languages_are_distinguished() {
    for (text, expected) in [
        ("The weather is nice today and we go to the market.", Some("en")),
        ("Heute ist das Wetter schön und wir gehen auf den Markt.", Some("de")),
        ("El tiempo es bueno y vamos al mercado con los niños.", Some("es")),
        ("Сегодня хорошая погода, и мы идём на рынок.", Some("ru")),
        ("今日は天気が良いので、市場へ行きます。", Some("ja")),
        ("आज मौसम अच्छा है और हम बाजार जा रहे हैं।", Some("hi")),
        ("HELLO", Some("vi")),
        ("123 !!! *", None),
        ("https://example.com/the/weather a.b@example.com", None),
        ("", None),
    ] {
        assert_eq!(language(text), expected, "{text:?}");
    }
}

#[test]
fn marks_and_extra_blanks_are_ignored() {
    assert_eq!(
        NormalizedText::new("**the**  weather, (is) nice"),
        NormalizedText::new("the weather is nice")
    );
    assert_ne!(NormalizedText::new("the weather"), NormalizedText::new("the weather "));
    assert_eq!(NormalizedText::new("Tie\u{302}\u{301}ng"), NormalizedText::new("Tie\u{302}\u{301}ng"));
    assert_eq!(NormalizedText::new("a\u{301}o"), NormalizedText::new("áo"));
}

#[test]
fn large_texts_are_processed_quickly() {
    for piece in ["the weather is nice ", "A", "@", "a@", "http://a ", "한", "a\u{301}", "* "] {
        language(&piece.repeat((1 << 20) / piece.len()));
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        language(&text);
    }

    #[test]
    fn asterisks_between_words_change_nothing(words in proptest::collection::vec("[a-z]{1,8}", 1..12)) {
        prop_assert_eq!(language(&words.join(" ")), language(&words.join(" ** ")));
    }
}
