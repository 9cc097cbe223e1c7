//! Instructions about the language and the case of a text.

use super::super::text::{NormalizedText, for_each_word_token};
use super::super::{Check, CheckError};
use super::fn_check;
use super::parameters::Parameters;
use crate::python;

/// Languages that an instruction may require.
const LANGUAGES: [&str; 30] = [
    "ar", "bg", "bn", "de", "en", "es", "fa", "fi", "fr", "gu", "he", "hi", "it", "ja", "kn", "ko", "ml",
    "mr", "ne", "pa", "pl", "pt", "ru", "sw", "ta", "te", "th", "uk", "ur", "vi",
];

pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    let english = |has_case| Ok(Box::new(Language { code: "en", has_case }) as Box<dyn Check>);
    Some(match name {
        "response_language" => parameters.text("language").and_then(|language| {
            let code = LANGUAGES.into_iter().find(|code| *code == language);
            let code = code.ok_or_else(|| parameters.error("language", "is not one of the 30 codes"))?;
            Ok(Box::new(Language { code, has_case: |_| true }) as Box<dyn Check>)
        }),
        "english_capital" => english(python::is_upper),
        "english_lowercase" => english(python::is_lower),
        "capital_word_frequency" => parameters
            .bound("capital_frequency", "capital_relation")
            .map(|bound| fn_check(move |text| bound.allows(capital_words(text)))),
        _ => return None,
    })
}

fn capital_words(text: &str) -> usize {
    let mut count = 0;
    for_each_word_token(text, |token| count += usize::from(python::is_upper(token)));
    count
}

/// Check for a language, optionally with a case.
struct Language {
    code: &'static str,
    has_case: fn(&str) -> bool,
}

impl Language {
    fn matches(&self, text: &NormalizedText) -> bool {
        // As in the official program, a text whose language can't be detected counts as right.
        text.language().is_none_or(|code| code == self.code)
    }
}

impl Check for Language {
    fn follows(&self, text: &str) -> bool {
        (self.has_case)(text) && self.matches(&NormalizedText::new(text))
    }

    fn follows_variant(&self, variants: &[&str], failed: &str) -> bool {
        let mut seen = Vec::new();
        if (self.has_case)(failed) {
            seen.push(NormalizedText::new(failed));
        }
        // Detection is slow, so texts that are equal after normalization are checked only once.
        for variant in variants.iter().filter(|variant| (self.has_case)(variant)) {
            let variant = NormalizedText::new(variant);
            if seen.contains(&variant) {
                continue;
            }
            if self.matches(&variant) {
                return true;
            }
            seen.push(variant);
        }
        false
    }
}
