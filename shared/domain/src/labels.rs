//! Labels of runs: name, tags, notes and visibility. They are for people and for lists, and have no effect on the run or its
//! scores.

use serde::{Deserialize, Serialize};

use crate::Visibility;

/// Maximum length of a run's name, in characters.
pub const NAME_CHARS_MAX: usize = 100;
/// Maximum number of tags of a run.
pub const TAGS_MAX: usize = 16;
/// Maximum length of a tag, in characters.
pub const TAG_CHARS_MAX: usize = 50;
/// Maximum length of a run's notes, in characters.
pub const NOTES_CHARS_MAX: usize = 4_000;
/// Maximum number of characters of an invalid tag that an error quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// Name, tags, notes and visibility of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunLabels {
    /// Name for people; several runs may have the same one. Checked by [`parse_name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tags in the given order, without duplicates. Checked by [`parse_tags`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Text of one or more lines. Checked by [`parse_notes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Visibility to callers other than the owner.
    #[serde(default, skip_serializing_if = "Visibility::is_public")]
    pub visibility: Visibility,
}

/// Error for a name, tag or notes that a run can't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// The name is too long or isn't one line.
    #[error(
        "the name of a run must be one line of at most {NAME_CHARS_MAX} characters, without control characters"
    )]
    Name,
    /// A tag is empty, too long, or has other characters.
    #[error(
        "`{0}` is not a tag: tags have 1 to {TAG_CHARS_MAX} characters, each an ASCII letter, a digit, or one of - _ . : /"
    )]
    Tag(String),
    /// There are too many tags.
    #[error("a run can have {TAGS_MAX} tags at most; these are {0}")]
    TooManyTags(usize),
    /// The notes are too long or have control characters.
    #[error(
        "notes must have at most {NOTES_CHARS_MAX} characters, without control characters other than line feeds and tabs"
    )]
    Notes,
}

impl RunLabels {
    /// Returns true if there is neither a name, a tag nor a note, and the run is public.
    pub const fn is_empty(&self) -> bool {
        self.name.is_none() && self.tags.is_empty() && self.notes.is_none() && self.visibility.is_public()
    }

    /// Returns the tags with `added` ones behind them and without `removed` ones. Tags that are there already are not
    /// added again, and those that aren't there are not removed.
    ///
    /// # Errors
    /// If the result has too many tags.
    pub fn changed_tags(&self, added: &[String], removed: &[String]) -> Result<Vec<String>, InvalidLabel> {
        let kept = self.tags.iter().filter(|tag| !removed.contains(tag));
        parse_tags(&kept.chain(added).cloned().collect::<Vec<_>>())
    }
}

/// Trims and checks the name of a run. A blank text removes it.
///
/// # Errors
/// If the name is too long, or isn't one line of text.
pub fn parse_name(text: &str) -> Result<Option<String>, InvalidLabel> {
    let text = text.trim();
    // Terminals and browsers also break lines at the two separators.
    let is_line = !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
    match is_line && text.chars().count() <= NAME_CHARS_MAX {
        true => Ok((!text.is_empty()).then(|| text.to_owned())),
        false => Err(InvalidLabel::Name),
    }
}

/// Trims and checks a tag.
///
/// # Errors
/// If it is empty, too long, or has other characters than a tag may have.
pub fn parse_tag(text: &str) -> Result<String, InvalidLabel> {
    let tag = text.trim();
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    // Legal characters have one byte each.
    match (1..=TAG_CHARS_MAX).contains(&tag.len()) && tag.chars().all(is_legal) {
        true => Ok(tag.to_owned()),
        false => Err(InvalidLabel::Tag(tag.chars().take(QUOTED_CHARS_MAX).collect())),
    }
}

/// Checks a list of tags, and drops repeated ones.
///
/// # Errors
/// If one of them can't be a tag, or if there are too many.
pub fn parse_tags(texts: &[String]) -> Result<Vec<String>, InvalidLabel> {
    let mut tags: Vec<String> = Vec::with_capacity(texts.len());
    for text in texts {
        let tag = parse_tag(text)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.len() <= TAGS_MAX { Ok(tags) } else { Err(InvalidLabel::TooManyTags(tags.len())) }
}

/// Trims and checks the notes of a run, and turns line ends of other systems into line feeds. A blank text removes them.
///
/// # Errors
/// If they are too long, or have control characters other than line feeds and tabs.
pub fn parse_notes(text: &str) -> Result<Option<String>, InvalidLabel> {
    let text = text.trim().replace("\r\n", "\n");
    let is_text = !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'));
    match is_text && text.chars().count() <= NOTES_CHARS_MAX {
        true => Ok((!text.is_empty()).then_some(text)),
        false => Err(InvalidLabel::Notes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(parse_name("  Größe 7, v2 "), Ok(Some("Größe 7, v2".into())));
        assert_eq!(parse_name(" \t "), Ok(None));
        assert_eq!(parse_name(&"ü".repeat(NAME_CHARS_MAX)), Ok(Some("ü".repeat(NAME_CHARS_MAX))));
        for bad in ["a\nb", "a\u{1b}[2Jb", "a\u{9b}2J", "a\u{2028}b", &"x".repeat(NAME_CHARS_MAX + 1)] {
            assert_eq!(parse_name(bad), Err(InvalidLabel::Name), "{bad:?}");
        }
    }

    #[test]
    fn tags_have_few_characters() {
        assert_eq!(parse_tag(" exp/7:lr-1e_4.v2 "), Ok("exp/7:lr-1e_4.v2".into()));
        assert_eq!(parse_tag(&"x".repeat(TAG_CHARS_MAX)), Ok("x".repeat(TAG_CHARS_MAX)));
        for bad in ["", "  ", "a b", "a,b", "größe", "a\u{1b}b", "#1", &"x".repeat(TAG_CHARS_MAX + 1)] {
            assert!(matches!(parse_tag(bad), Err(InvalidLabel::Tag(_))), "{bad:?}");
        }
        let quoted = parse_tag(&"ü".repeat(1_000)).unwrap_err().to_string();
        assert!(quoted.chars().count() < 250, "{quoted}");
    }

    #[test]
    fn tags_are_counted_without_repeated_ones() {
        assert_eq!(parse_tags(&tags(&["b", "a", "b ", "a"])), Ok(tags(&["b", "a"])));
        let many: Vec<String> = (0..TAGS_MAX).map(|n| n.to_string()).collect();
        assert_eq!(parse_tags(&[many.clone(), many.clone()].concat()), Ok(many.clone()));
        let too_many = [many, tags(&["one-more"])].concat();
        assert_eq!(parse_tags(&too_many), Err(InvalidLabel::TooManyTags(TAGS_MAX + 1)));
    }

    #[test]
    fn tags_are_added_and_removed() {
        let labels = RunLabels { tags: tags(&["a", "b"]), ..RunLabels::default() };
        let changed = |added: &[&str], removed: &[&str]| labels.changed_tags(&tags(added), &tags(removed));
        assert_eq!(changed(&["c", "a"], &["b", "unknown"]), Ok(tags(&["a", "c"])));
        assert_eq!(changed(&[], &[]), Ok(tags(&["a", "b"])));
        assert_eq!(changed(&["b"], &["b"]), Ok(tags(&["a", "b"])), "removed, then added");
        let many: Vec<String> = (0..TAGS_MAX - 1).map(|n| n.to_string()).collect();
        assert_eq!(labels.changed_tags(&many, &[]), Err(InvalidLabel::TooManyTags(TAGS_MAX + 1)));
        assert!(labels.changed_tags(&many, &tags(&["a"])).is_ok());
    }

    #[test]
    fn notes_have_lines() {
        assert_eq!(parse_notes("one\r\n\ttwo\n"), Ok(Some("one\n\ttwo".into())));
        assert_eq!(parse_notes("\n \n"), Ok(None));
        assert!(parse_notes(&"ü".repeat(NOTES_CHARS_MAX)).is_ok());
        for bad in ["a\u{1b}]0;title\u{7}", "over\rwritten", "\u{9b}2J.", &"x".repeat(NOTES_CHARS_MAX + 1)] {
            assert_eq!(parse_notes(bad), Err(InvalidLabel::Notes), "{bad:?}");
        }
    }

    #[test]
    fn labels_are_stored_without_what_is_missing() {
        let named = RunLabels { name: Some("a".into()), ..RunLabels::default() };
        assert_eq!(serde_json::to_string(&named).unwrap(), r#"{"name":"a"}"#);
        assert_eq!(serde_json::to_string(&RunLabels::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<RunLabels>("{}").unwrap(), RunLabels::default());
        assert!(RunLabels::default().is_empty() && !named.is_empty());
    }
}
