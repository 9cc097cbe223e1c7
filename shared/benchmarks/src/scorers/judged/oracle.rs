//! Judging without a model.

/// Returns true if an answer contains the right answer as a sequence of words. Only letters and digits count, not their
/// case or the characters between them. A right answer without letters and digits must occur literally, and an empty
/// one never matches.
///
/// This is reliable only for answers made from the right one: it also accepts `not 7` for `7`.
pub(crate) fn contains_gold(answer: &str, gold: &str) -> bool {
    let gold_words = words(gold);
    if gold_words.is_empty() {
        let gold = gold.trim();
        return !gold.is_empty() && answer.contains(gold);
    }
    // Spaces at both ends ensure that only whole words match.
    format!(" {} ", words(answer).join(" ")).contains(&format!(" {} ", gold_words.join(" ")))
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_compared() {
        for (answer, gold, expected) in [
            ("Answer: The Blue Whale.", "blue whale", true),
            ("It is 17.", "7", false),
            ("It is 7.", "7", true),
            ("so x∈∅", "∅", true),
            ("so x", "∅", false),
            ("anything", " ", false),
            ("", "", false),
            ("$901  million", "$901 million", true),
        ] {
            assert_eq!(contains_gold(answer, gold), expected, "{answer} / {gold}");
        }
    }
}
