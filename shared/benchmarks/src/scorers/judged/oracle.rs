//! A judge without a model.

/// Whether the right answer stands in an answer, word by word: letters and digits count, their case and what is
/// between them does not. A right answer of other characters alone must stand there as it is. An empty one stands
/// nowhere.
///
/// Good enough for answers that are made of the right one, and for nothing else: it takes `not 7` for `7`.
pub(crate) fn contains_gold(answer: &str, gold: &str) -> bool {
    let gold_words = words(gold);
    if gold_words.is_empty() {
        let gold = gold.trim();
        return !gold.is_empty() && answer.contains(gold);
    }
    // Blanks at both ends, so that a word is found as a whole only.
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
