//! Instructions about form.

use std::collections::{HashMap, VecDeque};

use super::super::by::by;
use super::super::text;
use super::Made;
use super::emoji::is_emoji;
use super::marks;
use super::parameters::Parameters;
use crate::python;

/// How deep `format:parentheses` wants brackets to nest.
const BRACKET_DEPTH_MIN: usize = 5;
/// How deep `format:quotes` wants quotes to nest.
const QUOTE_DEPTH_MIN: usize = 3;
/// How often `format:list` wants its separator.
const SEPARATORS_MIN: usize = 2;
/// Sentences before the bullets, and bullets, that `format:no_bullets_bullets` wants.
const SENTENCES_MIN: usize = 2;
const BULLETS_MIN: usize = 2;
/// What `format:output_template` wants to find.
const TEMPLATE: [&str; 3] = ["My Answer:", "My Conclusion:", "Future Outlook:"];

/// The instruction of that name in the family `format`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Made> {
    Some(match name {
        "parentheses" => Ok(by(nests_brackets)),
        "quotes" => Ok(by(nests_quotes)),
        "options" => options(parameters),
        "newline" => Ok(by(has_a_word_a_line)),
        "emoji" => Ok(by(has_emoji_after_sentences)),
        "line_indent" => Ok(by(is_a_staircase)),
        "quote_unquote" => Ok(by(explains_quotes)),
        "list" => list(parameters),
        "thesis" => Ok(by(|text| has_thesis(text).unwrap_or(false))),
        "sub-bullets" => Ok(by(|text| text.split('*').skip(1).all(|bullet| bullet.contains('-')))),
        "no_bullets_bullets" => Ok(by(has_sentences_then_bullets)),
        "title_case" => Ok(by(|text| {
            let mut is_right = true;
            text::for_each_word_token(text, |token| is_right = is_right && is_titled(token));
            is_right
        })),
        "output_template" => Ok(by(|text| TEMPLATE.iter().all(|part| text.contains(part)))),
        "no_whitespace" => Ok(by(|text| !text.contains(python::is_space))),
        _ => return None,
    })
}

/// Whether a bracket closes after brackets were nested deep enough. A bracket that closes another kind than the last
/// one forgets everything before it.
fn nests_brackets(text: &str) -> bool {
    let mut open = Vec::new();
    let mut deepest = 0;
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.last() == Some(&c) => {
                if deepest >= BRACKET_DEPTH_MIN {
                    return true;
                }
                open.pop();
            }
            ')' | ']' | '}' => {
                open.clear();
                deepest = 0;
            }
            _ => {}
        }
        deepest = deepest.max(open.len());
    }
    false
}

/// A quote mark closes the last one if it is the same, and opens one otherwise.
fn nests_quotes(text: &str) -> bool {
    let mut open = Vec::new();
    let mut deepest = 0;
    for mark in text.chars().filter(|c| matches!(c, '"' | '\'')) {
        if open.last() == Some(&mark) {
            open.pop();
            if deepest - open.len() >= QUOTE_DEPTH_MIN {
                return true;
            }
        } else {
            open.push(mark);
            deepest = deepest.max(open.len());
        }
    }
    false
}

fn options(parameters: &Parameters<'_>) -> Made {
    let given = parameters.text("options")?;
    let separator = ["/", "or"].into_iter().find(|separator| given.contains(separator)).unwrap_or(",");
    let options = given.split(separator).map(python::strip);
    if is_lettered(given) {
        let options: Vec<String> = options.map(str::to_owned).collect();
        return Ok(by(move |text| options.iter().any(|option| option == text)));
    }
    let bare = |text: &str| python::lower(marks::trim(text));
    let options: Vec<String> = options.map(bare).collect();
    Ok(by(move |text| options.contains(&bare(text))))
}

/// Whether options look like the labels `a`, `b`, `c`: these letters first, with nothing but marks between them.
fn is_lettered(options: &str) -> bool {
    let mut words = options.chars().filter(|&c| python::is_word(c));
    "abc".chars().all(|letter| words.next().is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
}

fn has_a_word_a_line(text: &str) -> bool {
    let text = marks::without_marks(text);
    let text = python::strip(&text);
    text.split('\n').filter(|line| !line.is_empty()).count() == python::split(text).count()
}

/// Whether each sentence ends with an emoji, marks aside, or the next one starts with one.
fn has_emoji_after_sentences(text: &str) -> bool {
    let sentences: Vec<String> = text::sentences(text).into_iter().map(marks::without_marks).collect();
    (0..sentences.len()).all(|at| {
        let bare = |at: usize| sentences.get(at).map_or("", |sentence| python::strip(sentence));
        // The second last one as well: a selector of the emoji's form may be the last.
        !bare(at).is_empty()
            && (bare(at).chars().rev().take(2).any(is_emoji)
                || bare(at + 1).chars().next().is_some_and(is_emoji))
    })
}

/// Whether each line starts with more spaces than the one before.
fn is_a_staircase(text: &str) -> bool {
    let lines = without_some_blank_lines(text);
    let indents = lines.iter().map(|line| line.len() - line.trim_start_matches(' ').len());
    indents.is_sorted_by(|before, after| before < after)
}

/// The lines but for blank ones, some of which stay: the original removes from the list that it goes through, so the
/// line after a removed one is passed over, and what is removed is the first line that reads the same.
fn without_some_blank_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut stays = vec![true; lines.len()];
    let mut passed: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        if python::strip(line).is_empty() {
            let same = passed.entry(line).or_default();
            same.push_back(at);
            if let Some(gone) = same.pop_front().and_then(|first| stays.get_mut(first)) {
                *gone = false;
            }
            at += 1;
            if let Some(&next) = lines.get(at).filter(|next| python::strip(next).is_empty()) {
                passed.entry(next).or_default().push_back(at);
            }
        }
        at += 1;
    }
    lines.into_iter().zip(stays).filter_map(|(line, stays)| stays.then_some(line)).collect()
}

/// Whether no quote follows another, blanks aside, and none is the end, digits and other marks aside.
fn explains_quotes(text: &str) -> bool {
    let text: String = text.replace("'\"'", "").chars().filter(|&c| !python::is_space(c)).collect();
    let is_outer = |c: char| c.is_ascii_digit() || (c.is_ascii_punctuation() && c != '"');
    !text.contains("\"\"") && !text.trim_end_matches(is_outer).ends_with('"')
}

fn list(parameters: &Parameters<'_>) -> Made {
    let separator = parameters.text("sep")?.to_owned();
    Ok(by(move |text| text.matches(&separator).take(SEPARATORS_MIN).count() == SEPARATORS_MIN))
}

/// Whether there is a text in italics and something after it. The original takes the tags for `<i>` and `</i>`, so
/// that a rest of `<em>` and `</em>` counts as text.
fn has_thesis(text: &str) -> Option<bool> {
    let start = text.find("<i>").or_else(|| text.find("<em>"))?;
    let text = text.get(start..)?;
    let end = text.find("</i>").or_else(|| text.find("</em>"))?;
    let is_filled = |part: &str| !python::strip(part).is_empty();
    Some(is_filled(text.get("<i>".len()..end)?) && is_filled(text.get(end + "</i>".len()..)?))
}

/// Sentences, then lines with a star and no others; a blank line ends the sentences.
fn has_sentences_then_bullets(text: &str) -> bool {
    let mut in_sentences = true;
    let (mut sentences, mut bullets) = (0, 0);
    for line in text.split('\n').map(python::strip) {
        if line.starts_with('*') {
            if sentences < SENTENCES_MIN {
                return false;
            }
            in_sentences = false;
            bullets += 1;
        } else if in_sentences {
            let found = text::sentences(line).len();
            in_sentences = found > 0;
            sentences += found;
        } else {
            return false;
        }
    }
    bullets >= BULLETS_MIN
}

/// Whether a token is no word in lower case, nor one with only its first letter in lower case.
fn is_titled(token: &str) -> bool {
    let mut characters = token.chars();
    let Some(first) = characters.next() else { return true };
    let is_letter = first != '_' && python::is_word(first) && !first.is_numeric();
    let rest = characters.as_str();
    let is_plain = rest.is_empty() || python::is_upper(rest) || python::is_lower(rest);
    !(is_letter && first.is_lowercase() && is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_blank_lines_stay() {
        for (text, expected) in [
            ("a\n\n b", vec!["a", " b"]),
            ("a\n\n\n b", vec!["a", "", " b"]),
            ("a\n\n\n\n b", vec!["a", "", " b"]),
            // The first blank line of two spaces is passed over, and goes for the second one.
            ("\n  \na\n  \n b", vec!["a", "  ", " b"]),
            ("", vec![]),
        ] {
            assert_eq!(without_some_blank_lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn labels_and_other_options() {
        for (options, expected) in [
            ("a), b), c), d)", true),
            ("(A) / (B) / (C)", true),
            ("abc", true),
            ("yes/no", false),
            ("a, b", false),
        ] {
            assert_eq!(is_lettered(options), expected, "{options:?}");
        }
    }
}
