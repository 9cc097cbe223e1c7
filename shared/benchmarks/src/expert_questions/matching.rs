//! Extraction of a short answer from a reply, and its comparison with a right one.

use crate::scorers::judged::strip_thoughts;

/// Words that may stand before an answer and a colon, or before `is`.
const LABELS: [&str; 6] = ["final answer", "the final answer", "the answer", "answer", "my answer", "result"];
/// Characters that don't count at the edges of an answer.
const EDGES: [char; 8] = [' ', '.', ',', ':', ';', '!', '?', '"'];

/// Returns the answer in a reply: its last line that isn't empty, without a label and emphasis. `None` if there is none.
pub(super) fn extract(reply: &str) -> Option<String> {
    let reply = strip_thoughts(reply);
    let line =
        reply.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("```"))?;
    let line = strip_emphasis(line);
    let line = strip_emphasis(strip_label(line));
    (!line.is_empty()).then(|| line.to_owned())
}

/// Removes marks of emphasis around a text, and the macro `\boxed`.
fn strip_emphasis(mut text: &str) -> &str {
    const PAIRS: [(&str, &str); 9] = [
        ("**", "**"),
        ("*", "*"),
        ("__", "__"),
        ("`", "`"),
        ("\"", "\""),
        ("“", "”"),
        ("\\boxed{", "}"),
        ("$", "$"),
        ("\\(", "\\)"),
    ];
    loop {
        text = text.trim();
        let without_period = text.strip_suffix('.').unwrap_or(text);
        let inner = PAIRS.iter().find_map(|(open, close)| {
            let rest = without_period.strip_prefix(open)?;
            rest.strip_suffix(close).filter(|inner| !inner.is_empty())
        });
        match inner {
            Some(inner) => text = inner,
            None => return text,
        }
    }
}

/// Removes a label such as `Answer:`, `**Answer:**` or `The answer is`.
fn strip_label(whole: &str) -> &str {
    let line = whole.trim_start_matches(['*', '_', '#', '>', ' ']);
    let lower = line.to_ascii_lowercase();
    for label in LABELS {
        let Some(rest) = lower.strip_prefix(label) else { continue };
        for end in [":**", "**:", ":", " is:", " is ", " ="] {
            if rest.starts_with(end)
                && let Some(answer) = line.get(label.len() + end.len()..)
                && !answer.trim().is_empty()
            {
                return answer.trim();
            }
        }
    }
    whole
}

/// Returns true if an answer is the right one: as numbers if both are, else as normalized texts.
pub(super) fn is_equal(answer: &str, right: &str) -> bool {
    match (number(answer), number(right)) {
        (Some(answer), Some(right)) => answer == right,
        _ => {
            let right = normalized(right);
            !right.is_empty() && normalized(answer) == right
        }
    }
}

/// Returns the sign, whole part and decimals of a number, without zeros that don't count.
fn number(text: &str) -> Option<(bool, String, String)> {
    let text = normalized(text);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.replace(',', "");
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(&whole) || !is_digits(decimals) {
        return None;
    }
    let (whole, decimals) =
        (whole.trim_start_matches('0').to_owned(), decimals.trim_end_matches('0').to_owned());
    let is_zero = whole.is_empty() && decimals.is_empty();
    Some((negative && !is_zero, whole, decimals))
}

/// Returns a text in lower case, with plain quotes, dashes and single blanks, and without punctuation at its edges.
fn normalized(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{a0}' | '\u{202f}' => ' ',
            other => other,
        })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").to_lowercase().trim_matches(EDGES).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_found_on_the_last_line() {
        for (reply, expected) in [
            ("Curt", Some("Curt")),
            ("I count them.\n\n**Answer: MNQ**\n", Some("MNQ")),
            ("The answer is 44.", Some("44.")),
            ("**Final answer:** 7", Some("7")),
            ("$\\boxed{12}$.", Some("12")),
            ("<think>maybe 3</think>\n`4`", Some("4")),
            ("Answer:\nAlex", Some("Alex")),
            ("```\nTherein\n```", Some("Therein")),
            ("the", Some("the")),
            (" \n", None),
        ] {
            assert_eq!(extract(reply).as_deref(), expected, "{reply:?}");
        }
    }

    #[test]
    fn numbers_and_texts_are_compared_after_normalization() {
        for (answer, right, expected) in [
            ("44", "44", true),
            ("1,234", "1234", true),
            ("7.50", "7.5", true),
            ("\u{2212}3", "-3", true),
            ("-0", "0", true),
            ("007", "7", true),
            ("7.5", "75", false),
            ("curt.", "Curt", true),
            ("M  N Q", "m n q", true),
            ("don\u{2019}t", "don't", true),
            ("hex", "ex", false),
            ("", "", false),
            ("seven", "7", false),
        ] {
            assert_eq!(is_equal(answer, right), expected, "{answer:?} {right:?}");
        }
    }

    proptest! {
        #[test]
        fn a_right_answer_is_right_in_every_dress(right in "[a-zA-Z0-9][a-zA-Z0-9 |^%&-]{0,30}[a-zA-Z0-9|]") {
            for reply in [right.clone(), format!("**{right}**"), format!("So:\nAnswer: {right}"), format!("The answer is `{right}`.")] {
                let found = extract(&reply);
                prop_assert!(found.is_some_and(|found| is_equal(&found, &right)), "{}", reply);
            }
        }

        #[test]
        fn arbitrary_replies_are_read(reply in any::<String>(), right in any::<String>()) {
            if let Some(found) = extract(&reply) {
                let _ = is_equal(&found, &right);
            }
        }
    }
}
