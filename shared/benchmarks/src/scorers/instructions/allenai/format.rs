//! Instructions about the format of a response.

use std::collections::{HashMap, VecDeque};

use super::super::fn_check::fn_check;
use super::super::text;
use super::CheckResult;
use super::emoji::is_emoji;
use super::marks;
use super::parameters::Parameters;
use crate::python;

/// Minimum nesting depth of brackets for `format:parentheses`.
const BRACKET_DEPTH_MIN: usize = 5;
/// Minimum nesting depth of quotes for `format:quotes`.
const QUOTE_DEPTH_MIN: usize = 3;
/// Minimum number of separators for `format:list`.
const SEPARATORS_MIN: usize = 2;
/// Minimum number of sentences before the bullets, and of bullets, for `format:no_bullets_bullets`.
const SENTENCES_MIN: usize = 2;
const BULLETS_MIN: usize = 2;
/// Texts required by `format:output_template`.
const TEMPLATE: [&str; 3] = ["My Answer:", "My Conclusion:", "Future Outlook:"];

/// Creates the check of an instruction in the family `format`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "parentheses" => Ok(fn_check(nests_brackets)),
        "quotes" => Ok(fn_check(nests_quotes)),
        "options" => options(parameters),
        "newline" => Ok(fn_check(has_one_word_per_line)),
        "emoji" => Ok(fn_check(has_emoji_after_sentences)),
        "line_indent" => Ok(fn_check(has_growing_indents)),
        "quote_unquote" => Ok(fn_check(explains_quotes)),
        "list" => list(parameters),
        "thesis" => Ok(fn_check(|text| has_thesis(text).unwrap_or(false))),
        "sub-bullets" => Ok(fn_check(|text| text.split('*').skip(1).all(|bullet| bullet.contains('-')))),
        "no_bullets_bullets" => Ok(fn_check(has_sentences_then_bullets)),
        "title_case" => Ok(fn_check(|text| {
            let mut is_right = true;
            text::for_each_word_token(text, |token| is_right = is_right && is_titled(token));
            is_right
        })),
        "output_template" => Ok(fn_check(|text| TEMPLATE.iter().all(|part| text.contains(part)))),
        "no_whitespace" => Ok(fn_check(|text| !text.contains(python::is_space))),
        _ => return None,
    })
}

/// Returns true if a bracket closes after brackets were nested deeply enough. A closing bracket of the wrong kind
/// resets the depth.
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

/// Returns true if quotes are nested deeply enough. A mark closes the innermost quote if it is the same, and otherwise
/// opens a new one.
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

fn options(parameters: &Parameters<'_>) -> CheckResult {
    let list = parameters.text("options")?;
    let separator = ["/", "or"].into_iter().find(|separator| list.contains(separator)).unwrap_or(",");
    let options = list.split(separator).map(python::strip);
    if is_lettered(list) {
        let options: Vec<String> = options.map(str::to_owned).collect();
        return Ok(fn_check(move |text| options.iter().any(|option| option == text)));
    }
    let bare = |text: &str| python::lower(marks::trim(text));
    let options: Vec<String> = options.map(bare).collect();
    Ok(fn_check(move |text| options.contains(&bare(text))))
}

/// Returns true if options look like the labels `a`, `b`, `c`: their first word characters are these letters.
fn is_lettered(options: &str) -> bool {
    let mut words = options.chars().filter(|&c| python::is_word(c));
    "abc".chars().all(|letter| words.next().is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
}

fn has_one_word_per_line(text: &str) -> bool {
    let text = marks::remove_marks(text);
    let text = python::strip(&text);
    text.split('\n').filter(|line| !line.is_empty()).count() == python::split(text).count()
}

/// Returns true if each sentence ends with an emoji, ignoring punctuation, or the next one starts with one.
fn has_emoji_after_sentences(text: &str) -> bool {
    let sentences: Vec<String> = text::sentences(text).into_iter().map(marks::remove_marks).collect();
    (0..sentences.len()).all(|at| {
        let bare = |at: usize| sentences.get(at).map_or("", |sentence| python::strip(sentence));
        // The second last character counts, too, because a variation selector may follow the emoji.
        !bare(at).is_empty()
            && (bare(at).chars().rev().take(2).any(is_emoji)
                || bare(at + 1).chars().next().is_some_and(is_emoji))
    })
}

/// Returns true if each line starts with more spaces than the one before.
fn has_growing_indents(text: &str) -> bool {
    let lines = without_some_blank_lines(text);
    let indents = lines.iter().map(|line| line.len() - line.trim_start_matches(' ').len());
    indents.is_sorted_by(|before, after| before < after)
}

/// Returns the lines without most blank ones. The official program removes entries from the list that it iterates over,
/// so it skips the line after a removed one, and removes the first line with the same text.
fn without_some_blank_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut kept = vec![true; lines.len()];
    let mut passed: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        if python::strip(line).is_empty() {
            let same = passed.entry(line).or_default();
            same.push_back(at);
            if let Some(first) = same.pop_front().and_then(|first| kept.get_mut(first)) {
                *first = false;
            }
            at += 1;
            if let Some(&next) = lines.get(at).filter(|next| python::strip(next).is_empty()) {
                passed.entry(next).or_default().push_back(at);
            }
        }
        at += 1;
    }
    lines.into_iter().zip(kept).filter_map(|(line, is_kept)| is_kept.then_some(line)).collect()
}

/// Returns true if, ignoring whitespace, no quote follows another and, ignoring digits and other marks, none ends the
/// text.
fn explains_quotes(text: &str) -> bool {
    let text: String = text.replace("'\"'", "").chars().filter(|&c| !python::is_space(c)).collect();
    let is_outer = |c: char| c.is_ascii_digit() || (c.is_ascii_punctuation() && c != '"');
    !text.contains("\"\"") && !text.trim_end_matches(is_outer).ends_with('"')
}

fn list(parameters: &Parameters<'_>) -> CheckResult {
    let separator = parameters.text("sep")?.to_owned();
    Ok(fn_check(move |text| text.matches(&separator).take(SEPARATORS_MIN).count() == SEPARATORS_MIN))
}

/// Returns true if the text has italics with text after them. As in the official program, tag lengths are those of
/// `<i>` and `</i>`, so the rest of a longer `<em>` or `</em>` counts as text.
fn has_thesis(text: &str) -> Option<bool> {
    let start = text.find("<i>").or_else(|| text.find("<em>"))?;
    let text = text.get(start..)?;
    let end = text.find("</i>").or_else(|| text.find("</em>"))?;
    let is_filled = |part: &str| !python::strip(part).is_empty();
    Some(is_filled(text.get("<i>".len()..end)?) && is_filled(text.get(end + "</i>".len()..)?))
}

/// Returns true if the text has sentences followed by bullet lines and nothing else. A blank line ends the sentences.
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

/// Returns false for a token that starts with a lowercase letter and is otherwise all lowercase or all uppercase.
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
            // The first line of two spaces is skipped, and removed in place of the second one.
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
