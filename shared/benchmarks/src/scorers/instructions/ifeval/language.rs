//! The language of a text, and English in one case.

use super::super::text::{Seen, for_each_word_token};
use super::super::{Check, CheckError};
use super::by;
use super::parameters::Parameters;
use crate::python;

/// Languages that the instruction may ask for.
const LANGUAGES: [&str; 30] = [
    "ar", "bg", "bn", "de", "en", "es", "fa", "fi", "fr", "gu", "he", "hi", "it", "ja", "kn", "ko", "ml",
    "mr", "ne", "pa", "pl", "pt", "ru", "sw", "ta", "te", "th", "uk", "ur", "vi",
];

pub(super) fn check(name: &str, given: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    let english = |has_case| Ok(Box::new(Language { code: "en", has_case }) as Box<dyn Check>);
    Some(match name {
        "response_language" => given.text("language").and_then(|language| {
            let code = LANGUAGES.into_iter().find(|code| *code == language);
            let code = code.ok_or_else(|| given.error("language", "is none of the 30 codes"))?;
            Ok(Box::new(Language { code, has_case: |_| true }) as Box<dyn Check>)
        }),
        "english_capital" => english(python::is_upper),
        "english_lowercase" => english(python::is_lower),
        "capital_word_frequency" => given
            .bound("capital_frequency", "capital_relation")
            .map(|bound| by(move |text| bound.allows(capital_words(text)))),
        _ => return None,
    })
}

fn capital_words(text: &str) -> usize {
    let mut count = 0;
    for_each_word_token(text, |token| count += usize::from(python::is_upper(token)));
    count
}

/// A text of one language, in one case.
struct Language {
    code: &'static str,
    has_case: fn(&str) -> bool,
}

impl Language {
    fn is_of(&self, text: &Seen) -> bool {
        // A text without anything to go by counts as right.
        text.language().is_none_or(|code| code == self.code)
    }
}

impl Check for Language {
    fn follows(&self, text: &str) -> bool {
        (self.has_case)(text) && self.is_of(&Seen::of(text))
    }

    fn follows_variant(&self, variants: &[&str], failed: &str) -> bool {
        let mut seen = Vec::new();
        if (self.has_case)(failed) {
            seen.push(Seen::of(failed));
        }
        // The detector takes long: what looks the same to it is looked at once.
        for variant in variants.iter().filter(|variant| (self.has_case)(variant)) {
            let variant = Seen::of(variant);
            if seen.contains(&variant) {
                continue;
            }
            if self.is_of(&variant) {
                return true;
            }
            seen.push(variant);
        }
        false
    }
}
